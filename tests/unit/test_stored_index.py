"""Name, contents, copies, and what is left of an index that could not be made."""

import copy
import pickle
from pathlib import Path

import pytest
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, IndexNode, TextNode

from llama_index_advanced_rag import CorpusIndex, LexicalRetriever
from llama_index_advanced_rag.errors import ConfigurationError, IndexNotCopiedError, ReadOnlyIndexError
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.testing import DeterministicEmbedding

DOCUMENTS = [Document(text="The fox hunts.", id_="fox", metadata={"title": "Foxes"}), Document(text="The sea is blue.", id_="sea")]


def build(documents: list[Document] = DOCUMENTS, **options: object) -> CorpusIndex:
    return CorpusIndex.from_documents(documents, **{"embed_model": DeterministicEmbedding(), **options})


def load(folder: Path, **options: object) -> CorpusIndex:
    return CorpusIndex.load(folder, **{"embed_model": DeterministicEmbedding(), **options})


def test_id_and_summary_are_stored(tmp_path: Path):
    with build(persist_dir=tmp_path / "i") as index:
        first = index.index_id
    with load(tmp_path / "i") as index:
        assert (index.index_id, index.summary) == (first, "None")
        index.set_index_id("animals")
        index.summary = "About animals."
    with load(tmp_path / "i", read_only=True) as index:
        assert (index.index_id, index.summary) == ("animals", "About animals.")
        with pytest.raises(ReadOnlyIndexError):
            index.set_index_id("other")
        with pytest.raises(ReadOnlyIndexError):
            index.summary = "Other."


def test_contents_are_seen_as_llamaindex_shows_them():
    index = build()
    whole, passage = index.docstore.get_nodes(index.ref_doc_info["fox"].node_ids)
    assert (whole.get_content(), passage.get_content()) == ("The fox hunts.",) * 2
    assert [child.node_id for child in whole.child_nodes or []] == [passage.node_id]
    assert set(index.docstore.docs) == {passage.node_id, index.ref_doc_info["sea"].node_ids[-1]}, "passages once, not again as whole documents"
    assert index.docstore.get_document("fox").get_content() == "The fox hunts."
    assert index.vector_store is index.storage_context.vector_store
    assert [(info.ref_doc_id, info.title) for info in index.list_documents()] == [("fox", "Foxes"), ("sea", "sea")]


def test_persisting_again_replaces_the_copy_of_the_same_index_only(tmp_path: Path):
    index = build()
    index.storage_context.persist(persist_dir=str(tmp_path / "copy"))
    index.insert(Document(text="A bee.", id_="bee"))
    index.persist(tmp_path / "copy")
    with load(tmp_path / "copy") as again:
        assert (again.index_id, len(again.list_documents())) == (index.index_id, 3)
    with pytest.raises(ConfigurationError, match="The folder 'copy' already holds another index"):
        build().persist(tmp_path / "copy")


def test_persisting_into_the_own_folder_is_nothing_to_do(tmp_path: Path):
    with build(persist_dir=tmp_path / "i") as index:
        index.storage_context.persist(persist_dir=tmp_path / "x" / ".." / "i")
        assert len(index.list_documents()) == 2


def test_an_open_index_is_not_copied_and_says_what_to_do():
    index = build()
    for value in (index, index.as_retriever("lexical"), index.as_query_engine(), index.docstore):
        with pytest.raises(IndexNotCopiedError, match=r"Open it in each process: CorpusIndex\.load"):
            pickle.dumps(value)
        with pytest.raises(TypeError, match="cannot be pickled or deep-copied"):
            copy.deepcopy(value)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_parts_in_memory_are_copied_whole(again):
    store = FlatVectorStore()
    store.add([TextNode(text="fox", id_="fox", embedding=[1.0, 0.0])])
    other = again(store)
    other.add([TextNode(text="sea", id_="sea", embedding=[0.0, 1.0])])
    assert (store.search([1.0, 0.1], 5), len(other)) == ([("fox", pytest.approx(0.995, abs=1e-3))], 2)
    retriever = LexicalRetriever.from_defaults(nodes=[TextNode(text="red fox", id_="fox")], language="en")
    copied = again(retriever)
    copied.add_nodes([TextNode(text="grey fox", id_="grey")])
    assert ([hit.node_id for hit in retriever.retrieve("fox")], len(copied)) == (["fox"], 2)


