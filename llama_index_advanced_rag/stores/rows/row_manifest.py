"""What is committed of the array files, as it stands in the database beside the nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.segment_files import Block
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.sqlite.lossless_text import ESCAPE
from llama_index_advanced_rag.stores.sqlite.sqlite_file import damage_reported

_KEY = "rows"
_ANY_ESCAPED = f"SELECT 1 FROM nodes WHERE instr(node_id || coalesce(ref_doc_id, ''), char({ord(ESCAPE)})) LIMIT 1"  # noqa: S608
_IN_ORDER = "ORDER BY coalesce(ref_doc_id, ''), coalesce(start_char, 0), node_id"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The numbering of the moment.

    Attributes:
        generation: which files hold it; a compaction starts another one.
        n_rows: positions in use, those of deleted rows included.
        next_row: the number under which the next row is stored; it only grows.
        n_terms: sum of the lengths of all rows, those of deleted rows included.
        dimension: length of the vectors; None until the first are written.
        n_files: how many segment files this index has ever had, for their names.
    """

    generation: int = 1
    n_rows: int = 0
    next_row: int = 1
    n_terms: int = 0
    dimension: int | None = None
    n_files: int = 0


class SegmentFile(NamedTuple):
    """An immutable file of postings, or (`first` = -1) of the order of rows."""

    name: str
    first: int
    size: int
    crc: int


class RowManifest:
    """Reads and writes the tables `blocks`, `segments` and `dead`; joins the caller's transaction."""

    def __init__(self, database: CorpusDatabase) -> None:
        self._database = database

    def read(self) -> Manifest:
        """The manifest; that of an empty index when there is none yet."""
        stored = self._database.get_meta(_KEY)
        with damage_reported():
            return Manifest() if stored is None else Manifest(**stored)

    def write(self, manifest: Manifest) -> None:
        """Store it."""
        self._database.set_meta(_KEY, asdict(manifest))

    def segments(self) -> list[SegmentFile]:
        """The segment files, by the first position they hold."""
        return [SegmentFile(*row) for row in self._database.query("SELECT name, first, size, crc FROM segments ORDER BY first")]

    def replace_segments(self, gone: Iterable[str], fresh: Sequence[SegmentFile]) -> None:
        """Take segment files out of use and others into use."""
        self._database.executemany("DELETE FROM segments WHERE name = ?", ((name,) for name in gone))
        self._database.executemany("INSERT INTO segments VALUES (?, ?, ?, ?)", fresh)

    def blocks(self, file: str, *, start: int = 0) -> list[Block]:
        """The blocks of an array file from a row on."""
        sql = "SELECT start, n_rows, crc FROM blocks WHERE file = ? AND start >= ? ORDER BY start"
        return [Block(*row) for row in self._database.query(sql, (file, start))]

    def add_block(self, file: str, block: Block) -> None:
        """Record what an append has written."""
        self._database.execute("INSERT INTO blocks VALUES (?, ?, ?, ?)", (file, block.start, block.n_rows, block.crc))

    def dead_since(self, seq: int) -> tuple[int, NDArray[np.int64]]:
        """The rows that died after this one, ascending, and the number of the last."""
        rows = self._database.query("SELECT seq, row FROM dead WHERE seq > ? ORDER BY seq", (seq,))
        return (rows[-1][0] if rows else seq), np.sort(np.array([row[1] for row in rows], dtype=np.int64))

    def start_over(self) -> None:
        """Forget what is committed of all array files and which rows are dead."""
        for table in ("blocks", "segments", "dead"):
            self._database.execute(f"DELETE FROM {table}")  # noqa: S608 - our own words

    def rows_of_nodes(self, node_ids: Sequence[str]) -> dict[str, int]:
        """Row of those of the nodes that are searchable."""
        return dict(self._database.query_in("SELECT node_id, row FROM nodes WHERE row IS NOT NULL AND node_id IN ({})", node_ids))

    def rows_of_hashes(self, embed_hashes: Iterable[str]) -> dict[str, int]:
        """A row for each of the embedding hashes that is known."""
        sql = "SELECT embed_hash, row FROM nodes WHERE row IS NOT NULL AND embed_hash IN ({})"
        return dict(self._database.query_in(sql, sorted(set(embed_hashes))))

    def node_ids(self, sort_key_prefix: str = "") -> list[str]:
        """Ids of the searchable nodes by sort key; with a prefix those whose sort key begins with it."""
        sql = f"SELECT coalesce(ref_doc_id, ''), coalesce(start_char, 0), node_id FROM nodes WHERE row IS NOT NULL {_IN_ORDER}"  # noqa: S608
        return [key[2] for key in sorted(self._database.query(sql)) if "{}\0{:012d}\0{}".format(*key).startswith(sort_key_prefix)]

    def all_rows(self) -> NDArray[np.int64]:
        """The rows of all searchable nodes, ascending."""
        return np.array([row[0] for row in self._database.query("SELECT row FROM nodes WHERE row IS NOT NULL ORDER BY row")], dtype=np.int64)

    def nodes_without_row(self) -> list[str]:
        """Ids of nodes that were made searchable and have no row."""
        return [row[0] for row in self._database.query("SELECT node_id FROM nodes WHERE row IS NULL AND embed_hash IS NOT NULL")]

    def give_rows(self, first: int) -> None:
        """Give searchable nodes that have lost their row a new one, from this one on."""
        lost = enumerate(self.nodes_without_row(), start=first)
        self._database.executemany("UPDATE nodes SET row = ? WHERE node_id = ?", lost)

    def in_order(self) -> NDArray[np.int64]:
        """All living rows by document, place in it and node id. Sorts the whole table."""
        if self._database.query(_ANY_ESCAPED):  # what is escaped sorts elsewhere than what it stands for
            sql = "SELECT coalesce(ref_doc_id, ''), coalesce(start_char, 0), node_id, row FROM nodes WHERE row IS NOT NULL"
            return np.array([key[3] for key in sorted(self._database.query(sql))], dtype=np.int64)
        sql = f"SELECT row FROM nodes WHERE row IS NOT NULL {_IN_ORDER}"  # noqa: S608 - our own words
        return np.array([row[0] for row in self._database.query(sql)], dtype=np.int64)
