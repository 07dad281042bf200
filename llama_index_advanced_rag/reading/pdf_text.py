"""PDF to text with page offsets, through pypdfium2 (extra `files`)."""

import re
from itertools import islice
from threading import Lock
from typing import Any

from llama_index_advanced_rag._optional import require
from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading.decoding import tidy
from llama_index_advanced_rag.reading.file_text import FileText

# pdfium is not thread-safe: one document at a time in the whole process.
_PDFIUM = Lock()
# pdfium marks a hyphen at the end of a line with U+FFFE and joins the two halves.
_LINE_HYPHEN = re.compile(r"(\w+)\ufffe(\w+)")
_WORD = re.compile(r"\w+")
PAGE_BREAK = "\n\n"
_MOST_BOOKMARKS = 10_000

# Title, level (1 = top) and page (from 0).
Entry = tuple[str, int, int]


def read_pdf(data: bytes) -> FileText:
    """The text of all pages joined by a blank line, the offset at which each page begins, and the file's own bookmarks.

    A bookmark leads to the beginning of its page; those that lead to no page are left out. A word broken at a line end is
    mended when the whole word stands elsewhere in the file; else the hyphen stays.

    Raises:
        MissingExtraError: pypdfium2 is not installed.
        DocumentReadError: not a PDF, damaged, locked by a password, or without any text (a scan).
    """
    pdfium = require("pypdfium2", extra="files", feature="reading PDF files")
    with _PDFIUM:
        pages, failed, entries = _read(pdfium, data)
    if not any(page.strip() for page in pages):
        raise DocumentReadError(f"holds no text on its {len(pages)} page(s); a scan needs OCR first")
    pages = _mend_hyphens([tidy(page).strip() for page in pages])
    starts = _page_starts(pages)
    bookmarks = sorted(((title, level, starts[page]) for title, level, page in entries if 0 <= page < len(starts)), key=lambda bookmark: bookmark[2])
    return FileText(PAGE_BREAK.join(pages), page_starts=starts, warnings=_warnings(pages, failed), bookmarks=tuple(bookmarks))


def _read(pdfium: Any, data: bytes) -> tuple[list[str], list[int], list[Entry]]:
    """The raw text of each page, the numbers of the pages that could not be read, and the bookmarks."""
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise DocumentReadError("is locked by a password" if locked else f"is not a readable PDF ({error})") from error
    try:
        pages = [_page_text(pdfium, document, number) for number in range(len(document))]
        entries = _entries(pdfium, document)
    finally:
        document.close()
    return [page or "" for page in pages], [number for number, page in enumerate(pages, start=1) if page is None], entries


def _entries(pdfium: Any, document: Any) -> list[Entry]:
    """The bookmarks in the order of the file; a damaged outline ends where the damage is."""
    entries: list[Entry] = []
    try:
        for bookmark in islice(document.get_toc(), _MOST_BOOKMARKS):
            title, page = _title_and_page(bookmark)
            if title and page is not None:
                entries.append((title, bookmark.level + 1, page))
    except (pdfium.PdfiumError, UnicodeError):
        return entries
    return entries


def _title_and_page(bookmark: Any) -> tuple[str, int | None]:
    if hasattr(bookmark, "page_index"):  # pypdfium2 4
        title, page = bookmark.title, bookmark.page_index
    else:
        target = bookmark.get_dest()
        title, page = bookmark.get_title(), None if target is None else target.get_index()
    return " ".join(tidy(title).split()), page


def _page_text(pdfium: Any, document: Any, number: int) -> str | None:
    try:
        page = document[number]
        text_page = page.get_textpage()
        text: str = text_page.get_text_range()
        text_page.close()
        page.close()
    except pdfium.PdfiumError:
        return None
    return text


def _mend_hyphens(pages: list[str]) -> list[str]:
    if not any("\ufffe" in page for page in pages):
        return pages
    words = {word.lower() for page in pages for word in _WORD.findall(page)}

    def mend(found: "re.Match[str]") -> str:
        whole = found.group(1) + found.group(2)
        return whole if whole.lower() in words else f"{found.group(1)}-{found.group(2)}"

    return [_LINE_HYPHEN.sub(mend, page).replace("\ufffe", "-") for page in pages]


def _page_starts(pages: list[str]) -> tuple[int, ...]:
    starts: list[int] = []
    offset = 0
    for page in pages:
        starts.append(offset)
        offset += len(page) + len(PAGE_BREAK)
    return tuple(starts)


def _warnings(pages: list[str], failed: list[int]) -> tuple[str, ...]:
    empty = [number for number, page in enumerate(pages, start=1) if not page and number not in failed]
    found: list[str] = []
    if failed:
        found.append(f"{_page_list(failed)} could not be read")
    if empty:
        found.append(f"{_page_list(empty)} without text (a picture or blank)")
    return tuple(found)


def _page_list(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"page {shown}" if len(numbers) == 1 else f"{len(numbers)} pages ({shown}{', ...' if len(numbers) > 10 else ''})"
