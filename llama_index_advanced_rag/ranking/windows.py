"""Long passages for a model that reads a fixed number of tokens: overlapping windows, and batches of like length."""

from collections.abc import Callable, Sequence

Span = tuple[int, int]


def cut_windows(text: str, spans: Sequence[Span], *, size: int, overlap: int, count_tokens: Callable[[str], int]) -> list[str]:
    """Cut a text into overlapping pieces that each fit `size` tokens and together hold every token.

    A piece is a slice of the text, so its tokens may differ from those of the whole at the cut; it is therefore counted
    again and shortened until it fits. A piece starts at the beginning of a word where the overlap allows it.

    Args:
        text: the text.
        spans: character start and end of each of its tokens, in order.
        size: most tokens in a piece, at least 1.
        overlap: tokens that neighbouring pieces share, about; at most half of `size` is used.
        count_tokens: tokens of a piece, counted alone.

    Returns:
        The text itself when it fits, else the pieces in order. Only a single token that counts for more than `size`
        when it stands alone makes a piece too long.

    Example:
        >>> text = "a b c d e"
        >>> cut_windows(text, [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)], size=3, overlap=1, count_tokens=lambda piece: len(piece.split()))
        ['a b c', 'c d e']
    """
    if len(spans) <= size:
        return [text]
    overlap = min(overlap, size // 2)
    windows: list[str] = []
    start = 0
    while True:
        end = _fitting_end(text, spans, start, size, count_tokens)
        windows.append(text[spans[start][0] : spans[end - 1][1]])
        if end == len(spans):
            return windows
        start = max(start + 1, _word_start(text, spans, end - overlap, end))


def _fitting_end(text: str, spans: Sequence[Span], start: int, size: int, count_tokens: Callable[[str], int]) -> int:
    end = min(start + size, len(spans))
    while end - start > 1:
        excess = count_tokens(text[spans[start][0] : spans[end - 1][1]]) - size
        if excess <= 0:
            break
        end = max(start + 1, end - excess)
    return end


def _word_start(text: str, spans: Sequence[Span], first: int, last: int) -> int:
    for index in range(first, last + 1):
        begin = spans[index][0]
        if begin == 0 or text[begin - 1].isspace() or text[begin].isspace():
            return index
    return first


def batch_by_length(lengths: Sequence[int], *, batch_size: int) -> list[list[int]]:
    """Group items of like length, the longest first, so that little is padded and memory runs out early if at all.

    Args:
        lengths: length of each item.
        batch_size: most items in a batch, at least 1.

    Returns:
        Batches of indices; each index occurs once; equal lengths keep their order.

    Example:
        >>> batch_by_length([3, 90, 4, 80], batch_size=2)
        [[1, 3], [2, 0]]
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
