"""Exact top-k search over the vectors of one state."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.rows.positions import NOTHING, Found, Mask, Positions, RowNames, best_first
from llama_index_advanced_rag.stores.vectors.diverse_rows import DiverseRows
from llama_index_advanced_rag.stores.vectors.vector_batch import Candidates
from llama_index_advanced_rag.stores.vectors.vector_checks import checked_query
from llama_index_advanced_rag.stores.vectors.vector_scores import (
    Matrix,
    Scores,
    Values,
    VectorMetric,
    exact_similarities,
    lower_floor,
    products,
    rounding,
    row_blocks,
)

__all__ = ["MatrixView", "VectorMetric"]

_FEW = 6  # gathering rows costs about as much as multiplying six times as many in place
_QUERIES = 64


class _SquaredLengths:
    """Squared lengths of rows in float32, computed once and continued when rows come; any thread may ask."""

    def __init__(self) -> None:
        self._values: Values = np.empty(0, dtype=np.float32)
        self._lock = threading.Lock()

    def of(self, vectors: Matrix) -> Values:
        with self._lock:
            known = self._values
            if len(known) < len(vectors):
                fresh = [np.einsum("ij,ij->i", block, block) for block in row_blocks(vectors[len(known) :], None)]
                self._values = known = np.concatenate([known, *fresh])
        return known[: len(vectors)]


@dataclass(frozen=True)
class MatrixView:
    """The vectors at one moment; later writes do not show in it, so searching needs no lock.

    A float32 product finds the candidates, with its rounding error allowed for, and a float64 one scores them: results are
    exact, and the score of a row does not depend on where it stands. Memory beside the vectors: one float32 a row and query.

    Attributes:
        metric: how vectors are compared.
        vectors: (n, dimension) float32 or float16, of length 1 under `cosine`; most often memory-mapped and read-only.
        alive: (n,) True where a row counts; None = all do.

    Example:
        >>> from llama_index_advanced_rag.stores.postings.memory_names import MemoryNames
        >>> view = MatrixView(VectorMetric.COSINE, np.array([[1.0, 0.0], [0.6, 0.8]], dtype=np.float32))
        >>> found = view.top(view.checked_query([0.0, 2.0]), top_k=1, names=MemoryNames().extended(["a", "b"], ["1", "2"]))
        >>> found.positions.tolist(), found.scores.round(3).tolist()
        ([1], [0.8])
    """

    metric: VectorMetric
    vectors: Matrix
    alive: Mask | None = None
    _squared: _SquaredLengths = field(default_factory=_SquaredLengths, repr=False, compare=False)

    def grown(self, vectors: Matrix, alive: Mask | None) -> "MatrixView":
        """The matrix after rows were appended (the first ones are these) or deleted; what was computed from the rows is kept."""
        return MatrixView(self.metric, vectors, alive, self._squared)

    def checked_query(self, vector: Sequence[float] | NDArray[Any]) -> Scores:
        """A query vector as a (dimension,) float64 array, of length 1 under `cosine`.

        Raises:
            EmbeddingMismatchError: its length is not that of the rows.
            ConfigurationError: it is not finite, or zero under `cosine`.
        """
        return checked_query(vector, self.metric, self.vectors.shape[1] if len(self.vectors) else None)

    def top(self, query: Scores, *, top_k: int, names: RowNames, mask: Mask | None = None) -> Found:
        """The best rows, best first; equal scores in the order of `names`.

        Args:
            query: (dimension,) float64, already checked by `checked_query`.
            top_k: most rows returned, at least 1.
            names: decides among equal scores.
            mask: (n,) only these rows; None = all.
        """
        if not len(self.vectors):
            return NOTHING
        chosen, allowed = self._choice(mask)
        values = self._in_order(products(self.vectors, query, chosen), chosen)
        if allowed is not None:
            np.copyto(values, -np.inf, where=~allowed)
        error = self._error(query)
        places = np.flatnonzero(values >= _finite(lower_floor(values, top_k) - error))
        if len(places) > top_k:
            kept = values[places]
            places = places[kept >= np.partition(kept, -top_k)[-top_k] - error]
        found = places if chosen is None else chosen[places]
        return best_first(found, self.similarities(query, found), top_k, names)

    def top_batch(self, queries: Sequence[Scores] | Scores, *, top_k: int, names: RowNames, mask: Mask | None = None) -> list[Found]:
        """What `top` finds for each of the queries, with one matrix product for 64 of them.

        Args:
            queries: (m, dimension) float64, each already checked by `checked_query`.
            top_k: most rows returned for each, at least 1.
            names: decides among equal scores.
            mask: (n,) only these rows; None = all.
        """
        if not len(self.vectors):
            return [NOTHING] * len(queries)
        found: list[Found] = []
        for start in range(0, len(queries), _QUERIES):
            found += self._top_of_some(np.asarray(queries[start : start + _QUERIES]), top_k, names, mask)
        return found

    def _top_of_some(self, queries: Scores, top_k: int, names: RowNames, mask: Mask | None) -> list[Found]:
        chosen, allowed = self._choice(mask)
        if chosen is not None and not len(chosen):
            return [NOTHING] * len(queries)
        singles = queries.astype(np.float32)
        candidates = Candidates(len(queries), top_k, np.array([self._error(query) for query in queries], dtype=np.float32))
        start = 0
        for block in row_blocks(self.vectors, chosen):
            rows = np.arange(start, start + len(block)) if chosen is None else chosen[start : start + len(block)]
            with np.errstate(all="ignore"):  # as in `products`
                values = singles @ block.T
            candidates.offer(self._in_order(values, rows), rows, None if allowed is None else allowed[rows])
            start += len(block)
            if candidates.too_many:
                return [self.top(query, top_k=top_k, names=names, mask=mask) for query in queries]
        per_query = candidates.best()
        return [best_first(rows, self.similarities(query, rows), top_k, names) for query, rows in zip(queries, per_query, strict=True)]

    def diverse(self, query: Scores, *, top_k: int, names: RowNames, relevance: float, mask: Mask | None = None) -> Found:
        """Rows by maximal marginal relevance in the order of picking, with their marginal scores (of which one may rise).

        Exact over all rows, and costs about three searches: see `DiverseRows`.

        Args:
            query: (dimension,) float64, already checked by `checked_query`.
            top_k: most rows returned, at least 1.
            names: decides among equal marginal scores.
            relevance: from 0 (diverse) to 1 (relevant).
            mask: (n,) only these rows; None = all.
        """
        squared = self._squared.of(self.vectors) if self.metric is VectorMetric.EUCLIDEAN else None
        rows = DiverseRows(self.metric, self.vectors, self._positions(mask), squared, self._longest())
        return rows.pick(query, top_k=top_k, names=names, relevance=relevance)

    def similarities(self, query: Scores, positions: Positions) -> Scores:
        """Similarity of the rows at these positions to a vector, summed in float64."""
        return exact_similarities(self.metric, self.vectors, query, positions)

    def _choice(self, mask: Mask | None) -> tuple[Positions | None, Mask | None]:
        """The rows to multiply (None = all), and which of all are allowed (None = all of the rows to multiply)."""
        allowed = self._allowed(mask)
        if allowed is None or np.count_nonzero(allowed) * _FEW > len(allowed):
            return None, allowed
        return np.flatnonzero(allowed), None

    def _allowed(self, mask: Mask | None) -> Mask | None:
        if mask is None or self.alive is None:
            return self.alive if mask is None else mask
        return mask & self.alive

    def _positions(self, mask: Mask | None) -> Positions | None:
        allowed = self._allowed(mask)
        return None if allowed is None else np.flatnonzero(allowed)

    def _in_order(self, values: NDArray[Any], positions: Positions | None) -> NDArray[Any]:
        """The products themselves, or under `euclidean` a number that falls with the distance; in place."""
        if self.metric is VectorMetric.EUCLIDEAN:
            squared = self._squared.of(self.vectors)
            values *= 2.0
            values -= squared if positions is None else squared[positions]
        return values

    def _longest(self) -> float:
        if self.metric is VectorMetric.COSINE:
            return 1.001  # float16 rounds a length of 1
        return float(np.sqrt(self._squared.of(self.vectors).max(initial=0.0)))

    def _error(self, query: Scores) -> float:
        length, longest = float(np.linalg.norm(query)), self._longest()
        scale = (length + longest) ** 2 if self.metric is VectorMetric.EUCLIDEAN else length * longest
        return 2 * rounding(self.vectors.shape[1]) * scale


def _finite(floor: float) -> float:
    return max(floor, float(np.finfo(np.float32).min))
