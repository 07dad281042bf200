"""Printed tables of contents: where they stand, and their entries with the pages they name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from llama_index_advanced_rag.text.outlines.lines import Layout, plain_words
from llama_index_advanced_rag.text.outlines.numbers import NumberedLine, read_numbered
from llama_index_advanced_rag.text.outlines.titles import is_hanging

_PAGE = re.compile(
    r"(?P<lead>[\s.…·_]*[\s.…·_\t])(?:(?P<word>pages?|pp?\.|seiten?|S\.|p[áa]g(?:ina)?s?\.?)\s*)?"
    r"(?P<page>\d{1,4})(?P<more>(?:\s?[-–—,]\s?\d{1,4}){0,8})$",
    re.IGNORECASE,
)
_PAGE_MARK = re.compile(r"(?:page|seite|p\.)?\s*[-–]?\s*(?:\d+|[ivxlc]+)\s*[-–]?", re.IGNORECASE)
_ABSENT = re.compile(r"\s+(?:not applicable|n/a|none|sans objet|entfällt)$", re.IGNORECASE)
_ENUMERATOR = re.compile(r"\(?(?:[a-z]|[ivx]{1,4}|\d{1,2})\)\s+|[a-z]\.\s+")
_HINT_TITLES = (
    "contents|table of contents|index|table des matières|sommaire|inhalt|inhaltsverzeichnis|índice|indice|sumário|sommario|"
    "contenido|inhoud|содержание|оглавление|目录|目次|page|seite|página"
)
_HINTS = frozenset(_HINT_TITLES.split("|"))
_COLUMN_HEADS = frozenset(("page", "seite", "página"))
_MAX_APART = 3
_HINT_REACH = 10
_MIN_ENTRIES = 3
_MIN_SURE = 4
_MIN_SHARE = 0.4
_MOST = 0.6
_FULL_SHARE = 0.75
_PAGES_BEYOND = 60
_MAX_PAGE = 3000


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its line, title and printed page (None: not given). `is_part` is true behind an enumerator like `a)`."""

    index: int
    title: str
    page: int | None
    numbered: NumberedLine | None
    indent: int
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class Contents:
    """A table of contents: the lines it takes up, its entries, and whether it is an index that names pages before it."""

    lines: range
    entries: tuple[Entry, ...]
    is_index: bool


@dataclass(frozen=True, slots=True)
class _PageLine:
    index: int
    head: str
    page: int
    sure: bool


def find_contents(layout: Layout) -> list[Contents]:
    r"""The tables of contents of a text in order.

    A run of lines that end in rising page numbers is one when a heading says so, when most lines have leader dots or the word page, or
    when most titles stand in the text once more.

    Example:
        >>> from llama_index_advanced_rag.text.outlines.lines import read_layout
        >>> layout = read_layout("Contents\n1 Aim ........ 1\n2 Means of the\nproject ....... 3\n3 End ........ 7\n\nText.")
        >>> [(entry.title, entry.page) for entry in find_contents(layout)[0].entries]
        [('1 Aim', 1), ('2 Means of the project', 3), ('3 End', 7)]
    """
    known = {plain_words(line.text) for line in layout.lines if line.size <= 200}
    found: list[Contents] = []
    for run in _runs(layout):
        begin = _first_line(layout, run[0].index)
        if begin is None and not _is_sure(run, known):
            continue
        first = begin if begin is not None else _label_above(layout, run[0].index)
        if len(run) < _MIN_SHARE * _count(layout, run[0].index, run[-1].index):
            continue
        lines = range(first, run[-1].index + 1)
        if found and lines.start < found[-1].lines.stop:
            lines = range(found[-1].lines.stop, lines.stop)
        late = layout.lines[run[0].index].page * 2 > layout.lines[-1].page
        found.append(Contents(lines, tuple(_entries(layout, lines)), late and layout.lines[-1].page > 3))
    return found


