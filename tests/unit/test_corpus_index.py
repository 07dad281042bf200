"""CorpusIndex: build, change, reopen, refuse; always against the same questions."""

import asyncio
import json
import logging
from pathlib import Path

import pytest
from llama_index.core import Settings, StorageContext, load_index_from_storage
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.chat_engine.types import ChatMode
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import Document, MetadataMode, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters, SimpleVectorStore

from llama_index_advanced_rag import CorpusIndex, RetrievalMode
from llama_index_advanced_rag.errors import (
    ConfigurationError,
    EmbeddingMismatchError,
    IndexClosedError,
    IndexNotFoundError,
    ModeNotAvailableError,
    ReadOnlyIndexError,
    UnknownArgumentError,
)
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM

TEXTS = {
    "fox.txt": "The red fox hunts at night. It eats mice and berries.",
    "sea.txt": "The sea is blue and deep. Whales sing under the waves.",
    "tax.txt": "Corporate tax rose to 25 percent in 2023. Revenue was 81,797 million.",
}
QUESTIONS = ["red fox at night", "whales under the waves", "revenue in 2023", "81,797"]


def documents(**changes: str) -> list[Document]:
    texts = {**TEXTS, **{f"{name}.txt": text for name, text in changes.items()}}
    return [Document(text=text, id_=name, metadata={"title": name, "kind": "tax" if "tax" in name else "nature"}) for name, text in texts.items()]


def build(docs: list[Document] | None = None, **options: object) -> CorpusIndex:
    return CorpusIndex.from_documents(documents() if docs is None else docs, **{"embed_model": DeterministicEmbedding(), **options})


def answers(index: CorpusIndex) -> list[list[tuple[str, float]]]:
    return [
        [(item.node.node_id, round(item.score or 0.0, 6)) for item in index.as_retriever(mode, similarity_top_k=5).retrieve(question)]
        for mode in ("lexical", "dense", "hybrid")
        for question in QUESTIONS
    ]


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_each_mode_finds_the_document(mode: str) -> None:
    index = build()
    assert index.as_retriever(mode).retrieve("whales under the waves")[0].node.ref_doc_id == "sea.txt"


def test_reopened_index_answers_identically(tmp_path: Path) -> None:
    folder = tmp_path / "dossier à côté"
    with build(persist_dir=folder) as index:
        before = answers(index)
    with CorpusIndex.load(folder, embed_model=DeterministicEmbedding()) as again:
        assert answers(again) == before
        assert "3 documents" in repr(again)


