from pathlib import Path

import pytest

from llama_index_advanced_rag import folder_index
from llama_index_advanced_rag.folder_index import default_index_dir, sync_folder
from llama_index_advanced_rag.testing import DeterministicEmbedding


def test_the_index_lives_in_the_folder(tmp_path: Path) -> None:
    assert default_index_dir(tmp_path) == tmp_path / ".advanced-rag"


def test_a_folder_that_cannot_be_written_has_its_index_in_the_cache_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs, cache = tmp_path / "docs", tmp_path / "cache"
    docs.mkdir()
    (docs / "a.txt").write_text("The fox is red.", encoding="utf-8")
    monkeypatch.setattr(folder_index, "may_write", lambda folder: folder != docs)
    monkeypatch.setattr(folder_index, "user_cache_dir", lambda *_, **__: str(cache))
    model = DeterministicEmbedding()
    for embedded in (1, 1):
        update = sync_folder(docs, embed_model=model)
        assert update.index_dir.parent == cache
        assert any("cannot be written" in warning for warning in update.warnings)
        assert len(model.texts) == embedded
        update.index.close()
    assert not (docs / ".advanced-rag").exists()
