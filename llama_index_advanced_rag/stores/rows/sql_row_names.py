"""What the positions of a state are called, read from the nodes of a database."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.documents.document_rows import DocumentRows
from llama_index_advanced_rag.stores.rows.positions import Positions
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_SORTED_HERE = 2000  # so many sort keys are read and sorted; of more, the known order of the rows leaves out most
_PAGE = 2000


@dataclass(frozen=True)
class SqlRowNames:
    """`RowNames` over the table `nodes`.

    Attributes:
        row_ids: (n,) the row under which the node of each position is stored, ascending.
        order: (m,) place of the first m positions among each other by sort key; the others are newer.
    """

    database: CorpusDatabase
    row_ids: NDArray[np.int64]
    order: NDArray[np.integer[Any]]

    def node_ids(self, positions: Positions) -> list[str | None]:
        """The node id of each position; None for a row that has been deleted since."""
        rows = self.row_ids[positions].tolist()
        found = dict(self.database.query_in("SELECT row, node_id FROM nodes WHERE row IN ({})", rows))
        return [found.get(row) for row in rows]

    def in_order(self, positions: Positions, limit: int) -> Positions:
        """The first `limit` of the positions by sort key, in that order; rows deleted since come last."""
        if len(positions) > max(_SORTED_HERE, limit):
            positions = self._first(positions, limit)
        rows = self.row_ids[positions].tolist()
        found = self.database.query_in("SELECT row, coalesce(ref_doc_id, ''), coalesce(start_char, 0), node_id FROM nodes WHERE row IN ({})", rows)
        keys = {row: (False, *key) for row, *key in found}
        gone = (True, "", 0, "")
        return positions[sorted(range(len(rows)), key=lambda place: keys.get(rows[place], gone))[:limit]]

    def _first(self, positions: Positions, limit: int) -> Positions:
        """The positions without most of those that cannot be among the first `limit`."""
        known = positions[positions < len(self.order)]
        if len(known) > limit:
            known = known[np.argpartition(self.order[known], limit)[:limit]]
        return np.concatenate([known, positions[positions >= len(self.order)]])

    def positions_of(self, node_ids: Sequence[str]) -> Positions:
        """Positions of those of the nodes that are in this state, ascending."""
        return self._positions("SELECT row FROM nodes WHERE row IS NOT NULL AND node_id IN ({})", node_ids)

    def positions_of_documents(self, ref_doc_ids: Sequence[str]) -> Positions:
        """Positions of the nodes of these documents, ascending."""
        return self._positions("SELECT row FROM nodes WHERE row IS NOT NULL AND ref_doc_id IN ({})", ref_doc_ids)

    def _positions(self, sql: str, values: Sequence[str]) -> Positions:
        rows = self.database.query_in(sql, list(dict.fromkeys(values)))
        return positions_of_rows(self.row_ids, np.array([row[0] for row in rows], dtype=np.int64))

    def metadata(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Position and filterable metadata of the rows from `start` to before `stop`; deleted rows are missing."""
        documents = DocumentRows(self.database)
        for first in range(start, stop, _PAGE):
            rows = self.row_ids[first : min(first + _PAGE, stop)]
            found = documents.metadata_of_rows(int(rows[0]), int(rows[-1]))
            places = np.searchsorted(rows, np.array([row for row, _ in found], dtype=np.int64))
            yield from ((first + place, metadata) for place, (_, metadata) in zip(places.tolist(), found, strict=True))


class NewestNames:
    """The names of the newest state of one generation: positions keep their meaning within it, so that these read for all its states.

    Attributes:
        names: those of the newest state.
    """

    def __init__(self, names: SqlRowNames) -> None:
        self.names = names

    def metadata(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Position and filterable metadata of the rows from `start` to before `stop`; deleted rows are missing."""
        return self.names.metadata(start, stop)


def positions_of_rows(row_ids: NDArray[np.int64], rows: NDArray[np.int64]) -> Positions:
    """Where rows stand in ascending `row_ids`, ascending; rows that are not there are left out.

    Example:
        >>> positions_of_rows(np.array([3, 5, 9]), np.array([9, 4, 3])).tolist()
        [0, 2]
    """
    places = np.searchsorted(row_ids, rows)
    inside = places < len(row_ids)
    places, rows = places[inside], rows[inside]
    return np.sort(places[row_ids[places] == rows])