def test_an_index_that_could_not_be_filled_leaves_nothing_behind(tmp_path: Path):
    failing = DeterministicEmbedding(fail_on="fox")
    with pytest.raises(ConnectionError):
        build(DOCUMENTS[:1], embed_model=failing, persist_dir=tmp_path / "i")
    assert not (tmp_path / "i").exists()
    with pytest.raises(ConnectionError):
        CorpusIndex([TextNode(text="fox")], embed_model=failing, persist_dir=tmp_path / "i")
    assert not (tmp_path / "i").exists()
    build(persist_dir=tmp_path / "i").close()


def test_what_is_not_ours_and_what_is_in_stays(tmp_path: Path):
    (tmp_path / "i").mkdir()
    (tmp_path / "i" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConnectionError):
        build(DOCUMENTS[:1], embed_model=DeterministicEmbedding(fail_on="fox"), persist_dir=tmp_path / "i")
    assert [path.name for path in (tmp_path / "i").iterdir()] == ["notes.txt"]
    with build(embed_model=DeterministicEmbedding(fail_on="fox"), persist_dir=tmp_path / "i") as index:
        assert [info.ref_doc_id for info in index.list_documents()] == ["sea"]


@pytest.mark.parametrize(("name", "value"), [("language", "fr"), ("chunk_size", 64), ("chunk_overlap", 0)])
def test_an_index_is_not_overwritten_under_other_settings(tmp_path: Path, name: str, value: object):
    build(persist_dir=tmp_path / "i").close()
    with pytest.raises(ConfigurationError, match=f"built with {name}=.*, not {value!r}. Leave {name} out"):
        build(persist_dir=tmp_path / "i", overwrite=True, **{name: value})
    build(persist_dir=tmp_path / "i", overwrite=True, language="auto", chunk_overlap=32).close()


def test_transformations_are_those_it_was_built_with(tmp_path: Path):
    build(persist_dir=tmp_path / "i").close()
    with pytest.raises(ConfigurationError, match="built without transformations"):
        load(tmp_path / "i", transformations=[SentenceSplitter()])


@pytest.mark.parametrize("wrong", ["text", DOCUMENTS[0], ["text"], [None]])
def test_documents_are_a_list_of_documents(wrong: object):
    with pytest.raises(ConfigurationError, match="where a list of Document objects is expected"):
        build(wrong)


def test_documents_may_come_from_a_generator():
    assert len(build(document for document in DOCUMENTS).list_documents()) == 2


def test_ids_are_a_list_of_ids():
    index = build()
    with pytest.raises(ConfigurationError, match=r"Give a list: \['fox'\]"):
        index.apply(deleted="fox")
    with pytest.raises(ConfigurationError, match=r"Give a list: \['fox'\]"):
        index.delete_nodes("fox")


def test_a_whole_document_is_no_node():
    with pytest.raises(ConfigurationError, match="The document 'fox' was given as a node"):
        CorpusIndex(DOCUMENTS, embed_model=DeterministicEmbedding())


def test_an_index_node_leads_to_its_object():
    part = build()
    index = CorpusIndex([IndexNode(text="All about foxes", index_id="part", obj=part.as_query_engine()), TextNode(text="Other")], embed_model=part.embed_model)
    for mode in ("lexical", "hybrid"):
        assert "The fox hunts." in index.as_retriever(mode, similarity_top_k=1).retrieve("foxes")[0].node.get_content()


def test_an_embedding_model_is_loaded_once_for_all_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from llama_index_advanced_rag._concurrency import run_all

    build(persist_dir=tmp_path / "i").close()
    made = []
    monkeypatch.setattr("llama_index_advanced_rag.updatable.resolve_embed_model", lambda given: made.append(given) or DeterministicEmbedding())
    with CorpusIndex.load(tmp_path / "i") as index:
        models = [outcome.unwrap() for outcome in run_all([lambda: index.embed_model] * 8)]
    assert len(made) == 1
    assert all(model is models[0] for model in models)
