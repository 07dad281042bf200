"""From ranked regions to nodes: the hit says where, the region is what is read."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag.hierarchy.units import UnitTable
from llama_index_advanced_rag.ranking.anchors import order_passages
from llama_index_advanced_rag.retrievers.anchors.candidates import Candidate, Passage, text_order
from llama_index_advanced_rag.retrievers.anchors.read_nodes import ReadNode
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import NodeSource

_CHARS_PER_TOKEN = 12
_MOST_UNITS, _MOST_PASSAGES = 64, 64
_WORTH_READING = 0.5


@dataclass(frozen=True, slots=True)
class Reading:
    """What is given of a region.

    Attributes:
        candidate: the region with its evidence.
        nodes: its own node when `whole`, else passages of it, the one with the best hit first.
        whole: the whole region is given as one node.
    """

    candidate: Candidate
    nodes: tuple[BaseNode, ...]
    whole: bool


class RegionReader:
    """Reads regions one after the other; no text is given twice.

    Args:
        nodes: where nodes are read from.
        table: documents and sections.
        passages: all passages that were found.
        filters: what every node must match.
        max_tokens: a section of at most so many tokens is given whole; of a longer one passages of as many tokens together.
        count_tokens: tokens of a text.
    """

    def __init__(
        self,
        nodes: NodeSource,
        table: UnitTable,
        passages: Sequence[Passage],
        *,
        filters: MetadataFilters | None,
        max_tokens: int,
        count_tokens: Callable[[str], int],
    ) -> None:
        self._nodes, self._table, self._filters = nodes, table, filters
        self._max_tokens, self._count_tokens = max_tokens, count_tokens
        self._inside: dict[int, list[Passage]] = defaultdict(list)
        for passage in passages:
            for place in passage.read.places(table):
                self._inside[place].append(passage)
        self._sections: dict[str, BaseNode | None] = {}
        self._given: set[str] = set()
        self._given_whole: set[int] = set()
        self._given_inside: set[int] = set()

    def read(self, ranked: Sequence[Candidate], top_k: int) -> list[Reading]:
        """What is given of the best regions, until there are `top_k` nodes; a region whose text was given already is passed over."""
        readings: list[Reading] = []
        left = top_k
        for number, candidate in enumerate(ranked):
            if left <= 0:
                break
            if number % top_k == 0:
                self._load_sections([one for one in ranked[number : number + top_k] if self._may_be_whole(one)])
            whole = self._whole(candidate)
            nodes = self._parts(candidate)[:left] if whole is None else [whole]
            if nodes:
                readings.append(Reading(candidate, tuple(nodes), whole is not None))
                self._note(candidate, nodes, whole=whole is not None)
                left -= len(nodes)
        return readings

    def _places(self, node: BaseNode) -> list[int]:
        inner = self._table.index_of(node)
        return [] if inner is None else self._table.ancestors(inner)

    def _note(self, candidate: Candidate, nodes: Iterable[BaseNode], *, whole: bool) -> None:
        place = candidate.region.unit
        for node in nodes:
            self._given.add(node.node_id)
            self._given_inside.update(self._table.ancestors(place) if whole and place is not None else self._places(node))
        if whole and place is not None:
            self._given_whole.add(place)

    def _may_be_whole(self, candidate: Candidate) -> bool:
        place = candidate.region.unit
        if place is None or place in self._given_inside or self._given_whole.intersection(self._table.ancestors(place)):
            return False
        return self._table.units[place].end - self._table.units[place].start <= _CHARS_PER_TOKEN * self._max_tokens

    def _load_sections(self, candidates: Sequence[Candidate]) -> None:
        wanted = [one.region.key for one in candidates if one.region.key not in self._sections]
        self._sections.update(dict.fromkeys(wanted))
        self._sections.update({node.node_id: node for node in self._nodes.get_nodes(wanted)} if wanted else {})

    def _whole(self, candidate: Candidate) -> BaseNode | None:
        if not self._may_be_whole(candidate):
            return None
        self._load_sections([candidate])
        node = self._sections[candidate.region.key]
        if node is None or isinstance(node, Document) or not self._matches(node):
            return None
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        return node if text.strip() and self._count_tokens(text) <= self._max_tokens else None

    def _parts(self, candidate: Candidate) -> list[BaseNode]:
        """Passages of a region, best first, as many as fit; at least one where one is left."""
        place = candidate.region.unit
        hit = [one for one in candidate.passages or self._inside.get(-1 if place is None else place, []) if self._is_free(one.read)]
        if not hit and place is not None and not candidate.passages:
            hit = self._first_passages(place)
        anchors = [one.anchor for one in hit]
        order = [spot for spot in order_passages(anchors) if anchors[spot] >= _WORTH_READING * max(anchors)]
        chosen: list[BaseNode] = []
        left = self._max_tokens
        for read in (hit[spot].read for spot in order):
            left -= self._count_tokens(read.node.get_content(metadata_mode=MetadataMode.NONE))
            if chosen and left < 0:
                break
            chosen.append(read.given())
        return chosen

    def _is_free(self, read: ReadNode) -> bool:
        return read.node.node_id not in self._given and self._given_whole.isdisjoint(read.places(self._table))

    def _first_passages(self, place: int) -> list[Passage]:
        """The passages with which a unit begins, in the order of the text."""
        units = self._table.units
        inside = [place]
        while len(inside) < _MOST_UNITS and inside[-1] + 1 < len(units) and place in self._table.ancestors(inside[-1] + 1):
            inside.append(inside[-1] + 1)
        unit_ids = [units[inner].unit_id for inner in inside]
        children = [child.node_id for node in self._nodes.get_nodes(unit_ids) for child in node.child_nodes or []]
        leaves = [node_id for node_id in dict.fromkeys(children) if node_id not in set(unit_ids)][:_MOST_PASSAGES]
        found = [Passage.of(node) for node in self._nodes.get_nodes(leaves) if not node.child_nodes and self._matches(node)]
        return sorted((one for one in found if self._is_free(one.read)), key=text_order)

    def _matches(self, node: BaseNode) -> bool:
        return metadata_matches(filterable_metadata(node), self._filters)
