"""Updates with bad contents, and disks that refuse in their middle: an error or a line of the report, and all else is kept."""

import datetime as dt
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import Document, TextNode

from llama_index_advanced_rag import CorpusIndex, indexing
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError, StorageError
from llama_index_advanced_rag.stores import segment_files
from llama_index_advanced_rag.testing import DeterministicEmbedding

MODES = ("lexical", "dense", "hybrid")
FORMS = {"not finite": [float("nan")] * 16, "infinite": [float("inf")] + [0.0] * 15, "zero": [0.0] * 16, "short": [1.0] * 7}


class OddEmbedding(DeterministicEmbedding):
    """Gives another vector for texts that hold a word."""

    odd: list[float]

    def _get_text_embedding(self, text: str) -> list[float]:
        return list(self.odd) if "odd" in text else super()._get_text_embedding(text)


def model(**options: Any) -> DeterministicEmbedding:
    return DeterministicEmbedding(dimensions=16, **options)


def document(number: int, version: int = 0) -> Document:
    return Document(text=f"word{number} has version{version}", id_=f"d{number}")


def found(index: CorpusIndex) -> dict[str, Any]:
    """All that an index answers and lists."""
    hits = {mode: [(hit.node.node_id, hit.score) for hit in index.as_retriever(mode, similarity_top_k=50).retrieve("word3 version0")] for mode in MODES}
    return {**hits, "documents": [(info.ref_doc_id, info.hash) for info in index.list_documents()]}


@pytest.fixture(params=["disk", "memory"])
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CorpusIndex]:
    place = tmp_path / "i" if request.param == "disk" else None
    with CorpusIndex.from_documents([document(number) for number in range(6)], persist_dir=place, embed_model=model()) as made:
        yield made


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_that_cannot_be_stored_skips_its_document_only(index: CorpusIndex, form: str) -> None:
    index._embed_model = OddEmbedding(dimensions=16, odd=FORMS[form])
    report = index.apply(added=[document(10), Document(text="an odd one", id_="bad"), document(11)], updated=[Document(text="odd now", id_="d1")])
    assert (report.added, sorted(item.ref_doc_id for item in report.skipped)) == (["d10", "d11"], ["bad", "d1"])
    assert all("stored version is kept" in item.reason for item in report.skipped)
    assert index.as_retriever("lexical").retrieve("word1")[0].node.get_content() == "word1 has version0"
    with pytest.raises((ConfigurationError, EmbeddingMismatchError)):
        index.insert_nodes([TextNode(text="an odd node")])
    assert index.verify().ok


def test_a_first_vector_that_cannot_be_stored_leaves_an_empty_index() -> None:
    with CorpusIndex(embed_model=OddEmbedding(dimensions=16, odd=FORMS["zero"])) as index:
        with pytest.raises(ConfigurationError):
            index.insert(Document(text="odd", id_="a"))
        assert index.info()["dimension"] is None
        index.insert(document(1))
        assert index.verify().ok


def test_ids_that_are_given_twice(index: CorpusIndex) -> None:
    report = index.apply(added=[document(20), document(20, 1)])
    assert "The id 'd20' was given 2 times in one call; the last document counts." in report.warnings
    index.insert_nodes([TextNode(text="first thing", id_="n"), TextNode(text="second thing", id_="n")])
    assert [hit.node.get_content() for hit in index.as_retriever("lexical").retrieve("thing")] == ["second thing"]
    assert index.verify().ok


@pytest.mark.parametrize("name", ["\udce9.txt", "\ud800", "a\0b", "\U0010ffff", "é", "e\u0301", "\u202e", "😀", " ", "'; DROP TABLE nodes; --", "x" * 5000])
def test_ids_of_any_unicode(index: CorpusIndex, name: str) -> None:
    index.insert(Document(text="word99 is here", id_=name))
    index.insert_nodes([TextNode(text="word98 is there", id_=name + "!")])
    for mode in MODES:
        assert name in {hit.node.ref_doc_id for hit in index.as_retriever(mode, similarity_top_k=50).retrieve("word99")}
        assert name + "!" in {hit.node.node_id for hit in index.as_retriever(mode, similarity_top_k=50).retrieve("word98")}
    index.compact()
    assert index.verify().ok
    index.delete_ref_doc(name)
    index.delete_nodes([name + "!"])
    assert name not in {info.ref_doc_id for info in index.list_documents()}
    assert len(index.as_retriever("dense", similarity_top_k=50).retrieve("word")) == 6