def test_quoting_embeds_nothing_but_the_question(tmp_path: Path) -> None:
    embedded: list[str] = []

    class Recording(DeterministicEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            embedded.extend(texts)
            return super()._get_text_embeddings(texts)

    with build(persist_dir=tmp_path / "index", embed_model=Recording()) as fresh:
        embedded.clear()
        first = str(fresh.as_query_engine().query(QUESTIONS[0]))
    with CorpusIndex.load(tmp_path / "index", embed_model=Recording()) as index:
        assert str(index.as_query_engine().query(QUESTIONS[0])) == first
    assert embedded == []


def test_a_table_that_the_chunk_border_cuts_is_read_whole() -> None:
    rows = "".join(f"Part {number} of the costs {number},000 {number},500\n" for number in range(10, 40))
    table = Document(text=f"The costs in millions:\nJuly 1, 2023 June 25, 2022\n{rows}Total of all 81,797 82,959\n", id_="table")
    with CorpusIndex.from_documents([table], embed_model=DeterministicEmbedding(), chunk_size=128, chunk_overlap=8) as index:
        found = index.as_retriever("lexical", similarity_top_k=1).retrieve("Total of all")
        assert "July 1" not in found[0].node.get_content()
        filtered = index.as_query_engine(retriever_mode="lexical", similarity_top_k=1, complete_blocks=False).query("What is the total of all?")
        assert filtered.metadata["retrieved"] == [found[0].node.node_id]
        whole = index.as_query_engine(retriever_mode="lexical", similarity_top_k=1).query("What is the total of all?")
        assert len(whole.metadata["retrieved"]) > 1
        chat = index.as_chat_engine(retriever_mode="lexical", similarity_top_k=1, complete_blocks=False)
        assert str(chat.chat("What is the total of all?")) == str(filtered)


def test_changes_end_where_a_fresh_build_starts() -> None:
    index = build(documents(owl="An owl sees in the dark."))
    index.update_ref_doc(Document(text="The fox sleeps.", id_="fox.txt", metadata={"title": "fox.txt", "kind": "nature"}))
    index.delete_ref_doc("owl.txt")
    index.insert(Document(text="Bees make honey.", id_="bee.txt"))
    fresh = build([*documents(fox="The fox sleeps."), Document(text="Bees make honey.", id_="bee.txt")])
    assert answers(index) == answers(fresh)


def test_unchanged_text_is_not_embedded_again(tmp_path: Path) -> None:
    model = DeterministicEmbedding()
    index = build(embed_model=model, persist_dir=tmp_path / "i")
    embedded = len(model.texts)
    assert index.refresh_ref_docs(documents()) == [False, False, False]
    assert index.refresh_ref_docs(documents(fox="A new fox.")) == [True, False, False]
    assert len(model.texts) == embedded + 1
    index.delete_ref_doc("sea.txt")
    assert index.refresh_ref_docs(documents(fox="A new fox.")) == [False, True, False]


def test_report_names_every_document() -> None:
    index = build()
    report = index.apply(added=[Document(text="new", id_="new")], updated=documents(), deleted=["sea.txt", "nobody"])
    assert (report.added, report.unchanged, report.deleted) == (["new", "sea.txt"], ["fox.txt", "tax.txt"], ["sea.txt"])
    assert report.skipped[0].ref_doc_id == "nobody"
    assert json.loads(json.dumps(report.to_dict()))["added"] == ["new", "sea.txt"]
    assert "2 added" in str(report)
    assert index.last_report is report


def test_failed_embedding_keeps_the_stored_version_and_the_rest() -> None:
    model = DeterministicEmbedding(fail_on="poison")
    index = build(embed_model=model)
    report = index.apply(updated=[*documents(fox="poison fox"), Document(text="Bees make honey.", id_="bee")])
    assert report.added == ["bee"]
    assert [item.ref_doc_id for item in report.skipped] == ["fox.txt"]
    assert "the embedding service is down" in report.skipped[0].reason
    assert "hunts at night" in index.as_retriever("lexical").retrieve("fox")[0].node.get_content()


def test_when_nothing_could_be_embedded_the_error_is_raised_as_it_was() -> None:
    with pytest.raises(ConnectionError, match="the embedding service is down"):
        build([Document(text=f"poison {number}", id_=str(number)) for number in range(10)], embed_model=DeterministicEmbedding(fail_on="poison"))


async def test_async_twins_do_the_same_and_await_the_model() -> None:
    index, other = build(), build()
    await index.aupdate_ref_doc(Document(text="The fox sleeps.", id_="fox.txt"))
    await index.ainsert(Document(text="Bees make honey.", id_="bee"))
    await index.adelete_ref_doc("sea.txt")
    assert await index.arefresh_ref_docs(documents()) == [True, True, False]
    other.apply(updated=documents(), added=[Document(text="Bees make honey.", id_="bee")])
    assert answers(index) == answers(other)
    found = await asyncio.gather(*(index.as_retriever("hybrid").aretrieve(question) for question in QUESTIONS))
    assert [item.node.node_id for item in found[0]] == [item.node.node_id for item in index.as_retriever("hybrid").retrieve(QUESTIONS[0])]


def test_filters_restrict_every_mode() -> None:
    index, filters = build(), MetadataFilters(filters=[MetadataFilter(key="kind", value="tax")])
    for mode in ("lexical", "dense", "hybrid"):
        found = index.as_retriever(mode, filters=filters).retrieve("the red fox and revenue")
        assert [item.node.ref_doc_id for item in found] == ["tax.txt"], mode


def test_documents_and_nodes_are_listed() -> None:
    index = build()
    assert [(info.ref_doc_id, info.title, info.n_nodes) for info in index.list_documents()] == [(name, name, 1) for name in TEXTS]
    assert set(index.ref_doc_info) == set(TEXTS)
    assert index.info()["documents"] == 3
    assert index.index_struct.nodes_dict == {}


def test_offsets_slice_the_document() -> None:
    text = " ".join(f"Sentence number {number} talks about topic {number % 7}." for number in range(300))
    index = build([Document(text=text, id_="long")], chunk_size=40, chunk_overlap=8)
    nodes = index.corpus.get_nodes(index.ref_doc_info["long"].node_ids)
    assert len(nodes) > 10
    assert all(text[node.start_char_idx : node.end_char_idx] == node.get_content(MetadataMode.NONE) for node in nodes if isinstance(node, TextNode))


def test_own_transformations_and_ready_nodes() -> None:
    index = build(transformations=[SentenceSplitter(chunk_size=30, chunk_overlap=0)])
    assert index.as_retriever("lexical").retrieve("whales")[0].node.ref_doc_id == "sea.txt"
    index.insert_nodes([TextNode(text="A loose node about zebras.", id_="zebra")])
    assert index.as_retriever("dense").retrieve("loose node about zebras")[0].node.node_id == "zebra"
    index.delete_nodes(["zebra"])
    assert index.as_retriever("lexical").retrieve("zebras") == []


def test_index_with_own_transformations_asks_for_them_again(tmp_path: Path) -> None:
    build(transformations=[SentenceSplitter()], persist_dir=tmp_path / "i").close()
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as index, pytest.raises(ConfigurationError, match="of your own"):
        index.insert(Document(text="more"))


def test_starts_empty_and_answers_nothing() -> None:
    index = CorpusIndex(embed_model=DeterministicEmbedding())
    for mode in ("lexical", "dense", "hybrid"):
        assert index.as_retriever(mode).retrieve("anything") == []
    assert index.as_query_engine().query("anything").source_nodes == []
    index.insert(Document(text="The sea is blue.", id_="sea"))
    assert index.as_retriever().retrieve("sea")[0].node.ref_doc_id == "sea"


def test_external_vector_store_keeps_the_vectors() -> None:
    store = SimpleVectorStore()
    index = CorpusIndex.from_documents(documents(), vector_store=store, embed_model=DeterministicEmbedding())
    assert len(store.data.embedding_dict) == 3
    index.delete_ref_doc("fox.txt")
    assert len(store.data.embedding_dict) == 2
    assert index.as_retriever("hybrid").retrieve("whales under the waves")[0].node.ref_doc_id == "sea.txt"


def test_rebuilding_in_place_needs_overwrite(tmp_path: Path) -> None:
    model, folder = DeterministicEmbedding(), tmp_path / "i"
    build(persist_dir=folder, embed_model=model).close()
    with pytest.raises(ConfigurationError, match=r"CorpusIndex\.load"):
        build(persist_dir=folder)
    embedded = len(model.texts)
    with build(documents()[:2], persist_dir=folder, overwrite=True, embed_model=model) as index:
        assert [info.ref_doc_id for info in index.list_documents()] == ["fox.txt", "sea.txt"]
    assert len(model.texts) == embedded


def test_another_embedding_model_is_refused(tmp_path: Path) -> None:
    build(persist_dir=tmp_path / "i").close()
    with pytest.raises(EmbeddingMismatchError, match="built with the embedding model"):
        CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding(model_name="other"))


