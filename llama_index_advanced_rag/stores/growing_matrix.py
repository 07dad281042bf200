"""Rows of float32 in memory that are appended and deleted."""

from collections.abc import Sequence

import numpy as np

from llama_index_advanced_rag.stores.rows import Mask, Positions
from llama_index_advanced_rag.stores.vector_matrix import MatrixView, VectorMetric
from llama_index_advanced_rag.stores.vector_scores import Matrix


class VectorMatrix:
    """Not thread-safe for writers; its views are for readers.

    Args:
        metric: how vectors are compared.
    """

    def __init__(self, metric: VectorMetric) -> None:
        self.metric = metric
        self._vectors: Matrix = np.empty((0, 0), dtype=np.float32)
        self._count = 0
        self._dead: Positions = np.empty(0, dtype=np.intp)

    def __len__(self) -> int:
        return self._count - len(self._dead)

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None while there are none."""
        return self._vectors.shape[1] if self._count else None

    def view(self) -> MatrixView:
        """What is there now."""
        return MatrixView(self.metric, self._vectors[: self._count], self._alive())

    def _alive(self) -> Mask | None:
        if not len(self._dead):
            return None
        alive = np.ones(self._count, dtype=bool)
        alive[self._dead] = False
        return alive

    def append(self, vectors: Matrix) -> range:
        """Add vectors that `checked_vectors` has returned; the rows they got."""
        if not self._count:
            self._vectors = np.empty((0, vectors.shape[1]), dtype=np.float32)
        end = self._count + len(vectors)
        if end > len(self._vectors):
            larger = np.empty((max(end, 2 * len(self._vectors)), self._vectors.shape[1]), dtype=np.float32)
            larger[: self._count] = self._vectors[: self._count]
            self._vectors = larger
        self._vectors[self._count : end] = vectors
        rows = range(self._count, end)
        self._count = end
        return rows

    def delete(self, rows: Sequence[int]) -> None:
        """Delete rows; the others keep their numbers."""
        self._dead = np.union1d(self._dead, np.asarray(rows, dtype=np.intp))

    @property
    def sparse(self) -> bool:
        """True when more than half of the rows are deleted, so that `compact` pays."""
        return len(self._dead) * 2 > self._count

    def live_rows(self) -> Positions:
        """The rows that are not deleted, ascending."""
        return np.delete(np.arange(self._count), self._dead)

    def compact(self) -> Positions:
        """Move the live rows together; their old numbers in the new order."""
        kept = self.live_rows()
        self._vectors, self._count, self._dead = self._vectors[kept], len(kept), np.empty(0, dtype=np.intp)
        return kept
