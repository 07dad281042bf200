"""Recover the outline of a text: its headings as a tree, from marks, bookmarks, numbers, printed contents and typography."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from llama_index_advanced_rag.text.outlines.drafts import Bookmark, Draft, HeadingSource, clean_title
from llama_index_advanced_rag.text.outlines.evidence import gather_drafts
from llama_index_advanced_rag.text.outlines.lines import read_layout
from llama_index_advanced_rag.text.outlines.markup import marked_headings

__all__ = ["Bookmark", "Heading", "HeadingSource", "Outline", "recover_outline"]

_MIN_MARKED = 2
_MAX_NOTES = 20


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading and its section.

    Attributes:
        title: One line without marks, leader dots and page number; at most 200 characters.
        level: 1 for the top; at most one deeper than the heading it stands under.
        start: Where the line of the heading begins in the text.
        body: Where the text under the heading begins, just behind the heading.
        end: Where the section ends: the next heading of the same or a higher level, else the end of the text.
        parent: Index of the heading it stands under; None at the top.
        source: What says that it is a heading.
    """

    title: str
    level: int
    start: int
    body: int
    end: int
    parent: int | None
    source: HeadingSource


@dataclass(frozen=True, slots=True)
class Outline:
    """The headings of a text in order (starts strictly rise), and one sentence for each thing that is odd, 20 of them at most."""

    headings: tuple[Heading, ...]
    notes: tuple[str, ...] = ()

    def index_at(self, offset: int) -> int | None:
        r"""The index of the innermost heading whose section holds the offset; None before the first heading. O(log n).

        Example:
            >>> recover_outline("# A\ntext\n## B\ntext\n").index_at(9)
            1
        """
        place = bisect_right(self.headings, offset, key=_start) - 1
        return place if place >= 0 else None

    def path_at(self, offset: int) -> tuple[str, ...]:
        r"""The titles from the top down to the section that holds the offset; () before the first heading.

        Example:
            >>> recover_outline("# A\ntext\n## B\ntext\n").path_at(13)
            ('A', 'B')
        """
        titles: list[str] = []
        place = self.index_at(offset)
        while place is not None:
            titles.append(self.headings[place].title)
            place = self.headings[place].parent
        return tuple(reversed(titles))


def recover_outline(text: str, *, page_starts: Sequence[int] = (), bookmarks: Sequence[Bookmark] = ()) -> Outline:
    r"""Find the headings of a text and how they nest. No LLM is called; the time is linear in the text, up to a logarithm.

    A text with two and more Markdown headings is taken by its marks only. Else bookmarks, numbered headings, the entries of printed tables
    of contents and lines that look like headings are put into one tree. Headers and footers of pages and lines of contents are no headings.

    Args:
        text: The text of one document.
        page_starts: Offsets at which its pages begin, rising; without them pages begin behind form feeds.
        bookmarks: What the document's format gives, in the order of the text.

    Source: our own; the sources and their order are described in the modules `outline_*`.

    Example:
        >>> text = "PART I\nITEM 1. BUSINESS\nWe sell.\nITEM 1A. RISKS\nNone.\nPART II\nITEM 2. PROPERTIES\nNone.\n"
        >>> [(heading.level, heading.title) for heading in recover_outline(text).headings]
        [(1, 'PART I'), (2, 'ITEM 1. BUSINESS'), (2, 'ITEM 1A. RISKS'), (1, 'PART II'), (2, 'ITEM 2. PROPERTIES')]
    """
    layout = read_layout(text, page_starts)
    drafts = marked_headings(layout.lines)
    if len(drafts) >= _MIN_MARKED:
        return _outline(drafts, len(text), _skipped_levels(drafts))
    drafts, notes = gather_drafts(layout, drafts, bookmarks, len(text))
    return _outline(drafts, len(text), notes)


def _outline(drafts: Sequence[Draft], size: int, notes: Sequence[str]) -> Outline:
    parents, levels = _nest(drafts)
    ends = [size] * len(drafts)
    open_places: list[int] = []
    for place, draft in enumerate(drafts):
        while open_places and levels[open_places[-1]] >= levels[place]:
            ends[open_places.pop()] = draft.start
        open_places.append(place)
    headings = tuple(
        Heading(clean_title(draft.title), level, draft.start, draft.body, end, parent, draft.source)
        for draft, level, end, parent in zip(drafts, levels, ends, parents, strict=True)
    )
    return Outline(headings, _bounded(notes))


def _nest(drafts: Sequence[Draft]) -> tuple[list[int | None], list[int]]:
    """Parents and levels: a draft stands below the nearest one before it that ranks above it."""
    parents: list[int | None] = []
    levels: list[int] = []
    ranks: list[float] = []
    chain: list[int] = []
    for place in range(len(drafts)):
        rank = _rank_over_first(drafts, place, ranks, chain)
        while chain and ranks[chain[-1]] >= rank:
            chain.pop()
        parents.append(chain[-1] if chain else None)
        chain.append(place)
        ranks.append(rank)
        levels.append(len(chain))
    return parents, levels


def _rank_over_first(drafts: Sequence[Draft], place: int, ranks: Sequence[float], chain: Sequence[int]) -> float:
    """A heading without a number that stands directly over a first number is the title of what is numbered."""
    draft = drafts[place]
    after = drafts[place + 1] if place + 1 < len(drafts) else None
    if after is None or not after.leads or draft.source not in (HeadingSource.CONTENTS, HeadingSource.TYPOGRAPHY):
        return draft.rank
    near = after.start - draft.body <= 80 and draft.rank > after.rank
    return after.rank - 0.25 if near and any(ranks[above] < after.rank - 0.25 for above in chain) else draft.rank


def _skipped_levels(drafts: Sequence[Draft]) -> list[str]:
    return [
        f"The heading {after.title!r} has level {after.rank:.0f} below level {draft.rank:.0f}: the levels between are missing."
        for draft, after in pairwise(drafts)
        if after.rank > draft.rank + 1
    ]


def _bounded(notes: Sequence[str]) -> tuple[str, ...]:
    more = len(notes) - _MAX_NOTES
    return (*notes[:_MAX_NOTES], f"and {more} more") if more > 0 else tuple(notes)


def _start(heading: Heading) -> int:
    return heading.start
