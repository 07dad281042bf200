"""The nodes of a tree of summaries at one moment, and how they hang together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from llama_index_advanced_rag.hierarchy.summary.growth import Held, Vector, children_of
from llama_index_advanced_rag.hierarchy.summary.node import SummaryNode


@dataclass(frozen=True)
class SummaryShape:
    """What a search reads: swapped as a whole by writers, so that a reader needs no lock.

    Attributes:
        nodes: by id, units in the order given, then clusters from the bottom up.
        children: the members of each cluster.
        places: for each node its document and its place, which order equal scores.
        roots: what is in no cluster.
        held: summaries and vectors, by digest.
    """

    nodes: Mapping[str, SummaryNode] = field(default_factory=dict[str, SummaryNode])
    children: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    roots: Sequence[str] = ()
    held: Mapping[str, Held] = field(default_factory=dict[str, Held])

    @classmethod
    def of(cls, nodes: Sequence[SummaryNode], held: Mapping[str, Held]) -> "SummaryShape":
        """The nodes, with what is held of them.

        Args:
            nodes: all of them.
            held: summaries with vectors by digest, those of the nodes among them.
        """
        by_id = {node.node_id: node for node in nodes}
        inside = {member for node in nodes for member in node.members}
        places = {node.node_id: (node.ref_doc_id or "", place) for place, node in enumerate(nodes)}
        roots = [node.node_id for node in nodes if node.node_id not in inside]
        return cls(by_id, children_of(by_id), places, roots, {node.digest: held[node.digest] for node in nodes})

    def vector(self, node: SummaryNode) -> Vector:
        """The vector of one of its nodes."""
        return cast(Vector, self.held[node.digest].vector)