def test_read_only_index_refuses_changes(tmp_path: Path) -> None:
    build(persist_dir=tmp_path / "i").close()
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding(), read_only=True) as index:
        assert index.as_retriever().retrieve("fox")
        for change in (lambda: index.insert(Document(text="x")), lambda: index.delete_ref_doc("fox.txt"), lambda: index.insert_nodes([TextNode(text="x")])):
            with pytest.raises(ReadOnlyIndexError, match="read_only=True"):
                change()


def test_missing_closed_and_stock_loader(tmp_path: Path) -> None:
    with pytest.raises(IndexNotFoundError, match="There is no index"):
        CorpusIndex.load(tmp_path / "nowhere")
    index = build(persist_dir=tmp_path / "i")
    index.close()
    index.close()
    with pytest.raises(IndexClosedError):
        index.list_documents()
    with pytest.raises(KeyError, match=r"CorpusIndex\.load"):
        load_index_from_storage(StorageContext.from_defaults(persist_dir=str(tmp_path / "i")))


def test_persist_of_an_index_in_memory(tmp_path: Path) -> None:
    index = build()
    index.storage_context.persist(persist_dir=str(tmp_path / "copy"))
    with CorpusIndex.load(tmp_path / "copy", embed_model=DeterministicEmbedding()) as copy:
        assert answers(copy) == answers(index)


