"""Packing sentences into chunks: pure functions on text, spans and token counts."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from llama_index_advanced_rag.text.lines import Span
from llama_index_advanced_rag.text.sentences import safe_cut, trimmed

CountTokens = Callable[[str], int]
Room = Callable[[int], int]
_CHARS_PER_TOKEN = 16


class Piece(NamedTuple):
    """A part of a text that goes into a chunk as a whole: a sentence, a row, a block, or as much of a longer one as fits.

    Attributes:
        start: where it begins.
        end: where it ends.
        tokens: its length.
        with_next: it heads what follows, as a heading or the header of a table does, and should not end a chunk.
    """

    start: int
    end: int
    tokens: int
    with_next: bool = False


def chunk_spans(text: str, sentences: Sequence[Span], *, count_tokens: CountTokens, max_tokens: int, overlap_tokens: int = 0) -> list[Span]:
    """Chunks of whole sentences as (start, end) pairs: `text[start:end]` is the chunk.

    A chunk takes as many sentences as fit; the next one begins with the last sentences of the one before, as many as fit into
    the overlap. A sentence longer than a chunk is cut at white space, a longer word between two characters. No chunk counts
    more than `max_tokens` (a single character may); every visible character that is in a sentence is in a chunk. The counts
    are linear in the text: each sentence once, each chunk once or a few times, and a long sentence a few times.

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
    return pack_pieces(
        text,
        cut_pieces(text, sentences, count_tokens=count_tokens, max_tokens=max_tokens),
        count_tokens=count_tokens,
        room=lambda _: max_tokens,
        overlap_tokens=overlap_tokens,
    )


def cut_pieces(
    text: str, spans: Sequence[Span], *, count_tokens: CountTokens, max_tokens: int, with_next: Callable[[Span], bool] = lambda _: False
) -> list[Piece]:
    """The spans with their tokens; one that does not fit is cut at white space, a longer word between two characters.

    A span that follows others which head it is cut so that its beginning fits beside them, where they leave it half of the room.

    Args:
        text: the document.
        spans: in order without overlap.
        count_tokens: tokens of a string.
        max_tokens: at least 1.
        with_next: whether a span heads the one after it.

    Example:
        >>> text = "Results Sales rose a lot in May."
        >>> pieces = cut_pieces(text, [(0, 7), (8, 32)], count_tokens=lambda part: len(part.split()), max_tokens=4, with_next=lambda span: span[0] == 0)
        >>> [(text[piece.start : piece.end], piece.tokens, piece.with_next) for piece in pieces]
        [('Results', 1, True), ('Sales rose a', 3, False), ('lot in May.', 3, False)]
    """
    pieces: list[Piece] = []
    above = 0
    for span in spans:
        heads = with_next(span)
        first = max_tokens - above if above <= max_tokens // 2 else max_tokens
        parts = list(_fitting_pieces(text, span, count_tokens, max_tokens, first))
        pieces += [Piece(start, end, tokens, heads) for start, end, tokens in parts]
        above = above + sum(tokens for _, _, tokens in parts) if heads else 0
    return pieces


def pack_pieces(text: str, pieces: Sequence[Piece], *, count_tokens: CountTokens, room: Room, overlap_tokens: int = 0) -> list[Span]:
    """Chunks of whole pieces as (start, end) pairs; where it can be helped none ends with a piece that heads the next one.

    Args:
        text: the document.
        pieces: in order without overlap.
        count_tokens: tokens of a string.
        room: most tokens of a chunk that begins at an offset; never less than the longest piece.
        overlap_tokens: most tokens that a chunk repeats from the one before.

    Example:
        >>> text = "One two. Costs Rent 5"
        >>> pieces = [Piece(0, 8, 2), Piece(9, 14, 1, with_next=True), Piece(15, 21, 2)]
        >>> spans = pack_pieces(text, pieces, count_tokens=lambda part: len(part.split()), room=lambda _: 3)
        >>> [text[start:end] for start, end in spans]
        ['One two.', 'Costs Rent 5']
    """
    chunks: list[Span] = []
    first = done = 0
    while first < len(pieces):
        after = _last_that_fits(text, pieces, first, count_tokens, room(pieces[first].start))
        if after <= done:  # nothing but overlap fitted, which happens when counts do not add up exactly
            first = done
            continue
        done = after
        chunks.append((pieces[first].start, pieces[after - 1].end))
        if after == len(pieces):
            break
        first = _overlap_start(pieces, first, after, room, overlap_tokens)
    return chunks


