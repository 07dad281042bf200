"""All that speaks for headings in a text without marks, put into one list in the order of the text."""

from collections.abc import Iterable, Sequence

from llama_index_advanced_rag.text.outline_drafts import Bookmark, Draft, HeadingSource
from llama_index_advanced_rag.text.outline_lines import Layout
from llama_index_advanced_rag.text.outline_sequence import Numbered, numbered_headings
from llama_index_advanced_rag.text.outline_titles import read_title

_ORDER = tuple(HeadingSource)


def gather_drafts(layout: Layout, marked: Sequence[Draft], bookmarks: Sequence[Bookmark], size: int) -> tuple[list[Draft], list[str]]:
    """Headings from every source, with rising starts, and notes on what is odd."""
    notes: list[str] = []
    numbered = [_numbered_draft(layout, one) for one in numbered_headings(layout)]
    return without_overlaps([*marked, *numbered]), notes


def _numbered_draft(layout: Layout, one: Numbered) -> Draft:
    title, body = read_title(layout, one.index, one.line)
    return Draft(layout.lines[one.index].start, body, title, one.line.rank, HeadingSource.NUMBER, one.line.leads)


def without_overlaps(drafts: Iterable[Draft]) -> list[Draft]:
    """In the order of the text; of two that overlap the one from the surer source stays."""
    kept: list[Draft] = []
    for draft in sorted(drafts, key=lambda draft: (draft.start, _ORDER.index(draft.source))):
        if kept and (draft.start < kept[-1].body or draft.start == kept[-1].start):
            if draft.start == kept[-1].start or _ORDER.index(draft.source) >= _ORDER.index(kept[-1].source):
                continue
            kept.pop()
        kept.append(draft)
    return kept
