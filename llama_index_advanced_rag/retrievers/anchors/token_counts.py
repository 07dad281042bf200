"""Tokens of texts that are counted again and again: the sections and passages that questions find."""

from collections.abc import Hashable
from functools import lru_cache
from typing import cast

from llama_index.core.utils import get_tokenizer  # pyright: ignore[reportUnknownVariableType]

from llama_index_advanced_rag.embeddings.window import default_window

_KEPT = 4096
_KEPT_CHARS = 10_000


def count_tokens(text: str) -> int:
    """Tokens of a text in LlamaIndex's global tokenizer, of the moment.

    Example:
        >>> count_tokens("Fees are due."), count_tokens("Fees are due.")
        (5, 5)
    """
    tokenizer = cast("object", get_tokenizer())
    if len(text) > _KEPT_CHARS or not isinstance(tokenizer, Hashable):
        return default_window().count_tokens(text)
    return _counted(tokenizer, text)


@lru_cache(maxsize=_KEPT)
def _counted(tokenizer: Hashable, text: str) -> int:
    return default_window().count_tokens(text)
