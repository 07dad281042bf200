"""Personalised PageRank: golden values, what always holds, bounds that are kept, and arguments that cannot work."""

import time
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking import pagerank
from llama_index_advanced_rag.ranking.pagerank import local_pagerank, personalized_pagerank
from llama_index_advanced_rag.ranking.walk_matrix import WalkMatrix

BOTH = pytest.mark.parametrize("function", [personalized_pagerank, local_pagerank])


def walk_on(edges, n_nodes):
    """The walk on (node, node, weight)."""
    dense = np.zeros((n_nodes, n_nodes))
    for first, second, weight in edges:
        dense[first, second] = dense[second, first] = weight
    return WalkMatrix.of(csr_array(dense))


def random_walk_matrix(seed, n_passages=2000, n_entities=500, per_passage=20):
    """Passages first, each with some entities of very different popularity; a few edges among entities."""
    rng = np.random.default_rng(seed)
    n_nodes, n_edges = n_passages + n_entities, n_passages * per_passage
    entities = n_passages + (n_entities * rng.random(n_edges) ** 3).astype(int)
    first = np.concatenate([np.repeat(np.arange(n_passages), per_passage), rng.integers(n_passages, n_nodes, 50)])
    second = np.concatenate([entities, rng.integers(n_passages, n_nodes, 50)])
    half = coo_array((rng.uniform(0.1, 2, len(first)), (first, second)), shape=(n_nodes, n_nodes)).tocsr()
    return WalkMatrix.of(csr_array(half + half.T))


def exact(walk, seeds, weights, damping):
    """The same by a dense system of equations."""
    degrees = walk.degrees
    moves = walk.edges.toarray() * walk.roots[:, None] / walk.roots[None, :]
    restart = np.zeros(walk.n)
    np.add.at(restart, seeds, np.asarray(weights) / np.sum(weights))
    moves[:, degrees == 0] = restart[:, None]
    return np.linalg.solve(np.eye(walk.n) - damping * moves, (1 - damping) * restart)


def pushed(function, *arguments, **options):
    """What the function gives when nothing is ever solved."""
    with mock.patch.multiple(pagerank, _SMALL=-1, _PUSHED=1e9, _PUSHED_LOCALLY=1e9):
        return function(*arguments, **options)


@st.composite
def questions(draw):
    """A small graph, seeds, weights and damping."""
    n_nodes = draw(st.integers(1, 10))
    node = st.integers(0, n_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.floats(0.001, 1000.0)), max_size=25))
    seeds = draw(st.lists(node, min_size=1, max_size=5))
    weights = draw(st.lists(st.floats(0.001, 1000.0), min_size=len(seeds), max_size=len(seeds)))
    return walk_on(edges, n_nodes), seeds, weights, draw(st.sampled_from([0.0, 0.15, 0.5, 0.85, 0.95]))


@BOTH
def test_golden_values(function):
    walk = walk_on([(0, 1, 1.0), (1, 2, 3.0)], 4)
    assert function(walk, [0], [5.0]) == pytest.approx([13 / 24, 8 / 24, 3 / 24, 0], abs=1e-6)
    assert function(walk, [0, 3], [1.0, 1.0]) == pytest.approx([13 / 36, 8 / 36, 3 / 36, 1 / 3], abs=1e-6)
    assert function(walk, [3], [1.0]).tolist() == [0, 0, 0, 1]


@BOTH
def test_the_seeds_alone_without_damping_and_a_seed_named_twice(function):
    walk = walk_on([(0, 1, 1.0), (1, 2, 3.0)], 3)
    assert function(walk, [2, 0, 2], [1.0, 2.0, 1.0], damping=0.0) == pytest.approx([0.5, 0, 0.5])
    assert function(walk, [2, 0, 2], [1.0, 2.0, 1.0]) == pytest.approx(function(walk, [0, 2], [1.0, 1.0]))


@BOTH
def test_nothing_to_start_from(function):
    assert function(WalkMatrix.of(csr_array((0, 0))), [], []).tolist() == []
    walk = walk_on([(0, 1, 1.0)], 3)
    assert function(walk, [], []).tolist() == [0, 0, 0]
    assert function(walk, [0, 2], [0.0, 0.0]).tolist() == [0, 0, 0]
    assert function(WalkMatrix.of(csr_array((3, 3))), [1], [2.0]).tolist() == [0, 1, 0]


