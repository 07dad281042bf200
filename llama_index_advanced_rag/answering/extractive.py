"""An answer without an LLM: the best sentences of the best nodes, each cited."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from llama_index_advanced_rag.answering.asked import Asked, read_question, words_and_pairs
from llama_index_advanced_rag.answering.context import NumberedSentence
from llama_index_advanced_rag.answering.dates import says_another
from llama_index_advanced_rag.answering.units import Role, Unit, Words, read_units
from llama_index_advanced_rag.answering.wording import AnswerKind, gives
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

_NEAR, _FAR = 0.5, 0.2  # what a word of the question counts that stands elsewhere in the passage, or in the document
_LABEL_SHARE = 0.5  # of a row or "label: value": how much of its label the question says
_PROSE, _FRAGMENT = 0.9, 0.6  # what their share counts beside that of a row whose label the question says
_OTHER_PERIOD, _COMPARED_PERIOD = 0.7, 0.9
_KIND_BONUS = 0.15
_RANK_DECAY = 0.02
_PAIR_WEIGHT = 0.8
_LENGTH_SHARE, _USUAL_LENGTH = 0.15, 20
# Shares of the best score from which a sentence is quoted beside it: one that says as much, one that says more of the
# question, one that does so right behind it, one that holds the kind of thing asked for, and another row of the same table.
_KEEP_ABOVE, _KEEP_NEW_ABOVE, _KEEP_NEXT_ABOVE, _KEEP_GIVING_ABOVE, _KEEP_ROW_ABOVE = 0.9, 0.8, 0.5, 0.6, 0.95
_SAME_ABOVE = 0.8  # share of common words from which two sentences say the same
_LEAST_COVERAGE, _ENOUGH_WORDS = 0.5, 6
_LEAST_SIMILARITY, _LEAST_LEAD = 0.5, 0.1
_SIMILARITY_SHARE = 0.3
_COMPARED, _COMPARED_WITHOUT_WORDS = 16, 48


@dataclass(frozen=True, slots=True)
class Extract:
    """A sentence chosen for the answer.

    Attributes:
        sentence: the sentence.
        score: higher is better, 0 to 1.15.
        lead: head of its table, or what announces its list, when it is a row or an item.
        items: what it announces, in order, when it is an announcement.
    """

    sentence: NumberedSentence
    score: float
    lead: NumberedSentence | None = None
    items: tuple[NumberedSentence, ...] = ()


@dataclass(frozen=True, slots=True)
class _Scored:
    extract: Extract
    role: Role
    own: Words
    said: frozenset[int]
    gives: bool


def extract_sentences(
    question: str,
    sentences: Sequence[NumberedSentence],
    *,
    analyzer: TextAnalyzer,
    similarities: Mapping[int, float] | None = None,
    max_sentences: int = 3,
) -> list[Extract]:
    """Choose the sentences that answer a question; none when no passage does.

    Each word of the question weighs `ln(1 + n / n(word))` over the n sentences, a pair of neighbouring words 0.8 of that; a date
    or quarter is one word, and "June 30, 1862" is the same as "30th June, 1862". It counts 1 when it stands in the sentence or
    in what that stands under (title, heading, head of the table, announcement of the list, question before it), 0.5 when
    elsewhere in its passage, 0.2 in its document.

    Score = (share of the question, so weighed, x form + 0.15 when the sentence holds the kind of thing asked for) x names x
    period / (1 + 0.02 (rank of the passage - 1)). Form: 0.9 for prose, 0.6 for a fragment, and for a row or "label: value" 0.5
    to 1 by how much of its label the question says; less for a long sentence. Names: 0.5 to 1 for the share of the
    question's names that its document has. Period: 0.9, of a row 0.7, when it speaks of other days or quarters only. With
    similarities, 0.3 of the score of prose is its similarity, scaled from 0 to the best score.

    Headings and questions are no answers. A sentence is relevant when it has a word of the question that its title has not (or
    stands right behind a heading or question that has), its document has one of the question's names, if any, and its
    passage has half of the words (a name counts twice) or 6 of them. Where there is none, sentences are whose similarity
    is at least 0.5 and 0.1 above the median.

    Args:
        question: the question.
        sentences: the numbered sentences of the context, in order.
        analyzer: turns question and sentences into comparable words.
        similarities: sentence number -> cosine with the question, at least for `sentences_to_compare`; None = words only.
        max_sentences: most sentences returned.

    Returns:
        At most `max_sentences`, best first, no two saying the same: those with at least 0.9 of the best score that say as much of
        the question, 0.8 that say more of it (0.5 right behind the best), 0.6 that hold the kind of thing asked for when the better ones do not
        (0.95 for a row of the same table). When the best says a date of the question, the others do.
    """
    scored = _score(question, sentences, analyzer)
    if similarities:
        scored = _ranked(_blended(scored, similarities) if scored else _leading(sentences, similarities, analyzer))
    return _distinct(scored, read_question(question, analyzer), max_sentences)


def rank_sentences(question: str, sentences: Sequence[NumberedSentence], *, analyzer: TextAnalyzer) -> list[Extract]:
    """All relevant sentences, best first, by their words."""
    return [item.extract for item in _score(question, sentences, analyzer)]


def sentences_to_compare(question: str, sentences: Sequence[NumberedSentence], *, analyzer: TextAnalyzer) -> list[NumberedSentence]:
    """The sentences worth an embedding: the 16 best by their words; where no words fit, the first 48."""
    ranked = rank_sentences(question, sentences, analyzer=analyzer)
    return [extract.sentence for extract in ranked[:_COMPARED]] or list(sentences[:_COMPARED_WITHOUT_WORDS])


def _ranked(scored: Iterable[_Scored]) -> list[_Scored]:
    return sorted(scored, key=lambda item: (-item.extract.score, item.extract.sentence.number))


def _score(question: str, sentences: Sequence[NumberedSentence], analyzer: TextAnalyzer) -> list[_Scored]:
    """The relevant sentences scored by their words, best first."""
    asked = read_question(question, analyzer)
    if not asked.groups:
        return []
    units = read_units(sentences, lambda text: words_and_pairs(analyzer.tokens(text)))
    said = [asked.said_in(unit.own | unit.heard, unit.titled_text) for unit in units]
    own = [asked.said_in(unit.own, unit.sentence.text) for unit in units]
    places = _Places(asked, units, said)
    weights = _weights(own, said, asked)
    best_rank = _best_ranks(sentences)
    result: list[_Scored] = []
    for unit, said_here, own_here in zip(units, said, own, strict=True):
        if _says_nothing(unit, said_here, own_here, asked) or not places.is_relevant(unit.sentence):
            continue
        share = _own_share(unit, places.share(unit.sentence, said_here, weights), asked) * _brevity(unit)
        gives_kind = gives(asked.kind, unit.sentence.text, question=question)
        fit = places.names(unit.sentence) * _period_fit(unit, said_here, asked)
        score = (share + _KIND_BONUS * gives_kind) * fit / (1 + _RANK_DECAY * (best_rank[unit.sentence.passage] - 1))
        result.append(_Scored(Extract(unit.sentence, score, unit.lead, unit.items), unit.role, unit.own, said_here, gives_kind))
    return _ranked(result)


def _weights(own: Sequence[frozenset[int]], said: Sequence[frozenset[int]], asked: Asked) -> list[float]:
    """Weight of each part of the question: the rarer among the sentences, the more; most where it stands in none."""
    counts = [sum(group in here for here in (said if group in asked.date_groups else own)) for group in range(len(asked.groups))]
    return [math.log(1 + len(own) / max(count, 1)) * (1.0 if group < asked.n_parts else _PAIR_WEIGHT) for group, count in enumerate(counts)]


def _best_ranks(sentences: Sequence[NumberedSentence]) -> dict[int, int]:
    best: dict[int, int] = {}
    for sentence in sentences:
        best[sentence.passage] = min(sentence.node_rank, best.get(sentence.passage, sentence.node_rank))
    return best


class _Places:
    """What is said of the question in each passage and each document."""

    def __init__(self, asked: Asked, units: Sequence[Unit], said: Sequence[frozenset[int]]) -> None:
        self._asked = asked
        self._passages: dict[int, set[int]] = {}
        self._documents: dict[str, set[int]] = {}
        for unit, here in zip(units, said, strict=True):
            self._passages.setdefault(unit.sentence.passage, set()).update(here)
            self._documents.setdefault(_document(unit.sentence), set()).update(here)

    def is_relevant(self, sentence: NumberedSentence) -> bool:
        """Whether the passage has enough words of the question, and the document one of its names when it has any."""
        names, parts = self._asked.names, self._asked.n_parts
        if names and not names & self._documents[_document(sentence)]:
            return False
        said = {group for group in self._passages[sentence.passage] if group < parts}
        return len(said) >= _ENOUGH_WORDS or len(said) + len(said & names) >= _LEAST_COVERAGE * (parts + len(names))

    def share(self, sentence: NumberedSentence, said: frozenset[int], weights: Sequence[float]) -> float:
        passage, document = self._passages[sentence.passage], self._documents[_document(sentence)]
        parts = [1.0 if group in said else _NEAR if group in passage else _FAR if group in document else 0.0 for group in range(len(weights))]
        return sum(part * weight for part, weight in zip(parts, weights, strict=True)) / sum(weights)

    def names(self, sentence: NumberedSentence) -> float:
        names = self._asked.names
        return 0.5 + 0.5 * len(names & self._documents[_document(sentence)]) / len(names) if names else 1.0


def _document(sentence: NumberedSentence) -> str:
    return sentence.ref_doc_id or sentence.node_id


def _says_nothing(unit: Unit, said: frozenset[int], own: frozenset[int], asked: Asked) -> bool:
    """Whether a sentence cannot be an answer: a heading or question, or one that says no more of the question than its title."""
    if unit.role is Role.HEADING or not unit.own or not said or not (own or unit.opens):
        return True
    title = asked.said_in(unit.title, unit.sentence.title)
    if own <= title and not unit.opens and not asked.all_parts <= title:
        return True
    if unit.role is Role.ROW and asked.kind is AnswerKind.REASON:
        return True
    return unit.role is not Role.ANNOUNCEMENT and asked.holds_all(unit.own) and not unit.sentence.text.endswith((".", "!", "…"))


def _own_share(unit: Unit, share: float, asked: Asked) -> float:
    if unit.label is None:
        return share * (_FRAGMENT if unit.role is Role.FRAGMENT else _PROSE)
    fit = sum(asked.holds(word) for word in unit.label) / len(unit.label) if unit.label else 0.0
    return share * (1 - _LABEL_SHARE + _LABEL_SHARE * fit)


def _period_fit(unit: Unit, said: frozenset[int], asked: Asked) -> float:
    """Below 1 for what speaks of other days or quarters only; prose may name them for comparison."""
    if said & asked.date_groups or not says_another(unit.text, asked.dates):
        return 1.0
    return _OTHER_PERIOD if unit.lead is not None or unit.role is Role.ROW else _COMPARED_PERIOD


def _brevity(unit: Unit) -> float:
    """Below 1 for long sentences, which hold words of the question by chance."""
    length = sum(" " not in word for word in unit.own)
    return min(1.0, 1 / (1 + _LENGTH_SHARE * (length / _USUAL_LENGTH - 1)))


def _blended(scored: Sequence[_Scored], similarities: Mapping[int, float]) -> list[_Scored]:
    """Scores of prose mixed with its similarity; embedding models cannot read rows of figures, so these keep their score."""
    known = [similarities[item.extract.sentence.number] for item in scored if item.extract.sentence.number in similarities]
    if not known:
        return list(scored)
    low, width, best = min(known), (max(known) - min(known)) or 1.0, scored[0].extract.score
    return [_closer(item, similarities, low=low, scale=best / width) for item in scored]


def _closer(item: _Scored, similarities: Mapping[int, float], *, low: float, scale: float) -> _Scored:
    similarity = similarities.get(item.extract.sentence.number)
    if similarity is None or item.role is Role.ROW:
        return item
    score = (1 - _SIMILARITY_SHARE) * item.extract.score + _SIMILARITY_SHARE * (similarity - low) * scale
    return replace(item, extract=replace(item.extract, score=score))


def _leading(sentences: Sequence[NumberedSentence], similarities: Mapping[int, float], analyzer: TextAnalyzer) -> list[_Scored]:
    least = max(_LEAST_SIMILARITY, median(similarities.values()) + _LEAST_LEAD)
    return [
        _Scored(Extract(sentence, similarities[sentence.number]), Role.PROSE, frozenset(analyzer.tokens(sentence.text)), frozenset(), gives=False)
        for sentence in sentences
        if similarities.get(sentence.number, 0.0) >= least and not sentence.text.endswith("?")
    ]


def _distinct(scored: Sequence[_Scored], asked: Asked, most: int) -> list[Extract]:
    chosen: list[_Scored] = []
    for item in scored:
        if len(chosen) < most and (not chosen or _adds(item, chosen, asked)) and not any(_repeats(item, other) for other in chosen):
            chosen.append(item)
    return [item.extract for item in chosen]


def _adds(item: _Scored, chosen: Sequence[_Scored], asked: Asked) -> bool:
    """Whether a sentence is worth quoting beside those chosen, the best one first."""
    best, share = chosen[0], item.extract.score / chosen[0].extract.score
    if best.said & asked.date_groups and not item.said & asked.date_groups:
        return False  # the figure asked for, of another period
    if item.gives and not any(other.gives for other in chosen):
        return share >= _KEEP_GIVING_ABOVE
    if item.said.difference(*(other.said for other in chosen)):
        follows = item.extract.sentence.number == best.extract.sentence.number + 1 and item.role is best.role
        return share >= (_KEEP_NEXT_ABOVE if follows else _KEEP_NEW_ABOVE)
    if item.extract.lead is not None and item.extract.lead == best.extract.lead:  # another row of the same table
        return item.said >= best.said and share >= _KEEP_ROW_ABOVE
    return item.said >= {group for group in best.said if group < asked.n_parts} and share >= _KEEP_ABOVE


def _repeats(item: _Scored, other: _Scored) -> bool:
    if item.extract.sentence in other.extract.items or other.extract.sentence in item.extract.items:
        return True
    return len(item.own & other.own) >= _SAME_ABOVE * len(item.own | other.own)
