"""Vectors as they are given, checked and made ready to be stored or searched."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError
from llama_index_advanced_rag.stores.vectors.vector_scores import BLOCK, Scores, VectorMetric


def checked_vectors(
    vectors: Sequence[Sequence[float]] | NDArray[Any],
    names: Sequence[str],
    metric: VectorMetric,
    dimension: int | None = None,
    *,
    dtype: DTypeLike = np.float32,
) -> NDArray[Any]:
    """The vectors as a new (m, dimension) array of the type, of length 1 under `cosine`.

    Args:
        vectors: m vectors; an array of shape (m, dimension) is not taken apart.
        names: node ids of the m vectors, for the messages.
        metric: how the vectors will be compared.
        dimension: their length; None = that of the first of them.
        dtype: float32 or float16.

    Raises:
        EmbeddingMismatchError: one has another length.
        ConfigurationError: one is not finite in float32 (in float16 when it is stored so), or zero under `cosine`; the message names the node.

    Example:
        >>> checked_vectors([[3.0, 4.0]], ["a"], VectorMetric.COSINE).round(3).tolist()
        [[0.6000000238418579, 0.800000011920929]]
    """
    if len(names) != len(vectors):
        raise ConfigurationError(f"{len(vectors)} vectors were given for {len(names)} nodes. Give one vector for each node.")
    expected = dimension if dimension is not None else len(vectors[0]) if len(vectors) else 0
    if not (isinstance(vectors, np.ndarray) and vectors.ndim == 2 and vectors.shape[1] == expected):
        for name, vector in zip(names, vectors, strict=True):
            if len(vector) != expected:
                raise dimension_mismatch(f"The embedding of node {name!r}", len(vector), expected)
    ready = np.empty((len(vectors), expected), dtype=np.dtype(dtype).newbyteorder("<"))
    for start in range(0, len(vectors), BLOCK):
        part = np.asarray(vectors[start : start + BLOCK], dtype=np.float64).reshape(-1, expected)
        ready[start : start + BLOCK] = _ready(part, names[start : start + BLOCK], metric, ready.dtype)
    return ready


def _ready(part: Scores, names: Sequence[str], metric: VectorMetric, dtype: np.dtype[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        single = part.astype(np.float32 if metric is VectorMetric.COSINE else dtype)
    finite = np.isfinite(single).all(axis=1)
    if not finite.all():
        name = names[int(np.argmin(finite))]
        limit = "" if single.dtype == np.float32 else " (or a number above 65504, too large for float16)"
        raise ConfigurationError(f"The embedding of node {name!r} holds NaN or infinity{limit}. Embed the node again.")
    if metric is not VectorMetric.COSINE:
        return single
    norms: Scores = np.linalg.norm(part, axis=1)
    if not norms.all():
        raise ConfigurationError(f"The embedding of node {names[int(np.argmin(norms))]!r} is zero, which has no cosine. Leave the node out, or use 'dot'.")
    return part / norms[:, None]


def checked_query(vector: Sequence[float] | NDArray[Any], metric: VectorMetric, dimension: int | None) -> Scores:
    """A query vector as a (dimension,) float64 array, of length 1 under `cosine`; `dimension=None` allows any length.

    Raises:
        EmbeddingMismatchError: its length is not that of the rows.
        ConfigurationError: it is not finite, or zero under `cosine`.
    """
    array: Scores = np.asarray(vector, dtype=np.float64)
    if dimension is not None and array.shape != (dimension,):
        raise dimension_mismatch("The query vector", len(vector), dimension)
    if not np.isfinite(array).all():
        raise ConfigurationError("The query vector holds NaN or infinity. Embed the question again.")
    if metric is not VectorMetric.COSINE:
        return array
    if not array.any():
        raise ConfigurationError("The query vector is zero, which has no cosine. Ask a question that the model can embed, or use the metric 'dot'.")
    return array / np.linalg.norm(array)


def dimension_mismatch(what: str, found: int, expected: int) -> EmbeddingMismatchError:
    """The error for a vector of another length than those it is to go with."""
    return EmbeddingMismatchError(
        f"{what} has {found} dimensions, and the vectors of this store have {expected}. Use the embedding model the store was filled with, or a new store."
    )