def _last_that_fits(text: str, pieces: Sequence[Piece], first: int, count_tokens: CountTokens, max_tokens: int) -> int:
    """The end (exclusive) of the longest run of pieces from `first` that fits, by the sum of their counts and by the count of the whole.

    White space wider than a chunk ends the run: it is not to be shown, and tokenizers give up on a million blanks.
    """
    after, total, widest = first + 1, pieces[first].tokens, _CHARS_PER_TOKEN * max_tokens
    while after < len(pieces) and total + pieces[after].tokens <= max_tokens and pieces[after].start - pieces[after - 1].end <= widest:
        total += pieces[after].tokens
        after += 1
    return _without_heads(pieces, first, _longest_run(text, pieces, first, after, count_tokens, max_tokens))


def _longest_run(text: str, pieces: Sequence[Piece], first: int, after: int, count_tokens: CountTokens, max_tokens: int) -> int:
    """The end (exclusive) of the longest run from `first` that ends at most at `after` and counts what fits; one piece is not counted again.

    Most runs fit at once. Short lines do not, as a line end is a token of its own: then the place is sought in proportion to the
    tokens that are too many, and by halves in turn, so that there are few counts whatever the pieces are.
    """
    fits, fails, place, halve = first + 1, after + 1, after, True
    fitting, failing = pieces[first].tokens, max_tokens + 1
    while fails - fits > 1:
        tokens = count_tokens(text[pieces[first].start : pieces[place - 1].end])
        if tokens <= max_tokens:
            fits, fitting = place, tokens
        else:
            fails, failing = place, tokens
        halve = not halve
        share = 0.5 if halve else (max_tokens + 1 - fitting) / (failing - fitting)
        place = min(max(fits + int(share * (fails - fits)), fits + 1), fails - 1)
    return fits


def _without_heads(pieces: Sequence[Piece], first: int, after: int) -> int:
    """The end of the run before the pieces that head what comes next; the whole run when nothing else is in it."""
    end = after
    while end < len(pieces) and end > first and pieces[end - 1].with_next:
        end -= 1
    return end if end > first else after


def _overlap_start(pieces: Sequence[Piece], first: int, after: int, room: Room, overlap_tokens: int) -> int:
    """Where the next chunk begins: as early as the overlap allows, later than this one, leaving room for the next piece, not right below a head."""
    start, total, following = after, 0, pieces[after].tokens
    while start - 1 > first:
        longer = total + pieces[start - 1].tokens
        if longer > overlap_tokens or longer + following > room(pieces[start - 1].start):
            break
        start, total = start - 1, longer
    while start < after and pieces[start - 1].with_next:
        start += 1
    return start


def _fitting_pieces(text: str, span: Span, count_tokens: CountTokens, max_tokens: int, first_tokens: int) -> Iterator[tuple[int, int, int]]:
    """The span and its count, or parts of it that fit, the first of them in `first_tokens`."""
    start, end = span
    most = first_tokens
    while start < end:
        cut, tokens = _longest_fitting(text, start, end, count_tokens, most)
        for piece in trimmed(text, start, cut):
            yield *piece, tokens
        start, most = cut, max_tokens


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


def too_long(text: str, span: Span, count_tokens: CountTokens, max_tokens: int) -> bool:
    """Whether a span has more tokens than fit; one of very many characters is not counted."""
    start, end = span
    return end - start > _CHARS_PER_TOKEN * max_tokens or count_tokens(text[start:end]) > max_tokens
