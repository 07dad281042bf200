"""How a walk came to a node: chains along edges, from a start, the strongest of all."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from llama_index_advanced_rag.ranking.pagerank import local_pagerank, personalized_pagerank
from llama_index_advanced_rag.ranking.walk_matrix import WalkMatrix
from llama_index_advanced_rag.ranking.walk_paths import MAX_STEPS, strongest_chain


def walk_on(n_nodes, *edges):
    dense = np.zeros((n_nodes, n_nodes))
    for first, second, weight in edges:
        dense[first, second] = dense[second, first] = weight
    return WalkMatrix.of(csr_array(dense))


def chain(walk, seeds, target, damping=0.5, **options):
    values = personalized_pagerank(walk, list(seeds), list(seeds.values()), damping=damping)
    nodes, amounts = walk.restart(list(seeds), list(seeds.values()))
    return strongest_chain(walk, values, nodes, amounts, target, damping=damping, **options)


def test_a_line_is_followed_back_to_where_it_started():
    line = walk_on(4, (0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0))
    assert chain(line, {0: 1.0}, 3) == [0, 1, 2, 3]
    assert chain(line, {0: 1.0}, 0) == [0]


def test_the_stronger_of_two_ways():
    assert chain(walk_on(4, (0, 1, 3.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)), {0: 1.0}, 3) == [0, 1, 3]
    assert chain(walk_on(4, (0, 1, 1.0), (0, 2, 3.0), (1, 3, 1.0), (2, 3, 1.0)), {0: 1.0}, 3) == [0, 2, 3]


def test_of_equals_the_first():
    assert chain(walk_on(4, (0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)), {0: 1.0}, 3) == [0, 1, 3]


def test_a_target_at_which_most_started_is_alone():
    assert chain(walk_on(3, (0, 1, 1.0), (1, 2, 1.0)), {0: 0.1, 2: 0.9}, 2) == [2]


def test_a_node_without_edges_is_alone():
    assert chain(walk_on(3, (0, 1, 1.0)), {2: 1.0}, 2) == [2]


def test_what_was_not_reached_is_explained_by_nothing():
    assert chain(walk_on(4, (0, 1, 1.0), (2, 3, 1.0)), {0: 1.0}, 3)[-1] == 3


def test_a_long_way_is_cut_where_it_began_last():
    line = walk_on(12, *((node, node + 1, 1.0) for node in range(11)))
    assert len(chain(line, {0: 1.0}, 11, damping=0.9)) <= MAX_STEPS + 1
    assert len(chain(line, {0: 1.0}, 11, damping=0.9, max_steps=2)) <= 3


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from([0.25, 1.0, 2.0])), max_size=16),
    st.dictionaries(st.integers(0, 8), st.sampled_from([0.5, 1.0, 3.0]), min_size=1, max_size=3),
    st.integers(0, 8),
    st.sampled_from([0.0, 0.5, 0.9]),
)
def test_a_chain_follows_edges_from_a_start_to_the_target_without_a_loop(edges, seeds, target, damping):
    walk = walk_on(9, *(edge for edge in edges if edge[0] != edge[1]))
    found = chain(walk, seeds, target, damping)
    assert found[-1] == target
    assert len(found) == len(set(found)) <= MAX_STEPS + 1
    dense = walk.edges.toarray()
    assert all(dense[one, other] > 0 for one, other in pairwise(found))
    values = personalized_pagerank(walk, list(seeds), list(seeds.values()), damping=damping)
    if values[target] > 1e-9 and damping == 0.5:
        assert found[0] in seeds


def test_a_hub_is_explained_in_no_time():
    n_nodes = 200_000
    leaves = np.arange(1, n_nodes)
    half = coo_array((np.ones(n_nodes - 1), (np.zeros(n_nodes - 1, dtype=int), leaves)), shape=(n_nodes, n_nodes)).tocsr()
    walk = WalkMatrix.of(csr_array(half + half.T))
    values = local_pagerank(walk, [5], [1.0], damping=0.7)
    start = time.perf_counter()
    for _ in range(10):
        assert strongest_chain(walk, values, np.array([5]), np.array([1.0]), 9, damping=0.7) == [5, 0, 9]
    assert time.perf_counter() - start < 5.0


def test_nothing_given_is_changed():
    walk = walk_on(4, (0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0))
    values = personalized_pagerank(walk, [0], [1.0])
    before = values.copy(), walk.edges.data.copy()
    strongest_chain(walk, values, np.array([0]), np.array([1.0]), 3, damping=0.5)
    np.testing.assert_array_equal(before[0], values)
    np.testing.assert_array_equal(before[1], walk.edges.data)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_without_any_start_a_node_is_explained_by_itself_or_its_neighbours(target):
    walk = walk_on(3, (0, 1, 1.0))
    assert strongest_chain(walk, np.zeros(3), np.zeros(0, dtype=np.int64), np.zeros(0), target, damping=0.5)[-1] == target
