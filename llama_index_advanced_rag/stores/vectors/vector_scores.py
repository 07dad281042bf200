"""How alike vectors are: a float32 product over all rows finds candidates, float64 scores them."""

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.rows.positions import Positions

Matrix = NDArray[Any]  # float32 or float16, (n, dimension)
Scores = NDArray[np.float64]
Values = NDArray[np.float32]

BLOCK = 8192  # rows; 12 MB of float32 at 384 dimensions
_CACHED = 1024 * 384  # numbers copied at a time: they stay in the cache, and BLAS starts no threads for so few
_EXACT_BLOCK = 1024
_WIDTH = 128


class VectorMetric(str, Enum):
    """How alike two vectors are; higher is more alike.

    `cosine`: in [-1, 1]. `dot`: the inner product, unbounded. `euclidean`: 1 / (1 + distance), in (0, 1], 1 for equal vectors.
    """

    COSINE = "cosine"
    DOT = "dot"
    EUCLIDEAN = "euclidean"


class Bounds(NamedTuple):
    """Between which values the similarity of each row lies; both (n,)."""

    low: NDArray[Any]
    high: NDArray[Any]


def exact_similarities(metric: VectorMetric, vectors: Matrix, query: Scores, positions: Positions) -> Scores:
    """Similarity of the rows at these positions to a vector, summed in float64: the same wherever a row stands.

    Example:
        >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
        >>> exact_similarities(VectorMetric.DOT, rows, np.array([3.0, 4.0]), np.array([1])).tolist()
        [4.0]
    """
    scores = np.empty(len(positions))
    for start in range(0, len(positions), _EXACT_BLOCK):
        block = vectors[positions[start : start + _EXACT_BLOCK]].astype(np.float64)
        if metric is VectorMetric.EUCLIDEAN:
            scores[start : start + _EXACT_BLOCK] = 1.0 / (1.0 + np.sqrt(((block - query) ** 2).sum(axis=1)))
        else:
            scores[start : start + _EXACT_BLOCK] = (block * query).sum(axis=1)
    return scores.clip(-1.0, 1.0) if metric is VectorMetric.COSINE else scores


def products(vectors: Matrix, query: Scores, positions: Positions | None = None) -> Values:
    """Float32 inner product of each row (of those at the positions) and a vector; (n,)."""
    with np.errstate(all="ignore"):  # some BLAS kernels raise flags for lanes that hold no number of ours; all of ours are finite
        return _products(vectors, query.astype(np.float32), positions)


def _products(vectors: Matrix, single: Values, positions: Positions | None) -> Values:
    if positions is None and vectors.dtype == np.float32:
        return vectors @ single
    values = np.empty(len(vectors) if positions is None else len(positions), dtype=np.float32)
    start = 0
    for block in row_blocks(vectors, positions, max(1, _CACHED // max(1, vectors.shape[1]))):
        np.matmul(block, single, out=values[start : start + len(block)])
        start += len(block)
    return values


def row_blocks(vectors: Matrix, positions: Positions | None, size: int = BLOCK) -> Iterator[Values]:
    """The rows (those at the positions) as float32, some at a time; a block is valid until the next one is asked for."""
    count, is_single = len(vectors) if positions is None else len(positions), vectors.dtype == np.float32
    copies = not is_single or positions is not None
    buffer = np.empty((min(size, count) if copies else 0, vectors.shape[1]), dtype=np.float32)
    for start in range(0, count, size):
        if positions is None:
            block = vectors[start : start + size]
        elif is_single:
            block = np.take(vectors, positions[start : start + size], axis=0, out=buffer[: min(size, count - start)], mode="clip")
        else:
            block = vectors[positions[start : start + size]]
        yield block if is_single else _from_half(block, buffer[: len(block)])


def _from_half(block: Matrix, out: Values) -> Values:
    """Finite float16 as float32, three times as fast as numpy's conversion: the bits are put in their places, and the exponent made right."""
    bits = out.view(np.int32)
    np.left_shift(block.view(np.int16), 13, out=bits, dtype=np.int32, casting="unsafe")
    np.bitwise_and(bits, np.int32(-0x70002000), out=bits)
    return np.multiply(out, np.float32(2.0**112), out=out)


def rounding(dimension: int) -> float:
    """Most a float32 inner product is off, relative to the lengths of the two vectors; BLAS sums in at least 16 lanes."""
    return float(np.finfo(np.float32).eps) * (32 + dimension / 8)


def lower_floor(values: NDArray[Any], top_k: int) -> float:
    """A value that at least `top_k` of the values reach, most often little below the `top_k`-th best; -inf when there are no more.

    The `top_k`-th best of the maxima of blocks is such a value, and costs one pass without a copy.

    Example:
        >>> lower_floor(np.array([3.0, 1.0, 2.0]), 2)
        2.0
    """
    if len(values) <= top_k:
        return -np.inf
    width = min(_WIDTH, len(values) // (4 * top_k))
    if width >= 8:
        values = values[: len(values) // width * width].reshape(-1, width).max(axis=1)
    return float(np.partition(values, -top_k)[-top_k])
