"""A float32 matrix that grows, and exact top-k search over it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError

Matrix = NDArray[np.float32]
Rows = NDArray[np.intp]
Scores = NDArray[np.float64]

_COARSE_ERROR = 1e-5  # of a float32 product, relative to the lengths of the two vectors
_BLOCK = 8192


class VectorMetric(str, Enum):
    """How alike two vectors are; higher is more alike.

    `cosine`: in [-1, 1]. `dot`: the inner product, unbounded. `euclidean`: 1 / (1 + distance), in (0, 1], 1 for equal vectors.
    """

    COSINE = "cosine"
    DOT = "dot"
    EUCLIDEAN = "euclidean"


@dataclass(frozen=True)
class MatrixView:
    """The matrix at one moment; later writes do not show in it, so searching needs no lock.

    Attributes:
        metric: how vectors are compared.
        vectors: (n, dimension) float32, of length 1 under `cosine`.
        norms: (n,) lengths of the rows as float64.
        dead: rows that are deleted, ascending.
    """

    metric: VectorMetric
    vectors: Matrix
    norms: Scores
    dead: Rows

    def checked_query(self, vector: Sequence[float]) -> Scores:
        """A query vector as a (dimension,) float64 array, of length 1 under `cosine`.

        Raises:
            EmbeddingMismatchError: its length is not that of the rows.
            ConfigurationError: it is not finite, or zero under `cosine`.
        """
        array: Scores = np.asarray(vector, dtype=np.float64)
        if len(self.vectors) and array.shape != self.vectors.shape[1:]:
            raise _mismatch("The query vector", len(vector), self.vectors.shape[1])
        if not np.isfinite(array).all():
            raise ConfigurationError("The query vector holds NaN or infinity. Embed the question again.")
        if self.metric is VectorMetric.COSINE and not array.any():
            raise ConfigurationError("The query vector is zero, which has no cosine. Ask a question that the model can embed, or use the metric 'dot'.")
        return array / np.linalg.norm(array) if self.metric is VectorMetric.COSINE else array

    def live_rows(self, rows: Sequence[int] | Rows | None = None) -> Rows:
        """The rows asked for (all when None), ascending, once each and without deleted ones."""
        if rows is None:
            return np.delete(np.arange(len(self.vectors)), self.dead)
        return np.setdiff1d(np.asarray(rows, dtype=np.intp), self.dead)

    def top(self, query: Scores, *, top_k: int, keys: Sequence[str], rows: Sequence[int] | Rows | None = None) -> tuple[Rows, Scores]:
        """The best rows and their scores, best first; ties by `keys[row]`.

        A float32 product finds the candidates, a float64 one scores them: the scores of a row do not depend on where it
        stands in the matrix.

        Args:
            query: (dimension,) float64, already checked by `checked_query`.
            top_k: most rows returned.
            keys: tie-break of each row.
            rows: only these rows; None is all.
        """
        if not len(self.vectors):
            return np.empty(0, dtype=np.intp), np.empty(0)
        chosen, coarse = self._coarse(query, rows)
        live = len(coarse) - (len(self.dead) if chosen is None else 0)
        floor = np.partition(coarse, len(coarse) - top_k)[len(coarse) - top_k] - self._error(query) if live > top_k else np.finfo(np.float32).min
        places = np.flatnonzero(coarse >= floor)
        found = places if chosen is None else chosen[places]
        scores = self.similarities(query, found)
        order = sorted(range(len(found)), key=lambda place: (-scores[place], keys[int(found[place])]))[:top_k]
        return found[order], scores[order]

    def similarities(self, query: Scores, rows: Rows) -> Scores:
        """Similarity of each row to a vector, summed in float64."""
        scores = np.empty(len(rows))
        for start in range(0, len(rows), _BLOCK):
            block = self.vectors[rows[start : start + _BLOCK]].astype(np.float64)
            if self.metric is VectorMetric.EUCLIDEAN:
                scores[start : start + _BLOCK] = 1.0 / (1.0 + np.sqrt(((block - query) ** 2).sum(axis=1)))
            else:
                scores[start : start + _BLOCK] = (block * query).sum(axis=1)
        return scores.clip(-1.0, 1.0) if self.metric is VectorMetric.COSINE else scores

    def _coarse(self, query: Scores, rows: Sequence[int] | Rows | None) -> tuple[Rows | None, NDArray[Any]]:
        """The rows (None when all) and for each a value in the order of the similarity; -inf when deleted."""
        single = query.astype(np.float32)
        if rows is None:
            values = self._in_order(self.vectors @ single, self.norms)
            values[self.dead] = -np.inf
            return None, values
        chosen = self.live_rows(rows)
        few = len(chosen) * 4 < len(self.vectors)
        product = self.vectors[chosen] @ single if few else (self.vectors @ single)[chosen]
        return chosen, self._in_order(product, self.norms[chosen])

    def _in_order(self, product: Matrix, norms: Scores) -> NDArray[Any]:
        return 2.0 * product - norms**2 if self.metric is VectorMetric.EUCLIDEAN else product

    def _error(self, query: Scores) -> float:
        length, longest = float(np.linalg.norm(query)), float(self.norms.max(initial=0.0))
        return 2 * _COARSE_ERROR * (length * longest if self.metric is not VectorMetric.EUCLIDEAN else (length + longest) ** 2)

    def diverse(self, query: Scores, *, top_k: int, keys: Sequence[str], relevance: float, rows: Sequence[int] | Rows | None = None) -> tuple[Rows, Scores]:
        """Rows by maximal marginal relevance in the order of picking, with their marginal scores (of which one may rise); ties by `keys[row]`.

        Each pick has the highest `relevance * sim(query, row) - (1 - relevance) * max(sim(picked, row))`.

        Source: Carbonell and Goldstein, SIGIR 1998. LlamaIndex's own version (core 0.14) compares with the last pick only.
        """
        chosen = self.live_rows(rows)
        chosen = np.array(sorted(chosen.tolist(), key=keys.__getitem__), dtype=np.intp)
        wanted = relevance * self.similarities(query, chosen)
        overlap = np.full(len(chosen), -np.inf)
        picked: list[int] = []
        scores: list[float] = []
        marginal = wanted.copy()
        for _ in range(min(top_k, len(chosen))):
            best = int(np.argmax(marginal))
            picked.append(best)
            scores.append(float(marginal[best]))
            overlap = np.maximum(overlap, self.similarities(self.vectors[chosen[best]].astype(np.float64), chosen))
            marginal = wanted - (1.0 - relevance) * overlap
            marginal[picked] = -np.inf
        return chosen[picked], np.array(scores)


class VectorMatrix:
    """Rows of float32 that are appended and deleted; not thread-safe for writers, its views are for readers.

    Args:
        metric: how vectors are compared.

    Example:
        >>> matrix = VectorMatrix(VectorMetric.COSINE)
        >>> matrix.append(matrix.checked([[1.0, 0.0], [3.0, 4.0]], names=["a", "b"]))
        range(0, 2)
        >>> view = matrix.view()
        >>> rows, scores = view.top(view.checked_query([0.0, 2.0]), top_k=1, keys=["a", "b"])
        >>> rows.tolist(), [round(score, 3) for score in scores.tolist()]
        ([1], [0.8])
    """

    def __init__(self, metric: VectorMetric) -> None:
        self.metric = metric
        self._vectors: Matrix = np.empty((0, 0), dtype=np.float32)
        self._norms: Scores = np.empty(0)
        self._count = 0
        self._dead: Rows = np.empty(0, dtype=np.intp)

    def __len__(self) -> int:
        return self._count - len(self._dead)

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None while there are none."""
        return self._vectors.shape[1] if self._count else None

    def view(self) -> MatrixView:
        """What is there now."""
        return MatrixView(self.metric, self._vectors[: self._count], self._norms[: self._count], self._dead)

    def checked(self, vectors: Sequence[Sequence[float]], *, names: Sequence[str]) -> Scores:
        """The vectors as a (m, dimension) float64 array, of length 1 under `cosine`.

        Raises:
            EmbeddingMismatchError: one has another length than the rows here, or than the first of them.
            ConfigurationError: one is not finite in float32, or zero under `cosine`; the message names it.
        """
        expected = self.dimension if self.dimension is not None else len(vectors[0]) if len(vectors) else 0
        for name, vector in zip(names, vectors, strict=True):
            if len(vector) != expected:
                raise _mismatch(f"The embedding of node {name!r}", len(vector), expected)
        array: Scores = np.asarray(vectors, dtype=np.float64).reshape(len(vectors), expected)
        with np.errstate(over="ignore"):
            finite = np.asarray(np.isfinite(array.astype(np.float32)).all(axis=1))
        if not finite.all():
            raise ConfigurationError(f"The embedding of node {names[int(np.argmin(finite))]!r} holds NaN or infinity. Embed the node again.")
        return self._scaled(array, names)

    def _scaled(self, array: Scores, names: Sequence[str]) -> Scores:
        if self.metric is not VectorMetric.COSINE:
            return array
        norms: Scores = np.linalg.norm(array, axis=1)
        if not norms.all():
            raise ConfigurationError(f"The embedding of node {names[int(np.argmin(norms))]!r} is zero, which has no cosine. Leave the node out, or use 'dot'.")
        return array / norms[:, None]

    def append(self, vectors: Scores | Matrix) -> range:
        """Add vectors that `checked` has returned; the rows they got."""
        if not self._count:
            self._vectors = np.empty((0, vectors.shape[1]), dtype=np.float32)
        end = self._count + len(vectors)
        if end > len(self._vectors):
            self._grow(max(end, 2 * len(self._vectors)))
        self._vectors[self._count : end] = vectors
        self._norms[self._count : end] = np.linalg.norm(self._vectors[self._count : end].astype(np.float64), axis=1)
        rows = range(self._count, end)
        self._count = end
        return rows

    def _grow(self, capacity: int) -> None:
        vectors, norms = np.empty((capacity, self._vectors.shape[1]), dtype=np.float32), np.empty(capacity)
        vectors[: self._count], norms[: self._count] = self._vectors[: self._count], self._norms[: self._count]
        self._vectors, self._norms = vectors, norms

    def delete(self, rows: Sequence[int]) -> None:
        """Delete rows; the others keep their numbers."""
        self._dead = np.union1d(self._dead, np.asarray(rows, dtype=np.intp))

    @property
    def sparse(self) -> bool:
        """True when more than half of the rows are deleted, so that `compact` pays."""
        return len(self._dead) * 2 > self._count

    def compact(self) -> Rows:
        """Move the live rows together; their old numbers in the new order."""
        view = self.view()
        kept = view.live_rows()
        self._vectors, self._norms, self._count, self._dead = view.vectors[kept], view.norms[kept], len(kept), np.empty(0, dtype=np.intp)
        return kept


def _mismatch(what: str, found: int, expected: int) -> EmbeddingMismatchError:
    return EmbeddingMismatchError(
        f"{what} has {found} dimensions, and the vectors of this store have {expected}. Use the embedding model the store was filled with, or a new store."
    )
