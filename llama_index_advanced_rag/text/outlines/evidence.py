"""All that speaks for headings in a text without marks, put into one list in the order of the text."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from llama_index_advanced_rag.text.outlines.bookmarks import bookmark_headings
from llama_index_advanced_rag.text.outlines.contents import Contents, find_contents
from llama_index_advanced_rag.text.outlines.drafts import Bookmark, Draft, HeadingSource
from llama_index_advanced_rag.text.outlines.lines import Layout
from llama_index_advanced_rag.text.outlines.places import BodyLines, page_shift, place_entries, place_index
from llama_index_advanced_rag.text.outlines.sequence import Numbered, numbered_headings
from llama_index_advanced_rag.text.outlines.titles import read_title
from llama_index_advanced_rag.text.outlines.typography import typographic_headings

_RANK_OF_MARKS = -50.0
_ORDER = tuple(HeadingSource)


def gather_drafts(layout: Layout, marked: Sequence[Draft], bookmarks: Sequence[Bookmark], size: int) -> tuple[list[Draft], list[str]]:
    """Headings from every source, with rising starts, and notes on what is odd.

    Args:
        layout: The lines of the text.
        marked: Headings with marks; used when no line has a number, or when one begins the text.
        bookmarks: What the document's format gives.
        size: Length of the text in characters.
    """
    tables = find_contents(layout)
    skipped = frozenset(index for table in tables for index in table.lines)
    numbered = numbered_headings(layout, skipped)
    drafts, notes = bookmark_headings(layout, bookmarks, size)
    drafts.extend(_numbered_draft(layout, one) for one in numbered)
    if not numbered or (marked and layout.lines[0].start == marked[0].start):
        drafts.extend(replace(draft, rank=draft.rank + _RANK_OF_MARKS) for draft in marked)
    placed, said = _from_tables(layout, tables, skipped, numbered, drafts)
    looks = typographic_headings(layout, placed, skipped)
    return without_overlaps([*placed, *looks]), [*notes, *said]


def _from_tables(
    layout: Layout, tables: Sequence[Contents], skipped: frozenset[int], numbered: Sequence[Numbered], drafts: Sequence[Draft]
) -> tuple[list[Draft], list[str]]:
    """The drafts with those that tables of contents add, and notes on entries without a place."""
    body = BodyLines(layout, skipped)
    shift = page_shift(layout, tables, body)
    known: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for one in numbered:
        known.setdefault((one.line.kind, one.line.number), []).append(one.index)
    more, notes = list(drafts), list[str]()
    for table in tables:
        if not table.is_index:
            placed, said = place_entries(layout, table, body, shift, known)
            more.extend(placed)
            notes.extend(said)
    kept = without_overlaps(more)
    for table in tables:
        if table.is_index:
            kept = without_overlaps(place_index(layout, table, body, shift, kept, numbered))
    return kept, notes


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
