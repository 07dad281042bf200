"""Packing sentences into chunks: pure functions on text, spans and token counts."""

from collections.abc import Callable, Iterator, Sequence

from llama_index_advanced_rag.text.lines import Span
from llama_index_advanced_rag.text.sentences import safe_cut, trimmed

CountTokens = Callable[[str], int]
_CHARS_PER_TOKEN = 16


def chunk_spans(text: str, sentences: Sequence[Span], *, count_tokens: CountTokens, max_tokens: int, overlap_tokens: int = 0) -> list[Span]:
    """Chunks of whole sentences as (start, end) pairs: `text[start:end]` is the chunk.

    A chunk takes as many sentences as fit; the next one begins with the last sentences of the one before, as many as fit into
    the overlap. A sentence longer than a chunk is cut at white space, a longer word between two characters. No chunk counts
    more than `max_tokens` (a single character may); every visible character that is in a sentence is in a chunk. The counts
    are linear in the text: each sentence once, each chunk once, and a long sentence a few times.

    Args:
        text: the document.
        sentences: spans in order without overlap, as `sentence_spans` gives them.
        count_tokens: tokens of a string.
        max_tokens: at least 1.
        overlap_tokens: at least 0, less than `max_tokens`.

    Example:
        >>> text = "One two. Three four. Five six seven eight nine."
        >>> sentences = [(0, 8), (9, 20), (21, 47)]
        >>> spans = chunk_spans(text, sentences, count_tokens=lambda part: len(part.split()), max_tokens=4, overlap_tokens=2)
        >>> [text[start:end] for start, end in spans]
        ['One two. Three four.', 'Five six seven eight', 'nine.']
    """
    pieces: list[tuple[Span, int]] = []
    for sentence in sentences:
        pieces.extend(_fitting_pieces(text, sentence, count_tokens, max_tokens))
    chunks: list[Span] = []
    first = done = 0
    while first < len(pieces):
        after = _last_that_fits(text, pieces, first, count_tokens, max_tokens)
        if after <= done:  # nothing but overlap fitted, which happens when counts do not add up exactly
            first = done
            continue
        done = after
        chunks.append((pieces[first][0][0], pieces[after - 1][0][1]))
        if after == len(pieces):
            break
        first = _overlap_start(pieces, first, after, max_tokens, overlap_tokens)
    return chunks


def _last_that_fits(text: str, pieces: Sequence[tuple[Span, int]], first: int, count_tokens: CountTokens, max_tokens: int) -> int:
    """The end (exclusive) of the longest run of pieces from `first` that fits; the sum of counts is checked against the real count.

    White space wider than a chunk ends the run: it is not to be shown, and tokenizers give up on a million blanks.
    """
    after, total, widest = first + 1, pieces[first][1], _CHARS_PER_TOKEN * max_tokens
    while after < len(pieces) and total + pieces[after][1] <= max_tokens and pieces[after][0][0] - pieces[after - 1][0][1] <= widest:
        total += pieces[after][1]
        after += 1
    while after > first + 1 and count_tokens(text[pieces[first][0][0] : pieces[after - 1][0][1]]) > max_tokens:
        after -= 1
    return after


def _overlap_start(pieces: Sequence[tuple[Span, int]], first: int, after: int, max_tokens: int, overlap_tokens: int) -> int:
    """Where the next chunk begins: as early as the overlap allows, later than this one, and leaving room for the next piece."""
    room = min(overlap_tokens, max_tokens - pieces[after][1])
    start, total = after, 0
    while start - 1 > first and total + pieces[start - 1][1] <= room:
        start -= 1
        total += pieces[start][1]
    return start


def _fitting_pieces(text: str, sentence: Span, count_tokens: CountTokens, max_tokens: int) -> Iterator[tuple[Span, int]]:
    """The sentence and its count, or parts of it that fit."""
    start, end = sentence
    while start < end:
        cut, tokens = _longest_fitting(text, start, end, count_tokens, max_tokens)
        for piece in trimmed(text, start, cut):
            yield piece, tokens
        start = cut


def _longest_fitting(text: str, start: int, end: int, count_tokens: CountTokens, max_tokens: int) -> tuple[int, int]:
    """The end of a longest prefix that fits, at white space if there is any, and its tokens; looks at a bounded stretch of text."""
    limit = min(end, start + _CHARS_PER_TOKEN * max_tokens)
    tokens = count_tokens(text[start:limit])
    if limit == end and tokens <= max_tokens:
        return end, tokens
    low, high = start + 1, limit
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[start:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    cut = _white_space_before(text, start, low) or safe_cut(text, low, lowest=start + 1)
    tokens = count_tokens(text[start:cut])
    while tokens > max_tokens and cut > start + 1:  # a shorter word can have more tokens than a longer one
        cut -= max(1, (cut - start) // 8)
        tokens = count_tokens(text[start:cut])
    return cut, tokens


def _white_space_before(text: str, start: int, position: int) -> int | None:
    """Just behind the last white space that lies in the second half of the prefix and before `position`."""
    for place in range(position, start + (position - start) // 2, -1):
        if text[place - 1].isspace() or (place < len(text) and text[place].isspace()):
            return place
    return None
