"""Lines that lead to what follows: small headings in the text, and what announces a table or a list."""

import re
from collections.abc import Sequence
from itertools import pairwise

from llama_index_advanced_rag.text.lines import Span, is_list_item, is_table_row

_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_LONGEST_HEADING, _LONGEST_ANNOUNCEMENT = 80, 400


def lead_lines(text: str, spans: Sequence[Span]) -> list[Span]:
    r"""The spans that make little sense without the one behind them.

    These end with a colon, or are a short line of its own that is no sentence, item or row and stands right above a sentence.

    Args:
        text: the text.
        spans: its sentences and lines, in order.

    Example:
        >>> text = "Use of Estimates\nWe estimate a lot.\nAs follows:\n- one"
        >>> [text[start:end] for start, end in lead_lines(text, [(0, 16), (17, 35), (36, 47), (48, 53)])]
        ['Use of Estimates', 'As follows:']
    """
    return [span for span, after in pairwise(spans) if _leads(text, span, after)]


def _leads(text: str, span: Span, after: Span) -> bool:
    start, end = span
    if text[end - 1] == ":":
        return end - start <= _LONGEST_ANNOUNCEMENT
    if end - start > _LONGEST_HEADING or "\n" not in text[end : min(after[0], end + _LONGEST_HEADING)]:
        return False
    line = text[start:end]
    is_heading = line[0].isupper() and "\n" not in line and not (_SENTENCE_END.search(line) or is_list_item(line) or is_table_row(line))
    return is_heading and after[1] - after[0] > end - start and _SENTENCE_END.search(text, max(after[0], after[1] - _LONGEST_HEADING), after[1]) is not None
