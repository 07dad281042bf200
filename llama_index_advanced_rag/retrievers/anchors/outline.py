"""What the arbiter sees: the outline of the documents, numbered and bounded, and the candidates with their hits."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag.hierarchy.keys import PATH_SEPARATOR
from llama_index_advanced_rag.hierarchy.units import UnitTable, document_of
from llama_index_advanced_rag.retrievers.anchors.candidates import Candidate, Passage
from llama_index_advanced_rag.retrievers.anchors.packed import packed_sections
from llama_index_advanced_rag.retrievers.anchors.regions import Region, region_of, region_of_unit
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import NodeSource

MOST_ENTRIES = 300
_MOST_UNITS, _MOST_PASSAGES = 2000, 4000
_TITLE_CHARS, _LINE_CHARS, _LINES = 120, 240, 3
_TAG = re.compile(r"<(?=\s*/?\s*(?:outline|candidates|question|answer)\b)", re.IGNORECASE)
_NUMBER = re.compile(r"\[(\s*\d+\s*)\]")


@dataclass(frozen=True, slots=True)
class NumberedOutline:
    """The outline as an arbiter reads it.

    Attributes:
        entries: `entries[n - 1]` has the number n.
        outline_text: one line an entry, indented by level; "…" where entries were left out.
        candidates_text: the candidates with their lines.
    """

    entries: tuple[Candidate, ...]
    outline_text: str
    candidates_text: str


def read_outline(table: UnitTable, documents: Sequence[str], nodes: NodeSource, filters: MetadataFilters | None) -> list[Candidate]:
    """Documents and sections, those that are one passage or a part of one included, in the order of the documents, then of the text.

    With filters an entry is one that matches, or in which a passage matches. One without a heading is called by the beginning of its
    first such passage, never by a text that holds others. At most 2,000 units and 4,000 passages are read, the top levels first.

    Args:
        table: documents and sections.
        documents: whose outline.
        nodes: where their nodes are read from.
        filters: metadata filters.
    """
    places = [place for ref_doc_id in documents for place in _places_of(table, ref_doc_id)]
    unit_ids = {table.units[place].unit_id for place in places}
    places = sorted(sorted(places, key=lambda place: table.units[place].level)[:_MOST_UNITS])
    found = {node.node_id: node for node in nodes.get_nodes([table.units[place].unit_id for place in places])}
    below = dict.fromkeys(child.node_id for node in found.values() for child in node.child_nodes or [] if child.node_id not in unit_ids)
    read = nodes.get_nodes(list(below)[:_MOST_PASSAGES])
    passages = sorted((node for node in read if metadata_matches(filterable_metadata(node), filters)), key=_text_order)
    first = _first_inside(passages, table)
    kept = [place for place in places if filters is None or place in first or _matches(found.get(table.units[place].unit_id), filters)]
    entries = [Candidate(_titled(region_of_unit(table, place), first.get(place))) for place in kept]
    return _in_order([*entries, *_one_passage_sections(passages, table), *_packed(found, passages, table, nodes)], documents)


def number_outline(entries: Sequence[Candidate], candidates: Sequence[Candidate], documents: Sequence[str], *, limit: int = MOST_ENTRIES) -> NumberedOutline:
    """The outline with the candidates in it, cut to its top levels where it is long.

    A level is worth as much as a place among the documents. Candidates and what is above them always stay.

    Text of documents is data: it stands on one line, tags of the prompt are escaped and bracketed numbers become `(3)`, so that it
    cannot pass for an entry or an end of the outline.

    Args:
        entries: the outline.
        candidates: best first.
        documents: the order of the documents.
        limit: most entries; more only where the candidates alone are more.
    """
    known = {one.region.key: one for one in [*entries, *candidates]}
    ordered = _in_order(known.values(), documents)
    wanted = {one.region.key for one in candidates}
    wanted |= {one.region.key for one in ordered if any(_is_above(one.region, candidate.region) for candidate in candidates)}
    ranks = {ref_doc_id: rank for rank, ref_doc_id in enumerate(documents)}
    rest = sorted((one for one in ordered if one.region.key not in wanted), key=lambda one: one.region.level + ranks.get(one.region.ref_doc_id, len(ranks)))
    wanted |= {one.region.key for one in rest[: max(0, limit - len(wanted))]}
    shown = tuple(one for one in ordered if one.region.key in wanted)
    numbers = {one.region.key: number for number, one in enumerate(shown, start=1)}
    lines: list[str] = []
    for one in ordered:
        number = numbers.get(one.region.key)
        if number is not None:
            lines.append(f"[{number}] {'  ' * one.region.level}{_title(one)}")
        elif not lines or lines[-1] != _CUT:
            lines.append(_CUT)
    hits = [line for one in candidates for line in _candidate_lines(one, numbers[one.region.key])]
    return NumberedOutline(shown, "\n".join(lines), "\n".join(hits) or "none")


_CUT = "…"


def inert(text: str, limit: int) -> str:
    r"""A text of a document on one line, cut, without anything that a prompt could take for its own.

    Example:
        >>> inert("see [3]\n</outline> now", 100)
        'see (3) &lt;/outline> now'
    """
    joined = _TAG.sub("&lt;", _NUMBER.sub(r"(\1)", " ".join(text[: 4 * limit].split())))
    return joined if len(joined) <= limit else joined[:limit].rstrip() + " …"


def _titled(region: Region, passage: BaseNode | None) -> Region:
    """The region; one without a heading is called by the beginning of a passage in it."""
    return region if region.title or passage is None else replace(region, title=_shown(passage)[:_TITLE_CHARS])


def _first_inside(passages: Iterable[BaseNode], table: UnitTable) -> dict[int, BaseNode]:
    """For each unit that holds one of the passages the first of these."""
    first: dict[int, BaseNode] = {}
    for node in passages:
        inner = table.index_of(node)
        for place in [] if inner is None else table.ancestors(inner):
            first.setdefault(place, node)
    return first


def _text_order(node: BaseNode) -> tuple[str, int]:
    return document_of(node), getattr(node, "start_char_idx", None) or 0


def _shown(node: BaseNode) -> str:
    """The text of a node that may be shown."""
    return node.get_content(metadata_mode=MetadataMode.NONE)


def _places_of(table: UnitTable, ref_doc_id: str) -> list[int]:
    first = table.place_of_document(ref_doc_id)
    if first is None:
        return []
    places = [first]
    while places[-1] + 1 < len(table.units) and table.units[places[-1] + 1].ref_doc_id == ref_doc_id:
        places.append(places[-1] + 1)
    return places


def _matches(node: BaseNode | None, filters: MetadataFilters) -> bool:
    return node is not None and metadata_matches(filterable_metadata(node), filters)


def _one_passage_sections(passages: Iterable[BaseNode], table: UnitTable) -> list[Candidate]:
    held: dict[str, tuple[Region, list[Passage]]] = {}
    for node in passages:
        region = region_of(node, table)
        if region.kind == "section" and region.unit is None:
            held.setdefault(region.key, (region, []))[1].append(Passage.of(node))
    return [Candidate(region, tuple(found)) for region, found in held.values()]


def _packed(found: Mapping[str, BaseNode], passages: Sequence[BaseNode], table: UnitTable, nodes: NodeSource) -> Iterator[Candidate]:
    by_document: dict[str, list[BaseNode]] = defaultdict(list)
    for node in passages:
        by_document[document_of(node)].append(node)
    places = {ref_doc_id: table.place_of_document(ref_doc_id) for ref_doc_id in by_document}
    wholes = {ref_doc_id: found.get(table.units[place].unit_id) for ref_doc_id, place in places.items() if place is not None}
    cut = {ref_doc_id: whole for ref_doc_id, whole in wholes.items() if whole is not None and whole.child_nodes}
    sources = {node.node_id: node for node in nodes.get_nodes(list(cut))} if cut else {}
    for ref_doc_id, whole in cut.items():
        yield from packed_sections(whole, by_document[ref_doc_id], table, source=sources.get(ref_doc_id))


def _in_order(entries: Iterable[Candidate], documents: Sequence[str]) -> list[Candidate]:
    places: dict[str, int] = defaultdict(lambda: len(documents), {ref_doc_id: place for place, ref_doc_id in enumerate(documents)})
    return sorted(entries, key=lambda one: (places[one.region.ref_doc_id], one.region.ref_doc_id, one.region.start, one.region.level, one.region.key))


def _is_above(region: Region, other: Region) -> bool:
    if region.ref_doc_id != other.ref_doc_id or region.level >= other.level:
        return False
    return region.kind == "document" or (region.kind == "section" and other.path.startswith(region.path + PATH_SEPARATOR))


def _title(one: Candidate) -> str:
    region = one.region
    title = region.title or next((line.text for line in one.best_lines(1)), "") or _beginning(one).strip() or region.name
    return inert(title, _TITLE_CHARS) + (f" (p. {inert(region.page, 20)})" if region.page and region.kind != "page" else "")


def _beginning(one: Candidate) -> str:
    return _shown(one.passages[0].node)[:_LINE_CHARS] if one.passages else ""


def _candidate_lines(one: Candidate, number: int) -> list[str]:
    lines = [f"- {inert(line.text, _LINE_CHARS)}" + (f" (p. {inert(line.page, 20)})" if line.page else "") for line in one.best_lines(_LINES)]
    if not lines and one.passages:
        best = max(one.passages, key=lambda passage: passage.anchor)
        beginning = inert(_shown(best.node), _LINE_CHARS)
        lines = [f"- {beginning}"] if beginning else []
    return [f"[{number}] {_title(one)}", *lines]
