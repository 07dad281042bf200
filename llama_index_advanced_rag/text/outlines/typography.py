"""Lines that look like headings: short, in capitals or in title case, standing alone over running text."""

import re
from collections import Counter
from collections.abc import Sequence

from llama_index_advanced_rag.text.lines import is_list_item, is_table_row
from llama_index_advanced_rag.text.outlines.drafts import RANK_CAPITALS, RANK_TITLE_CASE, RANK_TOP, Draft, HeadingSource
from llama_index_advanced_rag.text.outlines.lines import Layout
from llama_index_advanced_rag.text.outlines.titles import is_hanging, is_rest, is_small_word, read_title

_MAX_SIZE = 110
_MAX_WORDS = 14
_MAX_TIMES = 8
_MIN_PROSE = 60
_PROSE_SHARE = 0.6
_CAPITAL_SHARE = 0.75
_LONG_WORD = 4
_MIN_LETTERS = 3
_LOW_RANK = 7.0
_MIN_WORDS_OF_PROSE = 12
_MIN_LEAD_IN = 35
_ASIDE = re.compile(r"\s*\([^()]{1,60}\)$")
_UNITS = re.compile(r"\((?:in|unaudited|non audité|en)\b", re.IGNORECASE)
_DATE = re.compile(r"(?:\b(?:19|20)\d\d|\d)$")
_CONTINUED = re.compile(r"\((?:continued|suite|fortsetzung|continuación)\)", re.IGNORECASE)
_END_TITLES = (
    "signature|signatures|unterschriften|firmas|references|bibliography|acknowledgements|acknowledgments|glossary|références|bibliographie|"
    "remerciements|glossaire|literatur|literaturverzeichnis|danksagung|glossar|referencias|bibliografía|agradecimientos|glosario"
)
_AT_TOP = frozenset(_END_TITLES.split("|"))
_SIGNATURE = re.compile(r"/s/|^by:|^fait à", re.IGNORECASE)
_SIGNATURE_REACH = 4
_SIGNED = re.compile(r"^to the\b|^dear\b|/s/|^by:|^date:|^fait à|☐|☒|☑|\$|€|@|www\.|://", re.IGNORECASE)
_FORM = re.compile(r"[_☐☒☑|<>=*]|[.…]{3}")
_SENTENCE_ENDS = '.!?:;”"»)…。：；！？'


def typographic_headings(layout: Layout, taken: Sequence[Draft], skipped: frozenset[int]) -> list[Draft]:
    r"""Headings by their looks only, in order.

    A line counts when it is short and in capitals or title case, has no final mark, begins a page or a paragraph, is no row, item or
    running line, and running text, another such heading with running text, or (for capitals) a table with its unit follows.

    Args:
        layout: The lines of the text.
        taken: The headings that are known, in order.
        skipped: Lines that are no headings: those of tables of contents.

    Example:
        >>> from llama_index_advanced_rag.text.outlines.lines import read_layout
        >>> prose = "The lessee pays the rent on the first day of each month in advance and without deduction."
        >>> layout = read_layout(f"{prose}\n\nLate Payment\n{prose}\n\nTotal\n12\n")
        >>> [draft.title for draft in typographic_headings(layout, (), frozenset())]
        ['Late Payment']
    """
    starts = {draft.start: draft for draft in taken}
    inside = _lines_of(layout, taken)
    times = Counter(line.text for line in layout.lines)
    found: dict[int, Draft] = {}
    for index in range(len(layout.lines) - 1, -1, -1):
        line = layout.lines[index]
        if index in skipped or index in layout.running or index in inside or line.size > _MAX_SIZE or times[line.text] > _MAX_TIMES:
            continue
        rank = _look(line.text)
        if rank is None or not _begins(layout, index, starts):
            continue
        title, body = read_title(layout, index)
        if _leads_to_text(layout, index, body, rank, found, starts):
            found[index] = Draft(line.start, body, title, rank, HeadingSource.TYPOGRAPHY)
    return [found[index] for index in sorted(found)]


