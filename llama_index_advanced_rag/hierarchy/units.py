"""Documents and sections as one table: what is above and below each, and in which of them a passage stands."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode, Document
from numpy.typing import NDArray

from llama_index_advanced_rag.hierarchy.keys import PAGE_LABEL, PATH_SEPARATOR, SECTION_PATH


class UnitRecord(NamedTuple):
    """A node that has children, as it is stored; `parent_id` is the node it names as its parent."""

    node_id: str
    ref_doc_id: str
    parent_id: str | None
    start: int
    end: int
    path: str
    page: str | None

    @classmethod
    def of(cls, node_id: str, ref_doc_id: str, parent_id: str | None, start: int, end: int, metadata: Mapping[str, Any]) -> "UnitRecord":
        """With the heading path and the pages that the node's metadata name."""
        page = metadata.get(PAGE_LABEL)
        return cls(node_id, ref_doc_id, parent_id, start, end, str(metadata.get(SECTION_PATH) or ""), None if page is None else str(page))


@dataclass(frozen=True, slots=True)
class Unit:
    """A document or a section.

    Attributes:
        unit_id: id of its node; the document's id where the document has no node of its own.
        ref_doc_id: the document.
        title: the heading; of a document its title.
        path: headings from the top, the own one last, joined with " > "; "" for a document.
        level: 0 for a document, 1 for its top sections and so on.
        start: where it begins in the document, in characters.
        end: where it ends.
        page: label of its pages, "3" or "3-5"; None where there are none.
        parent: the unit it stands in, as its place in the table; None for a document.
    """

    unit_id: str
    ref_doc_id: str
    title: str
    path: str
    level: int
    start: int
    end: int
    page: str | None
    parent: int | None


@dataclass(frozen=True)
class UnitTable:
    """All documents and sections, by document, in the order of the text, each before what stands in it.

    Example:
        >>> records = [UnitRecord("s2", "a.md", "s1", 10, 20, "Leases > Costs", None), UnitRecord("s1", "a.md", None, 0, 40, "Leases", None)]
        >>> table = UnitTable.build(records, {"a.md": "Report", "b.md": "Letter"})
        >>> [(unit.level, unit.title, unit.parent) for unit in table.units]
        [(0, 'Report', None), (1, 'Leases', 0), (2, 'Costs', 1), (0, 'Letter', None)]
        >>> table.ancestors(2), table.children(0)
        ([2, 1, 0], [1])
    """

    units: tuple[Unit, ...] = ()
    _places: Mapping[str, int] = field(default_factory=dict[str, int], repr=False)
    _documents: Mapping[str, int] = field(default_factory=dict[str, int], repr=False)

    @classmethod
    def build(cls, records: Iterable[UnitRecord], titles: Mapping[str, str]) -> "UnitTable":
        """The table of these records.

        A node without a parent stands for its document when it is the only one of the document and has no heading. A parent that is
        not there, of another document, or below its own child does not count.

        Args:
            records: the nodes that have children.
            titles: every document with its title.
        """
        by_document: dict[str, list[UnitRecord]] = defaultdict(list)
        for record in records:
            by_document[record.ref_doc_id].append(record)
        units: list[Unit] = []
        for ref_doc_id in sorted({*titles, *by_document}):
            units += _document_units(ref_doc_id, titles.get(ref_doc_id, ref_doc_id), by_document.get(ref_doc_id, []), len(units))
        documents = {unit.ref_doc_id: place for place, unit in enumerate(units) if unit.level == 0}
        return cls(tuple(units), {unit.unit_id: place for place, unit in enumerate(units)}, documents)

    @classmethod
    def from_nodes(cls, nodes: Iterable[BaseNode]) -> "UnitTable":
        """The table of nodes of all levels, as `HierarchicalNodeParser` and LlamaIndex's own give them, or of flat ones (documents only)."""
        records: list[UnitRecord] = []
        titles: dict[str, str] = {}
        for node in nodes:
            ref_doc_id = document_of(node)
            titles.setdefault(ref_doc_id, title_of(node.metadata, ref_doc_id))
            if node.child_nodes and not isinstance(node, Document):
                records.append(_record(node, ref_doc_id))
        return cls.build(records, titles)

    def index_of(self, node: BaseNode) -> int | None:
        """The place of the deepest unit that holds a node: the parent it names (in its own document), else its document; None when neither is known."""
        parent = node.parent_node
        return self.place_of(None if parent is None else parent.node_id, document_of(node))

    def place_of(self, parent_id: str | None, ref_doc_id: str) -> int | None:
        """The place of a unit of the document by its id, else of the document; a parent in another document does not count."""
        place = None if parent_id is None else self._places.get(parent_id)
        return place if place is not None and self.units[place].ref_doc_id == ref_doc_id else self._documents.get(ref_doc_id)

    def place_of_unit(self, unit_id: str) -> int | None:
        """The place of a unit."""
        return self._places.get(unit_id)

    def place_of_document(self, ref_doc_id: str) -> int | None:
        """The place of a document."""
        return self._documents.get(ref_doc_id)

    def ancestors(self, index: int) -> list[int]:
        """The unit itself, the unit it stands in, and so on up to its document."""
        places = [index]
        while (parent := self.units[places[-1]].parent) is not None:
            places.append(parent)
        return places

    def children(self, index: int) -> list[int]:
        """The units that stand directly in a unit, in the order of the text."""
        return self._children.get(index, [])

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        below: dict[int, list[int]] = defaultdict(list)
        for place, unit in enumerate(self.units):
            if unit.parent is not None:
                below[unit.parent].append(place)
        return dict(below)

    @cached_property
    def parents(self) -> NDArray[np.int32]:
        """(n_units,) the parent of each unit; -1 for documents."""
        return np.fromiter((-1 if unit.parent is None else unit.parent for unit in self.units), dtype=np.int32, count=len(self.units))


