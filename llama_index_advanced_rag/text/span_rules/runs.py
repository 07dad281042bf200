"""Runs of words with a capital: which of them go on as one name."""

from collections.abc import Iterable, Iterator

from llama_index_advanced_rag.text.span_rules.lexemes import CODE, DATE, FIGURE, NUMBER, WORD, YEAR, Lexeme
from llama_index_advanced_rag.text.span_rules.lone import REFERENCES
from llama_index_advanced_rag.text.span_rules.vocabulary import Vocabulary
from llama_index_advanced_rag.text.span_rules.word_list import words_of

_LONGEST_GAP = 12
_LONGEST_FIGURE = 4
_LONGEST_WORD_BEFORE = 24
_SPACES = frozenset(" \u00a0\u202f")
_SUFFIXES = words_of("inc ltd llc llp lp jr sr corp co plc gmbh sa ag nv")
_OWNING = words_of("""
    men women children people master bachelor king queen lord lady valentine levi mcdonald lloyd moody sotheby christie macy kellogg domino wendy
    player veteran hell writer critic reader prince princess guinness bishop devil farmer
    """)
_SAINTS = ("St.", "St", "Saint")


def runs_of(text: str, lexemes: Iterable[Lexeme], vocabulary: Vocabulary) -> Iterator[list[Lexeme]]:
    """The lexemes in groups: each group is one name, before its ends are trimmed, or one date, number or figure.

    Args:
        text: the text.
        lexemes: its lexemes, in order.
        vocabulary: that of its language.
    """
    run: list[Lexeme] = []
    for lexeme in lexemes:
        if run:
            while run and lexeme.start <= run[-1].start:
                run.pop()  # The month or ordinal that a date begins with had been read as a word.
            if run and lexeme.start - run[-1].end <= _LONGEST_GAP and _goes_on(text, run, lexeme, vocabulary):
                run.append(lexeme)
                continue
            if run:
                yield run
        run = [lexeme]
    if run:
        yield run


def _goes_on(text: str, run: list[Lexeme], lexeme: Lexeme, vocabulary: Vocabulary) -> bool:
    last, kind = run[-1], lexeme.kind
    gap = text[last.end : lexeme.start]
    if kind == WORD:
        if gap in _SPACES:
            return _next_word_goes_on(text, run, lexeme, vocabulary)
        return last.kind in (WORD, CODE) and _is_joined(run, lexeme, gap, vocabulary)
    if kind in (DATE, NUMBER) or last.kind != WORD or gap not in _SPACES or last.end - last.start == 1:
        return False
    word = last.text.lower()
    says_nothing = word in (vocabulary.openers if len(run) == 1 else vocabulary.stop_words)
    return (not says_nothing or word in REFERENCES) and _figure_goes_on(text, lexeme)


def _figure_goes_on(text: str, lexeme: Lexeme) -> bool:
    """Whether a figure belongs to the word before it: `Super Bowl 50`, not the first cell of a row of figures."""
    if lexeme.kind == CODE:
        return True
    if len(lexeme.text) > _LONGEST_FIGURE or not lexeme.text.isdigit():
        return False
    after = text[lexeme.end : lexeme.end + 4]
    return not (after.lstrip(" $€£(–-")[:1].isdigit() or (after[:1] in ("%", ",", ".") and after[1:2].isdigit()))


def _is_joined(run: list[Lexeme], lexeme: Lexeme, gap: str, vocabulary: Vocabulary) -> bool:
    """Whether what stands between two words is a part of one name."""
    last = run[-1]
    if gap in vocabulary.connectors:
        if vocabulary.reads_english and lexeme.text.lower() in vocabulary.stop_words:
            return False
        return gap == " & " or last.text.isupper() or not _is_acronym(lexeme.text)
    if gap in vocabulary.after_heads:
        return last.text.lower() in vocabulary.heads
    if gap == " the ":
        return lexeme.text.lower() in vocabulary.epithets
    if gap == ", ":
        return lexeme.text.rstrip(".").lower() in _SUFFIXES
    if gap in ("'s ", "’s "):
        return last.text.lower() in _OWNING or run[0].text in _SAINTS
    return False


def _is_acronym(word: str) -> bool:
    return len(word) > 2 and word.isupper()


def _next_word_goes_on(text: str, run: list[Lexeme], lexeme: Lexeme, vocabulary: Vocabulary) -> bool:
    """Whether a name goes on over a space: not with a function word after a full stop, nor after the year of `In 2018 Apple`."""
    last = run[-1]
    if last.kind == WORD:
        if last.text[-1] != ".":
            return True
        is_roman = len(run) > 1 and last.text in ("I.", "V.", "X.")
        return not is_roman and lexeme.text.lower() not in vocabulary.openers
    if len(run) == 1 and last.kind == YEAR:
        return _word_before(text, last.start) not in vocabulary.before_years and lexeme.text.lower() not in vocabulary.stop_words
    return last.kind not in (DATE, NUMBER) and (len(run) > 1 or last.kind != FIGURE)


def _word_before(text: str, start: int) -> str:
    words = text[max(0, start - _LONGEST_WORD_BEFORE) : start].split()
    return words[-1].lower() if words else ""
