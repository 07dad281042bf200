"""What stands around retrieved nodes in their documents: read by relations in batches, and laid side by side."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag.postprocessors.strips import Piece, Segment, Strip, agrees, join_pieces
from llama_index_advanced_rag.retrievers.merging import child_ids, related_id
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import NodeSource

_BEFORE, _AFTER, _UP = NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.PARENT
_SURE_CHARS = 60  # a text of so many characters is not found inside a section by chance
Gain = Callable[[str], int]


def text_of(node: BaseNode) -> str:
    """The text of a node, without metadata."""
    return node.get_content(metadata_mode=MetadataMode.NONE)


@dataclass
class _Walk:
    """On the way from a hit along one relation."""

    hit: BaseNode
    relation: NodeRelationship
    at: BaseNode
    left: float
    seen: set[str] = field(default_factory=set[str])

    def next_id(self) -> str | None:
        """Where to go next; None at the end, and where the relations go round in a circle."""
        node_id = related_id(self.at, self.relation)
        return None if self.left <= 0 or node_id in self.seen else node_id


class Surroundings:
    """Retrieved nodes and what was read around them.

    Args:
        hits: the retrieved nodes.
        source: where the others are read.
        filters: which they must match; they must also be of the hit's document.

    Attributes:
        nodes: the retrieved nodes and those that were read, by id.
        around: ids of what was read around each hit, by its id.
        refused: ids that could not be read, or may not be shown.
    """

    def __init__(self, hits: Iterable[BaseNode], source: NodeSource, filters: MetadataFilters | None) -> None:
        self._source, self._filters = source, filters
        self.nodes: dict[str, BaseNode] = {node.node_id: node for node in hits}
        self.around: dict[str, list[str]] = {node_id: [] for node_id in self.nodes}
        self.refused: dict[str, None] = {}

    def read(self, node_ids: Iterable[str]) -> None:
        """Read nodes in one batch, those that are known left out."""
        wanted = [node_id for node_id in dict.fromkeys(node_ids) if node_id not in self.nodes and node_id not in self.refused]
        if wanted:
            found = {node.node_id: node for node in self._source.get_nodes(wanted)}
            self.nodes.update({node_id: node for node_id, node in found.items() if metadata_matches(filterable_metadata(node), self._filters)})
            self.refused.update(dict.fromkeys(node_id for node_id in wanted if node_id not in self.nodes))

    def node(self, node_id: str | None, *, of: BaseNode) -> BaseNode | None:
        """A known node of the same document as another one; None when there is none."""
        node = None if node_id is None else self.nodes.get(node_id)
        return node if node is not None and (node.ref_doc_id == of.ref_doc_id or node.node_id == of.ref_doc_id) else None

    @property
    def passages(self) -> dict[str, BaseNode]:
        """The hits and their neighbours, by id; no section that was only read."""
        return {node_id: self.nodes[node_id] for hit_id, beside in self.around.items() for node_id in (hit_id, *beside)}

    def walk(self, hits: Sequence[BaseNode], *, far: float, gain: Gain, steps: int, reach: int | None = None, same_parent: bool = False) -> None:
        """Go from each hit to its neighbours on both sides, a batch a step.

        Args:
            hits: where to begin.
            far: how much is to be gained on each side.
            gain: what a text gains that a step adds.
            steps: most steps.
            reach: characters of an added text that are looked at; None = all.
            same_parent: stay below the hit's own parent.
        """
        walks = [_Walk(hit, relation, hit, far, {hit.node_id}) for hit in hits for relation in (_AFTER, _BEFORE)]
        for _ in range(steps):
            walks = [walk for walk in walks if walk.next_id() is not None]
            if not walks:
                break
            self.read(node_id for walk in walks if (node_id := walk.next_id()) is not None)
            walks = [walk for walk in walks if self._step(walk, gain, reach, same_parent=same_parent)]

    def _step(self, walk: _Walk, gain: Gain, reach: int | None, *, same_parent: bool) -> bool:
        node = self.node(walk.next_id(), of=walk.hit)
        if node is None or (same_parent and related_id(node, _UP) != related_id(walk.hit, _UP)):
            return False
        forward = walk.relation is _AFTER
        added = _added(walk.at, node, forward=forward)
        walk.left -= gain(added if reach is None else added[:reach] if forward else added[-reach:])
        walk.at = node
        walk.seen.add(node.node_id)
        self.around[walk.hit.node_id].append(node.node_id)
        return True

    def strips(self, hits: Sequence[BaseNode], sections: Mapping[str, BaseNode]) -> list[Strip]:
        """The hits, what was read around them and their sections, as few texts as hold them.

        Args:
            hits: the retrieved nodes.
            sections: the section of a hit by the hit's id; it holds the hit's text.
        """
        documents: dict[str | None, dict[str, BaseNode]] = {}
        for hit in hits:
            beside = [self.nodes[node_id] for node_id in self.around[hit.node_id]]
            documents.setdefault(hit.ref_doc_id, {}).update({node.node_id: node for node in (hit, *beside)})
        return [strip for document, nodes in documents.items() for strip in _strips(document, nodes, sections)]


def piece_of(node: BaseNode) -> Piece:
    """A node as a piece of its document; an offset counts only if it has the length of the text."""
    text = text_of(node)
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    known = isinstance(start, int) and isinstance(end, int) and end - start == len(text) and node.ref_doc_id is not None
    return Piece(node.node_id, text, start if known else None)


def _added(at: BaseNode, node: BaseNode, *, forward: bool) -> str:
    """What a neighbour has that the node beside it has not."""
    here, there = piece_of(at), piece_of(node)
    strip = join_pieces([here, there] if forward else [there, here])
    start, end = strip.spans[here.node_id]
    return strip.text[end:] if forward else strip.text[:start]


def _strips(document: str | None, nodes: dict[str, BaseNode], sections: Mapping[str, BaseNode]) -> list[Strip]:
    """Nodes and sections of one document, together where they follow each other or overlap: by offsets if these are true."""
    whole = {section.node_id: section for node_id, section in sections.items() if node_id in nodes}
    pieces = {node_id: piece_of(node) for node_id, node in {**nodes, **whole}.items()}
    links = [(node.node_id, after) for node in nodes.values() if (after := related_id(node, _AFTER)) in nodes]
    links += [(before, node.node_id) for node in nodes.values() if (before := related_id(node, _BEFORE)) in nodes]
    by_offset = None if document is None else chains_by_offset(list(pieces.values()), links)
    if by_offset is not None:
        return [join_pieces(chain, complete=whole.keys().isdisjoint(piece.node_id for piece in chain)) for chain in by_offset]
    above = {node_id: _above(node, {**nodes, **whole}) for node_id, node in nodes.items()}
    outer = dict.fromkeys([*whole, *(node_id for ids in above.values() for node_id in ids), *(node_id for node_id, node in nodes.items() if child_ids(node))])
    inner = [node_id for node_id, ids in above.items() if node_id not in outer and (ids or len(pieces[node_id].text) >= _SURE_CHARS)]
    strips = nested_strips([pieces[node_id] for node_id in outer], [pieces[node_id] for node_id in inner])
    strips = [strip for strip in strips if len(strip.spans) > 1 or not whole.keys().isdisjoint(strip.spans)]
    held = {node_id for strip in strips for node_id in strip.spans}
    chains = chains_by_links([node_id for node_id in nodes if node_id not in held], [link for link in links if held.isdisjoint(link)])
    return strips + [join_pieces([pieces[node_id]._replace(start=None) for node_id in chain]) for chain in chains]


def _above(node: BaseNode, nodes: Mapping[str, BaseNode]) -> list[str]:
    """Ids of the parent, its parent and so on, as far as they are among the nodes; circles end."""
    above: list[str] = []
    parent = related_id(node, _UP)
    while parent is not None and parent in nodes and parent not in above and parent != node.node_id:
        above.append(parent)
        parent = related_id(nodes[parent], _UP)
    return above


def nested_strips(sections: Sequence[Piece], parts: Sequence[Piece]) -> list[Strip]:
    """A strip of each section that is not part of another one, with what its text holds.

    Example:
        >>> strips = nested_strips([Piece("s", "Two. Three.", None), Piece("all", "One. Two. Three.", None)], [Piece("part", "Three.", None)])
        >>> [dict(strip.spans) for strip in strips]
        [{'all': (0, 16), 's': (5, 16), 'part': (10, 16)}]
    """
    found: list[tuple[Piece, dict[str, tuple[int, int]]]] = []
    by_length = sorted(sections, key=lambda section: -len(section.text))
    for piece, is_section in [*((section, True) for section in by_length), *((part, False) for part in parts)]:
        places = ((spans, outer.text.find(piece.text)) for outer, spans in found)
        spans, place = next(((spans, place) for spans, place in places if place >= 0), (None, 0))
        if spans is not None:
            spans[piece.node_id] = (place, place + len(piece.text))
        elif is_section:
            found.append((piece, {piece.node_id: (0, len(piece.text))}))
    return [Strip(outer.text, spans, [Segment(0, outer.start)], complete=False) for outer, spans in found]


def chains_by_offset(pieces: Sequence[Piece], links: Sequence[tuple[str, str]]) -> list[list[Piece]] | None:
    """Pieces in the order of the document, together where they overlap or are linked; None when the offsets are not true.

    Example:
        >>> pieces = [Piece("c", "Five.", 20), Piece("b", "Two. Three.", 5), Piece("a", "One. Two.", 0)]
        >>> [[piece.node_id for piece in chain] for chain in chains_by_offset(pieces, [])]
        [['a', 'b'], ['c']]
    """
    placed = sorted((piece.start, -len(piece.text), piece.node_id, piece) for piece in pieces if piece.start is not None)
    starts = {piece.node_id: start for start, _, _, piece in placed}
    if len(placed) < len(pieces) or any(starts[before] > starts[after] for before, after in links):
        return None
    linked, chains, edge = set(links), list[list[Piece]](), -1
    last: list[Piece] = []
    for start, minus_length, _, piece in placed:
        if start < edge and not agrees(last[0].text, piece.text, edge - start):
            return None
        if start < edge or any((before.node_id, piece.node_id) in linked for before in last):
            chains[-1].append(piece)
        else:
            chains.append([piece])
        end = start - minus_length
        last = [piece] if end > edge else [*last, piece] if end == edge else last
        edge = max(edge, end)
    return chains


def chains_by_links(node_ids: Sequence[str], links: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Ids in the order of their links; a link that contradicts an earlier one, or closes a circle, does not count.

    Example:
        >>> chains_by_links(["b", "a", "c", "d"], [("a", "b"), ("a", "c"), ("b", "a"), ("c", "d")])
        [['a', 'b'], ['c', 'd']]
    """
    chain_of = {node_id: [node_id] for node_id in node_ids}
    for before, after in links:
        first, second = chain_of[before], chain_of[after]
        if first is not second and first[-1] == before and second[0] == after:
            first += second
            chain_of.update(dict.fromkeys(second, first))
    return [chain for node_id, chain in chain_of.items() if chain[0] == node_id]


def page_range(labels: Sequence[str]) -> str:
    """One label for the pages of passages in the order of the document.

    Example:
        >>> page_range(["3"]), page_range(["3", "3-4", "5"])
        ('3', '3-5')
    """
    first, last = labels[0].split("-")[0].strip(), labels[-1].split("-")[-1].strip()
    return first if first == last else f"{first}-{last}"
