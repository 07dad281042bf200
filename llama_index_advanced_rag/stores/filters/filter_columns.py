"""Metadata filters as masks over positions: each key is a column of codes, and a filter is decided once for each distinct value."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.filters.column_values import ColumnValues
from llama_index_advanced_rag.stores.rows.positions import Mask

_Codes = NDArray[np.int32]
_MISSING, _GONE = -1, -2
_CHUNK = 8192
_PATIENCE_S = 0.2


class FilterColumns:
    """The whole `MetadataFilters` algebra over the rows of one numbering, with the truth of `metadata_matches`.

    A column is made when a filter first asks for its key, and continued when rows have come; the metadata are read once for
    all new keys of a filter. Memory: 4 bytes a row and key, and the distinct values. Any thread may call; rows are never
    changed under a position, so all states of a numbering share one object.

    Args:
        read: gives position and metadata of the rows from `start` to before `stop`, ascending; rows that it leaves out have been
            deleted.

    Example:
        >>> columns = FilterColumns(lambda start, stop: iter([(0, {"year": 2020}), (1, {"year": 2023}), (2, {})]))
        >>> columns.mask(MetadataFilters(filters=[MetadataFilter(key="year", value=2021, operator=">")]), 3).tolist()
        [False, True, False]
    """

    def __init__(self, read: Callable[[int, int], Iterator[tuple[int, dict[str, Any]]]]) -> None:
        self._read = read
        self._columns: dict[str, _Column] = {}
        self._lock = threading.Lock()  # of the columns; nothing else is waited for under it
        self._turn = threading.Lock()

    def mask(self, filters: MetadataFilters | None, n_rows: int) -> Mask:
        """Which of the first `n_rows` rows satisfy the filters, as (n_rows,) bool.

        A row that had been deleted when the metadata were read is always among them: a state in which it is alive is out of date,
        and finds that out when it reads what it has found.
        """
        if filters is None or not filters.filters or not n_rows:
            return np.ones(n_rows, dtype=bool)
        keys = sorted(_keys(filters))
        self._cover(keys, n_rows)
        mask = self._all(filters, n_rows)
        for column in (self._columns[key] for key in keys):
            if column.some_gone:
                mask |= column.view(n_rows)[0] == _GONE
        return mask

    def _all(self, filters: MetadataFilters, n_rows: int) -> Mask:
        if not filters.filters:
            return np.ones(n_rows, dtype=bool)
        masks = [self._all(part, n_rows) if isinstance(part, MetadataFilters) else self._one(part, n_rows) for part in filters.filters]
        mask = masks[0]
        for other in masks[1:]:
            if filters.condition in (FilterCondition.OR, FilterCondition.NOT):
                mask |= other
            else:
                mask &= other
        return ~mask if filters.condition == FilterCondition.NOT else mask

    def _one(self, part: MetadataFilter, n_rows: int) -> Mask:
        codes, values = self._columns[part.key].view(n_rows)
        return _mask_of(codes, values.truth(part.operator, part.value))

    def _cover(self, keys: Sequence[str], n_rows: int) -> None:
        """Read what the columns lack, some rows at a time; threads that lack the same take turns.

        A thread may hold the lock that reading needs, and meet one here that waits for it. So nothing is read under a lock that
        others need, and whoever does not get his turn reads for himself.
        """
        with self._lock:
            columns = [self._columns.setdefault(key, _Column(key)) for key in keys]
        while any(column.n_rows < n_rows for column in columns):
            has_turn = self._turn.acquire(timeout=_PATIENCE_S)
            try:
                self._read_on([column for column in columns if column.n_rows < n_rows], n_rows)
            finally:
                if has_turn:
                    self._turn.release()

    def _read_on(self, behind: Sequence["_Column"], n_rows: int) -> None:
        if not behind:
            return
        start = min(column.n_rows for column in behind)
        stop = min(start + _CHUNK, n_rows)
        rows = list(self._read(start, stop))
        with self._lock:
            for column in behind:
                if start <= column.n_rows < stop:
                    column.append(rows, stop)


class _Column:
    """Codes of the values of one key by position; written under the lock of its owner."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.values = ColumnValues()
        self.n_rows = 0
        self.some_gone = False
        self._codes: _Codes = np.empty(0, dtype=np.int32)

    def append(self, rows: Sequence[tuple[int, dict[str, Any]]], stop: int) -> None:
        """Take from rows, by position, those that are not in the column yet, up to `stop`."""
        first = self.n_rows
        if stop > len(self._codes):
            larger = np.empty(max(stop, len(self._codes) + len(self._codes) // 4), dtype=np.int32)
            larger[:first] = self._codes[:first]
            self._codes = larger
        self._codes[first:stop] = _GONE
        for position, metadata in rows:
            if position >= first:
                held = metadata.get(self.key)
                self._codes[position] = _MISSING if held is None else self.values.code(held)
        self.some_gone = self.some_gone or bool((self._codes[first:stop] == _GONE).any())
        self.n_rows = stop  # last: until then nobody looks at these rows

    def view(self, n_rows: int) -> tuple[_Codes, ColumnValues]:
        return self._codes[:n_rows], self.values


def _keys(filters: MetadataFilters) -> set[str]:
    keys: set[str] = set()
    for part in filters.filters:
        keys |= _keys(part) if isinstance(part, MetadataFilters) else {part.key}
    return keys


def _mask_of(codes: _Codes, truth: Mask) -> Mask:
    """The truth of each code; that of a missing value stands last, where the code -1 finds it; of rows that are gone any."""
    yes = np.flatnonzero(truth)
    if len(yes) == 0:
        return np.zeros(len(codes), dtype=bool)
    if len(yes) == 1:
        return codes == (yes[0] if yes[0] < len(truth) - 1 else _MISSING)
    return truth[codes]
