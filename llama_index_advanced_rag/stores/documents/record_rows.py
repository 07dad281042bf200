"""The rows of records: what the passages say of names and facts, as bytes under the numbers of the searchable rows."""

from collections.abc import Sequence

from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_WITHOUT_RECORD = "SELECT row FROM nodes WHERE row IS NOT NULL AND row NOT IN (SELECT row FROM records) ORDER BY row"
_WITHOUT_NODE = "SELECT row FROM records WHERE row NOT IN (SELECT row FROM nodes WHERE row IS NOT NULL) ORDER BY row"
_AROUND = 11  # lengths, types, row number and place in the page of a row of some hundred bytes, in bytes


class RecordRows:
    """Reads and writes the table `records`; joins the caller's transaction. A record goes with its node, by whatever way that goes.

    Args:
        database: where they are kept.
    """

    def __init__(self, database: CorpusDatabase) -> None:
        self._database = database

    def put(self, rows: Sequence[int], bodies: Sequence[bytes]) -> None:
        """Store a record for each row, in place of one that is there."""
        self._database.executemany("INSERT OR REPLACE INTO records VALUES (?, ?)", zip(rows, bodies, strict=True))

    def remove(self, rows: Sequence[int]) -> None:
        """Delete the records of rows."""
        self._database.executemany("DELETE FROM records WHERE row = ?", ((row,) for row in rows))

    def of_rows(self, rows: Sequence[int]) -> dict[int, bytes]:
        """The stored records of rows; rows without one are left out."""
        return dict(self._database.query_in("SELECT row, body FROM records WHERE row IN ({})", rows))

    def all_rows(self) -> list[int]:
        """The rows that have a record, ascending."""
        return [row[0] for row in self._database.query("SELECT row FROM records ORDER BY row")]

    def rows_without_record(self) -> list[int]:
        """Searchable rows that have none, ascending."""
        return [row[0] for row in self._database.query(_WITHOUT_RECORD)]

    def rows_without_node(self) -> list[int]:
        """Rows that have a record and no node, ascending."""
        return [row[0] for row in self._database.query(_WITHOUT_NODE)]

    def n_bytes(self) -> int:
        """Bytes that all records take in the file, with what SQLite writes around each."""
        return int(self._database.query("SELECT coalesce(sum(length(body) + ?), 0) FROM records", (_AROUND,))[0][0])
