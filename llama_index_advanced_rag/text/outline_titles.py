"""The whole title of a heading: lines that a heading is wrapped over, and a title on the line below its number."""

from llama_index_advanced_rag.text.lines import is_list_item, is_table_row
from llama_index_advanced_rag.text.outline_lines import Layout, TextLine
from llama_index_advanced_rag.text.outline_numbers import NumberedLine, read_numbered

_LONG = 75
_MAX_REST = 60
_MAX_BELOW = 90
_CONNECTORS = frozenset("of and the for to in on or by with a an de du des la le les et à au aux ou der die das und für von y e del el los".split())
_TITLED_BELOW = ("appendix", "book", "part", "title", "chapter", "section", "article", "item")


def read_title(layout: Layout, index: int, line: NumberedLine | None = None) -> tuple[str, int]:
    """The title of the heading at a line and the offset where the text under it begins."""
    here = layout.lines[index]
    if line is not None and line.cut is not None:
        return here.text[: line.cut], here.start + here.indent + line.cut
    below = _below(layout, index, blank=line is not None and not line.title)
    if below is None:
        return here.text, here.end
    if line is not None and not line.title:
        joined = line.kind in _TITLED_BELOW and _is_title(layout, below)
    else:
        joined = _is_rest(here.text, layout.lines[below].text)
    if not joined:
        return here.text, here.end
    return f"{here.text} {layout.lines[below].text}", layout.lines[below].end


def _below(layout: Layout, index: int, *, blank: bool) -> int | None:
    below = index + 1
    if below >= len(layout.lines) or layout.lines[below].page != layout.lines[index].page:
        return None
    return below if blank or not layout.lines[below].apart else None


def _is_rest(first: str, second: str) -> bool:
    """Whether the second line is the rest of a title that did not fit on the first."""
    if len(second) > _MAX_REST or second[-1] in ".,;:" or is_list_item(second) or is_table_row(second) or read_numbered(second):
        return False
    words = first.rsplit(None, 1)
    hanging = words[-1].casefold() in _CONNECTORS or first.endswith((",", "-", "&"))
    if first.isupper():
        return second.isupper() and (hanging or len(first) >= _LONG)
    return (hanging and second[0].isalnum() and not second.isupper()) or (second[0].islower() and len(first) >= _MAX_REST // 2)


def _is_title(layout: Layout, index: int) -> bool:
    line = layout.lines[index]
    if line.size > _MAX_BELOW or is_table_row(line.text) or is_list_item(line.text) or read_numbered(line.text) or not _looks_like_title(line):
        return False
    after = layout.after(index)
    return after is None or not layout.lines[after].text[:1].islower()


def _looks_like_title(line: TextLine) -> bool:
    text = line.text
    return text[0].isalpha() and not text[0].islower() and text[-1] not in ".,;:" and not any(mark.isdigit() for mark in text) and len(text.split()) <= 12
