"""The context in front of what is embedded: heading and table header, cut to a number of tokens."""

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.schema import MetadataMode, TextNode

from llama_index_advanced_rag.hierarchy.keys import HEADING, PATH_SEPARATOR, TABLE_HEADER

MAX_PREFIX_TOKENS = 48
MAX_HEADER_TOKENS = 32
MAX_HEADING_TOKENS = 16
CUT = "…"
_SAMPLE = "x"
_LOOSE_ENDS = " |,;:-–—(&"
_MOST_TITLES = 16

Fits = Callable[[str], bool]


def fitting_path(titles: Sequence[str], fits: Fits) -> str | None:
    """Headings from the top, the own one last, joined with " > "; those that do not fit are left out, outermost first.

    Args:
        titles: headings from the top.
        fits: whether a path is short enough.

    Returns:
        The path; one heading that is too long is cut at a word. None when there is no heading or not even a word fits.

    Example:
        >>> short = lambda path: len(path.split()) <= 5
        >>> fitting_path(["Part I", "Item 2", "Net sales"], short), fitting_path(["One two three four five six"], short)
        ('… > Net sales', 'One two three four …')
    """
    if not titles:
        return None
    best = None
    for count in range(1, min(len(titles), _MOST_TITLES) + 1):
        path = _path(titles, count)
        if not fits(path):
            whole = _path(titles, len(titles))  # may fit where the mark for one missing heading does not
            return whole if count == len(titles) - 1 and fits(whole) else best or fitting_beginning(titles[-1], fits)
        best = path
    return best


def _path(titles: Sequence[str], count: int) -> str:
    return PATH_SEPARATOR.join([*([CUT] if count < len(titles) else []), *titles[-count:]])


def fitting_beginning(line: str, fits: Fits) -> str | None:
    """A line, or as much of its beginning as fits with " …" behind it, cut between words if there are any; None when nothing fits.

    Example:
        >>> fitting_beginning("Name | Price | Stock", lambda line: len(line.split()) <= 4)
        'Name | Price …'
    """
    if fits(line):
        return line
    low, high = 0, len(line) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(_cut(line, middle)) else (low, middle - 1)
    cut = _cut(line, low)
    return cut if low > 0 and fits(cut) else None


def _cut(line: str, length: int) -> str:
    """The beginning without half a word (in the second half of it) and without signs at its end."""
    word_end = line.rfind(" ", length // 2, length + 1)
    return f"{line[: word_end if word_end > 0 else length].rstrip(_LOOSE_ENDS)} {CUT}"


class PrefixRoom:
    """Fits the heading and the table header of the nodes of one document into what is left of their prefix.

    Args:
        shape: fields that all nodes of the document share; their metadata stand in front.
        count_tokens: tokens of a string.
        max_tokens: most tokens of a prefix.

    Attributes:
        own_tokens: tokens of the document's own metadata, as they are embedded.
    """

    def __init__(self, shape: dict[str, Any], count_tokens: Callable[[str], int], *, max_tokens: int) -> None:
        self._scratch = TextNode(**{**shape, "text": _SAMPLE})
        self._metadata: dict[str, Any] = dict(shape["metadata"])
        self._count, self._max = count_tokens, max_tokens
        self._sample_tokens = count_tokens(_SAMPLE)
        self._known: dict[tuple[str | None, str | None], int] = {}
        self.own_tokens = self.tokens(None)

    def tokens(self, path: str | None, header: str | None = None) -> int:
        """Tokens of the prefix with this path and this header; the blank line behind it counts."""
        known = self._known.get((path, header))
        if known is None:
            context = {HEADING: path, TABLE_HEADER: header}
            self._scratch.metadata = {**self._metadata, **{name: value for name, value in context.items() if value is not None}}
            known = self._count(self._scratch.get_content(metadata_mode=MetadataMode.EMBED)) - self._sample_tokens
            self._known[path, header] = known
        return known

    def path(self, titles: Sequence[str]) -> str | None:
        """The own heading and as many of those above it as fit; None when nothing of it does, or the document's metadata have one of their own."""
        if HEADING in self._metadata:
            return None
        most = min(self._max, self.own_tokens + MAX_HEADING_TOKENS)
        return fitting_path(titles, lambda path: self.tokens(path) <= most)

    def header(self, path: str | None, header: str) -> str | None:
        """The header as long as it fits beside the path; None when nothing of it does, or the document's metadata have one of their own."""
        if TABLE_HEADER in self._metadata:
            return None
        most = min(self._max, self.tokens(path) + MAX_HEADER_TOKENS)
        return fitting_beginning(header, lambda line: self.tokens(path, line) <= most)