@pytest.mark.parametrize("value", [object(), {1, 2}, dt.date(2026, 1, 1), b"bytes", float])
def test_metadata_that_is_not_json_skips_its_document_only(index: CorpusIndex, value: object) -> None:
    report = index.apply(added=[document(10), Document(text="word12", id_="bad", metadata={"odd": value}), document(11)])
    assert (report.added, [item.ref_doc_id for item in report.skipped]) == (["d10", "d11"], ["bad"])
    with pytest.raises(ConfigurationError):
        index.insert_nodes([TextNode(text="word13", metadata={"odd": value})])
    assert index.verify().ok


class FullDisk:
    """Lets so many writes of a kind pass, then refuses all."""

    def __init__(self, passed: int) -> None:
        self.passed = passed

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def limited(*args: Any, **kwargs: Any) -> Any:
            self.passed -= 1
            if self.passed < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args, **kwargs)

        return limited


@pytest.mark.parametrize("what", ["open", "write_array", "fsync"])
@pytest.mark.parametrize("passed", range(0, 12, 2))
def test_a_disk_that_is_full_at_any_array_keeps_whole_batches_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, passed: int) -> None:
    monkeypatch.setattr(indexing, "BATCH_NODES", 2)
    monkeypatch.setattr(indexing, "MOST_BATCH_NODES", 2)
    with CorpusIndex.from_documents([document(number) for number in range(6)], persist_dir=tmp_path / "i", embed_model=model()) as index:
        before, disk = found(index), FullDisk(passed)
        with monkeypatch.context() as patch:
            place = segment_files.npy if what == "write_array" else os
            patch.setattr(place, what, disk.around(getattr(place, what)))
            with pytest.raises(StorageError, match="disk refused a write"):
                index.apply(updated=[document(number, 1) for number in range(6)])
        versions = {info.ref_doc_id: info.hash for info in index.list_documents()}
        changed = [number for number in range(6) if versions[f"d{number}"] == document(number, 1).hash]
        assert changed == list(range(len(changed)))
        assert len(changed) % 2 == 0
        assert changed or found(index) == before
        assert index.verify().ok
        index.apply(updated=[document(number, 1) for number in range(6)])
        with CorpusIndex.from_documents([document(number, 1) for number in range(6)], embed_model=model()) as fresh:
            assert found(index)["documents"] == found(fresh)["documents"]
            assert [name for name, _ in found(index)["lexical"]] == [name for name, _ in found(fresh)["lexical"]]
    with CorpusIndex.load(tmp_path / "i", embed_model=model()) as again:
        again.insert(document(30))
        assert again.verify().ok


@pytest.mark.parametrize("change", ["compact", "repair"])
def test_a_disk_that_is_full_while_all_is_rewritten_leaves_the_index_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    with CorpusIndex.from_documents([document(number) for number in range(6)], persist_dir=tmp_path / "i", embed_model=model()) as index:
        index.delete_ref_doc("d0")
        before = found(index)
        if change == "repair":
            (tmp_path / "i" / "order-x.bin").touch()
            index.corpus.database.execute("UPDATE blocks SET crc = crc + 1 WHERE file LIKE 'lengths%'")
        with monkeypatch.context() as patch:
            patch.setattr(segment_files.npy, "write_array", FullDisk(3).around(segment_files.npy.write_array))
            with pytest.raises(StorageError, match="disk refused a write"):
                index.compact() if change == "compact" else index.verify(repair=True)
        assert found(index) == before
        assert index.verify(repair=True).ok == (change == "compact")
        assert index.verify().ok
        assert found(index) == before


def test_a_folder_that_is_deleted_while_open_still_answers_and_refuses_changes(tmp_path: Path) -> None:
    with CorpusIndex.from_documents([document(number) for number in range(6)], persist_dir=tmp_path / "i", embed_model=model()) as index:
        before = found(index)
        shutil.rmtree(tmp_path / "i")
        assert found(index) == before
        for change in (lambda: index.insert(document(9)), index.compact, lambda: index.delete_nodes(["x"]), lambda: index.insert_nodes([TextNode(text="x")])):
            with pytest.raises(StorageError, match="deleted or replaced while it was open. Close this index and open it again"):
                change()
        assert not index.verify().ok
