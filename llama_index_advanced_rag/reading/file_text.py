"""What a reader makes of one file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileText:
    """What one file says.

    Attributes:
        text: the text; newline is the only line end.
        title: the title the file gives itself; None when it has none.
        page_starts: offset in `text` where each page begins, ascending; None when the format has no pages.
        warnings: what the reader had to guess or leave out.
        bookmarks: the outline that the file gives itself, in the order of the text: title, level (1 = top) and the offset in
            `text` of the page it leads to.
    """

    text: str
    title: str | None = None
    page_starts: tuple[int, ...] | None = None
    warnings: tuple[str, ...] = ()
    bookmarks: tuple[tuple[str, int, int], ...] = ()
