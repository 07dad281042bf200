"""Personalised PageRank: how much of a walk that starts anew at the seeds now and then is spent at each node of a graph."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.local_push import push_along_edges
from llama_index_advanced_rag.ranking.walk_matrix import Floats, WalkMatrix

DAMPING = 0.5
TOLERANCE = 1e-6
LOCAL_TOLERANCE = 2e-6

_LEAST_TOLERANCE = 1e-12
_PUSHED, _PUSHED_LOCALLY = 0.1, 0.5  # share of the edges that pushing may follow; beyond it, solving for all nodes is faster
_SMALL = 150_000  # with so few edges in both directions, solving is faster at once


def personalized_pagerank(walk: WalkMatrix, seeds: ArrayLike, weights: ArrayLike, *, damping: float = DAMPING, tolerance: float = TOLERANCE) -> Floats:
    """The walk's share of time at each node, exact to a bound on the sum of all errors.

    A walk stands at a node; with the share `damping` it goes on along an edge, in proportion to the weights, else it starts anew at a seed. From a
    node without edges it always starts anew.

    Args:
        walk: the graph.
        seeds: nodes; one named twice counts with both weights. Shape (s,).
        weights: each >= 0; only their proportions count. Shape (s,).
        damping: share that goes on, from 0 (the seeds alone) to below 1.
        tolerance: the most that all values together may be wrong (L1 distance), at least 1e-12.

    Returns:
        Shape (n,), each >= 0, sum 1; higher is nearer to the seeds. All 0 when no seed has a weight.

    Raises:
        ConfigurationError: an argument cannot work.

    Source: Haveliwala 2002, "Topic-Sensitive PageRank", section 3. The method is ours, of known parts: what stands at the seeds is pushed (see
    `local_push`) as long as it reaches few edges; the rest is the solution of (I - damping * edges) x = residual, a symmetric positive definite
    system, found by conjugate gradients (Hestenes and Stiefel 1952) on the nodes that are not `n_apart`, the others being eliminated. That takes a
    third of the steps of power iteration at damping 0.5. It ends when the residual times damping / (1 - damping), a bound of the error, is small enough.

    Example:
        >>> from scipy.sparse import csr_array
        >>> path = WalkMatrix.of(csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
        >>> personalized_pagerank(path, [0], [1.0]).round(4).tolist()
        [0.5833, 0.3333, 0.0833]
    """
    goal = _goal(damping, tolerance) / 2  # the other half is for what making the sum 1 may move
    scores, residual, nodes = _start(walk, seeds, weights, damping)
    if push_along_edges(walk, scores, residual, nodes, damping=damping, floor=0.0, most_edges=_may_follow(walk, _PUSHED), enough=goal):
        return _made_whole(walk, scores + residual)
    return _made_whole(walk, _solved(walk, scores, residual, damping, goal))


def local_pagerank(walk: WalkMatrix, seeds: ArrayLike, weights: ArrayLike, *, damping: float = DAMPING, tolerance: float = LOCAL_TOLERANCE) -> Floats:
    """The same shares exact to a bound at each node, which is enough to rank; the time depends on the bound, hardly on the size of the graph.

    What is spread so thin that it moves no node by more than the bound is not followed. On a graph of ten million edges that leaves a tenth of all
    time unplaced, in amounts far too small to change the first hundred nodes, and saves more than nine tenths of the work.

    Args:
        walk: the graph.
        seeds: as for `personalized_pagerank`.
        weights: likewise.
        damping: likewise.
        tolerance: the most that the value of a node of average weighted degree may be wrong, at least 1e-12; for others
            in proportion to their degree, but for 1e-12.

    Returns:
        Shape (n,), each >= 0, sum at most 1 (but for the tolerance); higher is nearer to the seeds. Nodes that were not reached have 0.

    Raises:
        ConfigurationError: an argument cannot work.

    Source: Andersen, Chung, Lang 2006 (see `local_push`), theorem 1 for the bound. Our deviation: when following what is left would cost more than
    solving for all nodes, that is done.

    Example:
        >>> from scipy.sparse import csr_array
        >>> path = WalkMatrix.of(csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
        >>> local_pagerank(path, [0], [1.0]).round(4).tolist()
        [0.5833, 0.3333, 0.0833]
    """
    goal, average = _goal(damping, tolerance), walk.average_degree
    scores, residual, nodes = _start(walk, seeds, weights, damping)
    floor = goal / average if average else np.inf
    if push_along_edges(walk, scores, residual, nodes, damping=damping, floor=floor, most_edges=_may_follow(walk, _PUSHED_LOCALLY), enough=0.0):
        return (scores + residual) * walk.roots
    smallest = float(walk.degrees.min(where=walk.degrees > 0, initial=average))
    goal = _goal(damping, max(_LEAST_TOLERANCE, tolerance * smallest / average))
    return np.maximum(_solved(walk, scores, residual, damping, goal) * walk.roots, 0.0)


def _goal(damping: float, tolerance: float) -> float:
    """The residual that is small enough: what it can still add to the scores, after it was added itself, is `tolerance`."""
    if not 0 <= damping < 1:
        raise ConfigurationError(f"damping is {damping!r}. It must be at least 0 and below 1; 0.5 is usual here, 0.85 on the web.")
    if not tolerance >= _LEAST_TOLERANCE:
        raise ConfigurationError(f"tolerance is {tolerance!r}. It must be a number of at least {_LEAST_TOLERANCE}; {TOLERANCE} is exact for every purpose.")
    return tolerance * (1 - damping) / damping if damping > 0 else np.inf


def _may_follow(walk: WalkMatrix, share: float) -> int:
    return int(share * walk.edges.nnz) if walk.edges.nnz > _SMALL else 0


def _start(walk: WalkMatrix, seeds: ArrayLike, weights: ArrayLike, damping: float) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """No scores yet, what stands at the seeds, and the seeds."""
    nodes, shares = walk.restart(seeds, weights)
    lost = float(shares[walk.degrees[nodes] == 0].sum())  # a walk at a node without edges starts anew
    residual = np.zeros(walk.n)
    residual[nodes] = (1 - damping) / (1 - damping * lost) * shares / walk.roots[nodes]
    return np.zeros(walk.n), residual, nodes


def _solved(walk: WalkMatrix, scores: Floats, residual: Floats, damping: float, goal: float) -> Floats:
    """The scores when all of the residual has been spread, but for `goal`.

    The nodes that stand apart are eliminated: given the others, each is its residual and the share `damping` of its neighbours. Those without
    an edge keep what they have.
    """
    cut, others, there, back, among = walk.n_apart, walk.others, walk.between, walk.between.T, walk.among

    def system(values: Floats) -> Floats:
        reached = back @ (there @ values)
        return values - damping * (among @ values + damping * reached if among.nnz else damping * reached)

    solution = _conjugate_gradients(system, residual[others] + damping * (back @ residual[:cut]), walk.roots[others], goal)
    solved = scores + residual
    solved[:cut] += damping * (there @ solution)
    solved[others] = scores[others] + solution
    return solved


def _conjugate_gradients(system: Callable[[Floats], Floats], right: Floats, roots: Floats, goal: float) -> Floats:
    """The solution of `system(x) = right`, and on top of it what is still missing: at most `goal`, measured with `roots`."""
    solution, direction = np.zeros_like(right), right.copy()
    missing, length = right.copy(), _dot(right, right)
    while _dot(roots, np.abs(missing)) > goal:
        image = system(direction)
        step = length / _dot(direction, image)
        solution += step * direction
        missing -= step * image
        before, length = length, _dot(missing, missing)
        direction *= length / before
        direction += missing
    return solution + missing


def _dot(first: Floats, second: Floats) -> float:
    return float(np.einsum("i,i->", first, second))  # by numpy itself: BLAS would start threads, which wait for each other on busy cores


def _made_whole(walk: WalkMatrix, scores: Floats) -> Floats:
    """Shares that add up to 1, from scores that are within rounding and tolerance of it."""
    shares = np.maximum(scores * walk.roots, 0.0)
    total = shares.sum()
    return shares / total if total > 0 else shares