def _lines_of(layout: Layout, taken: Sequence[Draft]) -> set[int]:
    inside: set[int] = set()
    place = 0
    for index, line in enumerate(layout.lines):
        while place < len(taken) and taken[place].body <= line.start and taken[place].start < line.start:
            place += 1
        if place < len(taken) and taken[place].start <= line.start < max(taken[place].body, taken[place].start + 1):
            inside.add(index)
    return inside


def _look(text: str) -> float | None:
    """The rank of a line by its looks; None when it does not look like a heading."""
    words = _ASIDE.sub("", text).split()
    if (
        not words
        or len(words) > _MAX_WORDS
        or not text[0].isalpha()
        or text[-1] in ".,;:"
        or _FORM.search(text)
        or _SIGNED.search(text)
        or _CONTINUED.search(text)
    ):
        return None
    letters = [mark for mark in text if mark.isalpha()]
    if len(letters) < _MIN_LETTERS or len(letters) < 0.7 * len(text.replace(" ", "")) or _DATE.search(text) or is_table_row(text) or is_list_item(text):
        return None
    main = " ".join(words)
    if main.casefold() in _AT_TOP:
        return RANK_TOP
    if main.isupper():
        return RANK_CAPITALS
    long_words = [word for word in words[1:] if len(word) >= _LONG_WORD and not is_small_word(word)]
    capital = sum(not word[0].islower() for word in long_words)
    if not _is_capital(text) or capital < _CAPITAL_SHARE * len(long_words):
        return None
    return RANK_TITLE_CASE


def _begins(layout: Layout, index: int, starts: dict[int, Draft]) -> bool:
    """Whether nothing that runs on stands before a line, and no signature."""
    near = layout.lines[max(index - _SIGNATURE_REACH, 0) : index]
    if any(_SIGNATURE.search(line.text) for line in near if line.page == layout.lines[index].page):
        return False
    above = layout.before(index)
    if above is None or layout.lines[index].apart or above.start in starts:
        return True
    if layout.lines[index].text.isupper() and " " in layout.lines[index].text and not above.text.isupper():
        return not is_hanging(above.text)
    return above.text[-1] in _SENTENCE_ENDS or is_table_row(above.text) or (_look(above.text) is not None and not is_hanging(above.text))


def _leads_to_text(layout: Layout, index: int, body: int, rank: float, found: dict[int, Draft], starts: dict[int, Draft]) -> bool:
    after = layout.after(index)
    while after is not None and layout.lines[after].start < body:
        after = layout.after(after)
    if after is None:
        return False
    line = layout.lines[after]
    if after in found:
        return rank < found[after].rank or _is_prose_under(layout, after)
    if line.start in starts:
        return starts[line.start].leads and starts[line.start].rank >= _LOW_RANK and layout.opens_page(index)
    if _UNITS.match(line.text) and (rank <= RANK_CAPITALS or _ends_above(layout, index)):
        return True
    return _is_prose(layout, after) and not is_rest(layout.lines[index].text, line.text) and not is_hanging(layout.lines[index].text)


def _ends_above(layout: Layout, index: int) -> bool:
    """Whether a sentence ends above a line, or a line in capitals stands there."""
    above = layout.before(index)
    short = len(layout.lines[index].text.split()) <= _MAX_WORDS // 2 - 1
    return short and above is not None and (above.text[-1] == "." or above.text.isupper())


def _is_capital(text: str) -> bool:
    """Whether a text begins with a capital, also when it is the second letter as in iPhone."""
    return text[0].isupper() or text[1:2].isupper()


def _is_prose_under(layout: Layout, index: int) -> bool:
    after = layout.after(index)
    return after is not None and _is_prose(layout, after)


def _is_prose(layout: Layout, index: int) -> bool:
    line = layout.lines[index]
    lower = sum(mark.islower() for mark in line.text)
    if _SIGNATURE.search(line.text) or not (_is_capital(line.text) or line.text[0] in "“\"«‘'") or 2 * lower <= len(line.text):
        return False
    small = sum(word.islower() for word in line.text.split())
    if is_table_row(line.text):
        return small >= _MIN_WORDS_OF_PROSE
    if line.text[-1] in ".!?。:" and line.size >= _MIN_LEAD_IN and 2 * small >= len(line.text.split()):
        return True
    return line.size >= min(max(_MIN_PROSE, _PROSE_SHARE * layout.width), 100)
