"""Rows written anew from the nodes: sound vectors are kept bit by bit, whichever file is lost, and only the others are made again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import BaseNode

from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.rows.row_compaction import compact
from llama_index_advanced_rag.stores.rows.row_rebuild import rebuild


class Rebuilt:
    """Rebuilds the rows of a model; `made` are the nodes that had to be embedded."""

    def __init__(self, model: Any) -> None:
        self.model, self.made = model, list[str]()
        for node_id in model.held:  # give them content, which the model leaves out
            body = "UPDATE nodes SET text = ?, body = '{}' WHERE node_id = ?"
            model.database.execute(body, (node_id, node_id))

    def embed(self, nodes: list[BaseNode]) -> np.ndarray:
        self.made += [node.node_id for node in nodes]
        return np.array([self.model.held[node.node_id][0] for node in nodes])

    def run(self) -> int:
        documents = SQLDocumentStore(self.model.database)
        with self.model.database.transaction():
            n_made = rebuild(self.model.rows, documents, count=lambda node: self.model.held[node.node_id][1], embed=self.embed)
        self.model.rows.refresh()
        return n_made


def filled(rows_like_a_model: Any, folder: Path | None, *, seed: int = 0) -> Any:
    model = rows_like_a_model(folder, seed=seed)
    for n_new in (5, 3, 1, 4):
        with model.rows.change():
            model.delete(model.chosen(0.2))
            model.add(n_new)
    return model


@pytest.mark.parametrize("on_disk", [True, False])
def test_of_sound_rows_nothing_is_made_again(tmp_path: Path, on_disk: bool, rows_like_a_model: Any) -> None:
    model = filled(rows_like_a_model, tmp_path / "i" if on_disk else None)
    rebuilt = Rebuilt(model)
    for generation in (2, 3):
        assert rebuilt.run() == 0
        assert (model.rows.manifest.generation, model.rows.state().alive, len(model.rows.segments)) == (generation, None, 1)
        model.check()
    model.database.close()


@pytest.mark.parametrize("kind", ["rows", "lengths", "postings", "order"])
def test_files_other_than_the_vectors_cost_no_vector(tmp_path: Path, kind: str, rows_like_a_model: Any) -> None:
    model = filled(rows_like_a_model, tmp_path / "i")
    rebuilt = Rebuilt(model)
    for file in (tmp_path / "i").glob(f"{kind}-*.bin"):
        file.unlink()
    assert rebuilt.run() == 0
    model.check()
    model.database.close()


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 999), compacted=st.booleans())
def test_only_the_vectors_of_damaged_blocks_are_made_again(
    data: st.DataObject, seed: int, compacted: bool, rows_like_a_model: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rebuild") / "i"
    model = filled(rows_like_a_model, folder, seed=seed)
    if compacted:
        with model.rows.change():
            compact(model.rows)
    rebuilt = Rebuilt(model)
    name = f"vectors-{model.rows.manifest.generation}.bin"
    content = bytearray((folder / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    blocks = model.rows.table.blocks(name)
    if data.draw(st.booleans()):
        content[place] ^= 16
        damaged = [block for block in blocks if block.start <= place // 16 < block.start + block.n_rows]
    else:
        del content[place:]
        damaged = [block for block in blocks if place < 16 * (block.start + block.n_rows)]
    lost = {position for block in damaged for position in range(block.start, block.start + block.n_rows)}
    living = model.rows.state().names.node_ids(np.arange(model.rows.state().n_rows))
    (folder / name).unlink()
    (folder / name).write_bytes(content)
    assert rebuilt.run() == len(rebuilt.made)
    assert set(rebuilt.made) == {living[position] for position in lost} - {None}
    model.check()
    model.database.close()


def test_a_node_without_a_row_gets_one(tmp_path: Path, rows_like_a_model: Any) -> None:
    model = filled(rows_like_a_model, tmp_path / "i")
    rebuilt = Rebuilt(model)
    lost = sorted(model.held)[2]
    model.tamper(f"UPDATE nodes SET row = NULL WHERE node_id = '{lost}'")
    model.rows.refresh()
    assert rebuilt.run() == 1
    assert rebuilt.made == [lost]
    model.check()
    model.database.close()


def test_a_rebuild_that_cannot_embed_changes_nothing(tmp_path: Path, rows_like_a_model: Any) -> None:
    model = filled(rows_like_a_model, tmp_path / "i")
    rebuilt = Rebuilt(model)
    (tmp_path / "i" / "vectors-1.bin").unlink()

    def fail(_nodes: list[BaseNode]) -> np.ndarray:
        raise ConnectionError

    embed, rebuilt.embed = rebuilt.embed, fail  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        rebuilt.run()
    assert model.rows.table.read().generation == 1
    rebuilt.embed = embed  # type: ignore[method-assign]
    assert rebuilt.run() == len(model.held)
    model.check()
    model.database.close()


def test_of_nothing(tmp_path: Path, rows_like_a_model: Any) -> None:
    model = rows_like_a_model(tmp_path / "i")
    assert Rebuilt(model).run() == 0
    model.check()
    with model.rows.change():
        model.add(3)
    model.check()
    model.database.close()
