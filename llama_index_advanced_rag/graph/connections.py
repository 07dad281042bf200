"""How entities hang together: by facts and aliases, and by the chunks that name them together, made ready to be searched."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.fold_arrays import Ids
from llama_index_advanced_rag.graph.graph_walk import Mask, fact_counts

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Connections:
    """The connections of an entity graph. Immutable: one object serves all questions.

    Edges weigh less the more edges their ends have, so that of two ways of the same length the more telling one is taken.

    Attributes:
        graph: the graph.
        facts: (n,) places of the facts that count, ascending.
        mentions: (n_chunks, n_entities) the mentions that count.
        related: (n_entities, n_entities) symmetric; above 0 where a fact or an alias joins two entities.
    """

    graph: EntityGraph
    facts: Ids
    mentions: "csr_array"
    related: "csr_array"

    @classmethod
    def of(cls, graph: EntityGraph, *, allowed: Mask | None = None) -> "Connections":
        """The connections of a graph; linear in its edges.

        Args:
            graph: the graph.
            allowed: (n_chunks,) the chunks whose names and facts count; None = all.

        Example:
            >>> made = Connections.of(EntityGraph.from_triples({"c1": [("Anthropic", "created", "Claude")], "c2": [("Claude", "uses", "Transformer")]}))
            >>> (made.related.toarray() > 0).astype(int).tolist()
            [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
        """
        from scipy.sparse import diags_array

        facts = np.arange(len(graph.facts.relations), dtype=np.int64)
        mentions: Any = graph.mentions
        aliases: Any = graph.aliases
        if allowed is not None:
            facts = facts[allowed[graph.facts.chunks]]
            mentions = (diags_array(allowed.astype(np.float64)) @ mentions).tocsr()
            mentions.eliminate_zeros()
            named = diags_array((np.bincount(mentions.indices, minlength=graph.n_entities) > 0).astype(np.float64))
            aliases = (named @ aliases @ named).tocsr()
        related: Any = fact_counts(graph, allowed) + aliases
        related.eliminate_zeros()
        return cls(graph, facts, mentions, _telling(related))

    @cached_property
    def meetings(self) -> "csr_array":
        """(n_entities + n_chunks + n_pairs, the same) entities, the chunks that name them, and the pairs that a fact or an alias joins; symmetric.

        From one entity to the next it is two edges, whatever joins them. Made at the first use.
        """
        from scipy.sparse import block_array, csr_array, triu

        pairs: Any = triu(self.related, k=1, format="coo")
        ends, numbers = np.concatenate(pairs.coords), np.tile(np.arange(pairs.nnz), 2)
        joined: Any = csr_array((np.ones(len(ends)), (ends, numbers)), shape=(self.graph.n_entities, pairs.nnz))
        mentions: Any = self.mentions
        named: Any = csr_array((np.ones(mentions.nnz), mentions.indices, mentions.indptr), shape=mentions.shape)
        return _telling(csr_array(block_array([[None, named.T, joined], [named, None, None], [joined.T, None, None]])))

    def facts_between(self, one: int, other: int) -> list[int]:
        """Places of the facts that relate two entities, in either direction, in their order."""
        keys, places = self._by_pair
        key = min(one, other) * self.graph.n_entities + max(one, other)
        return places[np.searchsorted(keys, key) : np.searchsorted(keys, key, side="right")].tolist()

    def facts_among(self, entities: Sequence[int]) -> Ids:
        """(k,) places of the facts of which both ends are among these entities, ascending."""
        subjects, places = self._by_subject
        wanted = np.unique(np.asarray(entities, dtype=np.int64))
        starts, ends = np.searchsorted(subjects, wanted), np.searchsorted(subjects, wanted, side="right")
        found = np.concatenate([places[:0], *(places[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))])
        return np.sort(found[np.isin(self.graph.facts.objects[found], wanted)])

    @cached_property
    def _by_pair(self) -> tuple[Ids, Ids]:
        """A number for both ends of each fact, ascending, and the place of the fact."""
        subjects, targets = self.graph.facts.subjects[self.facts], self.graph.facts.objects[self.facts]
        keys = np.minimum(subjects, targets) * self.graph.n_entities + np.maximum(subjects, targets)
        order = np.argsort(keys, kind="stable")
        return keys[order], self.facts[order]

    @cached_property
    def _by_subject(self) -> tuple[Ids, Ids]:
        subjects = self.graph.facts.subjects[self.facts]
        order = np.argsort(subjects, kind="stable")
        return subjects[order], self.facts[order]


def _telling(adjacency: Any) -> "csr_array":
    """The edges, each divided by the roots of the numbers of edges of its ends."""
    from scipy.sparse import csr_array

    edges: Any = csr_array(adjacency)
    counts = np.diff(edges.indptr)
    weights = edges.data / np.sqrt(np.repeat(counts, counts)) / np.sqrt(counts[edges.indices])
    return csr_array((weights.astype(np.float32), edges.indices, edges.indptr), shape=edges.shape)
