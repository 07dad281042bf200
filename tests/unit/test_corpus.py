"""The state behind an index: what a search sees while it changes, and how memory follows the rows."""

import threading
from pathlib import Path

import pytest
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.errors import EmbeddingMismatchError, StorageError
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.rows.positions import Positions
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

MODES = ["lexical", "dense", "hybrid"]


def document(name: str, text: str, **metadata: object) -> Document:
    return Document(text=text, id_=name, metadata=metadata, excluded_embed_metadata_keys=list(metadata))


def build(*documents: Document, **options: object) -> CorpusIndex:
    return CorpusIndex.from_documents(documents, embed_model=DeterministicEmbedding(), **options)


def texts(index: CorpusIndex, mode: str, query: str = "fox") -> list[str]:
    return [hit.node.get_content() for hit in index.as_retriever(mode, similarity_top_k=50).retrieve(query)]


@pytest.mark.parametrize("mode", MODES)
def test_a_search_beside_a_writer_sees_a_document_old_or_new_never_neither(mode: str, caplog: pytest.LogCaptureFixture):
    index = build(document("fox", "fox version 0"), *(document(f"other {number}", f"the sea {number}") for number in range(5)))
    retriever, stop, seen, failures = index.as_retriever(mode, similarity_top_k=50), threading.Event(), set(), []

    def read() -> None:
        while not stop.is_set():
            try:
                versions = [hit.node.get_content() for hit in retriever.retrieve("fox version") if hit.node.ref_doc_id == "fox"]
            except Exception as error:  # noqa: BLE001 - shown by the test
                failures.append(error)
                return
            seen.add(len(versions))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in readers:
        thread.start()
    try:
        for version in range(1, 25):
            index.update_ref_doc(document("fox", f"fox version {version}"))
    finally:
        stop.set()
        for thread in readers:
            thread.join()
    assert failures == []
    assert 0 not in seen
    assert mode == "hybrid" or seen == {1}, "one part of a hybrid may still show the old version beside the new one"
    assert "gone" not in caplog.text
    assert "no node" not in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_a_change_between_search_and_reading_is_searched_again(mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    index = build(document("fox", "the old fox"), document("sea", "the sea"))
    retriever, read, changed = index.as_retriever(mode), Corpus.nodes_at, []

    def read_after_a_change(corpus: Corpus, state: RowState, positions: Positions) -> list:
        if len(positions) and not changed:
            changed.append(True)
            index.update_ref_doc(document("fox", "the new fox"))
        return read(corpus, state, positions)

    monkeypatch.setattr(Corpus, "nodes_at", read_after_a_change)
    assert "the new fox" in [hit.node.get_content() for hit in retriever.retrieve("fox")]
    assert "left out" not in caplog.text


@pytest.mark.parametrize("mode", MODES)
def test_a_retriever_made_before_a_change_follows_it(mode: str, tmp_path: Path):
    index = build(document("fox", "the fox"), persist_dir=tmp_path / "i")
    retriever = index.as_retriever(mode)
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as other:
        other.insert(document("bee", "the bee"))
        other.delete_ref_doc("fox")
    assert [hit.node.ref_doc_id for hit in retriever.retrieve("the bee")] == ["bee"], "what another process committed"
    index.insert(document("owl", "the owl"))
    assert {hit.node.ref_doc_id for hit in retriever.retrieve("the owl")} >= {"owl"}, "what this process committed after it"
    index.close()


async def test_an_engine_made_before_a_change_follows_it_async(tmp_path: Path):
    index = build(persist_dir=tmp_path / "i")
    engine = index.as_query_engine()
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as other:
        other.insert(document("bee", "The bee makes honey."))
    assert "honey" in str(await engine.aquery("What does the bee make?"))
    index.close()


@pytest.mark.parametrize("mode", MODES)
def test_memory_after_a_refresh_is_memory_after_a_load(mode: str, tmp_path: Path):
    index = build(document("fox", "fox one"), document("owl", "owl two", year=1), document("sea", "sea three"), persist_dir=tmp_path / "i")
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as other:
        other.apply(added=[document("bee", "bee four")], updated=[document("owl", "owl two", year=2), document("sea", "fox five")], deleted=["fox"])
        other.insert_nodes([TextNode(text="a loose fox", id_="loose")])
        expected = [(hit.node_id, hit.score) for hit in other.as_retriever(mode).retrieve("fox owl bee")]
    assert index.corpus.refresh()
    assert not index.corpus.refresh()
    filters = MetadataFilters(filters=[MetadataFilter(key="year", value=2)])
    assert [(hit.node_id, hit.score) for hit in index.as_retriever(mode).retrieve("fox owl bee")] == expected
    assert [hit.node.ref_doc_id for hit in index.as_retriever(mode, filters=filters).retrieve("owl")] == ["owl"]
    index.close()


def test_a_refresh_reads_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    index = build(*(document(str(number), f"text {number}") for number in range(20)), persist_dir=tmp_path / "i")
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as other:
        other.insert(document("new", "one more"))
    with monkeypatch.context() as patch:
        patch.setattr(SQLDocumentStore, "get_nodes", None)
        patch.setattr(SQLDocumentStore, "nodes_of_rows", None)
        assert index.corpus.refresh()
    assert "one more" in texts(index, "lexical", "more")
    index.close()


def test_a_change_cut_short_after_its_commit_is_read_from_the_rows(monkeypatch: pytest.MonkeyPatch):
    index = build(document("fox", "the fox"))
    refresh = RowFiles.refresh

    def interrupted(rows: RowFiles) -> bool:
        if rows.table.read() != rows.manifest:
            raise KeyboardInterrupt
        return refresh(rows)

    with monkeypatch.context() as patch:
        patch.setattr(RowFiles, "refresh", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.insert(document("bee", "the bee"))
    for mode in MODES:
        assert "the bee" in texts(index, mode, "bee")


@pytest.mark.parametrize(
    "place", ["llama_index_advanced_rag.stores.rows.row_files.RowFiles.append", "llama_index_advanced_rag.stores.rows.row_manifest.RowManifest.write"]
)
def test_a_failed_commit_changes_neither_rows_nor_memory(place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for folder in (None, tmp_path / "i"):
        index = build(document("fox", "the fox"), persist_dir=folder)
        before = [texts(index, mode) for mode in MODES]

        def full(*_: object, **__: object) -> None:
            raise StorageError("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(place, full)
            with pytest.raises(StorageError):
                index.update_ref_doc(document("fox", "another fox"))
        assert [texts(index, mode) for mode in MODES] == before
        assert [info.n_nodes for info in index.list_documents()] == [1]
        index.insert(document("bee", "the bee"))
        assert sorted(texts(index, "hybrid", "fox bee")) == ["the bee", "the fox"], "what the failed change left in the files is overwritten"
        assert index.verify().ok
        index.close()


def test_what_is_only_in_the_docstore_is_kept_and_not_searched(tmp_path: Path):
    index = build(document("fox", "the fox"), persist_dir=tmp_path / "i")
    index.docstore.add_documents([TextNode(text="the parent of foxes", id_="parent")])
    index.close()
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as again:
        assert again.docstore.get_document("parent").get_content() == "the parent of foxes"
        assert texts(again, "hybrid") == ["the fox"]


def test_equal_texts_are_embedded_once_until_the_last_is_gone():
    model = DeterministicEmbedding()
    index = CorpusIndex.from_documents([document("a", "the same"), document("b", "the same"), document("c", "another")], embed_model=model)
    assert index.last_report.embedded == 2
    index.delete_ref_doc("a")
    index.insert(document("d", "the same"))
    assert index.last_report.embedded == 0
    index.apply(deleted=["b", "d"])
    assert texts(index, "dense", "the same") == ["another"]
    index.insert(document("e", "the same"))
    assert index.last_report.embedded == 1


def test_nodes_given_are_not_changed():
    node = TextNode(text="a loose node", id_="loose", metadata={"year": 1}, embedding=[0.5] * 64)
    before = node.model_dump()
    index = build(document("fox", "the fox"))
    index.insert_nodes([node])
    index.as_retriever("hybrid").retrieve("loose")[0].node.metadata["year"] = 2
    assert node.model_dump() == before
    assert index.as_retriever("hybrid").retrieve("loose")[0].node.metadata == {"year": 1}


def test_external_vectors_are_not_held_twice():
    store = SimpleVectorStore()
    index = build(document("fox", "the fox"), vector_store=store)
    assert index.corpus.vectors is store
    index.update_ref_doc(document("fox", "the new fox"))
    assert len(store.data.embedding_dict) == 1
    assert texts(index, "dense") == ["the new fox"]


def settings(**known: object) -> CorpusSettings:
    return CorpusSettings(analyzer=TextAnalyzer().to_dict(), **known)


def test_settings_are_bound_to_the_first_model():
    bound = settings().with_embedding("model one", name="one")
    assert (bound.embedding, bound.embedding_name) == ("model one", "one")
    assert bound.with_embedding("model one", name="other") is bound
    with pytest.raises(EmbeddingMismatchError, match="built with the embedding model 'model one', but 'model two' was given"):
        bound.with_embedding("model two", name=None)


def test_settings_learn_the_dimension_and_refuse_another():
    learned = settings().with_dimension({64})
    assert (learned.dimension, learned.with_dimension(()).dimension) == (64, 64)
    with pytest.raises(EmbeddingMismatchError, match=r"vectors of length \[32\], but this index holds vectors of length 64"):
        learned.with_dimension({32})
    with pytest.raises(EmbeddingMismatchError, match=r"vectors of length \[32, 64\]"):
        settings().with_dimension({64, 32})
