"""Paths between seeds and nodes around them: the best by any search, bounded at hubs, the same in any order."""

import time
from itertools import combinations
from math import inf

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.connecting_paths import connecting_paths, neighbourhood


def graph_of(n_nodes, edges):
    """A symmetric matrix of edges (node, node, weight)."""
    rows, columns, weights = (np.array(part) for part in zip(*edges, strict=True)) if edges else (np.empty(0, int), np.empty(0, int), np.empty(0))
    half = csr_array((weights.astype(float), (rows, columns)), shape=(n_nodes, n_nodes))
    return csr_array(half + half.T)


def star(n_leaves, others=()):
    """Node 0 with so many leaves, and further edges."""
    return graph_of(n_leaves + 1, [*((0, leaf, 1.0) for leaf in range(1, n_leaves + 1)), *others])


def nodes_of(paths):
    return [path.nodes for path in paths]


@st.composite
def graphs(draw):
    n_nodes = draw(st.integers(2, 9))
    pairs = draw(st.sets(st.sampled_from(list(combinations(range(n_nodes), 2)))))
    edges = [(*pair, draw(st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0, 3.0]))) for pair in sorted(pairs)]
    seeds = draw(st.lists(st.integers(0, n_nodes - 1), min_size=1, max_size=5, unique=True))
    return n_nodes, edges, seeds


def reference(n_nodes, edges, max_degree=inf):
    network = nx.Graph()
    network.add_nodes_from(range(n_nodes))
    network.add_weighted_edges_from([(one, other, 1 / weight) for one, other, weight in edges])
    hubs = {node for node, degree in network.degree() if degree > max_degree}
    return network, hubs


def best_by_trying_all(network, hubs, ends, max_hops, by_hops):
    paths = [path for path in nx.all_simple_paths(network, *ends, cutoff=max_hops) if not hubs.intersection(path[1:-1])]
    keys = [(len(path) - 1, nx.path_weight(network, path, "weight")) for path in paths]
    return min(keys, key=lambda key: key if by_hops else key[::-1], default=None)


@given(graphs())
def test_fewest_hops_are_those_of_networkx(case):
    n_nodes, edges, seeds = case
    network, _ = reference(n_nodes, edges)
    found = {frozenset((path.nodes[0], path.nodes[-1])): path.hops for path in connecting_paths(graph_of(n_nodes, edges), seeds, max_hops=6)}
    lengths = {frozenset(ends): nx.shortest_path_length(network, *ends) for ends in combinations(seeds, 2) if nx.has_path(network, *ends)}
    assert found == {ends: length for ends, length in lengths.items() if length <= 6}


@given(graphs(), st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_the_path_is_the_best_of_all_that_are_allowed(case, max_hops, max_degree, by_hops):
    n_nodes, edges, seeds = case
    network, hubs = reference(n_nodes, edges, max_degree)
    order = "fewest_hops" if by_hops else "lightest"
    paths = connecting_paths(graph_of(n_nodes, edges), seeds, max_hops=max_hops, max_degree=max_degree, order=order)
    found = {frozenset((path.nodes[0], path.nodes[-1])): path for path in paths}
    assert len(found) == len(paths)
    for ends in combinations(seeds, 2):
        expected, path = best_by_trying_all(network, hubs, ends, max_hops, by_hops), found.get(frozenset(ends))
        assert (path is None) == (expected is None)
        if path is not None:
            assert path.nodes[0] == ends[0]
            assert not hubs.intersection(path.nodes[1:-1])
            assert path.hops == expected[0] or not by_hops
            assert path.cost == pytest.approx(expected[1])
            assert nx.path_weight(network, path.nodes, "weight") == pytest.approx(path.cost)


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_the_seeds_turns_paths_but_does_not_change_them(case, random):
    n_nodes, edges, seeds = case
    shuffled = random.sample(seeds, len(seeds))
    one, other = (connecting_paths(graph_of(n_nodes, edges), order) for order in (seeds, shuffled))
    assert {min(path.nodes, path.nodes[::-1]) for path in one} == {min(path.nodes, path.nodes[::-1]) for path in other}


@given(graphs(), st.integers(1, 6), st.integers(1, 3))
def test_where_not_every_edge_is_read_a_path_is_still_a_path(case, max_hops, max_edges):
    n_nodes, edges, seeds = case
    network, _ = reference(n_nodes, edges)
    for order in ("fewest_hops", "lightest"):
        for path in connecting_paths(graph_of(n_nodes, edges), seeds, max_hops=max_hops, max_edges=max_edges, order=order):
            assert nx.is_simple_path(network, list(path.nodes))
            assert path.hops <= max_hops


def test_equal_paths_are_decided_by_the_smaller_row():
    square = graph_of(4, [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)])
    assert nodes_of(connecting_paths(square, [0, 3])) == [(0, 1, 3)]
    assert nodes_of(connecting_paths(square, [3, 0])) == [(3, 1, 0)]


def test_paths_come_best_first_and_then_by_their_seeds():
    line = graph_of(6, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 2.0), (4, 5, 2.0)])
    assert nodes_of(connecting_paths(line, [5, 3, 4, 2, 0])) == [(5, 4), (3, 2), (2, 1, 0), (3, 2, 1, 0)]
    assert nodes_of(connecting_paths(line, [5, 3, 4, 2, 0], max_paths=2)) == [(5, 4), (3, 2)]


