"""What callers of a vector store may ask for, checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llama_index.core.vector_stores.types import VectorStoreQueryMode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric

DTYPES = ("float32", "float16")
MODES = (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.MMR)


def checked_metric(metric: VectorMetric | str) -> VectorMetric:
    """The metric of that name."""
    try:
        return VectorMetric(metric)
    except ValueError as error:
        raise ConfigurationError(f"metric={metric!r} is not known. Choose one of {[one.value for one in VectorMetric]}.") from error


def checked_dtype(dtype: str) -> str:
    """The name of a type that vectors can be stored in."""
    if dtype not in DTYPES:
        raise ConfigurationError(f"dtype={dtype!r} is not known. Choose one of {list(DTYPES)}.")
    return dtype


def check_same(asked_and_held: Mapping[str, tuple[Any, Any]], folder: Path | None) -> None:
    """Refuse settings other than those a stored store was made with."""
    for name, (asked, held) in asked_and_held.items():
        if asked != held:
            raise ConfigurationError(f"The store in {str(folder)!r} was made with {name}={_shown(held)!r}, not {_shown(asked)!r}. Leave {name} out.")


def _shown(value: Any) -> Any:
    return value.value if isinstance(value, VectorMetric) else value


def checked_top_k(top_k: int) -> int:
    """The number itself, at least 1."""
    if top_k < 1:
        raise ConfigurationError(f"similarity_top_k={top_k!r} asks for nothing. Give a number of at least 1.")
    return top_k


def checked_threshold(threshold: float | None) -> float:
    """Weight of relevance in MMR: 0.5 when not given."""
    if threshold is None:
        return 0.5
    if not 0.0 <= threshold <= 1.0:
        raise ConfigurationError(f"mmr_threshold={threshold!r} is out of range. Give a number from 0 (diverse) to 1 (relevant).")
    return float(threshold)


def check_mode(mode: VectorStoreQueryMode) -> None:
    """Refuse, with the reason, the query modes that a store of vectors does not have."""
    if mode in MODES:
        return
    if mode in (VectorStoreQueryMode.SVM, VectorStoreQueryMode.LOGISTIC_REGRESSION, VectorStoreQueryMode.LINEAR_REGRESSION):
        why = "it fits a classifier for each query, which this store does not do"
    else:
        why = "it searches text, and this store holds vectors; HybridRetriever.from_index(index) adds the lexical half"
    raise ConfigurationError(f"The query mode {mode.value!r} is not available: {why}. Modes: {[one.value for one in MODES]}.")
