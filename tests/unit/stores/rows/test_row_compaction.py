"""Compaction and the noted order of rows: what lives stays as it is, dead rows go, and both happen by themselves when they pay."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llama_index_advanced_rag.errors import IndexFormatError
from llama_index_advanced_rag.stores.rows import row_compaction
from llama_index_advanced_rag.stores.rows.row_compaction import compact, settle
from llama_index_advanced_rag.stores.rows.row_generation import file_name

PLACES = pytest.mark.parametrize("on_disk", [True, False])


@PLACES
@pytest.mark.parametrize("block", [3, 1 << 16])
def test_what_lives_is_kept_bit_by_bit(tmp_path: Path, on_disk: bool, block: int, rows_like_a_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_compaction, "_BLOCK", block)
    model = rows_like_a_model(tmp_path / "i" if on_disk else None)
    for _ in range(4):
        with model.rows.change():
            model.add(5)
            model.delete(model.chosen(0.3))
    for _ in range(2):
        before = model.rows.manifest
        with model.rows.change():
            compact(model.rows)
        state = model.rows.state()
        assert (state.n_rows, state.alive, len(model.rows.segments)) == (len(model.held), None, 1)
        assert (model.rows.manifest.generation, model.rows.manifest.next_row) == (before.generation + 1, before.next_row)
        assert len(model.rows.order) == state.n_rows
        model.check()
    if on_disk:
        assert model.files_left() == set()
        assert not (tmp_path / "i" / file_name("rows", 1)).exists()
    with model.rows.change():
        model.add(3)
    model.check()
    model.database.close()


@PLACES
def test_of_nothing(tmp_path: Path, on_disk: bool, rows_like_a_model: Any) -> None:
    model = rows_like_a_model(tmp_path / "i" if on_disk else None)
    with model.rows.change():
        compact(model.rows)
    model.check()
    with model.rows.change():
        model.add(4)
    with model.rows.change():
        model.delete(list(model.held))
    with model.rows.change():
        compact(model.rows)
    assert model.rows.state().n_rows == 0
    model.reopen()
    with model.rows.change():
        model.add(2)
    model.check()
    model.database.close()


def test_a_damaged_file_is_not_copied_on(tmp_path: Path, rows_like_a_model: Any) -> None:
    model = rows_like_a_model(tmp_path / "i")
    with model.rows.change():
        model.add(4)
    file = tmp_path / "i" / file_name("vectors", 1)
    file.write_bytes(bytes(len(file.read_bytes())))
    model.reopen()
    with pytest.raises(IndexFormatError, match="vectors-1.bin"), model.rows.change():
        compact(model.rows)
    assert model.rows.manifest.generation == 1
    assert model.files_left() == {"rows-2.bin", "lengths-2.bin"} - {path for path in ("rows-2.bin", "lengths-2.bin") if not (tmp_path / "i" / path).exists()}
    model.database.close()


@PLACES
def test_settling(tmp_path: Path, on_disk: bool, rows_like_a_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_compaction, "_SMALL", 10)
    monkeypatch.setattr(row_compaction, "_UNORDERED", 12)
    model = rows_like_a_model(tmp_path / "i" if on_disk else None)
    noted, generations = [], []
    for n_new in (8, 4, 4, 3, 2, 20):
        with model.rows.change():
            model.add(n_new)
        settle(model.rows)
        noted.append(len(model.rows.order))
        model.check()
    assert noted == [0, 0, 16, 16, 16, 41]
    for _ in range(3):
        with model.rows.change():
            model.delete(sorted(model.held)[:8])
        settle(model.rows)
        generations.append(model.rows.manifest.generation)
        model.check()
    assert generations == [1, 1, 2]  # more than half of the 41 rows are dead
    model.database.close()


@PLACES
def test_the_order_is_that_of_documents_places_and_ids(tmp_path: Path, on_disk: bool, rows_like_a_model: Any) -> None:
    model = rows_like_a_model(tmp_path / "i" if on_disk else None)
    with model.rows.change():
        model.add(30)
    with model.rows.change():
        model.delete(model.chosen(0.3))
    with model.rows.change():
        row_compaction.write_order(model.rows, model.rows.manifest, model.rows.state().row_ids)
    state = model.rows.state()
    living = np.flatnonzero(state.alive)
    by_order = living[np.argsort(model.rows.order[living])]
    names = state.names
    assert by_order.tolist() == names.in_order(living, len(living)).tolist()
    assert set(model.rows.order[~state.alive].tolist()) == {state.n_rows}
    model.database.close()
