"""Rows and heads of tables that text extraction has flattened into lines."""

import re
from collections.abc import Sequence

from llama_index_advanced_rag.text.lines import Span

_CELL = re.compile(r"[$€£(|]*[-–—]?\d[\d.,]*[%)|]*")
_FILLER = re.compile(r"[$€£%()|–—-]+")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_SENTENCE_END = re.compile(r"[.!?…;][\"'”»)]*$")
_LONGEST_HEAD_LINE = 60
_LONGEST_HEAD = 300
_MOST_HEAD_LINES = 12
_MOST_ROWS = 60
_YEAR = re.compile(r"(?:19|20)\d\d")
_LEAST_DIGITS, _MOST_HEAD_WORDS = 4, 45  # a year at least
_WORD = re.compile(r"\S+")


def is_data_row(text: str) -> bool:
    """Whether a line is words followed by at least two figures that are not all years.

    Example:
        >>> is_data_row("Total net sales $ 81,797 $ 82,959"), is_data_row("Three Months Ended June 25, 2022 2021"), is_data_row("It rose 5 % in 2023.")
        (True, False, False)
    """
    figures = [cell for cell in text[figures_start(text) :].split() if _CELL.fullmatch(cell)]
    return len(figures) >= 2 and _LETTERS.search(text) is not None and not all(map(_YEAR.fullmatch, figures))


def figures_start(text: str) -> int:
    """Where the figures at the end of a line begin; the length of the text when it ends in none.

    Example:
        >>> "Total net sales $ 81,797 $ 82,959"[:figures_start("Total net sales $ 81,797 $ 82,959")]
        'Total net sales'
    """
    start = len(text)
    for match in reversed(list(_WORD.finditer(text))):
        cell = match.group()
        if not _FILLER.fullmatch(cell) and (not _CELL.fullmatch(cell) or cell.endswith((".", ","))):
            break
        start = match.start()
    return len(text[:start].rstrip()) if start < len(text) else start


def is_head_line(text: str) -> bool:
    """Whether a line may be part of the head of a table: short, no sentence, no row, no heading."""
    return not text.startswith("#") and len(text) <= _LONGEST_HEAD_LINE and _SENTENCE_END.search(text) is None and not is_data_row(text)


def join_head_lines(text: str, spans: Sequence[Span]) -> list[Span]:
    r"""Join the lines right above a row of figures into one span, so that a column head reads as a whole.

    Args:
        text: the text.
        spans: its sentences and lines, in order.

    Example:
        >>> text = "See below.\nThree Months Ended\nJuly 1,\n2023\nNet sales 81,797 82,959\nCosts 1,000 2,000"
        >>> spans = [(0, 10), (11, 29), (30, 37), (38, 42), (43, 66), (67, 84)]
        >>> [text[start:end].replace("\n", " ") for start, end in join_head_lines(text, spans)]
        ['See below.', 'Three Months Ended July 1, 2023', 'Net sales 81,797 82,959', 'Costs 1,000 2,000']
    """
    joined: list[Span] = []
    for start, end in spans:
        if is_data_row(text[start:end]):
            _join_tail(text, joined)
        joined.append((start, end))
    return joined


def _join_tail(text: str, spans: list[Span]) -> None:
    first = len(spans)
    while first > 0 and len(spans) - first < _MOST_HEAD_LINES and is_head_line(text[slice(*spans[first - 1])]):
        first -= 1
    if len(spans) - first >= 2 and spans[-1][1] - spans[first][0] <= _LONGEST_HEAD:
        spans[first:] = [(spans[first][0], spans[-1][1])]


def heads_of_row(lines: Sequence[str], is_row: Sequence[bool], row: int) -> list[int]:
    """The lines that head a row of figures: the nearest one above it, and the one with figures (dates, as a rule) above that.

    Args:
        lines: consecutive sentences and lines of one text.
        is_row: for each, whether it is a row of figures.
        row: index of the row.

    Returns:
        None, one or two indices into `lines`, nearest first; the last one heads the columns.

    Example:
        >>> lines = ["Results follow.", "July 1, 2023 June 25, 2022", "Phones 1 2", "Costs:", "Parts 3 4"]
        >>> heads_of_row(lines, [is_data_row(line) for line in lines], 4)
        [3, 1]
    """
    heads: list[int] = []
    for index in range(row - 1, max(-1, row - 1 - _MOST_ROWS), -1):
        line = lines[index]
        if is_row[index] or "|" in line:
            continue
        if len(line) > _LONGEST_HEAD or _SENTENCE_END.search(line) or (line.endswith(":") and len(line) > _LONGEST_HEAD_LINE and not is_head_of_columns(line)):
            break
        if is_head_of_columns(line):
            return [*heads, index]
        if not heads and is_head_line(line):
            heads.append(index)
    return heads


def is_head_of_columns(line: str) -> bool:
    """Whether a line has enough figures (dates, as a rule) and few enough words to head the columns of a table.

    Example:
        >>> is_head_of_columns("July 1, 2023 June 25, 2022"), is_head_of_columns("Operating expenses:")
        (True, False)
    """
    return sum(character.isdigit() for character in line) >= _LEAST_DIGITS and line.count(" ") < _MOST_HEAD_WORDS
