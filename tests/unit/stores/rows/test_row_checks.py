"""Each invariant of the rows can be broken, and is then said; files nothing refers to are reclaimed once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llama_index_advanced_rag.stores.rows.row_checks import file_problems, reclaim, row_problems
from llama_index_advanced_rag.stores.rows.row_compaction import write_order
from llama_index_advanced_rag.stores.rows.row_generation import file_name
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric


@pytest.fixture
def model(tmp_path: Path, rows_like_a_model: Any) -> Any:
    made = rows_like_a_model(tmp_path / "i")
    for _ in range(3):
        with made.rows.change():
            made.add(4)
    with made.rows.change():
        made.delete(["n0005"])
    with made.rows.change():
        write_order(made.rows, made.rows.manifest, made.rows.state().row_ids)
    made.check()
    yield made
    made.database.close()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE nodes SET row = NULL WHERE node_id = 'n0001'", ["1 nodes cannot be found by any search, 'n0001' for one"]),
        ("UPDATE nodes SET row = 900 WHERE node_id = 'n0001'", ["The nodes that have a row are not the rows that live."]),
        ("DELETE FROM segments WHERE first = 4", ["do not hold as many terms"]),
        ("UPDATE nodes SET start_char = 2 - start_char", ["The order of the rows is not that"]),
    ],
)
def test_rows_that_do_not_fit(model: Any, sql: str, words: list[str]) -> None:
    model.tamper(sql)
    model.rows.refresh()
    assert file_problems(model.rows) == []
    found = row_problems(model.rows)
    assert len(found) >= len(words)
    for one in words:
        assert any(one in problem for problem in found), found


@pytest.mark.parametrize(("vector", "metric", "bad"), [([np.nan, 0, 0, 0], "cosine", True), ([2, 0, 0, 0], "cosine", True), ([2, 0, 0, 0], "dot", False)])
def test_vectors_that_cannot_be(model: Any, vector: list[float], metric: str, bad: bool) -> None:
    first = model.rows.next_row
    with model.rows.change():
        model.database.execute("INSERT INTO nodes (node_id, ordinal, row) VALUES ('odd', 0, ?)", (first,))
        model.rows.append(np.array([vector], dtype=np.float32), [{}], n_new=1)
    model.rows.metric = VectorMetric(metric)
    assert row_problems(model.rows) == (["The vector at row 12 is not finite, or not of length 1."] if bad else [])


@pytest.mark.parametrize("kind", ["rows", "lengths", "vectors"])
def test_neighbouring_blocks_are_one_problem(model: Any, kind: str) -> None:
    name = file_name(kind, 1)
    file = model.folder / name
    content = bytearray(file.read_bytes())
    for place in (0, len(content) // 2):
        content[place] ^= 1
    file.write_bytes(content)
    assert file_problems(model.rows) == [f"The file {name!r} is damaged at rows 0 to 7."]
    content[-1] ^= 1
    file.write_bytes(content[: len(content)])
    assert file_problems(model.rows) == [f"The file {name!r} is damaged at rows 0 to 11."]
    file.unlink()
    assert len(file_problems(model.rows)) == 1


def test_blocks_must_cover_all_rows(model: Any) -> None:
    model.tamper("DELETE FROM blocks WHERE file = 'lengths-1.bin' AND start = 4")
    assert file_problems(model.rows) == ["The blocks of 'lengths-1.bin' do not cover its 12 rows."]


def test_segments_and_orders_are_files_too(model: Any) -> None:
    files = sorted(model.folder.glob("postings-*.bin")) + sorted(model.folder.glob("order-*.bin"))
    for file in files:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert set(file_problems(model.rows)) == {f"The file {file.name!r} is damaged." for file in files}
    for file in files:
        file.unlink()
    assert all("is missing" in problem for problem in file_problems(model.rows))


def test_leftovers_are_reclaimed_once_and_nothing_else(model: Any) -> None:
    kept = {path.name for path in model.folder.iterdir()}
    left = ["rows-2.bin", "vectors-2.bin", "postings-1-77.bin", "order-2-1.bin", "lengths-1.bin.tmp"]
    for name in [*left, "mine.bin", "rows-1.bin.bak", "notes.txt"]:
        (model.folder / name).touch()
    model.rows.reclaimed = False
    with model.rows.change():
        assert reclaim(model.rows) == sorted(left)
        assert reclaim(model.rows) == []
    assert {path.name for path in model.folder.iterdir()} == kept | {"mine.bin", "rows-1.bin.bak", "notes.txt"}
    model.check()


def test_in_memory_there_is_nothing_to_reclaim(rows_like_a_model: Any) -> None:
    model = rows_like_a_model(None)
    with model.rows.change():
        model.add(3)
        assert reclaim(model.rows) == []
    model.check()
    model.database.close()
