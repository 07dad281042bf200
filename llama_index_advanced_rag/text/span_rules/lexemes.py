"""What may begin, continue or be a span: words with a capital, figures, dates and amounts. Everything else is passed over."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from llama_index_advanced_rag.text.span_rules.calendar import BEFORE_YEAR, CALENDAR_WORDS, DAY_FIRST, IN_FIGURES, MONTH_FIRST, QUARTER, YEAR_AND_QUARTER
from llama_index_advanced_rag.text.span_rules.letters import CAPITAL, LETTER
from llama_index_advanced_rag.text.span_rules.word_list import words_of

SpanKind = Literal["name", "number", "date", "identifier"]
WORD, YEAR, FIGURE, CODE, DATE, NUMBER = "word", "year", "figure", "code", "date", "number"
ENOUGH_DIGITS = 4
"""So many digits make a number say something without a unit."""

# A word is read whole; a figure or a currency sign is only met, and read by _FIGURE. What comes first is one class of characters, because
# `re` skips to its members fast. A capital inside a word begins one only after a single small letter (iPhone).
_BEGIN = re.compile(
    rf"""
    [{CAPITAL}\d$€£¥]
    (?:(?<!{LETTER}.) | (?<=[a-z][{CAPITAL}])(?<!{LETTER}[a-z].) | (?<=[$€£¥]))
    (?:(?<=[{CAPITAL}])(?:
        (?:\.[{CAPITAL}](?!{LETTER}))+\.?
      | {LETTER}*(?:(?:[-‐‑&](?={LETTER})|[–/](?=[{CAPITAL}\d])|\.(?=(?:com|org|net|io|js|ai|fr|de|eu|uk|gov|edu)(?!\w))|['’](?!s(?!\w))){LETTER}+)*(?:\+\+|\#)?
    ))?
    """,
    re.VERBOSE | re.DOTALL,
)
_ABBREVIATIONS = words_of("Mr Mrs Ms Dr St Ste Mt Ft Prof Gen Sen Gov Rev Lt Col Sgt Capt Mme Mlle Jr Sr Sra Bros Inc Corp Ltd Co Hr Fr Sig Dott")
_UNIT = r"""(?:%|‰|°[CF]\b|[kKM]?€|M[dr]s?[ ]?€|M[dr]d?[$€]|[$£¥](?![ ]?\d)
  |(?:millions?|billions?|trillions?|milliards?|Millionen|Milliarden|Mio|Mrd|Md|millones|mil|milioni|miliardi|milhões|bilhões|miljoen|miljard|bn|mn|m|M|K|k|B|T
     |[Ee]uros?|[Dd]ollars?|pounds?|USD|EUR|GBP|CHF|JPY|percent|per[ ]cent|pour[ ]cent|Prozent
     |km/h|mph|km²|m²|m³|km|cm|mm|nm|miles?|ft|feet|foot|inch(?:es)?|acres?|hectares?|ha|kg|mg|g|tonnes?|tons?|lbs?|oz|ml|[lL]
     |[kMGT]Wh|[kMG]W|[KMGT][Bo]|[kMG]?Hz)(?!\w))"""
# Bounded, so that a megabyte of digits is passed over in one step.
_FIGURES = r"(?:\d{1,3}(?:[.,'’\u00a0\u202f\u2009]\d{3}){1,8}(?:[.,]\d{1,12})?(?!\d)|\d{1,24}(?:[.,]\d{1,12}){0,8}(?!\d))"
_FIGURE = re.compile(
    rf"""
    (?P<date>{IN_FIGURES}|{DAY_FIRST}|{YEAR_AND_QUARTER})
  | (?P<number>[$€£¥][ \u00a0]?{_FIGURES}(?:[ \u00a0\u202f-]?(?![$£¥]){_UNIT}){{0,2}}
      | (?:{_FIGURES}|\d{{1,3}}(?:[ ]\d{{3}}){{1,6}}(?:,\d{{1,6}})?)(?:[ \u00a0\u202f-]?{_UNIT}){{1,2}})
  | (?P<code>\d{{1,6}}(?:st|nd|rd|th|ª|º)(?!\w)
      | (?:\d{{1,24}}[-‐‑]\d{{0,24}}[{CAPITAL}]{LETTER}*|\d[{CAPITAL}]{LETTER}*|\d{{2,24}}[{CAPITAL}][{CAPITAL}\d]*(?!{LETTER}))(?:[-‐‑]{LETTER}+)*)
  | (?P<year>(?:1\d|20)\d\d(?:[-–](?:(?:1\d|20)\d\d|\d\d)|s)?(?![\w%]|[.,:/-]\d))
  | (?P<figure>{_FIGURES}(?!\w))
    """,
    re.VERBOSE,
)
_ELIDED = re.compile(r"(?:[LlDdJjNnMmSsTtCc]|[Qq]u|[Ll]orsqu|[Pp]uisqu|[Jj]usqu|[Dd]ell|[Nn]ell|[Dd]all|[Aa]ll|[Ss]ull|[Uu]n|[Qq]uest)['’]")
_DATE = re.compile(rf"{MONTH_FIRST}|{QUARTER}")
_BEGIN_DATES = frozenset("QTF")
_MAY_BEGIN_DATES = frozenset(map(str.capitalize, CALENDAR_WORDS)) | {"FY"}
_QUIET = frozenset(' ,\n()"')
_BEFORE_YEAR = re.compile(BEFORE_YEAR)
_LONGEST_BEFORE_YEAR = 48


class Lexeme(NamedTuple):
    """A piece of text that matters.

    Attributes:
        start: its first character.
        end: one past its last character.
        kind: "word" (has a capital), "year", "figure" (a small number), "code" (figures with letters), "date" or "number".
        text: its characters.
    """

    start: int
    end: int
    kind: str
    text: str


def lexemes_of(text: str) -> Iterator[Lexeme]:
    """The lexemes of a text, in order; one pass, linear in the text.

    Example:
        >>> [(lexeme.text, lexeme.kind) for lexeme in lexemes_of("the 10-Q that Apple Inc. filed on July 1, 2023, for $ 2.5 million")]
        [('10-Q', 'code'), ('Apple', 'word'), ('Inc.', 'word'), ('July 1, 2023', 'date'), ('$ 2.5 million', 'number')]
    """
    position = 0
    for begin in _BEGIN.finditer(text):
        start, end = begin.span()
        if start < position:
            continue
        word = begin.group()
        before, after = text[start - 1 : start], text[end : end + 1]
        if before in _QUIET and after in _QUIET and word.isalpha() and word not in _MAY_BEGIN_DATES:
            yield Lexeme(start, end, WORD, word)
            continue
        lexeme = _word(text, start, end, word) if word[0].isalpha() else _figure(text, start)
        if lexeme is not None:
            position = lexeme.end
            yield lexeme


def _word(text: str, start: int, end: int, word: str) -> Lexeme | None:
    elided = _ELIDED.match(word) if "'" in word or "’" in word else None
    if elided is not None:
        begins_with_capital = word[elided.end()].isupper()
        if begins_with_capital and word[0] in "DMN" and elided.end() == len("D'"):
            return Lexeme(start, end, WORD, word)
        return Lexeme(start + elided.end(), end, WORD, word[elided.end() :]) if begins_with_capital else None
    if word in _MAY_BEGIN_DATES or word[0] in _BEGIN_DATES:
        date = _DATE.match(text, start)
        if date is not None:
            return Lexeme(start, date.end(), DATE, date.group())
    if text[end : end + 1] == "." and (end - start == 1 or word in _ABBREVIATIONS) and text[end + 1 : end + 2] in " \u00a0-":
        return Lexeme(start, end + 1, WORD, f"{word}.")
    if start and text[start - 1].islower():
        return Lexeme(start - 1, end, WORD, text[start - 1 : end])
    return Lexeme(start, end, WORD, word)


def _figure(text: str, start: int) -> Lexeme | None:
    token = _FIGURE.match(text, start)
    if token is None:
        return None
    end, surface, kind = token.end(), token.group(), token.lastgroup or FIGURE
    if kind == YEAR:
        before = _BEFORE_YEAR.search(text, max(0, start - _LONGEST_BEFORE_YEAR), start)
        return Lexeme(start, end, YEAR, surface) if before is None else Lexeme(before.start(), end, DATE, text[before.start() : end])
    if kind == FIGURE and len(surface) > ENOUGH_DIGITS and sum(map(str.isdigit, surface[:64])) >= ENOUGH_DIGITS:
        return Lexeme(start, end, NUMBER, surface)
    return Lexeme(start, end, kind, surface)
