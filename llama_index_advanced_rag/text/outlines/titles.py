"""The whole title of a heading: lines that a heading is wrapped over, and a title on the line below its number."""

from llama_index_advanced_rag.text.lines import is_list_item, is_table_row
from llama_index_advanced_rag.text.outlines.lines import Layout, TextLine
from llama_index_advanced_rag.text.outlines.numbers import NumberedLine, read_numbered

_LONG = 75
_MAX_REST = 60
_MAX_MORE_LINES = 3
_MAX_BELOW = 90
_SMALL_WORDS = "of and under pursuant the for to in on or by with a an de du des la le les et à au aux ou der die das und für von y e del el los"
_CONNECTORS = frozenset(_SMALL_WORDS.split())
_TITLED_BELOW = ("appendix", "book", "part", "title", "chapter", "section", "article", "item")


def read_title(layout: Layout, index: int, line: NumberedLine | None = None) -> tuple[str, int]:
    """The title of the heading at a line and the offset where the text under it begins."""
    here = layout.lines[index]
    if line is not None and line.cut is not None:
        return here.text[: line.cut], here.start + here.indent + line.cut
    title, last = here.text, index
    if line is not None and not line.title:
        below = _below(layout, index, blank=True)
        if below is None or line.kind not in _TITLED_BELOW or not _is_title(layout, below):
            return title, here.end
        title, last = f"{title} {layout.lines[below].text}", below
    for _ in range(_MAX_MORE_LINES):
        below = _below(layout, last, blank=False)
        if below is None or not is_rest(layout.lines[last].text, layout.lines[below].text):
            break
        title, last = f"{title} {layout.lines[below].text}", below
    return title, layout.lines[last].end


def _below(layout: Layout, index: int, *, blank: bool) -> int | None:
    below = index + 1
    if below >= len(layout.lines) or layout.lines[below].page != layout.lines[index].page:
        return None
    return below if blank or not layout.lines[below].apart else None


def is_rest(first: str, second: str) -> bool:
    """Whether the second line is the rest of a title that did not fit on the first."""
    if len(second) > _MAX_REST or second[-1] in ".,;:" or is_list_item(second) or is_table_row(second) or _is_own_heading(first, second):
        return False
    hanging = is_hanging(first)
    if first.isupper():
        return second.isupper() and (hanging or len(first) >= _LONG)
    return (hanging and second[0].isalnum() and not second.isupper()) or (second[0].islower() and len(first) >= _MAX_REST // 2)


def is_small_word(word: str) -> bool:
    """Whether a word is written small within a title."""
    return word.casefold() in _CONNECTORS


def _is_own_heading(first: str, second: str) -> bool:
    line = read_numbered(second)
    return line is not None and not (is_hanging(first) and line.kind in ("section", "title"))


def is_hanging(title: str) -> bool:
    """Whether a title ends with a word or a mark that must be followed by more.

    Example:
        >>> is_hanging("Financial Condition and Results of"), is_hanging("Leases")
        (True, False)
    """
    return title.endswith((",", "-", "&")) or title.rsplit(None, 1)[-1].casefold() in _CONNECTORS


def _is_title(layout: Layout, index: int) -> bool:
    line = layout.lines[index]
    if line.size > _MAX_BELOW or is_table_row(line.text) or is_list_item(line.text) or read_numbered(line.text) or not _looks_like_title(line):
        return False
    after = layout.after(index)
    return after is None or not layout.lines[after].text[:1].islower()


def _looks_like_title(line: TextLine) -> bool:
    text = line.text
    return text[0].isalpha() and not text[0].islower() and text[-1] not in ".,;:。" and not any(mark.isdigit() for mark in text) and len(text.split()) <= 12
