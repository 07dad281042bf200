"""Names of positions: the order among equal scores is that of (document, place, node id), however many are equal and whatever is noted of it."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.stores.rows import sql_row_names
from llama_index_advanced_rag.stores.rows.row_manifest import RowManifest
from llama_index_advanced_rag.stores.rows.sql_row_names import SqlRowNames, positions_of_rows
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

NONE = np.empty(0, dtype=np.int32)
Key = tuple[str | None, int | None, str]


@contextmanager
def stored(keys: list[Key], *, n_ordered: int = 0) -> Iterator[SqlRowNames]:
    """Names of nodes with these documents, places and ids, under rows with gaps; the order of the first ones is noted."""
    with CorpusDatabase(None) as database:
        row_ids = np.arange(len(keys), dtype=np.int64) * 3 + 5
        ref_doc_ids = {key[0] for key in keys if key[0] is not None}
        database.executemany("INSERT INTO documents (ref_doc_id) VALUES (?)", [(one,) for one in ref_doc_ids])

        def insert(places: range) -> None:
            rows = [(*keys[place], int(row_ids[place])) for place in places]
            database.executemany("INSERT INTO nodes (ref_doc_id, start_char, node_id, row, ordinal) VALUES (?, ?, ?, ?, 0)", rows)

        insert(range(n_ordered))
        places = np.empty(n_ordered, dtype=np.int32)
        places[np.searchsorted(row_ids, RowManifest(database).in_order())] = np.arange(n_ordered)
        insert(range(n_ordered, len(keys)))
        yield SqlRowNames(database, row_ids, places)


def expected(keys: list[Key], positions: np.ndarray, limit: int) -> list[int]:
    return sorted(positions.tolist(), key=lambda place: (keys[place][0] or "", keys[place][1] or 0, keys[place][2]))[:limit]


ids = st.text(st.characters(codec=None, exclude_categories=()), min_size=1, max_size=3)
node_keys = st.lists(st.tuples(st.one_of(st.none(), ids), st.one_of(st.none(), st.integers(0, 3)), ids), min_size=1, max_size=30, unique_by=lambda key: key[2])


@settings(max_examples=80, deadline=None)
@given(keys=node_keys, data=st.data())
def test_the_first_of_many_are_those_of_a_full_sort(keys: list[Key], data: st.DataObject) -> None:
    positions = np.array(sorted(data.draw(st.sets(st.integers(0, len(keys) - 1), min_size=1))), dtype=np.intp)
    limit, small = data.draw(st.integers(1, len(positions))), data.draw(st.integers(1, 8))
    with stored(keys, n_ordered=data.draw(st.integers(0, len(keys)))) as names, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql_row_names, "_SORTED_HERE", small)
        assert names.in_order(positions, limit).tolist() == expected(keys, positions, limit)
        patch.setattr(sql_row_names, "_SORTED_HERE", 2000)
        assert names.in_order(positions, limit).tolist() == expected(keys, positions, limit)
        everything = np.arange(len(keys))
        assert RowManifest(names.database).node_ids() == [keys[place][2] for place in expected(keys, everything, len(keys))]


@pytest.mark.parametrize("n_ordered", [0, 3000, 5000])
@pytest.mark.parametrize("limit", [1, 10, 2500])
def test_more_equal_scores_than_are_sorted_at_once(n_ordered: int, limit: int) -> None:
    random = np.random.default_rng(4)
    keys: list[Key] = [(f"d{random.integers(40)}", int(random.integers(5)), f"n{number:05d}") for number in random.permutation(5000)]
    with stored(keys, n_ordered=n_ordered) as names:
        for positions in (np.arange(5000), np.flatnonzero(random.random(5000) < 0.6)):
            assert names.in_order(positions, limit).tolist() == expected(keys, positions, limit)


def test_rows_deleted_since_have_no_name_and_come_last() -> None:
    keys: list[Key] = [(None, 0, f"n{number}") for number in range(6)]
    with stored(keys, n_ordered=4) as names:
        names.database.execute("DELETE FROM nodes WHERE node_id IN ('n0', 'n4')")
        positions = np.arange(6)
        assert names.node_ids(positions) == [None, "n1", "n2", "n3", None, "n5"]
        assert names.in_order(positions, 4).tolist() == [1, 2, 3, 5]
        assert set(names.in_order(positions, 6)[4:].tolist()) == {0, 4}
        assert names.positions_of(["n5", "n0", "none", "n1", "n1"]).tolist() == [1, 5]
        assert [place for place, _ in names.metadata(0, 6)] == [1, 2, 3, 5]


def test_positions_of_documents_and_of_nodes_that_came_later() -> None:
    keys: list[Key] = [("a", 0, "n0"), ("b", 0, "n1"), (None, 0, "n2"), ("a", 9, "n3")]
    with stored(keys) as names:
        assert names.positions_of_documents(["a", "none"]).tolist() == [0, 3]
        assert names.positions_of_documents([]).tolist() == []
        older = SqlRowNames(names.database, names.row_ids[:2], NONE)
        assert older.positions_of_documents(["a"]).tolist() == [0]
        assert older.positions_of(["n0", "n3"]).tolist() == [0]
        assert [place for place, _ in older.metadata(0, 2)] == [0, 1]


def test_metadata_comes_by_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_row_names, "_PAGE", 2)
    with stored([("a", 0, f"n{number}") for number in range(5)]) as names:
        names.database.execute("UPDATE documents SET metadata = '{\"year\": 2023}'")
        names.database.execute("DELETE FROM nodes WHERE node_id IN ('n2', 'n3')")
        assert [(place, metadata["year"], metadata["ref_doc_id"]) for place, metadata in names.metadata(1, 5)] == [(1, 2023, "a"), (4, 2023, "a")]
        assert list(names.metadata(3, 3)) == []


@given(rows=st.sets(st.integers(0, 40)), asked=st.lists(st.integers(0, 50)))
def test_positions_of_rows(rows: set[int], asked: list[int]) -> None:
    row_ids = np.array(sorted(rows), dtype=np.int64)
    assert positions_of_rows(row_ids, np.array(asked, dtype=np.int64)).tolist() == sorted(sorted(rows).index(row) for row in asked if row in rows)