@given(questions())
@settings(max_examples=60, deadline=None)
def test_shares_within_the_bound_whatever_the_method(question):
    walk, seeds, weights, damping = question
    expected = exact(walk, seeds, weights, damping)
    for tolerance in (1e-2, 1e-6, 1e-10):
        for run in (lambda function, *a, **o: function(*a, **o), pushed):
            shares = run(personalized_pagerank, walk, seeds, weights, damping=damping, tolerance=tolerance)
            assert (shares >= 0).all()
            assert shares.sum() == pytest.approx(1)
            assert np.abs(shares - expected).sum() <= tolerance + 1e-12
            local = run(local_pagerank, walk, seeds, weights, damping=damping, tolerance=tolerance)
            assert (local >= 0).all()
            assert local.sum() <= 1 + tolerance
            assert (np.abs(local - expected) * walk.average_degree <= tolerance * walk.degrees + 1e-11 * walk.average_degree).all()


@given(questions(), st.floats(0.1, 0.9))
@settings(max_examples=100, deadline=None)
def test_a_mixture_of_starts_gives_the_mixture_of_shares(question, part):
    walk, seeds, weights, damping = question
    if not walk.degrees[[*seeds, 0]].all():
        return  # a node without edges returns to all seeds, so that they are not independent
    other = personalized_pagerank(walk, [0], [1.0], damping=damping)
    mixed = personalized_pagerank(walk, [*seeds, 0], [*(part * np.array(weights) / np.sum(weights)), 1 - part], damping=damping)
    first = personalized_pagerank(walk, seeds, weights, damping=damping)
    assert np.abs(part * first + (1 - part) * other - mixed).sum() <= 3e-6


@pytest.mark.parametrize("damping", [0.5, 0.85])
def test_bounds_are_kept_on_a_graph_with_hubs(damping, monkeypatch):
    walk = random_walk_matrix(3)
    monkeypatch.setattr(pagerank, "_SMALL", walk.edges.nnz - 1)  # so that pushing is tried first
    assert walk.n_apart == 2000
    rng = np.random.default_rng(4)
    for n_seeds in (1, 5, 120):
        seeds, weights = rng.choice(walk.n, n_seeds, replace=False), rng.random(n_seeds)
        expected = exact(walk, seeds, weights, damping)
        for tolerance in (1e-1, 1e-3, 1e-6, 1e-9):
            assert np.abs(personalized_pagerank(walk, seeds, weights, damping=damping, tolerance=tolerance) - expected).sum() <= tolerance
            local = local_pagerank(walk, seeds, weights, damping=damping, tolerance=tolerance)
            assert (np.abs(local - expected) * walk.average_degree <= tolerance * walk.degrees).all()


def test_the_order_of_nodes_changes_the_time_only():
    walk = random_walk_matrix(5)
    order = np.random.default_rng(6).permutation(walk.n)
    adjacency = csr_array(walk.edges.multiply(walk.roots[:, None]).multiply(walk.roots[None, :]))
    mixed = WalkMatrix.of(csr_array(adjacency[order][:, order]))
    assert mixed.n_apart < walk.n_apart
    found = personalized_pagerank(mixed, np.flatnonzero(order < 7), np.ones(7))
    assert np.abs(found - personalized_pagerank(walk, np.arange(7), np.ones(7))[order]).sum() <= 2e-6


