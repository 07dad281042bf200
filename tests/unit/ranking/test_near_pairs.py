"""Pairs of near vectors, against the matrix of all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking import near_pairs as module
from llama_index_advanced_rag.ranking.near_pairs import Pairs, near_pairs, strongest_pairs


def unit(matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    return (matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def clustered(n: int, *, seed: int = 0, size: int = 5) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(max(1, n // size), 24))
    return unit(centres[random.integers(0, len(centres), n)] + 0.3 * random.normal(size=(n, 24)))


def all_pairs(matrix: NDArray[np.float32], least: float) -> list[tuple[int, int]]:
    cosines = np.round(matrix.astype(np.float64) @ matrix.T.astype(np.float64), 6)
    return [(row, column) for row in range(len(matrix)) for column in range(row + 1, len(matrix)) if cosines[row, column] >= least]


def degrees(pairs: Pairs, n: int) -> NDArray[np.int64]:
    return np.bincount(np.concatenate([pairs.rows, pairs.columns]), minlength=n)


@given(st.integers(0, 60), st.integers(0, 5), st.sampled_from([0.5, 0.8, 0.95]))
def test_they_are_those_of_the_matrix_of_all_pairs(n: int, seed: int, least: float) -> None:
    matrix = clustered(n, seed=seed) if n else np.zeros((0, 24), dtype=np.float32)
    pairs = near_pairs(matrix, least=least, most=100)
    assert [(row, column) for row, column, _ in pairs.listed()] == all_pairs(matrix, least)
    assert all(least <= weight <= 1 for _, _, weight in pairs.listed())


@pytest.mark.parametrize("most", [1, 3, 20])
def test_no_row_is_in_more_pairs_than_asked_and_the_nearest_are_kept(most: int) -> None:
    matrix = clustered(300, size=30)
    pairs, everything = near_pairs(matrix, least=0.6, most=most), near_pairs(matrix, least=0.6, most=1000)
    assert degrees(pairs, 300).max() <= most
    assert set(pairs.listed()) <= set(everything.listed())
    assert set(pairs.listed()) == set(strongest_pairs(everything, 300, most=most).listed())
    best = max(everything.listed(), key=lambda pair: pair[2])
    assert best in pairs.listed()


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = clustered(200)
    whole = near_pairs(matrix, least=0.7, most=4)
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    monkeypatch.setattr(module, "_PAIRS_AT_ONCE", 3)
    assert near_pairs(matrix, least=0.7, most=4).listed() == whole.listed()


def test_a_cosine_does_not_depend_on_the_other_rows() -> None:
    matrix = clustered(200)
    of_all = {(row, column): weight for row, column, weight in near_pairs(matrix, least=0.7, most=200).listed()}
    for row, column, weight in near_pairs(matrix[50:90], least=0.7, most=200).listed():
        assert of_all[row + 50, column + 50] == weight


def test_many_equal_rows_take_no_more_memory_than_others() -> None:
    pairs = near_pairs(unit(np.ones((2000, 8))), least=0.8, most=10)
    assert degrees(pairs, 2000).max() <= 10
    assert set(pairs.weights.tolist()) == {1.0}


def test_rows_of_zeros_are_near_nothing() -> None:
    assert near_pairs(np.zeros((5, 3), dtype=np.float32), least=0.1, most=5).listed() == []
    assert near_pairs(np.zeros((0, 0), dtype=np.float32), least=0.1, most=5).listed() == []


def test_the_matrix_stays_as_it_was() -> None:
    matrix = clustered(50)
    before = matrix.copy()
    near_pairs(matrix, least=0.5, most=2)
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("least", [0, -0.5, 1.1, float("nan")])
def test_a_cosine_that_cannot_be_asked_for(least: float) -> None:
    with pytest.raises(ConfigurationError, match="least is .*a cosine above 0"):
        near_pairs(clustered(3), least=least, most=5)


@pytest.mark.parametrize("most", [0, -1, 1.5, True])
def test_a_number_of_neighbours_that_cannot_be(most: int) -> None:
    with pytest.raises(ConfigurationError, match="most is"):
        near_pairs(clustered(3), least=0.8, most=most)


def test_of_equally_strong_pairs_those_with_the_first_rows_stay() -> None:
    pairs = Pairs(np.array([1, 0, 0]), np.array([2, 2, 1]), np.array([0.9, 0.9, 0.9]))
    assert strongest_pairs(pairs, 3, most=1).listed() == [(0, 1, 0.9)]
    assert strongest_pairs(pairs, 3, most=2).listed() == [(0, 1, 0.9), (0, 2, 0.9), (1, 2, 0.9)]
    empty = Pairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    assert strongest_pairs(empty, 0, most=1).listed() == strongest_pairs(empty, 4, most=1).listed() == []
