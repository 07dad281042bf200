"""Clusters of vectors: bounded, complete, the same in any order."""

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.clustering import cluster_vectors


def around(centres, each, *, spread=0.05, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([centre + spread * rng.standard_normal((each, len(centre))) for centre in np.asarray(centres, dtype=float)])


def test_what_is_together_stays_together():
    vectors = around(np.eye(6), each=8)
    ids = [f"{number // 8}-{number % 8}" for number in range(48)]
    assert [{name[0] for name in cluster} for cluster in cluster_vectors(ids, vectors, max_size=8)] == [{str(number)} for number in range(6)]


@given(st.integers(0, 60), st.integers(2, 12), st.integers(0, 5))
def test_every_id_is_in_one_cluster_of_bounded_size_whatever_the_order(count, max_size, seed):
    vectors = np.random.default_rng(seed).integers(-2, 3, (count, 3)).astype(float)
    ids = [f"n{number:02}" for number in range(count)]
    clusters = cluster_vectors(ids, vectors, max_size=max_size)
    assert sorted(name for cluster in clusters for name in cluster) == ids
    assert all(1 <= len(cluster) <= max_size for cluster in clusters)
    order = list(range(count))
    random.Random(seed).shuffle(order)
    assert cluster_vectors([ids[index] for index in order], vectors[order], max_size=max_size) == clusters


def test_a_vector_alone_joins_the_nearest_cluster_with_room():
    vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1], [0.45, 0.55]])
    clusters = cluster_vectors(list("abcde"), vectors, max_size=3)
    assert clusters == [["a", "b"], ["c", "d", "e"]]


def test_equal_vectors_are_divided_by_id():
    clusters = cluster_vectors([f"{number:03}" for number in range(100)], np.ones((100, 4)), max_size=10)
    assert max(map(len, clusters)) <= 10
    assert all(cluster == sorted(cluster) for cluster in clusters)


def test_lengths_do_not_matter():
    vectors = around(np.eye(3), each=5)
    ids = [str(number) for number in range(15)]
    lengths = np.arange(1, 16)[:, None]
    assert cluster_vectors(ids, vectors, max_size=5) == cluster_vectors(ids, vectors * lengths, max_size=5)


def test_twenty_thousand_vectors_take_seconds_also_when_they_are_far_from_round():
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((20_000, 32)) * np.geomspace(100, 1, 32)
    vectors[::2] = vectors[0]
    started = time.process_time()
    assert max(map(len, cluster_vectors([f"{number:05}" for number in range(20_000)], vectors))) <= 10
    assert time.process_time() - started < 60


def test_arguments_are_checked():
    with pytest.raises(ConfigurationError, match="max_size is 1"):
        cluster_vectors(["a"], np.ones((1, 2)), max_size=1)
    with pytest.raises(ConfigurationError, match="1 different ones"):
        cluster_vectors(["a", "a"], np.ones((2, 2)))
    with pytest.raises(ConfigurationError, match="3 vectors"):
        cluster_vectors(["a", "b"], np.ones((3, 2)))
    assert cluster_vectors([], np.ones((0, 2))) == []
