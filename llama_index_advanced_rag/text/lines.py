"""Lines of a plain text: which ones continue a sentence, and which stand alone (rows of tables, list items, headings)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int]

_LINE = re.compile(r"[^\r\n\f\v\x85\u2028\u2029]+")
_ITEM = re.compile(r"(?:[-*+•·▪◦‣●○■□–—]|\(?\d{1,3}[.)°]|\([a-zA-Z]{1,4}\)|[a-zA-Z][.)]|[ivx]{1,5}[.)])\s+\S")
_HEADING = re.compile(r"#{1,6}\s|={3,}$|-{3,}$|\*{3,}$")
_COLUMNS = re.compile(r"\|.*\||\S \| \S|\S\t+\S.*\t|\S {3,}\S.* {3,}\S")
_CELL = re.compile(r"[($€£¥+\-−–—]*\d[\d.,\u00a0\u202f]*\d[%)]*|[($€£¥+\-−–—]*\d[%)]*|[$€£¥%)—–-]+|n/?a", re.IGNORECASE)
_MAX_ROW_CHARS = 400
_MAX_WIDTH = 200
_NARROW_WIDTH = 50
_FULL_SHARE = 0.65
_CONTINUES = (",", ";", "-", "(", "/", "&")


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    goes_on: bool
    last: str
    is_row: bool
    is_item: bool
    is_heading: bool


def prose_blocks(text: str) -> Iterator[Span]:
    r"""Spans of consecutive lines that may hold a running sentence; every visible character is in exactly one of them.

    A blank line, a row of a table, a list item or a heading begins a new block. A line ends its block when it is clearly
    shorter than the text is wide (the end of a paragraph, a title) or ends with a colon, and the next one does not go on in lower case.

    Example:
        >>> text = "Results\nNet sales rose in the\nquarter.\n- one\n- two\nTotal 10 20\nCosts 5 6\n"
        >>> [text[start:end] for start, end in prose_blocks(text)]
        ['Results', 'Net sales rose in the\nquarter.', '- one', '- two', 'Total 10 20', 'Costs 5 6']
    """
    lines = [_line(text, *match.span()) for match in _LINE.finditer(text) if not match.group().isspace()]
    width = _text_width(lines)
    block: list[_Line] = []
    for line in lines:
        if block and not _continues(text, block[-1], line, width):
            yield block[0].start, block[-1].end
            block = []
        block.append(line)
    if block:
        yield block[0].start, block[-1].end


def _line(text: str, start: int, end: int) -> _Line:
    if end - start > _MAX_ROW_CHARS:
        head, last = text[start : start + _MAX_ROW_CHARS].lstrip(), text[end - 1]
        return _Line(start, end, _goes_on(head), last, is_row=False, is_item=bool(_ITEM.match(head)), is_heading=bool(_HEADING.match(head)))
    line = text[start:end].strip()
    return _Line(start, end, _goes_on(line), line[-1], is_row=is_table_row(line), is_item=bool(_ITEM.match(line)), is_heading=bool(_HEADING.match(line)))


def _goes_on(line: str) -> bool:
    """Whether a line begins in lower case, as the rest of a sentence does; names like iPhone do not count."""
    return line[:1].islower() and not line[1:2].isupper()


def is_table_row(line: str) -> bool:
    """True for a line with several columns: bars, tabs, wide gaps, or two and more figures at its end.

    Example:
        >>> is_table_row("Total net sales $ 82,959 $ 81,434"), is_table_row("The fiscal years 2022 and 2021")
        (True, False)
    """
    if _COLUMNS.search(line):
        return True
    figures = 0
    for cell in reversed(line.split()):
        if not _CELL.fullmatch(cell):
            break
        figures += any(character.isdigit() for character in cell) or cell in "—–-"
    return figures >= 2


def is_list_item(line: str) -> bool:
    """True for a line with a bullet or an enumerator at its beginning.

    Example:
        >>> is_list_item("2° Six mois"), is_list_item("- one"), is_list_item("2023 was good")
        (True, True, False)
    """
    return _ITEM.match(line) is not None


def _text_width(lines: list[_Line]) -> int:
    """How wide the text runs: nine lines in ten are not longer."""
    lengths = sorted(line.end - line.start for line in lines if not line.is_row)
    return min(lengths[len(lengths) * 9 // 10], _MAX_WIDTH) if lengths else 0


def _continues(text: str, line: _Line, after: _Line, width: int) -> bool:
    gap = text[line.end : after.start]
    if gap.count("\n") > 1 or gap.count("\r") > 1 or "\f" in gap or line.is_row or line.is_heading or after.is_heading or after.is_item:
        return False
    if after.goes_on:
        return True
    if after.is_row or line.last == ":":
        return False
    if line.last in _CONTINUES:
        return True
    return width >= _NARROW_WIDTH and line.end - line.start >= _FULL_SHARE * width
