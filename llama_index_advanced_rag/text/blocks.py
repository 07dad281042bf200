"""Blocks that must not be torn apart: fenced code, rows between bars, tables with their header."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llama_index_advanced_rag.text.lines import Span, is_list_item
from llama_index_advanced_rag.text.sentences import trimmed
from llama_index_advanced_rag.text.table_rows import figures_start, is_data_row, is_head_line, is_head_of_columns

# The info string of a fence of backticks has none: "```a``` b" is a line of text.
_FENCE = re.compile(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_RULE = re.compile(r"[|:\-\s]+")
_SPACES = re.compile(r"\s+")
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DATED = re.compile(r"\b(?:19|20)\d\d\b|\d,$")
_AMOUNT = re.compile(r"\d[\d.,]*\d\d")
_UNIT = re.compile(r"\(.*\)")
_DASHES = frozenset("—–-")
_PERIOD = re.compile(
    r"\b(?:months?|weeks?|quarters?|years?\s+ended|mois|semaines?|semestre|trimestre|exercice|monate?|quartal)\b|^\((?:in|en)\s", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?…;][\"'”»)]*$")
_LONGEST_OPEN_ROW, _LONGEST_ROW = 400, 1_000
_LONGEST_HEADER, _MOST_HEADER_LINES, _MOST_HEADER_ROWS = 300, 12, 2
_LONGEST_LABEL = 60
_MOST_LINES_BETWEEN = 6


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose columns have a header.

    Attributes:
        start: where the header begins in the text.
        first_row: where the first row below it begins.
        end: where the last row ends.
        header: the header's lines as one line.
    """

    start: int
    first_row: int
    end: int
    header: str


def fenced_blocks(text: str) -> list[Span]:
    r"""Fenced code blocks (``` or ~~~) with their fences, in order; a fence that is not closed is no block.

    Example:
        >>> text = "See:\n```py\na = 1\n\nb = 2\n```\nDone."
        >>> [text[start:end] for start, end in fenced_blocks(text)]
        ['```py\na = 1\n\nb = 2\n```']
    """
    blocks: list[Span] = []
    start, opened = 0, ""
    for fence in _FENCE.finditer(text):
        mark = fence[1]
        if not opened:
            start, opened = fence.start(1), mark
        elif len(mark) >= len(opened) and mark[0] == opened[0] and not text[fence.end() : _line_end(text, fence.end())].strip():
            blocks.append((start, fence.end()))
            opened = ""
    return blocks


def bar_rows(text: str) -> list[Span]:
    r"""Lines whose cells stand between bars, in order: a full stop in a cell does not end the row.

    Example:
        >>> text = "| No. | What. It is |\nIt is.\na | b"
        >>> [text[start:end] for start, end in bar_rows(text)]
        ['| No. | What. It is |', 'a | b']
    """
    return [(start, end) for start, end in _lines_with_bar(text) if end - start <= _LONGEST_ROW and _is_bar_row(text[start:end])]


def _lines_with_bar(text: str) -> Iterator[Span]:
    bar = text.find("|")
    while bar >= 0:
        end = _line_end(text, bar)
        yield text.rfind("\n", 0, bar) + 1, end
        bar = text.find("|", end)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end if end >= 0 else len(text)


def _is_bar_row(line: str) -> bool:
    return line.lstrip().startswith("|") or (len(line) <= _LONGEST_OPEN_ROW and " | " in line)


def cut_at(text: str, spans: Sequence[Span], borders: Sequence[int]) -> list[Span]:
    """The spans cut where a border lies inside one; white space at the cuts is left out.

    Args:
        text: the text.
        spans: in order, without overlap.
        borders: ascending offsets.

    Example:
        >>> cut_at("Title Text", [(0, 10)], [0, 6])
        [(0, 5), (6, 10)]
    """
    pieces: list[Span] = []
    for start, end in spans:
        begin, place = start, bisect_right(borders, start)
        while place < len(borders) and borders[place] < end:
            pieces += trimmed(text, begin, borders[place])
            begin = borders[place]
            place += 1
        pieces += [(start, end)] if begin == start else trimmed(text, begin, end)
    return pieces


def keep_whole(text: str, spans: Sequence[Span], blocks: Sequence[Span]) -> list[Span]:
    """The spans, with all that lie in one block joined; a span that reaches over the border of a block is cut there.

    Args:
        text: the text.
        spans: its sentences and lines, in order.
        blocks: in order, without overlap.

    Example:
        >>> keep_whole("One. | a. B | c | Two.", [(0, 4), (5, 9), (10, 22)], [(5, 17)])
        [(0, 4), (5, 17), (18, 22)]
    """
    if not blocks:
        return list(spans)
    starts = [start for start, _ in blocks]
    whole: list[Span] = []
    last = -1
    for start, end in cut_at(text, spans, [border for block in blocks for border in block]):
        block = bisect_right(starts, start) - 1
        inside = block >= 0 and start < blocks[block][1]
        if inside and block == last:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((start, end))
        last = block if inside else -1
    return whole


