"""What lies around and between the nodes of a question in a sparse graph: short paths from one to another, and the nearest neighbours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag.errors import ConfigurationError

Floats = NDArray[np.float64]
Nodes = NDArray[np.intp]

MAX_HOPS = 6
_DIGITS = 12  # Sums of the same weights in another order differ in the last digits: they are equal.


class SparseRows(Protocol):
    """The arrays of a square, symmetric matrix in compressed rows, as `scipy.sparse.csr_array` has them. Weights: higher is closer."""

    @property
    def indptr(self) -> Any:
        """(n + 1,) where each row begins in the other two."""
        ...

    @property
    def indices(self) -> Any:
        """(m,) the other end of each edge."""
        ...

    @property
    def data(self) -> Any:
        """(m,) the weight of each edge; what is not above 0 is no edge."""
        ...


class PathOrder(str, Enum):
    """Which path is the better one: fewest edges (then lightest), or smallest sum of 1 / weight (then fewest edges)."""

    FEWEST_HOPS = "fewest_hops"
    LIGHTEST = "lightest"


@dataclass(frozen=True, slots=True)
class ConnectingPath:
    """A path between two seeds.

    Attributes:
        nodes: from the seed that was named first to the other, both included.
        cost: sum of 1 / weight of its edges, above 0, lower is better.
    """

    nodes: tuple[int, ...]
    cost: float

    @property
    def hops(self) -> int:
        """Edges of the path, at least 1."""
        return len(self.nodes) - 1


class Neighbourhood(NamedTuple):
    """Nodes (k,) and for each the edges to the nearest seed (k,): 0 for a seed."""

    nodes: Nodes
    hops: Nodes


def connecting_paths(
    graph: SparseRows,
    seeds: Sequence[int],
    *,
    max_hops: int = 3,
    max_paths: int = 20,
    max_degree: int = 500,
    order: PathOrder | str = PathOrder.FEWEST_HOPS,
    max_edges: int = 250_000,
) -> list[ConnectingPath]:
    """The best path between each two seeds that so few edges join.

    It is searched from both ends, so that the number of edges read is bounded by seeds and not by the graph. Where a seed
    would need more than `max_edges` edges for one hop, only its nearest nodes go on, and the path may be missed or not be the
    best. With the given numbers that is so only beyond three hops, or between two seeds that are both hubs.

    Args:
        graph: symmetric; nodes are its row numbers.
        seeds: row numbers, most important first; one that comes twice counts once.
        max_hops: most edges of a path, 1 to 6. Where entities meet in a node of their chunk, that is two edges.
        max_paths: most paths, at least 1.
        max_degree: a node with more edges is no inner node of a path: what meets in it has little to do with one another. It may be an end.
        order: which path is the better one. Equal ones: the one with the smaller row numbers.
        max_edges: most edges read for one seed and hop, at least 1, beyond those of the seed itself.

    Returns:
        At most one path for two seeds, best first by `order`, then by the places of its ends in `seeds`. Seeds that nothing joins have none.

    Raises:
        ConfigurationError: a seed is no row of the graph, or a number is out of range.

    Example:
        >>> from scipy.sparse import csr_array
        >>> edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
        >>> graph = csr_array((np.array([1.0, 1.0, 1.0, 0.2]), edges.T), shape=(4, 4))
        >>> [path.nodes for path in connecting_paths(graph + graph.T, [3, 0])]
        [(3, 0)]
        >>> connecting_paths(graph + graph.T, [3, 0], order="lightest")
        [ConnectingPath(nodes=(3, 2, 1, 0), cost=3.0)]
    """
    order = parse_choice(PathOrder, order, argument="order")
    if whole_number("max_hops", max_hops) > MAX_HOPS:
        raise ConfigurationError(f"max_hops is {max_hops!r}. It must be from 1 to {MAX_HOPS}: longer paths join everything with everything.")
    bounds = _Bounds(whole_number("max_degree", max_degree), whole_number("max_edges", max_edges), order is PathOrder.FEWEST_HOPS)
    whole_number("max_paths", max_paths)
    places = {seed: place for place, seed in enumerate(_rows_of(graph, seeds))}
    reaches = {seed: _Reach(graph, seed, bounds) for seed in places}
    best: dict[tuple[int, int], ConnectingPath] = {}
    for hops in range(1, max_hops + 1):
        for ends in combinations(sorted(places), 2):
            if ends not in best or not bounds.fewest:
                path = _join(reaches[ends[0]], reaches[ends[1]], hops, below=best[ends].cost if ends in best else inf)
                best.update({} if path is None else {ends: path})
        if bounds.fewest and len(best) >= max_paths:
            break
    return _ordered(best.values(), places, bounds)[:max_paths]


def neighbourhood(graph: SparseRows, seeds: Sequence[int], *, hops: int = 1, max_nodes: int = 200, max_degree: int = 500) -> Neighbourhood:
    """The nodes around the seeds, nearest first, and at the same distance those that are tied most closely to the nodes one step nearer.

    Args:
        graph: symmetric; nodes are its row numbers.
        seeds: row numbers; they come first, in this order.
        hops: most edges from a seed, at least 0.
        max_nodes: most nodes, seeds included, at least 1.
        max_degree: a node with more edges is reached, but not walked through, unless it is a seed.

    Returns:
        Nodes by (hops, sum of the weights to the nodes one step nearer, heaviest first; row number).

    Raises:
        ConfigurationError: a seed is no row of the graph, or a number is out of range.

    Example:
        >>> from scipy.sparse import csr_array
        >>> edges = np.array([[0, 1], [0, 2], [2, 3]])
        >>> graph = csr_array((np.array([1.0, 2.0, 1.0]), edges.T), shape=(4, 4))
        >>> around = neighbourhood(graph + graph.T, [0], hops=2)
        >>> around.nodes.tolist(), around.hops.tolist()
        ([0, 2, 1, 3], [0, 1, 1, 2])
    """
    whole_number("hops", hops, least=0)
    whole_number("max_degree", max_degree)
    layers = [np.array(_rows_of(graph, seeds), dtype=np.intp)]
    room = whole_number("max_nodes", max_nodes) - len(layers[0])
    frontier = layers[0]
    while len(layers) <= hops and room > 0 and len(frontier):
        layers.append(_heaviest(graph, frontier, np.concatenate(layers))[:room])
        frontier = layers[-1][_degrees(graph, layers[-1]) <= max_degree]
        room -= len(layers[-1])
    numbers = np.repeat(np.arange(len(layers), dtype=np.intp), [len(layer) for layer in layers])
    return Neighbourhood(np.concatenate(layers)[:max_nodes], numbers[:max_nodes])


def _heaviest(graph: SparseRows, frontier: Nodes, known: Nodes) -> Nodes:
    """The new nodes next to the frontier, heaviest first."""
    _, nodes, weights = _edges(graph, frontier)
    found, places = np.unique(nodes, return_inverse=True)
    sums = np.bincount(places, weights=weights, minlength=len(found))
    new = ~np.isin(found, known)
    return found[new][np.lexsort((found[new], -np.round(sums[new], _DIGITS)))]


class _Bounds(NamedTuple):
    max_degree: int
    max_edges: int
    fewest: bool


class _Layer(NamedTuple):
    """What one more edge reaches: sorted nodes, the least cost of each, and its place in the layer before."""

    nodes: Nodes
    costs: Floats
    parents: Nodes


class _Reach:
    """What is reached from one seed, layer by layer, each only when it is asked for."""

    def __init__(self, graph: SparseRows, seed: int, bounds: _Bounds) -> None:
        self._graph, self._bounds = graph, bounds
        self._layers = [_Layer(np.array([seed], dtype=np.intp), np.zeros(1), np.zeros(1, dtype=np.intp))]
        self.is_hub = int(_degrees(graph, self._layers[0].nodes)[0]) > bounds.max_degree

    def layer(self, hops: int) -> _Layer:
        while len(self._layers) <= hops:
            self._layers.append(self._next())
        return self._layers[hops]

    def passable(self, nodes: Nodes) -> NDArray[np.bool_]:
        """Which of them may stand inside a path."""
        return _degrees(self._graph, nodes) <= self._bounds.max_degree

    def walk(self, hops: int, place: int) -> list[int]:
        """The nodes from one of a layer back to the seed."""
        nodes: list[int] = []
        for number in range(hops, -1, -1):
            nodes.append(int(self._layers[number].nodes[place]))
            place = int(self._layers[number].parents[place])
        return nodes

    def _next(self) -> _Layer:
        last = self._layers[-1]
        starts = np.arange(1) if len(self._layers) == 1 else self._affordable(last)
        places, nodes, weights = _edges(self._graph, last.nodes[starts])
        parents = starts[places]
        with np.errstate(over="ignore"):
            costs = np.round(last.costs[parents] + 1.0 / weights, _DIGITS)
        in_order = np.lexsort((last.nodes[parents], costs, nodes))
        nodes, costs, parents = nodes[in_order], costs[in_order], parents[in_order]
        kept = np.diff(nodes, prepend=-1) != 0
        for layer in self._layers:
            kept &= costs < self._least_needed(layer, nodes)
        return _Layer(nodes[kept], costs[kept], parents[kept])

    def _affordable(self, layer: _Layer) -> Nodes:
        """Places of the nodes that are walked through: no hubs, and the nearest of them as far as their edges may be read."""
        places = np.flatnonzero(self.passable(layer.nodes))
        nearest_first = places[np.argsort(layer.costs[places], kind="stable")]
        edges_read = np.cumsum(_degrees(self._graph, layer.nodes[nearest_first]))
        return np.sort(nearest_first[: int(np.searchsorted(edges_read, self._bounds.max_edges, side="right"))])

    def _least_needed(self, layer: _Layer, nodes: Nodes) -> Floats:
        """The cost that a node must stay below to be of use beside an earlier layer."""
        places = _places(layer.nodes, nodes)
        known = -inf if self._bounds.fewest else layer.costs[places]
        return np.where(places >= 0, known, inf)


def _join(first: _Reach, second: _Reach, hops: int, *, below: float) -> ConnectingPath | None:
    """The best path of exactly so many hops from the first to the second, if it costs less than that."""
    left = hops // 2 if first.is_hub else hops - hops // 2
    one, other = first.layer(left), second.layer(hops - left)
    places = _places(other.nodes, one.nodes)
    met = np.flatnonzero((places >= 0) & (first.passable(one.nodes) | (hops == 1)))
    if not len(met):
        return None
    costs = np.round(one.costs[met] + other.costs[places[met]], _DIGITS)
    best = int(np.argmin(costs))
    walk = first.walk(left, int(met[best]))[::-1] + second.walk(hops - left, int(places[met[best]]))[1:]
    # A walk that comes back to a node is never the best, but may be all that is left where not every edge was read.
    simple = len(set(walk)) == len(walk)
    return ConnectingPath(tuple(walk), float(costs[best])) if simple and costs[best] < below else None


def _ordered(paths: Iterable[ConnectingPath], places: Mapping[int, int], bounds: _Bounds) -> list[ConnectingPath]:
    turned = [path if places[path.nodes[0]] < places[path.nodes[-1]] else ConnectingPath(path.nodes[::-1], path.cost) for path in paths]
    ends = {path: (places[path.nodes[0]], places[path.nodes[-1]]) for path in turned}
    return sorted(turned, key=lambda path: ((path.hops, path.cost) if bounds.fewest else (path.cost, path.hops), ends[path]))


def _rows_of(graph: SparseRows, seeds: Sequence[int]) -> list[int]:
    n_rows = len(graph.indptr) - 1
    rows = list(dict.fromkeys(int(seed) for seed in seeds))
    outside = [row for row in rows if not 0 <= row < n_rows]
    if outside:
        raise ConfigurationError(f"A seed is {outside[0]!r}. The graph has {n_rows} nodes. Give row numbers from 0 to {n_rows - 1}.")
    return rows


def _degrees(graph: SparseRows, rows: Nodes) -> Nodes:
    return np.asarray(graph.indptr[rows + 1] - graph.indptr[rows], dtype=np.intp)


def _edges(graph: SparseRows, rows: Nodes) -> tuple[Nodes, Nodes, Floats]:
    """All edges of some rows: the place of the row among them, the other end, the weight."""
    counts = _degrees(graph, rows)
    places = np.repeat(np.arange(len(rows), dtype=np.intp), counts)
    begins = graph.indptr[rows] - (np.cumsum(counts) - counts)
    held = np.arange(len(places), dtype=np.intp) + np.repeat(begins, counts)
    weights = np.asarray(graph.data[held], dtype=np.float64)
    real = weights > 0
    return places[real], np.asarray(graph.indices[held], dtype=np.intp)[real], weights[real]


def _places(nodes: Nodes, wanted: Nodes) -> Nodes:
    """Where each wanted node stands among sorted nodes; -1 = nowhere."""
    if not len(nodes):
        return np.full(len(wanted), -1, dtype=np.intp)
    places = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    return np.where(nodes[places] == wanted, places, -1)
