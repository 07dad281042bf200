"""A plain model of searchable rows, and rows that do the same: what the tests of the row files share."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from llama_index_advanced_rag.stores.rows.row_checks import file_problems, row_problems
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_generation import ARRAY_FILE, KINDS, file_name
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

DIMENSION = 4
TERMS = ("fox", "sea", "tax", "été")


class RowModel:
    """Rows under test, and beside them what they must hold: vector and term counts by node id."""

    def __init__(self, folder: Path | None, *, seed: int = 0) -> None:
        self.folder = folder
        self.random = np.random.default_rng(seed)
        self.held: dict[str, tuple[np.ndarray, Mapping[str, int]]] = {}
        self.given = 0
        self.database = CorpusDatabase(folder, create=True)
        self.rows = RowFiles(self.database)

    def add(self, n_new: int) -> None:
        """Store nodes and append their rows, within a change."""
        first, fresh = self.rows.next_row, {}
        for place in range(n_new):
            vector = self.random.normal(size=DIMENSION).astype(np.float32)
            counts = {term: int(self.random.integers(1, 4)) for term in TERMS if self.random.random() < 0.4}
            node_id = f"n{self.given:04d}"
            self.given += 1
            fresh[node_id] = (vector / np.linalg.norm(vector), counts)
            sql = "INSERT INTO nodes (node_id, ordinal, start_char, row, embed_hash) VALUES (?, 0, ?, ?, ?)"
            self.database.execute(sql, (node_id, int(self.random.integers(3)), first + place, f"hash {node_id}"))
        if n_new:
            self.rows.append(np.array([vector for vector, _ in fresh.values()]), [counts for _, counts in fresh.values()], n_new=n_new)
        self.held.update(fresh)

    def delete(self, node_ids: list[str]) -> None:
        """Delete nodes, within a change; their rows die by themselves."""
        self.database.executemany("DELETE FROM nodes WHERE node_id = ?", [(node_id,) for node_id in node_ids])
        for node_id in node_ids:
            del self.held[node_id]

    def chosen(self, share: float) -> list[str]:
        """Some of the nodes."""
        return [node_id for node_id in self.held if self.random.random() < share]

    def reopen(self) -> None:
        """Close and open, on disk."""
        if self.folder is not None:
            self.database.close()
            self.database = CorpusDatabase(self.folder)
            self.rows = RowFiles(self.database)

    def check(self) -> None:
        """The state holds what the model holds."""
        state = self.rows.state()
        living = np.arange(state.n_rows) if state.alive is None else np.flatnonzero(state.alive)
        names = state.names.node_ids(living)
        assert set(names) == set(self.held)
        assert state.n_alive == len(self.held)
        assert np.all(np.diff(state.row_ids) > 0)
        vectors = self.rows.vectors()
        for position, node_id in zip(living.tolist(), names, strict=True):
            vector, counts = self.held[str(node_id)]
            assert vectors[position].tolist() == vector.tolist()
            assert state.postings.lengths[position] == sum(counts.values())
            found = {term: n for segment in state.postings.segments for term in TERMS if (n := _frequency(segment.postings(term), position))}
            assert found == counts
        assert state.postings.n_texts == len(self.held)
        assert state.postings.n_terms == sum(sum(counts.values()) for _, counts in self.held.values())
        assert state.names.positions_of(list(self.held)).tolist() == living.tolist()
        stored = self.rows.vectors_of_hashes([f"hash {node_id}" for node_id in self.held])
        assert set(stored) == {f"hash {node_id}" for node_id in self.held}
        assert file_problems(self.rows) + row_problems(self.rows) == []

    def files_left(self) -> set[str]:
        """Array files in the folder that nothing refers to."""
        assert self.folder is not None
        used = {file.name for file in self.rows.table.segments()} | {file_name(kind, self.rows.manifest.generation) for kind in KINDS}
        return {path.name for path in self.folder.iterdir() if ARRAY_FILE.fullmatch(path.name)} - used

    def tamper(self, sql: str) -> None:
        """Change the database behind the back of the rows."""
        assert self.folder is not None
        with sqlite3.connect(self.folder / "corpus.sqlite") as connection:
            connection.execute(sql)
        connection.close()


def _frequency(postings: tuple[np.ndarray, np.ndarray] | None, position: int) -> int:
    if postings is None:
        return 0
    places = np.flatnonzero(postings[0] == position)
    assert len(places) <= 1
    return int(postings[1][places[0]]) if len(places) else 0


@pytest.fixture(scope="session")
def rows_like_a_model() -> type[RowModel]:
    """Makes rows beside a model of them."""
    return RowModel