def test_what_is_far_away_is_not_visited():
    length = 200_000
    ends = np.arange(length - 1)
    half = coo_array((np.ones(length - 1), (ends, ends + 1)), shape=(length, length)).tocsr()
    walk = WalkMatrix.of(csr_array(half + half.T))
    for function in (personalized_pagerank, local_pagerank):
        with mock.patch.object(pagerank, "_solved", side_effect=AssertionError("solved for all nodes")):
            shares = function(walk, [length // 2], [1.0], damping=0.85)
        assert 10 < np.count_nonzero(shares) < 500
        assert shares[length // 2] == pytest.approx(np.sqrt((1 - 0.85) / (1 + 0.85)), abs=1e-5)


@BOTH
def test_a_hub_linked_to_everything_does_not_stall(function):
    n_leaves = 300_000
    leaves = np.arange(n_leaves)
    half = coo_array((np.ones(n_leaves), (leaves, np.full(n_leaves, n_leaves))), shape=(n_leaves + 1, n_leaves + 1)).tocsr()
    walk = WalkMatrix.of(csr_array(half + half.T))
    started = time.perf_counter()
    shares = function(walk, [7, n_leaves], [1.0, 1.0])
    assert time.perf_counter() - started < 5
    assert shares[7] > 100 * shares[8]
    assert shares[n_leaves] == pytest.approx(0.5, abs=0.01)


@BOTH
def test_the_arguments_stay_as_they_were_and_the_answer_is_the_same_again(function):
    walk = random_walk_matrix(9)
    seeds, weights, before = np.array([3, 1, 3]), np.array([1.0, 0.5, 2.0]), walk.edges.data.copy()
    first = function(walk, seeds, weights)
    assert (function(walk, seeds, weights) == first).all()
    assert seeds.tolist() == [3, 1, 3]
    assert weights.tolist() == [1.0, 0.5, 2.0]
    assert (walk.edges.data == before).all()


def test_single_precision_and_double_entries_and_zeros():
    single = WalkMatrix.of(csr_array(np.array([[0, 0.1], [0.1, 0]], dtype=np.float32)))
    assert single.edges.dtype == np.float64
    double = coo_array((np.array([1.0, 1.0, 2.0, 0.0]), (np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1]))), shape=(2, 2))
    assert WalkMatrix.of(csr_array(double)).degrees.tolist() == [2.0, 2.0]
    zeros = WalkMatrix.of(csr_array((np.zeros(2), ([0, 1], [1, 0])), shape=(2, 2)))
    assert personalized_pagerank(zeros, [0], [1.0]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("weights", [[1e-90, 1e90], [1e100, 1e100], [1e-100, 1e-100]])
@BOTH
def test_weights_of_any_size(function, weights):
    walk = walk_on([(0, 1, weights[0]), (1, 2, weights[1])], 3)
    shares = function(walk, [0, 2], [1e308, 1e308])
    assert shares.sum() == pytest.approx(1)
    assert shares == pytest.approx(exact(walk, [0, 2], [1.0, 1.0], 0.5), abs=1e-6)


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\)\. Expected a square matrix"),
        (np.array([[0, -1.0], [-1.0, 0]]), r"weight -1\.0\. Expected 0 or a number from 1e-100"),
        (np.array([[0, np.nan], [np.nan, 0]]), "weight nan"),
        (np.array([[0, np.inf], [np.inf, 0]]), "weight inf"),
        (np.array([[0, 1.0], [0, 0]]), r"node 0 weigh 1\.0 in its row and 0\.0 in its column.*adjacency \+ adjacency\.T"),
    ],
)
def test_graphs_that_cannot_work(adjacency, message):
    with pytest.raises(ConfigurationError, match=message):
        WalkMatrix.of(csr_array(adjacency))


@pytest.mark.parametrize(
    ("seeds", "weights", "options", "message"),
    [
        ([3], [1.0], {}, "A seed is 3. Expected a node from 0 to 2. Build the graph anew"),
        ([-1], [1.0], {}, "A seed is -1"),
        ([0.5], [1.0], {}, "of type 'float64'. Expected whole numbers"),
        ([0, 1], [1.0], {}, r"shape \(2,\) and weights of shape \(1,\)"),
        ([0], [-1.0], {}, r"weight -1\.0\. Expected a finite number of at least 0"),
        ([0], [float("nan")], {}, "weight nan"),
        ([0], [float("inf")], {}, "weight inf"),
        ([0], [1.0], {"damping": 1.0}, r"damping is 1\.0\. It must be at least 0 and below 1"),
        ([0], [1.0], {"damping": float("nan")}, "damping is nan"),
        ([0], [1.0], {"tolerance": 0.0}, r"tolerance is 0\.0\. It must be a number of at least 1e-12"),
        ([0], [1.0], {"tolerance": float("nan")}, "tolerance is nan"),
    ],
)
@BOTH
def test_questions_that_cannot_work(function, seeds, weights, options, message):
    with pytest.raises(ConfigurationError, match=message):
        function(walk_on([(0, 1, 1.0)], 3), seeds, weights, **options)
