"""Texts longer than an embedding model reads: cut into windows, and the mean of their vectors."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding

from llama_index_advanced_rag.embeddings.async_calls import aembed_query, aembed_texts
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, embedding_window
from llama_index_advanced_rag.errors import ConfigurationError

_WORD = re.compile(r"\S+\s*")


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
        """The parts of a text that are embedded; the text itself when it fits."""
        if not self._window.overflows(text):
            return [text]
        size = self._window.max_tokens or 1
        parts: list[str] = []
        tokens = size + 1
        for word in _WORD.findall(text):
            counted = self._window.count_tokens(word)
            if tokens + counted > size:
                parts.append("")
                tokens = 0
            parts[-1] += word
            tokens += counted
        return [part.strip() for part in parts]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._model.get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        parts = [self.windows(text) for text in texts]
        return self._pooled(parts, self._model.get_text_embedding_batch([window for windows in parts for window in windows]))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await aembed_query(self._model, [query])

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        parts = [self.windows(text) for text in texts]
        return self._pooled(parts, await aembed_texts(self._model, [window for windows in parts for window in windows]))

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
