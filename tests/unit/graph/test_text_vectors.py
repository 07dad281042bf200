"""Vectors of names: each text embedded once, the same whether it was kept, and forgotten when it is no longer needed."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.storage.kvstore import SimpleKVStore

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.testing import DeterministicEmbedding, RendezvousEmbedding

NAMES = ["Knott", "Lake District", "Wainwright", "Élan"]


class Broken(DeterministicEmbedding):
    """Gives vectors that cannot be used."""

    value: float = float("nan")

    def _vector(self, text: str) -> list[float]:
        return [self.value] * self.dimensions


def test_unit_vectors_in_the_order_of_the_texts() -> None:
    model = DeterministicEmbedding()
    matrix = TextVectors(model).matrix(NAMES)
    assert (matrix.shape, matrix.dtype) == ((4, 64), np.float32)
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-6)
    for name, row in zip(NAMES, matrix, strict=True):
        np.testing.assert_allclose(row, model.get_text_embedding(name), atol=2e-3)


def test_cosines() -> None:
    model = DeterministicEmbedding()
    vectors = TextVectors(model)
    query = model.get_query_embedding("Lake District")
    found = vectors.similarities(NAMES, query)
    assert found.dtype == np.float64
    assert found.argmax() == 1
    assert found[1] == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(vectors.similarities(NAMES, [7 * value for value in query]), found, atol=1e-6)
    assert vectors.similarities(NAMES, [0.0] * 64).tolist() == [0.0] * 4


def test_each_text_is_embedded_once() -> None:
    model = DeterministicEmbedding()
    vectors = TextVectors(model)
    vectors.matrix([*NAMES, *NAMES])
    vectors.matrix(NAMES)
    vectors.matrix(["Keswick", "Knott"])
    assert sorted(model.texts) == sorted([*NAMES, "Keswick"])


def test_a_question_is_embedded_once_and_the_last_ones_are_kept() -> None:
    model = DeterministicEmbedding()
    vectors = TextVectors(model)
    assert vectors.query_vector("Who?") == vectors.query_vector("Who?") == DeterministicEmbedding().get_query_embedding("Who?")
    assert model.texts == ["Who?"]
    for number in range(200):
        vectors.query_vector(f"Which {number}?")
    assert len(vectors._queries) < 100


def test_what_a_store_kept_is_the_same_and_not_embedded_again() -> None:
    store, first, second = SimpleKVStore(), DeterministicEmbedding(), DeterministicEmbedding()
    fresh = TextVectors(first, store).matrix(NAMES)
    again = TextVectors(second, store).matrix(NAMES)
    np.testing.assert_array_equal(fresh, again)
    assert second.texts == []


def test_vectors_of_another_model_are_others() -> None:
    store, other = SimpleKVStore(), DeterministicEmbedding(dimensions=8, model_name="other")
    TextVectors(DeterministicEmbedding(), store).matrix(NAMES)
    assert TextVectors(other, store).matrix(NAMES).shape == (4, 8)
    assert sorted(other.texts) == sorted(NAMES)


def test_in_the_store_of_an_index(tmp_path: Path) -> None:
    from llama_index_advanced_rag import SQLiteKVStore

    first, second = DeterministicEmbedding(), DeterministicEmbedding()
    store = SQLiteKVStore(tmp_path / "names.db")
    fresh = TextVectors(first, store).matrix(NAMES)
    np.testing.assert_array_equal(TextVectors(second, store).matrix(NAMES[::-1]), fresh[::-1])
    assert second.texts == []


def test_no_texts() -> None:
    vectors = TextVectors(DeterministicEmbedding())
    assert vectors.matrix([]).shape[0] == 0
    vectors.matrix(NAMES)
    assert vectors.matrix([]).shape[0] == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0])
def test_vectors_that_cannot_be_used(value: float) -> None:
    with pytest.raises(ConfigurationError, match="The embedding model gave a vector"):
        TextVectors(Broken(value=value)).matrix(NAMES)


def test_the_error_of_a_model_comes_as_it_was_and_what_was_embedded_stays() -> None:
    model = DeterministicEmbedding(fail_on="Lake")
    vectors = TextVectors(model)
    vectors.matrix(["Knott"])
    with pytest.raises(ConnectionError, match="the embedding service is down"):
        vectors.matrix(NAMES)
    assert vectors.matrix(["Knott"]).shape == (1, 64)
    assert model.texts.count("Knott") == 1


def test_two_questions_are_embedded_at_once() -> None:
    vectors = TextVectors(RendezvousEmbedding(2, timeout_s=5.0))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda query=query: found.append(vectors.query_vector(query))) for query in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2


def test_two_threads_ask_for_the_same_names() -> None:
    model = DeterministicEmbedding(delay_s=0.01)
    vectors, found = TextVectors(model), list[Any]()
    threads = [threading.Thread(target=lambda: found.append(vectors.matrix(NAMES))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(model.texts) == sorted(NAMES)
    assert all(np.array_equal(one, found[0]) for one in found)


def test_a_question_does_not_wait_until_all_names_are_embedded() -> None:
    vectors = TextVectors(DeterministicEmbedding())
    with vectors._lock:
        thread = threading.Thread(target=vectors.query_vector, args=["Who?"], daemon=True)
        thread.start()
        thread.join(timeout=20)
        assert not thread.is_alive()


def test_a_long_list_is_stacked_once_whatever_short_ones_come_between() -> None:
    vectors, names = TextVectors(DeterministicEmbedding(dimensions=2)), [str(number) for number in range(2000)]
    matrix = vectors.matrix(names)
    for number in range(10):
        vectors.matrix([f"fact {number}"])
    assert vectors.matrix(names) is matrix
