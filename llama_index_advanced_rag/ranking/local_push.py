"""What stands at a few nodes, pushed along their edges: the part of a walk that does not look at the whole graph."""

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.ranking.walk_matrix import Floats, WalkMatrix

_FEW = 8  # below one edge for this many nodes, adding them one by one is faster than a vector over all nodes


def push_along_edges(
    walk: WalkMatrix, scores: Floats, residual: Floats, nodes: NDArray[np.int64], *, damping: float, floor: float, most_edges: int, enough: float
) -> bool:
    """Push from all nodes whose residual is above the floor, again and again, all of them at once.

    A push adds the residual of a node to its score and puts the share `damping` of it on its neighbours. `scores + (I - damping * edges)^-1
    residual` stays what it was. Both are those of `WalkMatrix`: divided by the roots of the degrees. They are changed in place.

    Args:
        walk: the graph.
        scores: shape (n,).
        residual: shape (n,), each >= 0.
        nodes: the nodes with a residual above the floor, each once.
        damping: share of the residual that goes on, 0 to 1.
        floor: a node is pushed from when its residual is above `floor * degree`.
        most_edges: stop before more edges than this are followed in all.
        enough: stop when the residuals above the floor are together at most this.

    Returns:
        True when it stopped because nothing, or not more than `enough`, is above the floor; False when edges were too many.

    Source: Andersen, Chung, Lang 2006, "Local Graph Partitioning using PageRank Vectors", section 3. Our deviations: a round pushes from all
    nodes at once, so that it is a few operations on arrays; the walk is not lazy; the whole residual goes on.
    """
    left = most_edges
    while len(nodes) and walk.roots[nodes] @ residual[nodes] > enough:
        left -= int((walk.edges.indptr[nodes + 1] - walk.edges.indptr[nodes]).sum())
        if left < 0:
            return False
        moved = residual[nodes]
        scores[nodes] += moved
        residual[nodes] = 0.0
        nodes = _put_on_neighbours(walk, residual, nodes, damping * moved, floor)
    return True


def _put_on_neighbours(walk: WalkMatrix, residual: Floats, nodes: NDArray[np.int64], amounts: Floats, floor: float) -> NDArray[np.int64]:
    """Add to the residual of each neighbour; the nodes that are above the floor now, ascending."""
    rows = walk.edges[nodes]
    if rows.nnz * _FEW > walk.n:
        residual += amounts @ rows
        return np.flatnonzero(residual > floor * walk.roots)
    reached = rows.indices
    np.add.at(residual, reached, rows.data * np.repeat(amounts, np.diff(rows.indptr)))
    return np.unique(reached[residual[reached] > floor * walk.roots[reached]]).astype(np.int64)
