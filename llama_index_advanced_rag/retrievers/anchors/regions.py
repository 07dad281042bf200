"""Regions: what hits are gathered by and what is read. A section, else a page, else the passage itself."""

import re
from dataclasses import dataclass
from typing import Literal

from llama_index.core.schema import BaseNode

from llama_index_advanced_rag.hierarchy.keys import PATH_SEPARATOR, SECTION_PATH
from llama_index_advanced_rag.hierarchy.units import UnitTable, document_of
from llama_index_advanced_rag.retrievers.anchors.lines import page_of

RegionKind = Literal["document", "section", "page", "chunk"]
_SEVERAL = re.compile(r"^(\d+)-\d+$")


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a document.

    Attributes:
        key: what it is known by; id of its node where it has one.
        kind: what it is.
        ref_doc_id: its document.
        path: headings from the top, the own one last, joined with " > "; "" for what is no section.
        title: the heading; of a page "page 3", of a document its title, of a passage "".
        level: 0 for a document, 1 for top sections and so on.
        start: where it begins in the document, as far as is known.
        page: label of its pages, None where there are none.
        unit: its place in the table of units; None where it has no node of its own.
    """

    key: str
    kind: RegionKind
    ref_doc_id: str
    path: str
    title: str
    level: int
    start: int
    page: str | None
    unit: int | None

    @property
    def tie(self) -> tuple[str, int, str]:
        """The order among equal scores."""
        return self.ref_doc_id, self.start, self.key

    @property
    def name(self) -> str:
        """What a person calls it: "section 'Leases > Costs'", "page 3"; "part" for nodes of levels that are no sections."""
        if self.kind == "section":
            return f"section {self.path!r}" if self.path else "part"
        return f"document {self.title!r}" if self.kind == "document" else self.title or "passage"


def region_of_unit(table: UnitTable, place: int) -> Region:
    """The region that a unit is."""
    unit = table.units[place]
    kind: RegionKind = "section" if unit.level else "document"
    return Region(unit.unit_id, kind, unit.ref_doc_id, unit.path, unit.title, unit.level, unit.start, unit.page, place)


def region_of(node: BaseNode, table: UnitTable) -> Region:
    """The region of a passage: its section, else its page, else itself.

    A section that is one passage has no node: the passage then hangs on the section around it, and its path goes on from there.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> paged = TextNode(text="a", metadata={"page_label": "3-4"})
        >>> headed = TextNode(text="a", metadata={"section_path": "Leases > Costs"})
        >>> [region_of(node, UnitTable.from_nodes([node])).name for node in (paged, headed)]
        ['page 3', "section 'Leases > Costs'"]
    """
    place = table.index_of(node)
    unit = None if place is None else table.units[place]
    path, ref_doc_id, page = str(node.metadata.get(SECTION_PATH) or ""), document_of(node), page_of(node)
    if place is not None and unit is not None and unit.level > 0 and path in ("", unit.path):
        return region_of_unit(table, place)
    start = getattr(node, "start_char_idx", None) or 0
    if path:
        above = "" if unit is None or not unit.path else unit.path + PATH_SEPARATOR
        title = path[len(above) :] if path.startswith(above) else path.rsplit(PATH_SEPARATOR, 1)[-1]
        key, level = f"{ref_doc_id if unit is None else unit.unit_id}\0{path}", 1 if unit is None else unit.level + 1
        return Region(key, "section", ref_doc_id, path, title, level, start, page, None)
    if page is not None:
        first = _SEVERAL.sub(r"\1", page)
        return Region(f"{ref_doc_id}\0page {first}", "page", ref_doc_id, "", f"page {first}", 1, start, first, None)
    key = f"{node.node_id}\0"  # a node without a document is a document too, of this id
    return Region(key, "chunk", ref_doc_id, "", "", 1, start, None, None)
