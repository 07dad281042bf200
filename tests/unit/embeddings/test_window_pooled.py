import numpy as np
import pytest

from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, embedding_window
from llama_index_advanced_rag.embeddings.window_pooled import WindowPooledEmbedding
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.testing import DeterministicEmbedding

WINDOW = EmbeddingWindow(max_tokens=3, count_tokens=lambda text: len(text.split()))


def pooled() -> WindowPooledEmbedding:
    return WindowPooledEmbedding(DeterministicEmbedding(), window=WINDOW)


def test_a_text_that_fits_gets_the_vector_of_the_model() -> None:
    assert pooled().get_text_embedding("red fox sleeps") == DeterministicEmbedding().get_text_embedding("red fox sleeps")
    assert pooled().get_query_embedding("a b c d e") == DeterministicEmbedding().get_query_embedding("a b c d e")


def test_a_long_text_gets_the_mean_of_its_windows_by_their_tokens() -> None:
    model = DeterministicEmbedding()
    parts = [np.array(model.get_text_embedding(text)) for text in ("red fox sleeps", "now")]
    mean = 3 * parts[0] / np.linalg.norm(parts[0]) + parts[1] / np.linalg.norm(parts[1])
    assert np.allclose(pooled().get_text_embedding("red fox sleeps now"), mean / np.linalg.norm(mean))


def test_every_word_is_in_one_window() -> None:
    words = [f"w{number}" for number in range(100)]
    windows = pooled().windows(" \n".join(words))
    assert [word for window in windows for word in window.split()] == words
    assert max(len(window.split()) for window in windows) <= 3


async def test_async_gives_the_same() -> None:
    texts = ["red fox sleeps now", "deep sea", "one two three four five six seven"]
    assert await pooled().aget_text_embedding_batch(texts) == pooled().get_text_embedding_batch(texts)
    assert await pooled().aget_query_embedding("red fox") == pooled().get_query_embedding("red fox")


def test_it_is_another_model_than_the_one_inside() -> None:
    assert embedding_identity(pooled()) != embedding_identity(DeterministicEmbedding())


def test_its_own_window_has_no_end_and_the_tokens_of_the_model_inside() -> None:
    window = embedding_window(pooled())
    assert (window.max_tokens, window.count_tokens("red fox")) == (None, 2)


def test_a_model_without_a_window_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="does not say how many tokens it reads"):
        WindowPooledEmbedding(DeterministicEmbedding())
