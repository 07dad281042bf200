"""Vectors of texts that come back with every question: each is embedded once."""

import asyncio
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding

from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.embeddings.async_calls import aembed_texts
from llama_index_advanced_rag.embeddings.requests import checked

Vector = npt.NDArray[np.float32]
_MOST_TEXTS = 20_000  # tools that change from question to question must not fill the memory


class EmbeddedTexts:
    """Embeds texts in batches, each once, and keeps their vectors, 20,000 at most; then it begins anew.

    Calls at the same time wait for the one that embeds: threads for a thread, tasks for a task of their event loop. A thread and a task
    do not wait for each other (a sync call inside the loop would wait for ever), and may embed the same text once each.

    Args:
        embed_model: the model.
    """

    def __init__(self, embed_model: BaseEmbedding) -> None:
        self._embed_model = embed_model
        self._kept: dict[str, Vector] = {}
        self._lock = CopyableLock()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        """A copy takes turns of its own."""
        return {**self.__dict__, "_turns": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _turns=WeakKeyDictionary())

    def vectors(self, texts: Sequence[str]) -> Vector:
        """The vectors of the texts, shape (n, d).

        Raises:
            ConfigurationError: the model gave no usable vectors.
            Exception: what the model raised.
        """
        if (known := self._known(texts)) is not None:
            return known
        with self._lock:
            if missing := self._missing(texts):
                return self._keep(texts, missing, self._embed_model.get_text_embedding_batch(missing))
            return self._keep(texts, [], [])

    async def avectors(self, texts: Sequence[str]) -> Vector:
        """The async twin of `vectors`."""
        if (known := self._known(texts)) is not None:
            return known
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            if missing := self._missing(texts):
                return self._keep(texts, missing, await aembed_texts(self._embed_model, missing))
            return self._keep(texts, [], [])

    def _known(self, texts: Sequence[str]) -> Vector | None:
        kept = self._kept
        return np.stack([kept[text] for text in texts]) if all(text in kept for text in texts) else None

    def _missing(self, texts: Sequence[str]) -> list[str]:
        wanted = list(dict.fromkeys(texts))
        missing = [text for text in wanted if text not in self._kept]
        return wanted if len(self._kept) + len(missing) > _MOST_TEXTS else missing

    def _keep(self, texts: Sequence[str], embedded: Sequence[str], vectors: Sequence[Sequence[float]]) -> Vector:
        answer = checked([np.asarray(vector, dtype=np.float32) for vector in vectors], len(embedded))
        if isinstance(answer, Exception):
            raise answer
        fresh = dict(zip(embedded, answer, strict=True))
        # What is kept is replaced, never changed, so that reading needs no lock.
        kept = fresh if len(self._kept) + len(fresh) > _MOST_TEXTS else {**self._kept, **fresh}
        self._kept = kept
        return np.stack([kept[text] for text in texts])
