"""How a walk came to a node: the chain of edges that brought it most of what stands there."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.ranking.walk_matrix import Floats, WalkMatrix

MAX_STEPS = 6


def strongest_chain(
    walk: WalkMatrix, values: Floats, nodes: NDArray[np.int64], amounts: Floats, target: int, *, damping: float, max_steps: int = MAX_STEPS
) -> list[int]:
    """The nodes from where the walk started to a target, each the one that brought the next most.

    What stands at a node came from the restarts there, and from its neighbours, in proportion to what stands at them. Going back along the
    strongest of these ends where the restarts brought most.

    Args:
        walk: the graph.
        values: (n,) what stands at each node, as `pagerank` gives it.
        nodes: nodes where the walk starts anew, ascending.
        amounts: share of the restarts of each.
        target: the node to explain.
        damping: as in the walk.
        max_steps: most edges of the chain.

    Returns:
        Nodes, first to last; the target alone where the walk started there.

    Example:
        >>> from scipy.sparse import csr_array
        >>> from llama_index_advanced_rag.ranking.pagerank import personalized_pagerank
        >>> path = WalkMatrix.of(csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
        >>> values = personalized_pagerank(path, [0], [1.0])
        >>> strongest_chain(path, values, np.array([0]), np.array([1.0]), 2, damping=0.5)
        [0, 1, 2]
    """
    chain = [target]
    while len(chain) <= max_steps:
        node = chain[-1]
        started = (1 - damping) * _amount_at(node, nodes, amounts)
        neighbours, brought = _brought(walk, values, node, damping)
        brought[np.isin(neighbours, chain)] = 0.0
        if not len(brought) or started >= brought.max(initial=0.0):
            break
        chain.append(int(neighbours[np.lexsort((neighbours, -brought))[0]]))
    return _from_start(chain, nodes)


def _brought(walk: WalkMatrix, values: Floats, node: int, damping: float) -> tuple[NDArray[np.int64], Floats]:
    edges: Any = walk.edges
    places = slice(edges.indptr[node], edges.indptr[node + 1])
    neighbours = edges.indices[places].astype(np.int64)
    return neighbours, damping * edges.data[places] * walk.roots[node] / walk.roots[neighbours] * values[neighbours]


def _amount_at(node: int, nodes: NDArray[np.int64], amounts: Floats) -> float:
    place = int(np.searchsorted(nodes, node))
    return float(amounts[place]) if place < len(nodes) and nodes[place] == node else 0.0


def _from_start(chain: Sequence[int], nodes: NDArray[np.int64]) -> list[int]:
    """The chain from a start to its target: what lies before the last start in it is left out."""
    starts = np.isin(np.array(chain), nodes)
    last = int(np.flatnonzero(starts)[-1]) if starts.any() else len(chain) - 1
    return list(reversed(chain[: last + 1]))