def document_of(node: BaseNode) -> str:
    """The document of a node; a node without one is a document of its own."""
    return node.ref_doc_id or node.node_id


def title_of(metadata: Mapping[str, Any], ref_doc_id: str) -> str:
    """What a document is called: its title, else the name of its file, else its id."""
    return str(metadata.get("title") or metadata.get("file_name") or ref_doc_id)


def _record(node: BaseNode, ref_doc_id: str) -> UnitRecord:
    parent = node.parent_node
    start, end = getattr(node, "start_char_idx", None) or 0, getattr(node, "end_char_idx", None) or 0
    return UnitRecord.of(node.node_id, ref_doc_id, None if parent is None else parent.node_id, start, end, node.metadata)


def _document_units(ref_doc_id: str, title: str, records: Sequence[UnitRecord], first: int) -> list[Unit]:
    """The units of one document, which stand from place `first` on."""
    known = {record.node_id: record for record in records}
    below: dict[str | None, list[UnitRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda record: (record.start, -record.end, record.node_id)):
        below[record.parent_id if record.parent_id in known else None].append(record)
    tops = below[None]
    own = tops[0] if len(tops) == 1 and not tops[0].path else None
    length = max((record.end for record in records), default=0)
    units = [Unit(own.node_id if own else ref_doc_id, ref_doc_id, title, "", 0, 0, length, own.page if own else None, None)]
    placed = {own.node_id} if own else set[str]()
    stack = [(record, first) for record in reversed(below[own.node_id] if own else tops)]
    left = iter(records)
    while True:
        if not stack:  # what is left stands in a circle of parents
            record = next((record for record in left if record.node_id not in placed), None)
            if record is None:
                return units
            stack.append((record, first))
        record, parent = stack.pop()
        if record.node_id in placed:
            continue
        placed.add(record.node_id)
        place = first + len(units)
        units.append(_unit(record, parent, units[parent - first]))
        stack += [(child, place) for child in reversed(below[record.node_id])]


def _unit(record: UnitRecord, parent: int, above: Unit) -> Unit:
    prefix = above.path + PATH_SEPARATOR if above.path else ""
    title = record.path[len(prefix) :] if record.path.startswith(prefix) else record.path.rsplit(PATH_SEPARATOR, 1)[-1]
    return Unit(record.node_id, record.ref_doc_id, title, record.path, above.level + 1, record.start, record.end, record.page, parent)
