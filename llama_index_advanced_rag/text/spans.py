"""Names, numbers, dates and identifiers in a text, by rules: no model, no dictionary of names."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from llama_index_advanced_rag.text.languages import AUTO, NONE, check_language, detect_language
from llama_index_advanced_rag.text.span_rules.lexemes import DATE, NUMBER, SpanKind, lexemes_of
from llama_index_advanced_rag.text.span_rules.names import names_in_run
from llama_index_advanced_rag.text.span_rules.runs import runs_of
from llama_index_advanced_rag.text.span_rules.uncased import uncased_spans
from llama_index_advanced_rag.text.span_rules.vocabulary import vocabulary_of

_EMAIL = re.compile(r"(?<![\w.+-])[\w+-]{1,64}(?:\.[\w+-]{1,64}){0,8}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")


class Span(NamedTuple):
    """A piece of text that names something.

    Attributes:
        start: its first character.
        end: one past its last character.
        kind: "name", "number" (with its unit, its currency, or four digits and more), "date" or "identifier".
    """

    start: int
    end: int
    kind: SpanKind


def find_spans(text: str, *, language: str = AUTO) -> list[Span]:
    """The names, numbers, dates and identifiers of a text, in order, none over another.

    A name is a run of words with a capital, joined by the small words of the language (`University of Copenhagen`, `Banque de France`,
    `Procter & Gamble`). It ends at punctuation, quotes and line breaks; a possessive 's, function words at its ends (`The Beatles`) and
    an elided article (`l'Oréal`) are cut off. The first word of a sentence counts if it is not one that often begins sentences. Runs of
    more than eight words (a heading in capitals) are cut at their small words or left out. German nouns need further evidence
    (`span_rules.german`); scripts without capitals give katakana words, titles between their marks and Latin words. Small numbers
    without a unit and months or days without a figure are not spans.

    Args:
        text: any text; control characters and lone surrogates do no harm. Takes time in proportion to its length.
        language: ISO 639-1 code of `text.languages`; "auto" to detect it by the stop words; "none", like a text that shows no language, is read
            by the rules of English.

    Raises:
        ConfigurationError: unknown language.

    Example:
        >>> text = "In January 1960 the University of Copenhagen paid $2.5 million to Boritzer's Big Apple Inc."
        >>> [(text[start:end], kind) for start, end, kind in find_spans(text)]  # doctest: +NORMALIZE_WHITESPACE
        [('January 1960', 'date'), ('University of Copenhagen', 'name'), ('$2.5 million', 'number'), ('Boritzer', 'name'),
         ('Big Apple Inc', 'name')]
        >>> text = "L'architecture de l'Oréal : 12 % selon Amélie de Montchalin, le 1er juillet 2023."
        >>> [text[start:end] for start, end, _ in find_spans(text, language="fr")]
        ['Oréal', '12 %', 'Amélie de Montchalin', '1er juillet 2023']
    """
    check_language(language)
    found = detect_language(text) if language == AUTO else language
    spans = list(_cased_spans(text, None if found == NONE else found))
    others = [Span(*span) for span in uncased_spans(text)]
    if "@" in text:
        others = [Span(match.start(), match.end(), "identifier") for match in _EMAIL.finditer(text)] + others
    return spans if not others else _first_come(others, spans)


def _cased_spans(text: str, language: str | None) -> Iterator[Span]:
    vocabulary = vocabulary_of(language)
    for run in runs_of(text, lexemes_of(text), vocabulary):
        if run[0].kind in (DATE, NUMBER):
            yield Span(run[0].start, run[0].end, run[0].kind)
        else:
            for start, end, kind in names_in_run(text, run, vocabulary):
                yield Span(start, end, kind)


def _first_come(preferred: list[Span], others: list[Span]) -> list[Span]:
    """Both lists in order; of two spans that overlap the preferred one, or the one that begins first."""
    kept: list[tuple[bool, Span]] = []
    for is_other, span in sorted([(False, span) for span in preferred] + [(True, span) for span in others], key=lambda item: (item[1].start, item[0])):
        while not is_other and kept and kept[-1][1].end > span.start and kept[-1][0]:
            kept.pop()
        if not kept or kept[-1][1].end <= span.start:
            kept.append((is_other, span))
    return [span for _, span in kept]
