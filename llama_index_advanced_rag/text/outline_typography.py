"""Lines that look like headings: short, in capitals or in title case, standing alone over running text."""

import re
from collections.abc import Sequence

from llama_index_advanced_rag.text.lines import is_list_item, is_table_row
from llama_index_advanced_rag.text.outline_drafts import RANK_CAPITALS, RANK_TITLE_CASE, Draft, HeadingSource
from llama_index_advanced_rag.text.outline_lines import Layout
from llama_index_advanced_rag.text.outline_titles import is_hanging, is_rest, is_small_word, read_title

_MAX_SIZE = 110
_MAX_WORDS = 14
_MIN_PROSE = 60
_PROSE_SHARE = 0.6
_CAPITAL_SHARE = 0.75
_LONG_WORD = 4
_ASIDE = re.compile(r"\s*\([^()]{1,60}\)$")
_UNITS = re.compile(r"\((?:in|unaudited|non audité|en)\b", re.IGNORECASE)
_DATE = re.compile(r"(?:\b(?:19|20)\d\d|\d)$")
_SIGNED = re.compile(r"/s/|^by:|^date:|^fait à|☐|☒|☑|\$|€|@|www\.|://", re.IGNORECASE)
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
        >>> from llama_index_advanced_rag.text.outline_lines import read_layout
        >>> prose = "The lessee pays the rent on the first day of each month in advance and without deduction."
        >>> layout = read_layout(f"{prose}\n\nLate Payment\n{prose}\n\nTotal\n12\n")
        >>> [draft.title for draft in typographic_headings(layout, (), frozenset())]
        ['Late Payment']
    """
    starts = {draft.start: draft for draft in taken}
    inside = _lines_of(layout, taken)
    found: dict[int, Draft] = {}
    for index in range(len(layout.lines) - 1, -1, -1):
        line = layout.lines[index]
        if index in skipped or index in layout.running or index in inside or line.size > _MAX_SIZE:
            continue
        rank = _look(line.text)
        if rank is None or not _begins(layout, index, starts):
            continue
        title, body = read_title(layout, index)
        if _leads_to_text(layout, index, body, rank, found):
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
    if not words or len(words) > _MAX_WORDS or not text[0].isalpha() or text[-1] in ".,;:" or _FORM.search(text) or _SIGNED.search(text):
        return None
    letters = [mark for mark in text if mark.isalpha()]
    if len(letters) < 4 or len(letters) < 0.7 * len(text.replace(" ", "")) or _DATE.search(text) or is_table_row(text) or is_list_item(text):
        return None
    main = " ".join(words)
    if main.isupper():
        return RANK_CAPITALS
    long_words = [word for word in words[1:] if len(word) >= _LONG_WORD and not is_small_word(word)]
    capital = sum(not word[0].islower() for word in long_words)
    if not text[0].isupper() or capital < _CAPITAL_SHARE * len(long_words):
        return None
    return RANK_TITLE_CASE


def _begins(layout: Layout, index: int, starts: dict[int, Draft]) -> bool:
    """Whether nothing that runs on stands before a line."""
    above = layout.before(index)
    if above is None or layout.lines[index].apart:
        return True
    if above.text[-1] in _SENTENCE_ENDS or is_table_row(above.text):
        return True
    return above.start in starts or any(mark.start < above.start < mark.body for mark in (starts.get(above.start),) if mark) or _look(above.text) is not None


def _leads_to_text(layout: Layout, index: int, body: int, rank: float, found: dict[int, Draft]) -> bool:
    after = layout.after(index)
    while after is not None and layout.lines[after].start < body:
        after = layout.after(after)
    if after is None:
        return False
    line = layout.lines[after]
    if after in found:
        return rank < found[after].rank or _is_prose_under(layout, after)
    if rank == RANK_CAPITALS and _UNITS.match(line.text):
        return True
    return _is_prose(layout, after) and not is_rest(layout.lines[index].text, line.text) and not is_hanging(layout.lines[index].text)


def _is_prose_under(layout: Layout, index: int) -> bool:
    after = layout.after(index)
    return after is not None and _is_prose(layout, after)


def _is_prose(layout: Layout, index: int) -> bool:
    line = layout.lines[index]
    least = min(max(_MIN_PROSE, _PROSE_SHARE * layout.width), 100)
    if line.size < least and not (line.text[-1] in ".!?。" and line.size >= _MIN_PROSE // 2):
        return False
    lower = sum(mark.islower() for mark in line.text)
    return not is_table_row(line.text) and not _SIGNED.search(line.text) and (line.text[0].isupper() or line.text[0] in "“\"«‘'") and 2 * lower > len(line.text)
