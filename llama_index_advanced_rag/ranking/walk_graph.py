"""The graph that a question walks on: passages, the entities they name, and how strongly each binds."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.walk_matrix import Floats, WalkMatrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ids = NDArray[np.int64]


class EdgeWeights(NamedTuple):
    """How strongly kinds of edges bind.

    Attributes:
        own: a passage and what its document is called; all names in a passage share 1.
        relations: two entities, for each fact between them.
        aliases: two names that may mean the same, times how alike they are.
    """

    own: float = 1.0
    relations: float = 0.3
    aliases: float = 0.3

    def checked(self) -> "EdgeWeights":
        """The weights, if they can bind.

        Raises:
            ConfigurationError: one is negative or not finite.
        """
        for name, value in self._asdict().items():
            if not (np.isfinite(value) and value >= 0):
                raise ConfigurationError(f"The edge weight {name} is {value!r}. It must be a number of at least 0; 0 leaves these edges out.")
        return self


def leading_entities(mentions: "csr_array", facts: "csr_array", aliases: "csr_array") -> NDArray[np.bool_]:
    """The entities that lead somewhere: named in two passages at least, or related to one that their passage does not name.

    A walk to the others could only come back, or go where it could have gone without them.

    Args:
        mentions: (n_passages, n_entities) how often a passage names an entity.
        facts: (n_entities, n_entities) number of facts between two, symmetric.
        aliases: (n_entities, n_entities) how alike two are, symmetric.

    Example:
        >>> from scipy.sparse import csr_array
        >>> facts = csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
        >>> leading_entities(csr_array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), facts, csr_array((3, 3))).tolist()
        [False, True, True]
    """
    graph: Any = mentions
    related: Any = (facts + aliases).tocoo()
    named = np.bincount(graph.indices, minlength=graph.shape[1])
    only_passage = np.full(graph.shape[1], -1, dtype=np.int64)
    only_passage[graph.indices] = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    pairs = np.repeat(np.arange(graph.shape[0], dtype=np.int64), np.diff(graph.indptr)) * graph.shape[1] + graph.indices
    beside = np.isin(only_passage[related.row] * graph.shape[1] + related.col, pairs)
    leads = named > 1
    leads[related.row[~beside]] = True
    return leads


def walk_adjacency(mentions: "csr_array", own: "csr_array", facts: "csr_array", aliases: "csr_array", weights: EdgeWeights) -> "csr_array":
    """The symmetric graph of a walk: passages first, then entities.

    A passage shares 1 among the names in it that lead somewhere, by how often it says them; what its document is called binds by `weights.own`
    more. Without the others, which take most of a walk nowhere (measured: R@5 of MuSiQue 65 -> 72), they still are where questions begin.

    Args:
        mentions: (n_passages, n_entities) how often a passage names an entity, > 0.
        own: (n_passages, n_entities) 1 where its document is called so.
        facts: see `leading_entities`.
        aliases: likewise.
        weights: how strongly each kind binds.

    Returns:
        (n_passages + n_entities, n_passages + n_entities), symmetric.

    Example:
        >>> from scipy.sparse import csr_array
        >>> said, none = csr_array([[1.0, 0.0], [1.0, 1.0]]), csr_array((2, 2))
        >>> walk_adjacency(said, none, none, none, EdgeWeights()).toarray().tolist()
        [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    from scipy.sparse import block_array, csr_array, diags_array

    said: Any = mentions
    leads = leading_entities(mentions, facts, aliases).astype(np.float64)
    kept: Any = csr_array((said.data * leads[said.indices], said.indices, said.indptr), shape=said.shape)
    sums = np.asarray(kept.sum(axis=1)).ravel()
    binding: Any = diags_array(1.0 / np.where(sums > 0, sums, 1.0)) @ kept
    if weights.own:
        binding = binding + weights.own * (own @ diags_array(leads))
    binding.eliminate_zeros()
    among: Any = (weights.relations * facts + weights.aliases * aliases).tocsr()
    among.data *= np.repeat(_out_of_islands(among, np.bincount(binding.indices, minlength=len(leads)) > 0), np.diff(among.indptr))
    among.eliminate_zeros()
    return csr_array(block_array([[None, binding], [binding.T, among]]))


def _out_of_islands(among: "csr_array", bound: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The entities from which edges among entities lead to one that is bound to a passage: a walk that begins at the others would never see one."""
    from scipy.sparse.csgraph import connected_components

    n_parts, parts = connected_components(among, directed=False)
    lead_on = np.zeros(n_parts, dtype=bool)
    lead_on[parts[bound]] = True
    return lead_on[parts]


def restart(walk: WalkMatrix, n_passages: int, chunks_of: "csr_array", *, entities: ArrayLike, shares: ArrayLike) -> tuple[Ids, Floats]:
    """Where a walk from these entities starts anew: at each, or where it leads nowhere, at the passages that name it; nowhere where none does.

    Args:
        walk: the graph.
        n_passages: how many of its nodes are passages.
        chunks_of: (n_entities, n_passages) the mentions, by entity.
        entities: the entities.
        shares: how much starts at each.

    Returns:
        Nodes of the walk and the share of each.
    """
    nodes: list[int] = []
    amounts: list[float] = []
    graph: Any = chunks_of
    for entity, share in zip(np.asarray(entities).tolist(), np.asarray(shares).tolist(), strict=True):
        if walk.degrees[n_passages + entity] > 0:
            nodes.append(n_passages + entity)
            amounts.append(share)
            continue
        passages = graph.indices[graph.indptr[entity] : graph.indptr[entity + 1]].tolist()
        nodes += passages
        amounts += [share / max(1, len(passages))] * len(passages)
    return np.array(nodes, dtype=np.int64), np.array(amounts, dtype=np.float64)