def _runs(layout: Layout) -> list[list[_PageLine]]:
    runs: list[list[_PageLine]] = []
    run: list[_PageLine] = []
    highest = min(layout.lines[-1].page + _PAGES_BEYOND, _MAX_PAGE) if layout.lines and layout.lines[-1].page else _MAX_PAGE
    apart = 0
    for index in range(len(layout.lines)):
        if index in layout.running or layout.lines[index].text.isdecimal():
            continue
        line = _page_line(layout, index, highest)
        if line is None:
            apart += 1
            continue
        if run and (apart > _MAX_APART or (line.page < run[-1].page and not (line.sure and run[-1].sure))):
            runs.append(run)
            run = []
        run.append(line)
        apart = 0
    return [one for one in [*runs, run] if len(one) > 1]


def _page_line(layout: Layout, index: int, highest: int) -> _PageLine | None:
    line = layout.lines[index]
    if line.size > 300:
        return None
    match = _PAGE.search(line.text)
    if match is None or (match["more"] and not match["word"]) or int(match["page"]) > highest:
        return None
    head = line.text[: match.start()].rstrip(" .…·_\t")
    dotted = len(match["lead"].replace(" ", "")) > 2
    if sum(mark.isalpha() for mark in head) < 2 or head[-1:] in ("$", "€", "£", "(", "-", "–", "—", ","):
        return None
    return _PageLine(index, head, int(match["page"]), dotted or match["word"] is not None)


def _first_line(layout: Layout, index: int) -> int | None:
    """The line of the heading of a table of contents above its first entry, if one stands near."""
    begin = None
    for place in range(index - 1, max(index - 1 - _HINT_REACH, -1), -1):
        words = plain_words(layout.lines[place].text)
        if place not in layout.running and words in _HINTS:
            begin = place
            if words not in _COLUMN_HEADS:
                break
    return begin


def _label_above(layout: Layout, index: int) -> int:
    while index and (line := read_numbered(layout.lines[index - 1].text)) and line.kind != "decimal":
        index -= 1
    return index


def _is_sure(run: Sequence[_PageLine], known: set[str]) -> bool:
    marked = sum(line.sure for line in run)
    again = sum(plain_words(line.head) in known for line in run)
    return (marked >= _MOST * len(run) and len(run) >= _MIN_ENTRIES) or (again >= _MOST * len(run) and len(run) >= _MIN_SURE)


def _count(layout: Layout, first: int, last: int) -> int:
    return sum(index not in layout.running for index in range(first, last + 1))


def _entries(layout: Layout, lines: range) -> list[Entry]:
    entries: list[Entry] = []
    open_text, open_index = "", -1
    visible = [index for index in lines if index not in layout.running and not layout.lines[index].text.isdecimal()]
    width = max((layout.lines[index].size for index in visible), default=0)
    for index in visible:
        text = layout.lines[index].text
        if plain_words(text) in _HINTS or _PAGE_MARK.fullmatch(text):
            open_text = ""
            continue
        if open_text and not _goes_on(open_text, text, width):
            entries.append(_entry(layout, open_index, open_text, None))
            open_text = ""
        head, page, ended = _split(text, bool(open_text))
        open_text, open_index = (f"{open_text} {head}", open_index) if open_text else (head, index)
        if ended:
            entries.append(_entry(layout, open_index, open_text, page))
            open_text = ""
    return entries


def _split(text: str, open_entry: bool) -> tuple[str, int | None, bool]:
    """Title, page, and whether the entry ends here."""
    if match := _ABSENT.search(text):
        return text[: match.start()], None, True
    match = _PAGE.search(text)
    if match is None or (match["more"] and not match["word"]):
        return text, None, False
    if not open_entry and not any(mark.isalpha() for mark in text[: match.start()]):
        return text, None, False
    if match["lead"] == " " and len(match["page"]) == 4 and not match["word"]:
        return text, None, False
    return text[: match.start()].rstrip(" .…·_\t"), int(match["page"]), True


def _goes_on(text: str, after: str, width: int) -> bool:
    if read_numbered(after) or _ENUMERATOR.match(after) or text.endswith(":"):
        return False
    full = len(text) >= _FULL_SHARE * width and (not after[0].isupper() or 2 * len(after) <= len(text))
    return after[0].islower() or is_hanging(text) or full


def _entry(layout: Layout, index: int, text: str, page: int | None) -> Entry:
    enumerator = _ENUMERATOR.match(text)
    title = text[enumerator.end() :] if enumerator else text
    return Entry(index, title, page, None if enumerator else read_numbered(title), layout.lines[index].indent, enumerator is not None)
