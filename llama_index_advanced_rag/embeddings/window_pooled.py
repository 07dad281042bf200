"""Texts longer than an embedding model reads: cut into windows, and the mean of their vectors."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.embeddings.async_calls import aembed_query, aembed_texts
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, embedding_window
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.text.lines import Span
from llama_index_advanced_rag.text.sentences import safe_cut

_WORD = re.compile(r"\S+")
_CHARS_PER_TOKEN = 16


def window_spans(text: str, *, count_tokens: Callable[[str], int], max_tokens: int) -> list[Span]:
    """Windows of whole words as (start, end) pairs; a word longer than a window, as in Chinese, is cut between two characters.

    Every visible character is in one window, and no window counts more than `max_tokens` (a single character may) where the tokenizer does not
    join words across white space. Each word is counted once or twice, a long one about a dozen times: time is linear in the text.

    Args:
        text: any text; white text has no window.
        count_tokens: tokens of a string.
        max_tokens: at least 1.

    Example:
        >>> spans = window_spans("I saw 狐狸睡在洞里", count_tokens=lambda text: sum(len(word) if word > "z" else 1 for word in text.split()), max_tokens=4)
        >>> ["I saw 狐狸睡在洞里"[start:end] for start, end in spans]
        ['I saw', '狐狸睡在', '洞里']
    """
    windows: list[Span] = []
    total = last = 0
    for word in _WORD.finditer(text):
        # With the white space in front, which may count too; a stretch too long for any window is not counted.
        tokens = count_tokens(text[last : word.end()]) if word.end() - last <= _CHARS_PER_TOKEN * max_tokens else max_tokens + 1
        if windows and total + tokens <= max_tokens:
            windows[-1], total = (windows[-1][0], word.end()), total + tokens
        else:
            windows += _cut_word(text, word.span(), count_tokens, max_tokens)
            total = count_tokens(text[slice(*windows[-1])])
        last = word.end()
    return windows


def _cut_word(text: str, span: Span, count_tokens: Callable[[str], int], max_tokens: int) -> Iterator[Span]:
    """A word, or parts of it that fit."""
    start, end = span
    while start < end:
        cut = _longest_prefix(text, start, end, count_tokens, max_tokens)
        yield start, cut
        start = cut


def _longest_prefix(text: str, start: int, end: int, count_tokens: Callable[[str], int], max_tokens: int) -> int:
    """The end of a longest prefix that fits, sought from a short one on: by doubling, then by halves."""

    def fits(place: int) -> bool:
        return count_tokens(text[start:place]) <= max_tokens

    low, high, widest = start + 1, min(end, start + max_tokens), start + _CHARS_PER_TOKEN * max_tokens
    while high < min(end, widest) and fits(high):
        low, high = high, min(end, 2 * high - start)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    cut = safe_cut(text, low, lowest=start + 1)
    return cut if cut == low or fits(cut) else low


class WindowPooledEmbedding(BaseEmbedding):
    """An embedding model that reads texts of any length: in windows that the model reads in full, of which it gives the mean.

    Each window counts by its tokens, and the mean has length 1. A text that fits the model's window gets exactly the model's own vector.
    A mean blurs what each part says: chunks that fit the window are better where they can be had; this is for chunk sizes beyond it.
    Questions go to the model as they are.

    Args:
        embed_model: the model.
        window: what it reads; None asks the model.

    Raises:
        ConfigurationError: the model does not say how much it reads.

    Example:
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> window = EmbeddingWindow(max_tokens=2, count_tokens=lambda text: len(text.split()))
        >>> model = WindowPooledEmbedding(DeterministicEmbedding(), window=window)
        >>> model.windows("red fox sleeps")
        ['red fox', 'sleeps']
    """

    _model: BaseEmbedding = PrivateAttr()
    _window: EmbeddingWindow = PrivateAttr()

    def __init__(self, embed_model: BaseEmbedding, *, window: EmbeddingWindow | None = None, **kwargs: Any) -> None:
        super().__init__(model_name=f"pooled:{embed_model.model_name}", embed_batch_size=embed_model.embed_batch_size, **kwargs)
        self._model = embed_model
        self._window = window or embedding_window(embed_model)
        if self._window.max_tokens is None:
            raise ConfigurationError(
                f"{embed_model.model_name!r} does not say how many tokens it reads, so its texts cannot be cut into windows. Pass window=EmbeddingWindow(...)."
            )

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "WindowPooledEmbedding"

    @property
    def embedding_window(self) -> EmbeddingWindow:
        """Texts of any length, counted in the tokenizer of the model inside."""
        return EmbeddingWindow(None, self._window.count_tokens)

    def windows(self, text: str) -> list[str]:
        """The parts of a text that are embedded; the text itself when it fits, or is nothing but white space."""
        if not self._window.overflows(text):
            return [text]
        spans = window_spans(text, count_tokens=self._window.count_tokens, max_tokens=self._window.max_tokens or 1)
        return [text[start:end] for start, end in spans] or [text]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._model.get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        parts = self._windows_of(texts)
        return self._pooled(parts, self._model.get_text_embedding_batch([window for windows in parts for window in windows]))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await aembed_query(self._model, [query])

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        parts = await in_thread(self._windows_of, texts)
        vectors = await aembed_texts(self._model, [window for windows in parts for window in windows])
        return await in_thread(self._pooled, parts, vectors)

    def _windows_of(self, texts: Sequence[str]) -> list[list[str]]:
        return [self.windows(text) for text in texts]

    def _pooled(self, parts: Sequence[Sequence[str]], vectors: Sequence[Sequence[float]]) -> list[list[float]]:
        ends = list(accumulate(map(len, parts)))
        return [self._mean(windows, vectors[end - len(windows) : end]) for windows, end in zip(parts, ends, strict=True)]

    def _mean(self, windows: Sequence[str], vectors: Sequence[Sequence[float]]) -> list[float]:
        if len(windows) == 1:
            return list(vectors[0])
        array = np.array(vectors)
        units = array / np.maximum(np.linalg.norm(array, axis=1, keepdims=True), np.finfo(float).tiny)
        mean = np.average(units, axis=0, weights=[max(1, self._window.count_tokens(window)) for window in windows])
        return (mean / max(float(np.linalg.norm(mean)), np.finfo(float).tiny)).tolist()
