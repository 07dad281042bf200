import threading
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, embedding_window
from llama_index_advanced_rag.embeddings.window_pooled import WindowPooledEmbedding, window_spans
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


def count_signs(text: str) -> int:
    return len("".join(text.split()))


def test_a_word_longer_than_a_window_is_cut() -> None:
    text = "今天 " + "狐狸睡在老树根下的洞穴里。" * 150
    spans = window_spans(text, count_tokens=count_signs, max_tokens=500)
    assert [end - start for start, end in spans] == [2, 500, 500, 500, 450]
    model = WindowPooledEmbedding(DeterministicEmbedding(), window=EmbeddingWindow(500, count_signs))
    assert [len(window) for window in model.windows(text)] == [2, 500, 500, 500, 450]
    assert np.isclose(np.linalg.norm(model.get_text_embedding(text)), 1)


def test_words_go_on_behind_the_end_of_a_long_one() -> None:
    text = "one sevenletters two"
    assert [text[start:end] for start, end in window_spans(text, count_tokens=count_signs, max_tokens=8)] == ["one", "sevenlet", "ters two"]


def test_an_accent_stays_on_its_letter() -> None:
    text = "e\u0301" * 10
    windows = [text[start:end] for start, end in window_spans(text, count_tokens=len, max_tokens=5)]
    assert "".join(windows) == text
    assert all(len(window) <= 5 and not unicodedata.combining(window[0]) for window in windows)


@pytest.mark.parametrize("text", [" " * 9, "\n\t " * 5])
def test_white_text_is_one_window(text: str) -> None:
    model = WindowPooledEmbedding(DeterministicEmbedding(), window=EmbeddingWindow(3, len))
    assert model.windows(text) == [text]
    assert model.get_text_embedding(text) == DeterministicEmbedding().get_text_embedding(text)


TEXTS = st.lists(st.sampled_from(["a", "fox", "狐狸睡在洞里", "e\u0301" * 4, "x" * 50, " ", "\n\n", " " * 40, "\U0001f468\u200d\U0001f469"]), max_size=40).map(
    "".join
)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, size=st.integers(1, 30), count=st.sampled_from([len, count_signs, lambda text: (len(text) + 1) // 2]))
def test_windows_fit_and_hold_everything(text: str, size: int, count) -> None:
    spans = window_spans(text, count_tokens=count, max_tokens=size)
    covered = bytearray(len(text))
    for start, end in spans:
        assert end == start + 1 or count(text[start:end]) <= size
        assert not any(covered[start:end])
        covered[start:end] = b"\1" * (end - start)
    assert all(covered[place] or character.isspace() for place, character in enumerate(text))
    assert spans == sorted(spans)


@pytest.mark.parametrize("text", ["狐狸睡在洞里" * 800_000, "word " * 300_000, "a" + " " * 5_000_000 + "b"], ids=["one word", "words", "white space"])
def test_long_texts_take_seconds(text: str) -> None:
    began = time.process_time()
    spans = window_spans(text, count_tokens=count_signs, max_tokens=500)
    assert time.process_time() - began < 20
    assert sum(count_signs(text[start:end]) for start, end in spans) == count_signs(text)


async def test_counting_and_pooling_leave_the_event_loop_free() -> None:
    threads: set[int] = set()

    def count(text: str) -> int:
        threads.add(threading.get_ident())
        return len(text.split())

    model = WindowPooledEmbedding(DeterministicEmbedding(), window=EmbeddingWindow(3, count))
    await model.aget_text_embedding("red fox sleeps now")
    assert threads
    assert threading.get_ident() not in threads


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
