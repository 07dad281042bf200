"""Which file suffix is read by what."""

import re
from collections.abc import Callable

from llama_index_advanced_rag.reading.decoding import decode_text, tidy
from llama_index_advanced_rag.reading.file_text import FileText

_ATX_TITLE = re.compile(r"^#[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_TITLE_WITHIN = 4_000


def read_plain(data: bytes) -> FileText:
    """A text file as it stands."""
    text, warning = decode_text(data)
    return FileText(tidy(text), warnings=(warning,) if warning else ())


def read_markdown(data: bytes) -> FileText:
    """Markdown as it stands; the title is the first heading of level 1 near the top."""
    plain = read_plain(data)
    found = _ATX_TITLE.search(plain.text[:_TITLE_WITHIN])
    return FileText(plain.text, title=found.group(1) if found else None, warnings=plain.warnings)


def read_html(data: bytes) -> FileText:
    """HTML as Markdown-like lines, see `html_text`."""
    from llama_index_advanced_rag.reading.html_text import read_html as read

    return read(data)


def read_pdf(data: bytes) -> FileText:
    """PDF with its pages, see `pdf_text`."""
    from llama_index_advanced_rag.reading.pdf_text import read_pdf as read

    return read(data)


def read_docx(data: bytes) -> FileText:
    """Word with headings and tables, see `docx_text`."""
    from llama_index_advanced_rag.reading.docx_text import read_docx as read

    return read(data)


FORMATS: dict[str, Callable[[bytes], FileText]] = {
    ".txt": read_plain,
    ".text": read_plain,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".pdf": read_pdf,
    ".docx": read_docx,
}
