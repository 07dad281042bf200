"""The notes about an external vector store: made before it is written, gone with the commit, kept by a failure, and only by one that reached it."""

from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_advanced_rag.errors import StorageError, VectorStoreError
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.vectors.external_vectors import ExternalVectors

VECTOR = np.array([[1.0, 0.0]], dtype=np.float32)


def node(node_id: str, ref_doc_id: str = "doc") -> TextNode:
    return TextNode(id_=node_id, text=node_id, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=ref_doc_id)})


class Recorder(SimpleVectorStore):
    """Remembers what it was asked to delete; fails when told to."""

    deleted: list[str] = Field(default_factory=list)
    broken: bool = False

    def add(self, nodes, **kwargs):
        if self.broken:
            raise ConnectionError("no route to host")
        return super().add(nodes, **kwargs)

    def delete(self, ref_doc_id, **kwargs):
        self.deleted.append(ref_doc_id)
        super().delete(ref_doc_id, **kwargs)


@contextmanager
def change(external: ExternalVectors, database: CorpusDatabase, ref_doc_ids=(), node_ids=()):
    with external.announced(ref_doc_ids, node_ids) as announced, database.transaction(), announced:
        yield announced


def test_a_note_lives_from_the_announcement_to_the_commit(tmp_path: Path):
    with CorpusDatabase(tmp_path, create=True) as database, CorpusDatabase(tmp_path, read_only=True) as reader:
        external, seen = ExternalVectors(database, Recorder()), ExternalVectors(reader, Recorder())
        with change(external, database, ["doc", "doc"], ["loose"]) as announced:
            assert sorted(seen.pending()) == [("", "loose"), ("doc", "")]  # others see it before anything is written
            announced.replace([node("a")], VECTOR)
        assert external.pending() == seen.pending() == []


def test_only_what_may_be_there_is_deleted():
    database, store = CorpusDatabase(None), Recorder()
    external = ExternalVectors(database, store)
    with change(external, database, ["doc", "new"]) as announced:
        announced.replace([node("a")], VECTOR)
    assert store.deleted == []
    database.execute("INSERT INTO documents (ref_doc_id) VALUES ('doc')")
    database.execute("INSERT INTO nodes (node_id, ref_doc_id, ordinal, row) VALUES ('a', 'doc', 0, 1)")
    with change(external, database, ["doc", "new"]) as announced:
        announced.remove()
    assert store.deleted == ["doc"]


def test_a_failure_of_the_store_leaves_the_note_and_the_next_change_deletes_first(caplog: pytest.LogCaptureFixture):
    database, store = CorpusDatabase(None), Recorder()
    external = ExternalVectors(database, store)
    store.broken = True
    said = r"Recorder failed to add 1 nodes .ConnectionError: no route to host.*verify\(repair=True\)"
    with pytest.raises(VectorStoreError, match=said) as raised, change(external, database, ["doc"]) as announced:
        announced.replace([node("a")], VECTOR)
    assert isinstance(raised.value.__cause__, ConnectionError)
    assert external.pending() == [("doc", "")]
    assert "Recorder and this index may differ in 1 documents or nodes" in caplog.text
    store.broken = False
    with change(external, database, ["doc"]) as announced:
        announced.replace([node("a")], VECTOR)
    assert (store.deleted, external.pending()) == (["doc"], [])


def test_a_failure_before_the_store_leaves_the_notes_as_they_were(caplog: pytest.LogCaptureFixture):
    database, store = CorpusDatabase(None), Recorder()
    external = ExternalVectors(database, store)
    store.broken = True
    with pytest.raises(VectorStoreError), change(external, database, ["first"]) as announced:
        announced.replace([node("a")], VECTOR)
    caplog.clear()
    with pytest.raises(KeyboardInterrupt), change(external, database, ["first", "second"]):
        raise KeyboardInterrupt
    assert external.pending() == [("first", "")]
    assert caplog.text == ""


def test_opening_says_that_a_change_was_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with CorpusDatabase(tmp_path, create=True) as database:
        ExternalVectors(database, Recorder())
        assert caplog.text == ""
        database.execute("INSERT INTO pending VALUES ('doc', '')")
    with CorpusDatabase(tmp_path, read_only=True) as database:
        ExternalVectors(database, Recorder())
    assert "Recorder and this index may differ in 1 documents or nodes: a change was cut off" in caplog.text


def test_a_note_that_another_process_took_away_is_noticed(tmp_path: Path):
    store = Recorder()
    with CorpusDatabase(tmp_path, create=True) as one, CorpusDatabase(tmp_path) as two:
        with ExternalVectors(one, store).announced(["doc"], []) as announced:
            with change(ExternalVectors(two, store), two, ["doc"]) as other:
                other.replace([node("a")], VECTOR)
            with pytest.raises(StorageError, match="Another process has changed the same documents"), one.transaction(), announced:
                announced.replace([node("b")], VECTOR)
        assert ExternalVectors(one, store).pending() == []
    assert list(store.data.embedding_dict) == ["a"]
