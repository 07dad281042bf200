"""Rows and heads of tables that text extraction has flattened into lines."""

import re
from collections.abc import Sequence

Span = tuple[int, int]

_CELL = re.compile(r"[$€£(|]*[-–—]?\d[\d.,]*[%)|]*")
_FILLER = re.compile(r"[$€£%()|–—-]+")
_LETTERS = re.compile(r"[^\W\d_]{2}")
_SENTENCE_END = re.compile(r"[.!?…;][\"'”»)]*$")
_LONGEST_HEAD_LINE = 60
_LONGEST_HEAD = 300
_MOST_HEAD_LINES = 12


def is_data_row(text: str) -> bool:
    """Whether a line is words followed by at least two figures.

    Example:
        >>> is_data_row("Total net sales $ 81,797 $ 82,959"), is_data_row("June 25, 2022"), is_data_row("It rose 5 % in 2023.")
        (True, False, False)
    """
    figures = 0
    for cell in reversed(text.split()):
        if _CELL.fullmatch(cell) and not cell.endswith((".", ",")):
            figures += 1
        elif not _FILLER.fullmatch(cell):
            break
    return figures >= 2 and _LETTERS.search(text) is not None


def is_head_line(text: str) -> bool:
    """Whether a line may be part of the head of a table: short, no sentence, no row."""
    return len(text) <= _LONGEST_HEAD_LINE and _SENTENCE_END.search(text) is None and not is_data_row(text)


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


def head_of_row(lines: Sequence[str], row: int) -> int | None:
    """The line that heads a row of figures: the nearest one above it that is neither a row nor a sentence.

    Args:
        lines: consecutive sentences and lines of one text.
        row: index of the row.

    Returns:
        An index into `lines`, or None.
    """
    for index in range(row - 1, -1, -1):
        if is_data_row(lines[index]):
            continue
        return None if _SENTENCE_END.search(lines[index]) or len(lines[index]) > _LONGEST_HEAD else index
    return None