def find_tables(text: str, spans: Sequence[Span]) -> list[Table]:
    r"""The tables that have a header, in order, without overlap.

    A table is a run of rows between bars, whose header is the row above a rule (`|---|---|`), else its first rows without
    figures; or lines of figures as text extraction leaves them, whose header is what stands right above them and names
    dates, periods or units. Such a table goes on over labels between its rows, and ends at a sentence.

    Args:
        text: the text.
        spans: its sentences and lines, in order.

    Example:
        >>> text = "Three Months Ended\nJuly 1, 2023 June 25, 2022\nSales 81,797 82,959\nCosts 1,000 2,000\nIt rose."
        >>> tables = find_tables(text, [(0, 18), (19, 45), (46, 65), (66, 83), (84, 92)])
        >>> [(table.header, text[table.first_row : table.end]) for table in tables]
        [('Three Months Ended July 1, 2023 June 25, 2022', 'Sales 81,797 82,959\nCosts 1,000 2,000')]
    """
    barred = list(_bar_tables(text, spans))
    taken = [(table.start, table.end) for table in barred]
    starts = [start for start, _ in taken]

    def is_free(span: Span) -> bool:
        place = bisect_right(starts, span[0]) - 1
        return place < 0 or span[0] >= taken[place][1]

    return sorted([*barred, *_flat_tables(text, [span for span in spans if is_free(span)])], key=lambda table: table.start)


def _bar_tables(text: str, spans: Sequence[Span]) -> Iterator[Table]:
    run: list[Span] = []
    for span in spans:
        if run and not (_is_row_span(text, span) and text.count("\n", run[-1][1], span[0]) <= 1):
            yield from _bar_table(text, run)
            run = []
        if run or _is_row_span(text, span):
            run.append(span)
    yield from _bar_table(text, run)


def _is_row_span(text: str, span: Span) -> bool:
    return span[1] - span[0] <= _LONGEST_ROW and _is_bar_row(text[slice(*span)])


def _bar_table(text: str, run: Sequence[Span]) -> Iterator[Table]:
    lines = [text[start:end] for start, end in run[: 2 * _MOST_HEADER_ROWS]]
    rows = next((place + 1 for place, line in enumerate(lines) if place and _is_rule(line)), 0)
    heads = rows - 1 if rows else _rows_without_figures(lines)
    rows = rows or heads
    if heads and rows < len(run):
        yield Table(run[0][0], run[rows][0], run[-1][1], _one_line(text[run[0][0] : run[heads - 1][1]]))


def _is_rule(line: str) -> bool:
    return "-" in line and _RULE.fullmatch(line) is not None


def _rows_without_figures(lines: Sequence[str]) -> int:
    """How many of the first rows head the columns: those before the first figures, or one where that cannot be told."""
    count = next((place for place, line in enumerate(lines) if _has_figures(line)), len(lines))
    return count if count <= _MOST_HEADER_ROWS else 1


def _has_figures(line: str) -> bool:
    """Whether a cell is a figure; years, and cells of words with a number, are none."""
    cells = (cell.strip() for cell in line.split("|"))
    return any(_DIGIT.search(cell) and not any(character.isalpha() for character in cell) and not _YEAR.fullmatch(cell) for cell in cells)


def _flat_tables(text: str, spans: Sequence[Span]) -> Iterator[Table]:
    """Tables of extracted text; the state is the open table and the lines since its last row."""
    table: Table | None = None
    above: list[Span] = []
    between = 0
    for start, end in spans:
        line = text[start:end] if end - start <= _LONGEST_HEADER else ""
        if line and _is_row(line):
            header = _header_above(text, above)
            if header is not None:
                yield from [table] if table else []
                table = Table(header[0][0], start, end, _header_line(text, header))
            elif table is not None:
                table = Table(table.start, table.first_row, end, table.header)
            above, between = [], 0
            continue
        between += 1
        ends_table = not line or _is_running_text(line)
        above = [*above[1 - _MOST_HEADER_LINES :], (start, end)] if line and _may_head(line) else []
        if table is not None and (ends_table or between > _MOST_LINES_BETWEEN):
            yield table
            table = None
    yield from [table] if table else []


def _is_running_text(line: str) -> bool:
    return _SENTENCE_END.search(line) is not None or (line.endswith(":") and len(line) > _LONGEST_LABEL)


def _is_row(line: str) -> bool:
    """Whether a line is a row of figures: a dash stands for a figure too, and a year for the words in front of them."""
    if is_data_row(line):
        return True
    cells = line[figures_start(line) :].split()
    if _LETTERS.search(line):
        return len(cells) > 1 and not _DASHES.isdisjoint(cells)
    return len(cells) > 1 and any(_AMOUNT.search(cell) and not _YEAR.fullmatch(cell) for cell in cells)


def _may_head(line: str) -> bool:
    return not is_list_item(line) and (is_head_line(line) or (is_head_of_columns(line) and not _is_running_text(line)))


def _header_above(text: str, above: Sequence[Span]) -> list[Span] | None:
    """The lines above a row from the first to the last one that names dates, periods or units."""
    near = [span for span in above if above[-1][1] - span[0] <= _LONGEST_HEADER]
    heads = [place for place, span in enumerate(near) if _heads_columns(text[slice(*span)])]
    return near[heads[0] : heads[-1] + 1] if heads else None


def _heads_columns(line: str) -> bool:
    return _DATED.search(line) is not None or (_PERIOD.search(line) is not None and not line.endswith(":"))


def _header_line(text: str, spans: Sequence[Span]) -> str:
    """The lines of a header as one; units and remarks in parentheses last, since the end is what is cut off first."""
    lines = [_one_line(text[start:end]) for start, end in spans]
    return " ".join(sorted(lines, key=lambda line: _UNIT.fullmatch(line) is not None))


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text).strip()
