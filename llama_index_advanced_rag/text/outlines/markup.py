"""Headings that the text itself marks: `#` lines and underlined lines of Markdown."""

import re
from collections.abc import Iterator, Sequence

from llama_index_advanced_rag.text.lines import is_list_item, is_table_row
from llama_index_advanced_rag.text.outlines.drafts import Draft, HeadingSource, clean_title
from llama_index_advanced_rag.text.outlines.lines import TextLine

_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
_CLOSING = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE = re.compile(r"=+$|-{2,}$")
_FENCE = re.compile(r"`{3,}|~{3,}")
_FRONT_MATTER = ("---", "+++")
_MAX_INDENT = 3
_MAX_SETEXT = 200


def marked_headings(lines: Sequence[TextLine]) -> list[Draft]:
    r"""Headings written with `#` or with a line of `=` or `-` below, outside fenced code and front matter; the rank is the level.

    Source: CommonMark 0.31, sections 4.2 and 4.3. We read one line above an underline only, and no heading without words.

    Example:
        >>> from llama_index_advanced_rag.text.outlines.lines import read_layout
        >>> layout = read_layout("# One #\n\n```\n# a comment\n```\nTwo\n---\n")
        >>> [(draft.title, draft.rank) for draft in marked_headings(layout.lines)]
        [('One', 1.0), ('Two', 2.0)]
    """
    drafts: list[Draft] = []
    above: TextLine | None = None
    for line in _outside_code(lines):
        draft = _atx(line) or _setext(above, line)
        if draft is not None:
            drafts.append(draft)
        above = None if draft is not None else line
    return drafts


def _outside_code(lines: Sequence[TextLine]) -> Iterator[TextLine]:
    fence = ""
    begin = _front_matter_end(lines)
    for line in lines[begin:]:
        match = _FENCE.match(line.text)
        if fence:
            if match and line.text.startswith(fence) and not line.text.strip(fence[0]):
                fence = ""
        elif match and line.indent <= _MAX_INDENT and "`" not in line.text[match.end() :]:
            fence = match.group()
        else:
            yield line


def _front_matter_end(lines: Sequence[TextLine]) -> int:
    if not lines or lines[0].start or lines[0].text not in _FRONT_MATTER:
        return 0
    return next((index + 1 for index, line in enumerate(lines) if index and line.text == lines[0].text), 0)


def _atx(line: TextLine) -> Draft | None:
    match = _ATX.match(line.text) if line.text.startswith("#") and line.indent <= _MAX_INDENT else None
    title = clean_title(_CLOSING.sub("", (match.group(2) or "").rstrip())) if match else ""
    if match is None or not title:
        return None
    return Draft(line.start, line.end, title, float(len(match.group(1))), HeadingSource.MARKUP)


def _setext(above: TextLine | None, line: TextLine) -> Draft | None:
    if above is None or line.apart or line.indent > _MAX_INDENT or above.size > _MAX_SETEXT or not _UNDERLINE.match(line.text):
        return None
    if is_table_row(above.text) or is_list_item(above.text) or above.text.startswith((">", "|", "<")) or not _has_letter(above.text):
        return None
    return Draft(above.start, line.end, clean_title(above.text), 1.0 if line.text[0] == "=" else 2.0, HeadingSource.MARKUP)


def _has_letter(text: str) -> bool:
    return any(mark.isalpha() for mark in text)
