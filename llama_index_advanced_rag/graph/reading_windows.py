"""Long texts for a model that reads a limited number of tokens: windows with their places, and what was found in them as one list."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from llama_index_advanced_rag.graph.records import Mention

Place = tuple[int, int]

_WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")
_OVERLAP_SHARE = 8
_LONGEST_PIECE = 64


def word_places(text: str) -> list[Place]:
    """Start and end of each word and sign of a text; words of more than 64 characters count as several."""
    places: list[Place] = []
    for match in _WORD.finditer(text):
        places.extend((start, min(start + _LONGEST_PIECE, match.end())) for start in range(match.start(), match.end(), _LONGEST_PIECE))
    return places


def windows_of(text: str, tokens: Sequence[Place], *, size: int) -> list[Place]:
    """Start and end of windows of at most `size` tokens that hold the whole text; neighbours share an eighth, so that no name is cut in both.

    Args:
        text: the text.
        tokens: start and end of its tokens, in order.
        size: most tokens in a window.

    Returns:
        The whole text as one window when it fits, none when it is empty.

    Example:
        >>> text = "a b c d e"
        >>> [text[start:end] for start, end in windows_of(text, word_places(text), size=3)]
        ['a b c', 'c d e']
    """
    if not text.strip():
        return []
    if len(tokens) <= size:
        return [(0, len(text))]
    step = max(1, size - max(1, size // _OVERLAP_SHARE))
    starts = range(0, max(1, len(tokens) - (size - step)), step)
    return [(tokens[start][0], tokens[min(start + size, len(tokens)) - 1][1]) for start in starts]


def merged_mentions(mentions: Iterable[Mention]) -> tuple[Mention, ...]:
    """The mentions in order, none over another: of those that overlap the longest, then the first, then by kind.

    Example:
        >>> found = [Mention("York", "LOC", 4, 8), Mention("New York", "LOC", 0, 8), Mention("New York", "LOC", 0, 8)]
        >>> [mention.surface for mention in merged_mentions(found)]
        ['New York']
    """
    kept: list[Mention] = []
    for mention in sorted(set(mentions), key=lambda found: (found.start - found.end, found.start, found.kind)):
        place = bisect_right(kept, mention.start, key=lambda other: other.start)
        free_before = place == 0 or kept[place - 1].end <= mention.start
        if free_before and (place == len(kept) or mention.end <= kept[place].start):
            kept.insert(place, mention)
    return tuple(kept)


def mention_at(text: str, start: int, end: int, kind: str) -> Mention | None:
    """The mention without white space at its ends; None when nothing is left, or it does not lie in the text."""
    start, end = max(start, 0), min(end, len(text))
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Mention(text[start:end], kind, start, end) if start < end else None