def test_modes_and_arguments_are_checked() -> None:
    index = build()
    with pytest.raises(ModeNotAvailableError, match="lexical, dense, hybrid, hierarchical, anchor, graph, vote"):
        index.as_retriever(RetrievalMode.COMMUNITY)
    with pytest.raises(ConfigurationError, match="There is no retrieval mode 'magic'"):
        index.as_retriever("magic")
    with pytest.raises(UnknownArgumentError, match="'simlarity'"):
        index.as_query_engine(simlarity=3)
    with pytest.raises(UnknownArgumentError, match="'fusoin'"):
        index.as_retriever("hybrid", fusoin="weighted")
    with pytest.raises(UnknownArgumentError, match="'persistdir'"):
        CorpusIndex.from_documents([], persistdir="x")
    with pytest.raises(ConfigurationError, match="persist_dir"):
        CorpusIndex.from_documents([], storage_context=StorageContext.from_defaults())
    engine = index.as_query_engine(similarity_top_k=2, fusion="weighted", max_sentences=1, retriever_mode="hybrid")
    assert engine.query("What was revenue in 2023?").source_nodes


def test_engines_without_an_llm_never_touch_settings(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llama_index_advanced_rag.query_engines.grounded._said_unused", [])  # it is said once a process
    Settings.llm = ScriptedLLM([AssertionError("Settings.llm was used")])
    try:
        with caplog.at_level(logging.INFO, logger="llama_index_advanced_rag"):
            index = build()
            response = index.as_query_engine().query("What was revenue?")
            chat = index.as_chat_engine().chat("What was revenue?")
    finally:
        Settings._llm = None
    assert "81,797" in str(response)
    assert "[1]" in str(response)
    assert "81,797" in str(chat)
    assert sum("llm=" in record.message for record in caplog.records) == 1


def test_chat_modes_that_need_an_llm_say_so() -> None:
    index = build()
    for mode in (ChatMode.CONTEXT, ChatMode.CONDENSE_PLUS_CONTEXT, ChatMode.SIMPLE, ChatMode.CONDENSE_QUESTION):
        with pytest.raises(ConfigurationError, match="needs an LLM"):
            index.as_chat_engine(mode)
    assert isinstance(index.as_chat_engine(ChatMode.CONTEXT, llm=ScriptedLLM()), ContextChatEngine)
    with pytest.raises(ConfigurationError, match="no chat engine for 'react' any more"):
        index.as_chat_engine(ChatMode.REACT, llm=ScriptedLLM())


def test_retriever_drops_into_a_plain_query_engine() -> None:
    llm = ScriptedLLM(["Revenue was 81,797 million."])
    engine = RetrieverQueryEngine.from_args(build().as_retriever("hybrid"), llm=llm)
    assert str(engine.query("What was revenue?")) == "Revenue was 81,797 million."
    assert "81,797" in llm.prompts[0]


def test_with_an_llm_one_call_and_citations() -> None:
    llm = ScriptedLLM(["Revenue was 81,797 million [2]."])
    response = build(llm=llm).as_query_engine().query("What was revenue?")
    assert len(llm.prompts) == 1
    assert response.metadata["usage"]["llm_calls"] == 1
    json.dumps(response.metadata)


def test_empty_and_repeated_documents_are_reported() -> None:
    index = build([Document(text="  ", id_="blank"), Document(text="one", id_="x"), Document(text="two", id_="x")])
    assert any("blank" in warning for warning in index.last_report.warnings)
    assert any("'x'" in warning for warning in index.last_report.warnings)
    assert index.as_retriever("lexical").retrieve("two")[0].node.ref_doc_id == "x"
    assert index.refresh_ref_docs([Document(text="  ", id_="blank")]) == [False]


def test_broken_transformation_skips_its_document() -> None:
    class Picky(SentenceSplitter):
        def __call__(self, nodes: list, **kwargs: object) -> list:
            if "sea" in nodes[0].get_content():
                raise ValueError("I do not like the sea")
            return super().__call__(nodes, **kwargs)

    index = build(transformations=[Picky()])
    assert [(item.ref_doc_id, "I do not like the sea" in item.reason) for item in index.last_report.skipped] == [("sea.txt", True)]
    assert index.as_retriever("lexical").retrieve("fox")


def test_another_writer_is_seen(tmp_path: Path) -> None:
    reader = build(persist_dir=tmp_path / "i")
    with CorpusIndex.load(tmp_path / "i", embed_model=DeterministicEmbedding()) as writer:
        writer.insert(Document(text="Bees make honey.", id_="bee"))
    assert reader.as_retriever("lexical").retrieve("honey")[0].node.ref_doc_id == "bee"
    reader.close()
