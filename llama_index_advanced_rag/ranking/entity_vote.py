"""Entities vote for the passages that name them."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import ConfigurationError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
TOP_N = 35
SHARE_WEIGHT = 0.4


def select_voters(scores: Floats, top_n: int = TOP_N) -> NDArray[np.int64]:
    """The best entities, best first; of equal ones the first. Entities that score 0 or less are left out.

    Example:
        >>> select_voters(np.array([0.2, 0.9, 0.9, 0.0]), 3).tolist()
        [1, 2, 0]
    """
    places = np.flatnonzero(scores > 0)
    if 0 < top_n < len(places):
        places = places[scores[places] >= np.partition(scores[places], -top_n)[-top_n]]
    return places[np.argsort(-scores[places], kind="stable")][:top_n]


def vote(naming: "csr_array", voters: NDArray[np.int64], scores: Floats, *, n_votes: int, share_weight: float = SHARE_WEIGHT) -> Floats:
    """What the votes of entities make of passages: `w x share of the voters that a passage names + (1 - w) x mean score of those`.

    Where more vote than were selected, neighbours say, a passage that names as many of them as were selected has the whole share.

    Args:
        naming: (n_entities, n_passages) which passages name an entity.
        voters: the entities that vote.
        scores: (len(voters),) how well each fits the question, 0 to 1.
        n_votes: how many were selected, at least one.
        share_weight: w, 0 to 1.

    Returns:
        (n_passages,) 0 to 1, higher is better; 0 where no voter is named.

    Raises:
        ConfigurationError: `share_weight` is not from 0 to 1.

    Source: "KG-RAG: bridging the gap between knowledge and creativity" as run by the Vector Institute on 10-Q filings (0.4 x share + 0.6 x similarity, 30 to 40
    entities).

    Example:
        >>> from scipy.sparse import csr_array
        >>> naming = csr_array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
        >>> vote(naming, np.array([0, 1]), np.array([0.5, 0.9]), n_votes=2).round(3).tolist()
        [0.82, 0.5, 0.0]
    """
    if not 0 <= share_weight <= 1:
        raise ConfigurationError(f"share_weight is {share_weight!r}. It must be from 0 to 1; {SHARE_WEIGHT} is usual.")
    graph: Any = naming
    chosen = graph[voters]
    ones = np.ones(len(chosen.data))
    rows = np.repeat(np.arange(len(voters)), np.diff(chosen.indptr))
    counts = np.bincount(chosen.indices, ones, minlength=graph.shape[1])
    sums = np.bincount(chosen.indices, scores[rows], minlength=graph.shape[1]).astype(np.float64)  # of nothing it counts in whole numbers
    shares = np.minimum(counts / max(1, n_votes), 1.0)
    return share_weight * shares + (1 - share_weight) * np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)


def with_neighbours(voters: NDArray[np.int64], scores: Floats, relations: "csr_array", decay: float) -> tuple[NDArray[np.int64], Floats]:
    """The voters and those related to them, each of which votes with `decay` x the best score of a voter it is related to.

    Args:
        voters: the entities that vote.
        scores: how well each fits.
        relations: (n_entities, n_entities) which entities are related.
        decay: 0 = neighbours do not vote.
    """
    graph: Any = relations
    if not decay or not graph.nnz:
        return voters, scores
    own = dict(zip(voters.tolist(), scores.tolist(), strict=True))
    near: dict[int, float] = {}
    for entity, score in own.items():
        for other in graph.indices[graph.indptr[entity] : graph.indptr[entity + 1]].tolist():
            if other not in own:
                near[other] = max(near.get(other, 0.0), decay * score)
    return np.array([*own, *near], dtype=np.int64), np.array([*own.values(), *near.values()])
