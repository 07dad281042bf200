"""The best rows for each of several queries, while blocks of rows go by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.rows.positions import Mask, Positions

_SLACK = 64


class Candidates:
    """Rows that may be among the `top_k` best of each query; offered in blocks, kept when they reach the floor of their query.

    The floor of a query is its `top_k`-th best value so far less the error, and is raised when the rows seen have doubled or
    many have come, so that few rows are sorted.

    Args:
        n_queries: m.
        top_k: best rows wanted for each query.
        errors: (m,) by how much values of a query may be in the wrong order.

    Example:
        >>> candidates = Candidates(1, 1, np.zeros(1))
        >>> candidates.offer(np.array([[0.5, 0.9]]), np.array([0, 1]), None)
        >>> [rows.tolist() for rows in candidates.best()]
        [[1]]
    """

    def __init__(self, n_queries: int, top_k: int, errors: NDArray[Any]) -> None:
        self._top_k = top_k
        self._errors = errors
        self._floors = np.full(n_queries, np.finfo(np.float32).min, dtype=np.float32)
        self._kept: list[tuple[NDArray[Any], Positions, NDArray[Any]]] = []
        self._count = 0
        self._seen = 0
        self._next = 1
        self._limit = 8 * n_queries * (top_k + _SLACK)

    @property
    def too_many(self) -> bool:
        """True when so many values are equal that keeping them pays no longer."""
        return self._count > self._limit

    def offer(self, values: NDArray[Any], rows: Positions, allowed: Mask | None) -> None:
        """Take from the next rows those that may be among the best.

        Args:
            values: (m, b) of each query and row.
            rows: (b,) their positions.
            allowed: (b,) which of them count; None = all.
        """
        if self._seen == 0:
            self._start(values, allowed)
        queries, places = np.divmod(np.flatnonzero(values >= self._floors[:, None]), values.shape[1])
        if allowed is not None:
            ok = allowed[places]
            queries, places = queries[ok], places[ok]
        self._kept.append((queries, rows[places], values[queries, places]))
        self._count += len(queries)
        self._seen += values.shape[1]
        if self._seen >= self._next or self.too_many:
            self._next = 2 * self._seen
            self._sift()

    def _start(self, values: NDArray[Any], allowed: Mask | None) -> None:
        usable = values if allowed is None else values[:, allowed]
        if usable.shape[1] > self._top_k:
            self._floors = np.partition(usable, -self._top_k, axis=1)[:, -self._top_k] - self._errors

    def _sift(self) -> None:
        queries, rows, values = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        order = np.lexsort((-values, queries))
        queries, rows, values = queries[order], rows[order], values[order]
        firsts = np.searchsorted(queries, np.arange(len(self._floors)))
        counts = np.diff(np.append(firsts, len(queries)))
        full = np.flatnonzero(counts >= self._top_k)
        self._floors[full] = np.maximum(self._floors[full], values[firsts[full] + self._top_k - 1] - self._errors[full])
        ok = values >= self._floors[queries]
        self._kept = [(queries[ok], rows[ok], values[ok])]
        self._count = int(ok.sum())

    def best(self) -> list[Positions]:
        """For each query the rows that are left, its best ones among them, in no order."""
        self._sift()
        queries, rows, _values = self._kept[0]
        return np.split(rows, np.searchsorted(queries, np.arange(1, len(self._floors))))
