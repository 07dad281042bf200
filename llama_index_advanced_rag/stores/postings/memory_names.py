"""Node ids and sort keys of positions, in memory: the names of a store that stands alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.rows.positions import Mask, Positions

_FEW = 1000


@dataclass
class _Rows:
    """Grows at the end only, so that states of different ages can share it."""

    node_ids: list[str] = field(default_factory=list[str])
    sort_keys: list[str] = field(default_factory=list[str])
    newest: dict[str, int] = field(default_factory=dict[str, int])
    before: list[int] = field(default_factory=list[int])  # the position that the same node had until then; -1 = none


@dataclass(frozen=True, eq=False)
class MemoryNames:
    """Implements `RowNames`; a snapshot that later additions do not change.

    Args:
        n_rows: positions there are.
        alive: False where the row is deleted; None = all are alive.
        rows: shared by the snapshots of one numbering.

    Example:
        >>> names = MemoryNames().extended(["b", "a"], ["2", "1"])
        >>> names.in_order(np.array([0, 1]), 2).tolist(), names.positions_of(["a", "unknown"]).tolist()
        ([1, 0], [1])
    """

    n_rows: int = 0
    alive: Mask | None = None
    rows: _Rows = field(default_factory=_Rows)

    def extended(self, node_ids: Sequence[str], sort_keys: Sequence[str], alive: Mask | None = None) -> "MemoryNames":
        """A snapshot with more rows; only the latest snapshot may be extended, by one writer at a time.

        Args:
            node_ids: of the new rows; one that is held already is held by its new row from then on.
            sort_keys: of the new rows.
            alive: of all rows, old and new.
        """
        rows = self.rows
        rows.node_ids += node_ids
        rows.sort_keys += sort_keys
        for position, node_id in enumerate(node_ids, start=self.n_rows):
            rows.before.append(rows.newest.get(node_id, -1))
            rows.newest[node_id] = position
        return MemoryNames(self.n_rows + len(node_ids), alive, rows)

    def without(self, alive: Mask | None) -> "MemoryNames":
        """The same rows with others of them alive."""
        return MemoryNames(self.n_rows, alive, self.rows)

    def node_ids(self, positions: Positions) -> list[str | None]:
        """The node id of each position."""
        held = self.rows.node_ids
        return [held[position] for position in positions.tolist()]

    def sort_keys(self, positions: Positions) -> list[str]:
        """The sort key of each position."""
        held = self.rows.sort_keys
        return [held[position] for position in positions.tolist()]

    def in_order(self, positions: Positions, limit: int) -> Positions:
        """The first `limit` of the positions by sort key and node id, in that order."""
        if len(positions) <= _FEW:
            return np.array(nsmallest(limit, positions.tolist(), key=self._order), dtype=np.intp)
        ranks = self._ranks[positions]
        if limit < len(positions):
            first = np.argpartition(ranks, limit - 1)[:limit]
            positions, ranks = positions[first], ranks[first]
        return positions[np.argsort(ranks)]

    def positions_of(self, node_ids: Sequence[str]) -> Positions:
        """Positions of those of the nodes that are alive in this snapshot, ascending."""
        found = {position for position in map(self._position, node_ids) if position is not None}
        return np.array(sorted(found), dtype=np.intp)

    def positions_of_documents(self, ref_doc_ids: Sequence[str]) -> Positions:
        """Positions of the nodes of these documents, by their sort keys: `ref_doc_id`, a zero character, the place in the document."""
        wanted = set(ref_doc_ids)
        keys = self.rows.sort_keys
        return np.array([position for position in self.living().tolist() if keys[position].split("\0", 1)[0] in wanted], dtype=np.intp)

    def metadata(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Nothing: names in memory know no metadata."""
        return iter(())

    def living(self) -> Positions:
        """Positions that are alive, ascending."""
        return np.arange(self.n_rows) if self.alive is None else np.flatnonzero(self.alive)

    def _position(self, node_id: str) -> int | None:
        position = self.rows.newest.get(node_id, -1)
        while position >= self.n_rows:  # held by a row that came after this snapshot
            position = self.rows.before[position]
        return position if position >= 0 and (self.alive is None or bool(self.alive[position])) else None

    def _order(self, position: int) -> tuple[str, str]:
        return self.rows.sort_keys[position], self.rows.node_ids[position]

    @cached_property
    def _ranks(self) -> NDArray[np.int64]:
        """Place of each position in the order of sort keys; sorted once, as asking for a few of very many costs almost as much."""
        order = sorted(range(self.n_rows), key=self._order)
        ranks = np.empty(self.n_rows, dtype=np.int64)
        ranks[order] = np.arange(self.n_rows)
        return ranks
