"""A weighted graph as a random walk needs it: edges made symmetric in strength, built once for a graph and used for every question."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index_advanced_rag.errors import ConfigurationError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

_LEAST, _MOST = 1e-100, 1e100  # squares of what lies between are numbers still
_SYMMETRIC = 1e-6
_WORTH_IT = 0.1


@dataclass(frozen=True, eq=False)
class WalkMatrix:
    """The undirected weighted graph of a walk, each edge divided by the roots of the weighted degrees of its ends.

    A step of the walk, P^T x, is `roots * (edges @ (x / roots))`; `edges` is symmetric, so that one matrix serves rows and columns. Nothing here
    is changed by use: one object may be shared by threads.

    Attributes:
        edges: shape (n, n), symmetric, float64, rows in the order of the nodes.
        degrees: weighted degree of each node, 0 where it has no edge; shape (n,).
        roots: their roots, 1 where a node has no edge; shape (n,).
        n_apart: the first `n_apart` nodes have no edge among each other. Number the passages first and the entities after them: the fewer nodes
            have to be solved for, the faster is `personalized_pagerank`. 0 when they are less than a tenth of all.
        others: the rest of the nodes, ascending, but for those without any edge; shape (m,).
        between: edges of the nodes apart with the others; shape (n_apart, m).
        among: edges of the others with each other; shape (m, m).
    """

    edges: "csr_array"
    degrees: Floats
    roots: Floats
    n_apart: int
    others: NDArray[np.int64]
    between: "csr_array"
    among: "csr_array"

    @classmethod
    def of(cls, adjacency: "csr_array") -> "WalkMatrix":
        """The walk on a graph.

        Time and memory are linear in the number of edges; some arrays are shared with `adjacency`, which must not be changed afterwards.

        Args:
            adjacency: shape (n, n), symmetric, weights >= 0 (float32 or float64, computed with as float64). A self loop counts once; entries that
                are stored twice add up.

        Raises:
            ConfigurationError: it is not square or not symmetric, or a weight is negative, not finite, or beyond 1e-100 to 1e100.

        Example:
            >>> from scipy.sparse import csr_array
            >>> walk = WalkMatrix.of(csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 3.0], [0.0, 3.0, 0.0]]))
            >>> walk.n, walk.degrees.tolist()
            (3, [1.0, 4.0, 3.0])
        """
        from scipy.sparse import csr_array

        graph: Any = _narrowed(csr_array(adjacency))
        weights = np.asarray(graph.data, dtype=np.float64)
        _check_weights(graph.shape, weights)
        n_nodes, counts = int(graph.shape[0]), np.diff(graph.indptr)
        rows = np.repeat(np.arange(n_nodes, dtype=graph.indices.dtype), counts)
        degrees = _sums(rows, weights, n_nodes)
        _check_symmetric(degrees, _sums(graph.indices, weights, n_nodes))
        roots = np.sqrt(np.where(degrees > 0, degrees, 1.0))
        strengths = weights / roots[rows]
        strengths /= roots[graph.indices]
        edges = csr_array((strengths, graph.indices, graph.indptr), shape=graph.shape)
        n_apart = int(np.maximum(rows, graph.indices).min(initial=n_nodes))
        return cls(edges, degrees, roots, *_parts(edges, degrees, n_apart if n_apart >= _WORTH_IT * n_nodes else 0))

    @property
    def n(self) -> int:
        """How many nodes there are."""
        return len(self.roots)

    @cached_property
    def average_degree(self) -> float:
        """Mean weighted degree of all nodes, 0 without nodes."""
        return float(self.degrees.sum()) / max(1, self.n)

    def restart(self, seeds: ArrayLike, weights: ArrayLike) -> tuple[NDArray[np.int64], Floats]:
        """Where the walk starts anew: distinct seeds, ascending, and their shares, which add up to 1; both empty when nothing has weight.

        Raises:
            ConfigurationError: seeds and weights do not fit each other, a seed is no node, or a weight is negative or not finite.

        Example:
            >>> from scipy.sparse import csr_array
            >>> ids, shares = WalkMatrix.of(csr_array((3, 3))).restart([2, 0, 2], [1.0, 2.0, 1.0])
            >>> ids.tolist(), shares.tolist()
            ([0, 2], [0.5, 0.5])
        """
        ids, shares = np.atleast_1d(np.asarray(seeds)), np.atleast_1d(np.asarray(weights, dtype=np.float64))
        _check_seeds(ids, shares, self.n)
        distinct, places = np.unique(ids[shares > 0].astype(np.int64), return_inverse=True)
        if not len(distinct):
            return distinct, np.zeros(0)
        sums = _sums(places.ravel(), shares[shares > 0] / shares.max(), len(distinct))
        return distinct, sums / sums.sum()


def _sums(places: NDArray[Any], amounts: Floats, length: int) -> Floats:
    return np.bincount(places, amounts, minlength=length).astype(np.float64, copy=False)


def _parts(edges: Any, degrees: Floats, n_apart: int) -> tuple[int, NDArray[np.int64], Any, Any]:
    others = n_apart + np.flatnonzero(degrees[n_apart:] > 0)
    if len(others) == len(degrees):
        return n_apart, others, edges[:0], edges
    if len(others) == len(degrees) - n_apart:
        return n_apart, others, edges[:n_apart, n_apart:], edges[n_apart:, n_apart:]
    return n_apart, others, edges[:n_apart][:, others], edges[others][:, others]


def _narrowed(graph: Any) -> Any:
    """The same matrix with indices of 32 bits where they suffice: every product reads a quarter less."""
    from scipy.sparse import csr_array

    if graph.indices.dtype == np.int32 or max(*graph.shape, graph.nnz) > np.iinfo(np.int32).max:
        return graph
    return csr_array((graph.data, graph.indices.astype(np.int32), graph.indptr.astype(np.int32)), shape=graph.shape)


def _check_weights(shape: tuple[int, ...], weights: Floats) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ConfigurationError(f"The graph has the shape {shape!r}. Expected a square matrix: one row and one column for each node.")
    wrong = weights[~((weights == 0) | ((weights >= _LEAST) & (weights <= _MOST)))]
    if len(wrong):
        raise ConfigurationError(
            f"An edge has the weight {float(wrong[0])!r}. Expected 0 or a number from 1e-100 to 1e100. "
            "Give each edge how strongly it binds, and leave out what does not bind."
        )


def _check_symmetric(row_sums: Floats, column_sums: Floats) -> None:
    wrong = np.flatnonzero(np.abs(row_sums - column_sums) > _SYMMETRIC * np.maximum(row_sums, column_sums))
    if len(wrong):
        node = int(wrong[0])
        raise ConfigurationError(
            f"The edges of node {node} weigh {float(row_sums[node])!r} in its row and {float(column_sums[node])!r} in its column. "
            "Expected a symmetric matrix. Store each edge in both directions: adjacency + adjacency.T."
        )


def _check_seeds(ids: NDArray[Any], weights: Floats, n_nodes: int) -> None:
    if ids.ndim != 1 or ids.shape != weights.shape:
        raise ConfigurationError(f"There are seeds of shape {ids.shape!r} and weights of shape {weights.shape!r}. Expected one weight for each seed.")
    if not len(ids):
        return
    if ids.dtype.kind not in "iu":
        raise ConfigurationError(f"The seeds are of type {ids.dtype.name!r}. Expected whole numbers: the rows of the nodes in the graph.")
    outside = ids[(ids < 0) | (ids >= n_nodes)]
    if len(outside):
        raise ConfigurationError(f"A seed is {int(outside[0])!r}. Expected a node from 0 to {n_nodes - 1}. Build the graph anew when nodes were added.")
    wrong = weights[~(np.isfinite(weights) & (weights >= 0))]
    if len(wrong):
        raise ConfigurationError(f"A seed has the weight {float(wrong[0])!r}. Expected a finite number of at least 0. Give 0 to a seed that should not count.")
