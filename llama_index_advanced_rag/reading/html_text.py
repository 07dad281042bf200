"""HTML to Markdown-like lines: headings with `#`, list items with `-`, table rows as `a | b`."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from llama_index_advanced_rag.errors import DocumentReadError
from llama_index_advanced_rag.reading.decoding import decode_text, tidy
from llama_index_advanced_rag.reading.file_text import FileText

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_DROPPED = ("script", "style", "template", "noscript", "svg", "math", "iframe", "object", "title")
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_SPACED = frozenset({*_HEADINGS, "p", "table", "ul", "ol", "dl", "pre", "blockquote", "section", "article", "hr", "figure"})
_BLOCKS = _SPACED | {
    *("address", "aside", "body", "caption", "center", "dd", "details", "div", "dt", "fieldset", "figcaption", "footer", "form", "header", "html"),
    *("legend", "li", "main", "nav", "option", "summary", "tbody", "td", "tfoot", "th", "thead", "tr"),
}
_SPACES = re.compile(r"\s+")
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_META_WITHIN = 4_096


def read_html(data: bytes) -> FileText:
    r"""The visible text of a page.

    Blocks become lines, a blank line stands before and after paragraphs, headings, lists and tables; cells of a row are
    joined with ` | `; a table that holds another table is layout and its cells become lines. Scripts, styles and other
    text nobody sees are dropped. The charset is that of the byte order mark, else of the `meta` element, else as for
    plain text. The title is `<title>`, else the first `<h1>`.

    Raises:
        DocumentReadError: binary data, or an encoding that cannot be told.

    Example:
        >>> read_html(b"<title>T</title><h1>Sales</h1><p>Up by<b> 3</b> %.</p><table><tr><td>Mac<td>7").text
        '# Sales\n\nUp by 3 %.\n\nMac | 7'
    """
    from bs4 import BeautifulSoup

    markup, warning = _decode_markup(data)
    soup = BeautifulSoup(_close_off(tidy(markup)), "html.parser")
    title = _title(soup)
    for tag in soup.find_all(_DROPPED):
        tag.decompose()
    lines = _Lines()
    _walk(soup, lines)
    return FileText(lines.text(), title=title, warnings=(warning,) if warning else ())


def _decode_markup(data: bytes) -> tuple[str, str | None]:
    declared = _META_CHARSET.search(data[:_META_WITHIN])
    if declared is None or data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return decode_text(data)
    name = declared.group(1).decode("ascii")
    if name.lower() in {"iso-8859-1", "latin1", "latin-1", "us-ascii"}:
        name = "cp1252"  # as every browser does
    elif name.lower().startswith(("utf-16", "utf-32")):
        name = "utf-8"  # whoever could read the element was not reading UTF-16
    if b"\x00" in data:
        raise DocumentReadError("looks like a binary file (it contains NUL bytes)")
    try:
        return data.decode(name), None
    except (LookupError, UnicodeError):
        text, warning = decode_text(data)
        return text, warning or f"declares the charset {name!r}, which does not fit; read as UTF-8"


def _close_off(markup: str) -> str:
    """The markup with what is opened and never closed as text: for each of those, Python's parser reads to the end of the page."""
    comments = markup.rfind("-->")
    markup = markup[: comments + 1] + markup[comments + 1 :].replace("<!--", "&lt;!--")
    tags = markup.rfind(">")
    return markup[: tags + 1] + markup[tags + 1 :].replace("<", "&lt;")


def _title(soup: "BeautifulSoup") -> str | None:
    for name in ("title", "h1"):
        tag = soup.find(name)
        words = _SPACES.sub(" ", tag.get_text()).strip() if tag is not None else ""
        if words:
            return words
    return None


class _Lines:
    """Collects inline text into lines."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._inline: list[str] = []
        self.prefix = ""

    def write(self, text: str) -> None:
        self._inline.append(text)

    def end_line(self) -> None:
        line = _SPACES.sub(" ", "".join(self._inline)).strip()
        self._inline.clear()
        if line:
            self._lines.append(self.prefix + line)
            self.prefix = ""

    def add_lines(self, block: list[str]) -> None:
        self.end_line()
        self._lines.extend(block)

    def blank(self) -> None:
        self.end_line()
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def text(self) -> str:
        self.end_line()
        return "\n".join(self._lines).strip("\n")


def _walk(soup: "BeautifulSoup", lines: _Lines) -> None:
    """Depth first with a stack of our own: a page may nest deeper than Python recurses."""
    from bs4 import Tag
    from bs4.element import NavigableString, PreformattedString

    layout = _around_tables(soup)
    stack: list[tuple[Tag, Iterator[object]]] = [(soup, iter(soup.contents))]
    while stack:
        tag, children = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            _close(tag.name, lines)
        elif isinstance(child, Tag):
            if not _take_whole(child, layout, lines):
                _open(child.name, lines)
                stack.append((child, iter(child.contents)))
        elif isinstance(child, NavigableString) and not isinstance(child, PreformattedString):
            lines.write(str(child))


def _around_tables(soup: "BeautifulSoup") -> set[int]:
    """The `id()` of every element that holds a table; each is looked at once."""
    around: set[int] = set()
    for table in soup.find_all("table"):
        for parent in table.parents:
            if id(parent) in around:
                break
            around.add(id(parent))
    return around


def _open(name: str, lines: _Lines) -> None:
    if name in _SPACED:
        lines.blank()
    elif name in _BLOCKS or name == "br":
        lines.end_line()
    if name in _HEADINGS:
        lines.prefix = "#" * _HEADINGS[name] + " "
    elif name == "li":
        lines.prefix = "- "


def _close(name: str, lines: _Lines) -> None:
    if name in _SPACED:
        lines.blank()
    elif name in _BLOCKS:
        lines.end_line()
    if name in _HEADINGS or name == "li":
        lines.prefix = ""


def _take_whole(tag: "Tag", layout: set[int], lines: _Lines) -> bool:
    """Write an element that is not walked into: preformatted text, a row of a data table."""
    if tag.name == "pre":
        lines.blank()
        lines.add_lines([line.rstrip() for line in tag.get_text().strip("\n").split("\n")])
        lines.blank()
        return True
    if tag.name == "tr" and id(tag) not in layout:
        lines.add_lines([" | ".join(cells) for cells in _rows(tag) if any(cells)])
        return True
    return False


def _rows(row: "Tag") -> list[list[str]]:
    """Cells of a row; end tags of cells and rows may be missing, so the next one then lies inside the last."""
    from bs4 import Tag
    from bs4.element import NavigableString, PreformattedString

    rows: list[list[list[str]]] = [[]]
    for item in row.descendants:
        if isinstance(item, Tag):
            if item.name == "tr":
                rows.append([])
            elif item.name in {"td", "th"}:
                rows[-1].append([])
            elif rows[-1] and (item.name in _BLOCKS or item.name == "br"):
                rows[-1][-1].append(" ")
        elif rows[-1] and isinstance(item, NavigableString) and not isinstance(item, PreformattedString):
            rows[-1][-1].append(str(item))
    return [[_SPACES.sub(" ", "".join(cell)).strip() for cell in cells] for cells in rows]
