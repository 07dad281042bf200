"""Headings that a document's format gives: bookmarks, placed at the line with their title near the place they point to."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from llama_index_advanced_rag.text.outlines.drafts import Bookmark, Draft, HeadingSource, clean_title
from llama_index_advanced_rag.text.outlines.lines import Layout, plain_words

_BEFORE = 5
_MAX_AFTER = 300
_RANK_OF_BOOKMARKS = -100.0
_MIN_WORDS = 2


def bookmark_headings(layout: Layout, bookmarks: Sequence[Bookmark], size: int) -> tuple[list[Draft], list[str]]:
    r"""One heading for each bookmark that has a title and points into the text, and a note for each that the text does not say.

    The line with the title is looked for on the page that the bookmark points to, from a few lines before; if no line has it, the heading
    stands at the line of the offset. Bookmarks stand above all other headings.

    Args:
        layout: The lines of the text.
        bookmarks: Bookmarks in any order.
        size: Length of the text in characters.

    Example:
        >>> from llama_index_advanced_rag.text.outlines.lines import read_layout
        >>> layout = read_layout("A page header\n2 SCOPE\nIt holds.")
        >>> drafts, notes = bookmark_headings(layout, [Bookmark("2. Scope", 1, 0)], 30)
        >>> drafts[0].start, drafts[0].title, notes
        (14, '2. Scope', [])
    """
    drafts: list[Draft] = []
    notes: list[str] = []
    starts = [line.start for line in layout.lines]
    after = 0
    for bookmark in sorted(bookmarks, key=lambda bookmark: bookmark.start):
        title = clean_title(bookmark.title)
        if not title or not 0 <= bookmark.start < size or not starts:
            notes.append(f"The bookmark {title!r} points to {bookmark.start}, outside the text of {size} characters.")
            continue
        place = _place(layout, title, max(bisect_right(starts, bookmark.start) - 1, 0), after)
        rank = _RANK_OF_BOOKMARKS + max(bookmark.level, 1)
        if place is None:
            at = max(bisect_right(starts, bookmark.start) - 1, 0)
            start = layout.lines[at].start if bookmark.start else 0
            drafts.append(Draft(start, start, title, rank, HeadingSource.BOOKMARK))
            notes.append(f"The bookmark {title!r} has no line with its title near offset {bookmark.start}.")
        else:
            after = place + 1
            drafts.append(Draft(layout.lines[place].start, layout.lines[place].end, title, rank, HeadingSource.BOOKMARK))
    return drafts, notes


def _place(layout: Layout, title: str, near: int, after: int) -> int | None:
    page = layout.lines[near].page
    words = plain_words(title)
    begun: int | None = None
    stop = bisect_left(layout.lines, page + 2, key=lambda line: line.page)
    for index in range(max(near - _BEFORE, after, 0), min(near + _MAX_AFTER, stop)):
        line = plain_words(layout.lines[index].text)
        if line == words:
            return index
        if begun is None and layout.lines[index].page == page and (line.startswith(f"{words} ") or _is_most_of(line, words)):
            begun = index
    return begun


def _is_most_of(line: str, words: str) -> bool:
    """Whether a line is the greater part of a title: its beginning, or all of it but the number."""
    long_enough = 2 * len(line) > len(words) and len(line.split()) >= _MIN_WORDS
    return long_enough and (words.startswith(f"{line} ") or words.endswith(f" {line}"))
