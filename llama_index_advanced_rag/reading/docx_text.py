"""Word files to Markdown-like lines, through python-docx (extra `files`)."""

import re
from io import BytesIO
from typing import Any

from llama_index_advanced_rag._optional import require
from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading.decoding import tidy
from llama_index_advanced_rag.reading.file_text import FileText

_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


def read_docx(data: bytes) -> FileText:
    """Paragraphs and tables in document order: headings with `#`, list items with `-`, table rows as `a | b`.

    Headers, footers, footnotes, comments and text boxes are left out. The title is the paragraph of style "Title",
    else the first heading of level 1.

    Raises:
        MissingExtraError: python-docx is not installed.
        DocumentReadError: not a Word file, or damaged.
    """
    docx = require("docx", extra="files", feature="reading Word files")
    try:
        document = docx.Document(BytesIO(data))
        blocks = [_block(item) for item in document.iter_inner_content()]
    except Exception as error:  # zipfile, lxml and python-docx each have errors of their own
        raise DocumentReadError(f"is not a readable .docx file ({type(error).__name__}: {error})") from error
    text = tidy("\n\n".join(block for block in blocks if block))
    return FileText(text, title=next((block[2:] for block in blocks if block.startswith("# ")), None))


def _block(item: Any) -> str:
    return _table_rows(item) if hasattr(item, "rows") else _paragraph(item)


def _paragraph(paragraph: Any) -> str:
    words = paragraph.text.strip()
    style = paragraph.style.name if paragraph.style is not None and paragraph.style.name else ""
    heading = _HEADING.match(style)
    if not words:
        return ""
    if style == "Title":
        return f"# {words}"
    if heading:
        return f"{'#' * int(heading.group(1))} {words}"
    return f"- {words}" if style.startswith("List") else words


def _table_rows(table: Any) -> str:
    return "\n".join(row for row in map(_row, table.rows) if row)


def _row(row: Any) -> str:
    cells: list[str] = []
    before: Any = None
    for cell in row.cells:  # a merged cell is listed once a column
        if cell._tc is not before:  # noqa: SLF001 - python-docx has no public identity of a merged cell
            cells.append(_SPACES.sub(" ", cell.text).strip())
        before = cell._tc  # noqa: SLF001
    return " | ".join(cells) if any(cells) else ""
