"""Vectors of names and facts: embedded once, kept beside the index, used until the text changes."""

import base64
from collections.abc import Iterable, Sequence
from hashlib import sha256

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.storage.kvstore.types import BaseKVStore
from numpy.typing import NDArray

from llama_index_advanced_rag._concurrency import CopyableLock, with_progress
from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.embeddings.requests import checked, embed

_AT_ONCE = 256
_KEPT_QUERIES = 64
_KEPT_MATRICES = 3
_SMALL = 1000  # so few are stacked in no time, and must not drive out all names
_STORED = np.dtype("<f2")
Matrix = NDArray[np.float32]


class TextVectors:
    """Unit vectors of short texts; each text is embedded once. No LLM call.

    What was embedded stays in memory, and in `store` if there is one. Vectors are kept in half precision, fresh ones too, so that answers do
    not depend on what was kept.

    Args:
        embed_model: embeds the texts.
        store: keeps the vectors, unless it is read-only; None = this object alone does.
        show_progress: draw a progress bar while embedding.
    """

    def __init__(self, embed_model: BaseEmbedding, store: BaseKVStore | None = None, *, show_progress: bool = False) -> None:
        self._embed_model = embed_model
        self._store = store
        self._writes = store is not None and not getattr(store, "read_only", False)
        self._show_progress = show_progress
        self._collection = f"vectors of {sha256(embedding_identity(embed_model).encode()).hexdigest()[:16]}"
        self._lock = CopyableLock()
        self._known: dict[str, NDArray[np.float16]] | None = None
        self._queries: dict[str, list[float]] = {}
        self._of_queries = CopyableLock()  # of its own, so that a question does not wait until all names are embedded
        self._matrices: list[tuple[Sequence[str], Matrix]] = []

    @property
    def embed_model(self) -> BaseEmbedding:
        """What embeds texts and questions."""
        return self._embed_model

    def query_vector(self, query: str) -> list[float]:
        """The embedding of a question; the last ones are kept, as several parts of a search ask for the same."""
        with self._of_queries:
            known = self._queries.get(query)
        if known is None:
            known = self._embed_model.get_query_embedding(query)  # without the lock: other questions are embedded meanwhile
            with self._of_queries:
                self._queries[query] = known
                while len(self._queries) > _KEPT_QUERIES:
                    del self._queries[next(iter(self._queries))]
        return known

    def similarities(self, texts: Sequence[str], query_vector: Sequence[float]) -> NDArray[np.float64]:
        """(n,) cosines of texts and a question, -1 to 1; texts not yet known are embedded now."""
        query = np.asarray(query_vector, dtype=np.float32)
        length = float(np.linalg.norm(query))
        return (self.matrix(texts) @ (query / length if length else query)).astype(np.float64)

    def matrix(self, texts: Sequence[str]) -> Matrix:
        """(n, dimension) unit vectors of texts, in their order; those of a long list are kept for when it is asked for again, unchanged.

        Raises:
            ConfigurationError: the model gave unusable vectors.
            Exception: that of the model, as it was.
        """
        with self._lock:
            for listed, matrix in self._matrices:
                if listed is texts and len(listed) == len(matrix):
                    return matrix
            self._embed_missing(texts)
            known = self._kept()
            stacked = np.array([known[text] for text in texts], dtype=np.float32)
            lengths = np.linalg.norm(stacked, axis=1, keepdims=True) if len(texts) else np.ones((0, 1))
            matrix = (stacked / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
            if len(texts) > _SMALL:
                self._matrices = [(texts, matrix), *self._matrices[: _KEPT_MATRICES - 1]]
            return matrix

    def _kept(self) -> dict[str, NDArray[np.float16]]:
        if self._known is None:
            stored = {} if self._store is None else self._store.get_all(self._collection)
            self._known = {text: np.frombuffer(base64.b64decode(value["vector"]), dtype=_STORED) for text, value in stored.items()}
        return self._known

    def _embed_missing(self, texts: Iterable[str]) -> None:
        known = self._kept()
        missing = sorted({text for text in texts if text not in known}, key=lambda text: (len(text), text))
        starts = range(0, len(missing), _AT_ONCE)
        for start in with_progress(starts, total=len(starts), description="Embedding names", show_progress=self._show_progress):
            batch = missing[start : start + _AT_ONCE]
            answer = checked(embed(self._embed_model, batch), len(batch))
            if isinstance(answer, Exception):
                raise answer
            fresh = {text: _unit(np.asarray(vector, dtype=np.float32)).astype(_STORED) for text, vector in zip(batch, answer, strict=True)}
            known.update(fresh)
            if self._store is not None and self._writes:
                pairs = [(text, {"vector": base64.b64encode(vector.tobytes()).decode("ascii")}) for text, vector in fresh.items()]
                self._store.put_all(pairs, collection=self._collection)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
