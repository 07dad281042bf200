"""Everything that stands in a question and says how to look for its answer."""

from dataclasses import dataclass
from functools import lru_cache

from llama_index_advanced_rag.text.languages import AUTO, check_language
from llama_index_advanced_rag.text.question_routes.bridges import bridges_in
from llama_index_advanced_rag.text.question_routes.figures import figures_in
from llama_index_advanced_rag.text.question_routes.joins import joins_in, side_by_side_in
from llama_index_advanced_rag.text.question_routes.names import names_in
from llama_index_advanced_rag.text.question_routes.places import places_in
from llama_index_advanced_rag.text.question_routes.single import single_in
from llama_index_advanced_rag.text.question_routes.sums import sums_in
from llama_index_advanced_rag.text.question_routes.talk import talk_in
from llama_index_advanced_rag.text.question_routes.wording import Sign, Wording, read_wording


@dataclass(frozen=True, slots=True)
class QuestionSignals:
    """What stands in a question.

    Attributes:
        languages: ISO 639-1 codes of the languages whose rules were read: one, both if the question shows no language, none if it is in a third.
        names: the names in it, as written.
        talk: what shows that no document is needed; empty unless the whole question needs none and names no place.
        places: places in documents (chapter 3, which page, where in the manual).
        figures: figures of reports, with their period.
        joins: comparisons, relations, causes, whole lists, changes over time.
        bridges: what is described through something else, one each.
        side_by_side: two names with `and` between them, which may be one name after all.
        single: the sign that one thing is asked of one name or term.
    """

    languages: tuple[str, ...]
    names: tuple[str, ...] = ()
    talk: tuple[Sign, ...] = ()
    places: tuple[Sign, ...] = ()
    figures: tuple[Sign, ...] = ()
    joins: tuple[Sign, ...] = ()
    bridges: tuple[Sign, ...] = ()
    side_by_side: tuple[Sign, ...] = ()
    single: tuple[Sign, ...] = ()


@lru_cache(maxsize=64)
def read_question_signals(question: str, language: str = AUTO) -> QuestionSignals:
    """Read a question by rules: no model, no index.

    Args:
        question: any text. Of one with more than 4,000 characters the first and the last 1,000 are read. Takes time in proportion to its length.
        language: ISO 639-1 code of `text.languages`, or "auto" to detect it. Only English and French have rules; in a third language only what
            needs no words is read (a numbered heading, a sum in figures).

    Raises:
        ConfigurationError: unknown language.

    Example:
        >>> signals = read_question_signals("What does clause 12.2 of the Dublin lease say?")
        >>> signals.names, [str(sign) for sign in signals.places]
        (('Dublin',), ['"clause 12.2" is a place in a document'])
    """
    wording = read_wording(question, check_language(language))
    names, places = names_in(wording), places_in(wording)
    talk = () if places else (*sums_in(wording), *talk_in(wording, len(names)))
    if talk or not wording.languages:
        return QuestionSignals(wording.languages, _written(wording, names), talk, tuple(places))
    bridges, joins = bridges_in(wording, names), joins_in(wording, names)
    return QuestionSignals(
        languages=wording.languages,
        names=_written(wording, names),
        places=tuple(places),
        figures=tuple(figures_in(wording, len(names))),
        joins=tuple(joins),
        bridges=tuple(bridges),
        side_by_side=tuple(side_by_side_in(wording, names)),
        single=tuple(single_in(wording, len(names))),
    )


def _written(wording: Wording, names: list[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(wording.written[start:end] for start, end in names)
