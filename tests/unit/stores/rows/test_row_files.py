"""Rows through any sequence of changes, failures, compactions and openings are those of a plain model, on disk and in memory."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ReadOnlyIndexError, StorageError
from llama_index_advanced_rag.stores.rows.row_checks import reclaim
from llama_index_advanced_rag.stores.rows.row_compaction import compact, write_order
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_generation import file_name
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

DIMENSION = 4
MakeRows = Any  # the class `RowModel` of conftest.py


class RefusedError(Exception):
    """Ends a change."""


def failing(model: Any, n_new: int) -> None:
    """A change that writes and is taken back."""
    before = dict(model.held)
    with suppress(RefusedError), model.rows.change():
        model.delete(model.chosen(0.3))
        model.add(n_new)
        raise RefusedError
    model.held = before


def nested(model: Any, n_new: int) -> None:
    """A change in a change that is taken back, and one that is not."""
    with model.rows.change():
        failing(model, n_new + 1)
        with model.rows.change():
            model.add(n_new)


def compacted(model: Any, *, fails: bool = False) -> None:
    with suppress(RefusedError), model.rows.change():
        compact(model.rows)
        if fails:
            raise RefusedError


def do(model: Any, step: tuple[str, int]) -> None:
    match step:
        case ("add", n_new):
            with model.rows.change():
                model.delete(model.chosen(0.2))
                model.add(n_new)
        case ("delete", _):
            with model.rows.change():
                model.delete(model.chosen(0.5))
        case ("fail", n_new):
            failing(model, n_new)
        case ("nested", n_new):
            nested(model, n_new)
        case ("compact", n_new):
            compacted(model, fails=n_new % 3 == 0)
        case ("order", _):
            with model.rows.change():
                write_order(model.rows, model.rows.manifest, model.rows.state().row_ids)
        case _:
            model.reopen()


steps = st.lists(st.tuples(st.sampled_from(["add", "add", "delete", "fail", "nested", "compact", "order", "reopen"]), st.integers(0, 9)), max_size=9)


@settings(max_examples=40, deadline=None)
@given(steps=steps, seed=st.integers(0, 2**16), on_disk=st.booleans())
def test_after_any_changes_the_rows_are_those_of_the_model(steps: list[tuple[str, int]], seed: int, on_disk: bool, rows_like_a_model: MakeRows) -> None:
    with tempfile.TemporaryDirectory() as place:
        model = rows_like_a_model(Path(place) / "i" if on_disk else None, seed=seed)
        for step in steps:
            do(model, step)
            model.check()
        if on_disk:
            model.reopen()
            with model.rows.change():
                reclaim(model.rows)
            assert model.files_left() == set()
            model.check()
        model.database.close()


@pytest.mark.parametrize("on_disk", [True, False])
def test_there_are_few_segments_however_many_changes(tmp_path: Path, on_disk: bool, rows_like_a_model: MakeRows) -> None:
    model = rows_like_a_model(tmp_path / "i" if on_disk else None)
    most = 0
    for _ in range(150):
        with model.rows.change():
            model.add(1)
        most = max(most, len(model.rows.segments))
        assert [segment.stop for segment in model.rows.segments.values()][:-1] == [segment.start for segment in model.rows.segments.values()][1:]
    assert most <= 7 * 3  # seven of each power of eight up to 150
    model.check()
    if on_disk:
        assert model.files_left() == set()
    model.database.close()


def test_a_state_stays_what_it_was(tmp_path: Path, rows_like_a_model: MakeRows) -> None:
    model = rows_like_a_model(tmp_path / "i")
    with model.rows.change():
        model.add(5)
    before = model.rows.state()
    vectors, row_ids = model.rows.vectors().copy(), before.row_ids.tolist()
    do(model, ("delete", 0))
    do(model, ("add", 3))
    compacted(model)
    do(model, ("add", 3))
    assert (before.n_rows, before.row_ids.tolist(), before.alive) == (5, row_ids, None)
    assert before.matrix is not None
    assert np.array_equal(before.matrix.vectors, vectors)
    assert before.postings.n_texts == 5
    model.check()
    model.database.close()


def test_rows_are_appended_once_a_change_and_inside_of_one(tmp_path: Path, rows_like_a_model: MakeRows) -> None:
    model = rows_like_a_model(tmp_path / "i")
    with model.rows.change():
        model.add(1)
        with pytest.raises(StorageError, match="Rows were appended twice in one change.*Append once"):
            model.rows.append(np.eye(DIMENSION)[:1], [{}], n_new=1)
    model.check()
    with model.rows.change():
        model.rows.append(None, None, n_new=0)
    model.check()
    model.database.close()


def test_what_another_connection_committed_is_taken_over_with_the_next_refresh(tmp_path: Path, rows_like_a_model: MakeRows) -> None:
    model = rows_like_a_model(tmp_path / "i")
    with CorpusDatabase(tmp_path / "i", read_only=True) as database:
        other = RowFiles(database)
        for step in [("add", 4), ("delete", 0), ("compact", 1), ("add", 9), ("order", 0), ("nested", 2)]:
            do(model, step)
            other.refresh()
            state = other.state()
            assert state.row_ids.tolist() == model.rows.state().row_ids.tolist()
            assert other.vectors().tolist() == model.rows.vectors().tolist()
            assert not other.refresh()
        with pytest.raises(ReadOnlyIndexError), other.change():
            pass
    model.database.close()


def test_two_writers_take_turns(tmp_path: Path, rows_like_a_model: MakeRows) -> None:
    one = rows_like_a_model(tmp_path / "i")
    with CorpusDatabase(tmp_path / "i") as database:
        two = RowFiles(database)
        for turn in range(6):
            with one.rows.change():
                one.delete(one.chosen(0.3))
                one.add(2)
            vector = np.eye(DIMENSION, dtype=np.float32)[:1]
            with two.change():
                first = two.next_row
                database.execute("INSERT INTO nodes (node_id, ordinal, row, embed_hash) VALUES (?, 0, ?, ?)", (f"t{turn}", first, f"hash t{turn}"))
                two.append(vector, [{"fox": 1}], n_new=1)
            one.held[f"t{turn}"] = (vector[0], {"fox": 1})
            one.rows.refresh()
            one.check()
    one.database.close()


def test_nothing_is_read_until_asked_for_repair(tmp_path: Path, rows_like_a_model: MakeRows) -> None:
    model = rows_like_a_model(tmp_path / "i")
    with model.rows.change():
        model.add(5)
    (tmp_path / "i" / file_name("rows", 1)).unlink()
    rows = RowFiles(model.database, unread=True)
    assert rows.table.read().n_rows == 5
    model.database.close()


def test_sizes(tmp_path: Path, rows_like_a_model: MakeRows) -> None:
    model = rows_like_a_model(tmp_path / "i")
    with model.rows.change():
        model.add(6)
    with model.rows.change():
        model.delete(["n0001", "n0002"])
    sizes = model.rows.sizes()
    assert {name: sizes[name] for name in ("rows", "dead_rows", "vector_bytes")} == {"rows": 4, "dead_rows": 2, "vector_bytes": 6 * DIMENSION * 4}
    assert sizes["postings_bytes"] > 0
    model.database.close()