def test_a_hub_is_an_end_but_not_walked_through():
    hub = star(4, [(1, 2, 0.1)])
    assert nodes_of(connecting_paths(hub, [3, 4], max_degree=3)) == []
    assert nodes_of(connecting_paths(hub, [3, 4], max_degree=4)) == [(3, 0, 4)]
    assert nodes_of(connecting_paths(hub, [0, 3], max_degree=3)) == [(0, 3)]
    assert nodes_of(connecting_paths(hub, [1, 2], max_degree=3)) == [(1, 2)]


def test_seeds_apart_alone_or_named_twice_have_no_path():
    apart = graph_of(5, [(0, 1, 1.0), (2, 3, 1.0)])
    assert connecting_paths(apart, [0, 2, 4]) == []
    assert connecting_paths(apart, []) == connecting_paths(apart, [0]) == connecting_paths(apart, [0, 0]) == []
    assert connecting_paths(graph_of(0, []), []) == []


def test_an_edge_without_weight_is_none_and_a_loop_leads_nowhere():
    graph = csr_array((np.array([0.0, 0.0, 1.0, 5e-324, 5e-324]), (np.array([0, 1, 1, 1, 2]), np.array([1, 0, 1, 2, 1]))), shape=(3, 3))
    assert connecting_paths(graph, [0, 1]) == []
    assert neighbourhood(graph, [0, 1]).nodes.tolist() == [0, 1, 2]


def test_a_hub_of_a_hundred_thousand_edges_does_not_stall():
    rng = np.random.default_rng(0)
    n_nodes, hubs = 100_000, [0, 1, 2]
    ends = rng.integers(3, n_nodes, (2, 400_000))
    rows = np.concatenate([ends[0], np.repeat(hubs, n_nodes - 3)])
    columns = np.concatenate([ends[1], np.tile(np.arange(3, n_nodes), 3)])
    half = csr_array((rng.random(len(rows)) + 0.1, (rows, columns)), shape=(n_nodes, n_nodes))
    graph = csr_array(half + half.T)
    started = time.process_time()
    for order in ("fewest_hops", "lightest"):
        paths = connecting_paths(graph, [0, 1, 2, *range(50, 67)], order=order, max_paths=200)
        assert all(not {0, 1, 2}.intersection(path.nodes[1:-1]) for path in paths)
        assert {frozenset((0, node)) for node in range(50, 67)} <= {frozenset((path.nodes[0], path.nodes[-1])) for path in paths}
    assert len(neighbourhood(graph, [0, 1, 60], hops=3, max_nodes=500).nodes) == 500
    assert time.process_time() - started < 20


def test_neighbours_are_nearest_first_and_then_heaviest():
    graph = graph_of(7, [(0, 1, 1.0), (0, 2, 3.0), (5, 1, 1.0), (5, 3, 2.0), (2, 4, 1.0), (4, 6, 9.0)])
    around = neighbourhood(graph, [5, 0], hops=2)
    assert around.nodes.tolist() == [5, 0, 2, 1, 3, 4]
    assert around.hops.tolist() == [0, 0, 1, 1, 1, 2]
    assert neighbourhood(graph, [5, 0], hops=2, max_nodes=3).nodes.tolist() == [5, 0, 2]
    assert neighbourhood(graph, [5, 0], hops=2, max_nodes=1).nodes.tolist() == [5]
    assert neighbourhood(graph, [5, 0], hops=0).nodes.tolist() == [5, 0]
    assert neighbourhood(graph, [], hops=2).nodes.tolist() == []


@given(graphs(), st.integers(0, 4))
def test_hops_of_neighbours_are_those_of_networkx(case, hops):
    n_nodes, edges, seeds = case
    network, _ = reference(n_nodes, edges)
    around = neighbourhood(graph_of(n_nodes, edges), seeds, hops=hops)
    lengths = nx.multi_source_dijkstra_path_length(network, set(seeds), cutoff=hops, weight=None)
    assert dict(zip(around.nodes.tolist(), around.hops.tolist(), strict=True)) == lengths
    assert len(set(around.nodes.tolist())) == len(around.nodes)


def test_neighbours_behind_a_hub_are_not_reached_unless_it_is_a_seed():
    hub = star(5, [(1, 2, 1.0)])
    assert neighbourhood(hub, [1], hops=2, max_degree=4).nodes.tolist() == [1, 0, 2]
    assert set(neighbourhood(hub, [0], hops=1, max_degree=4).nodes.tolist()) == set(range(6))


def test_arguments_are_checked():
    graph = graph_of(3, [(0, 1, 1.0)])
    with pytest.raises(ConfigurationError, match="A seed is 3. The graph has 3 nodes"):
        connecting_paths(graph, [0, 3])
    with pytest.raises(ConfigurationError, match="A seed is -1"):
        neighbourhood(graph, [-1])
    with pytest.raises(ConfigurationError, match="max_hops is 7. It must be from 1 to 6"):
        connecting_paths(graph, [0, 1], max_hops=7)
    with pytest.raises(ConfigurationError, match="order is 'cheapest'"):
        connecting_paths(graph, [0, 1], order="cheapest")
    for name in ("max_hops", "max_paths", "max_degree", "max_edges"):
        with pytest.raises(ConfigurationError, match=f"{name} is 0"):
            connecting_paths(graph, [0, 1], **{name: 0})
    with pytest.raises(ConfigurationError, match="max_nodes is 0"):
        neighbourhood(graph, [0], max_nodes=0)
