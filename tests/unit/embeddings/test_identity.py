import subprocess
import sys
from pathlib import Path

import pytest
from llama_index.core.bridge.pydantic import Field

from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.testing import DeterministicEmbedding


class KeyedEmbedding(DeterministicEmbedding):
    api_key: str = Field(default="secret")
    query_instruction: str | None = None
    normalize: bool = True


def folder_model(folder: Path, weights: bytes = b"weights") -> DeterministicEmbedding:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "config.json").write_text("{}")
    return DeterministicEmbedding(model_name=str(folder))


def test_equal_models_are_equal_in_two_processes() -> None:
    code = (
        "from llama_index_advanced_rag.testing import DeterministicEmbedding as D;"
        "from llama_index_advanced_rag.embeddings.identity import embedding_identity as e; print(e(D(dimensions=9)))"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert there == embedding_identity(DeterministicEmbedding(dimensions=9)) == "DeterministicEmbedding|deterministic|dimensions=9"


@pytest.mark.parametrize("change", [{"dimensions": 8}, {"model_name": "other"}, {"query_instruction": "query: "}, {"normalize": False}])
def test_what_changes_vectors_changes_the_identity(change: dict) -> None:
    assert embedding_identity(KeyedEmbedding(**change)) != embedding_identity(KeyedEmbedding())


def test_keys_and_batch_sizes_are_no_part_of_it() -> None:
    assert embedding_identity(KeyedEmbedding(api_key="x", embed_batch_size=3)) == embedding_identity(KeyedEmbedding())
    assert "secret" not in embedding_identity(KeyedEmbedding())


def test_a_local_folder_is_known_by_its_content(tmp_path: Path) -> None:
    here = embedding_identity(folder_model(tmp_path / "here"))
    assert here == embedding_identity(folder_model(tmp_path / "elsewhere" / "there"))
    assert here != embedding_identity(folder_model(tmp_path / "other", b"other weights"))
    assert str(tmp_path) not in here


def test_a_changed_file_is_seen(tmp_path: Path) -> None:
    model = folder_model(tmp_path / "model")
    before = embedding_identity(model)
    (tmp_path / "model" / "config.json").write_text('{"pooling": "cls"}')
    assert embedding_identity(model) != before


def test_a_folder_that_is_gone_leaves_its_name(tmp_path: Path) -> None:
    assert embedding_identity(DeterministicEmbedding(model_name=str(tmp_path / "gone"))).split("|")[1] == "gone"
