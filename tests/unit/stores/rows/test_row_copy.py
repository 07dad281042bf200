"""A copy of the rows in another folder holds what they hold, replaces an older copy, and is refused by a folder that cannot be written."""

from pathlib import Path
from typing import Any

import pytest

from llama_index_advanced_rag.errors import StorageError
from llama_index_advanced_rag.stores.rows import row_copy
from llama_index_advanced_rag.stores.rows.row_compaction import compact
from llama_index_advanced_rag.stores.rows.row_copy import copy_files
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase


@pytest.mark.parametrize("on_disk", [True, False])
@pytest.mark.parametrize("block", [2, 1 << 16])
def test_a_copy_is_equal_and_a_later_one_replaces_it(
    tmp_path: Path, on_disk: bool, block: int, rows_like_a_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_copy, "_BLOCK", block)
    model, target = rows_like_a_model(tmp_path / "i" if on_disk else None), tmp_path / "copy"
    for turn in range(4):
        with model.rows.change():
            model.add(3 * (turn > 0))
            model.delete(model.chosen(0.3))
        if turn == 3:
            with model.rows.change():
                compact(model.rows)
        copy_files(model.rows, target)
        model.database.backup_to(target)
        model.check()
        source, model.database = model.database, CorpusDatabase(target)
        original, model.rows, model.folder = model.rows, RowFiles(model.database), target
        model.check()
        assert model.files_left() <= {"rows-1.bin", "lengths-1.bin", "vectors-1.bin"} | {path.name for path in target.glob("postings-1-*.bin")}
        assert not list(target.glob("*.tmp"))
        model.database.close()
        model.database, model.rows, model.folder = source, original, tmp_path / "i" if on_disk else None
    model.database.close()


def test_a_folder_that_cannot_be_written(tmp_path: Path, rows_like_a_model: Any) -> None:
    model = rows_like_a_model(None)
    with model.rows.change():
        model.add(3)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="disk refused a write"):
        copy_files(model.rows, tmp_path / "file")
    (tmp_path / "rows" / "rows-1.bin").mkdir(parents=True)
    with pytest.raises(StorageError, match="'rows-1.bin' could not be written.*Give a folder that can be written"):
        copy_files(model.rows, tmp_path / "rows")
    model.check()
    model.database.close()
