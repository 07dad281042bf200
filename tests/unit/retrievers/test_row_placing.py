"""Passages put in order by where their rows stand: what is found is what is found when each passage is read first, as for a trace."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.retrievers.entity_graph import EntityGraphRetriever
from llama_index_advanced_rag.retrievers.graph_source import corpus_graph
from llama_index_advanced_rag.retrievers.hierarchical import HierarchicalRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.trace import capture_trace

MODEL = DeterministicEmbedding(dimensions=16)
WORDS = ("fox", "hen", "sea", "tax", "net", "sales", "costs")
QUESTION = "net sales of the fox"
SIZES = {"chunk_size": 24, "chunk_overlap": 0}
NORTH = MetadataFilters(filters=[MetadataFilter(key="side", value="north")])
EAST = MetadataFilters(filters=[MetadataFilter(key="side", value="east")])

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
parts = st.lists(st.tuples(st.integers(1, 3), sentences, st.lists(sentences, max_size=5).map(". ".join)), min_size=1, max_size=4)
texts = st.lists(sentences, min_size=1, max_size=4).map(". ".join) | parts.map(
    lambda found: "\n\n".join(f"{'#' * n} {title}\n\n{body}" for n, title, body in found)
)
names = st.sampled_from(["a", "b", "c", "d"])
changes = st.tuples(st.just("update"), names, texts) | st.tuples(st.just("delete"), names, st.just(""))
options = st.fixed_dictionaries(
    {
        "similarity_top_k": st.sampled_from([1, 3, 50]),
        "candidates": st.sampled_from([2, 200]),
        "min_documents": st.sampled_from([1, 5]),
        "min_passages": st.sampled_from([1, 200]),
        "section_weight": st.sampled_from([0.0, 0.5, 2.0]),
        "document_weight": st.sampled_from([0.0, 0.5]),
        "min_share": st.sampled_from([None, 0.4]),
        "filters": st.sampled_from([None, NORTH, EAST]),
        "summaries": st.booleans(),
    }
)


def document(name: str, text: str) -> Document:
    return Document(text=text, id_=name, metadata={"side": "north" if name in "ab" else "south"})


def shown(hits: list[NodeWithScore]) -> list[tuple[BaseNode, float | None]]:
    return [(hit.node, hit.score) for hit in hits]


def read_first(retriever: HierarchicalRetriever, question: str) -> list[tuple[BaseNode, float | None]]:
    """What is found when a trace wants to know of each passage."""
    with capture_trace():
        return shown(retriever.retrieve(question))


def never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> list[BaseNode | None]:
        raise AssertionError("a node was read")

    monkeypatch.setattr(Corpus, "nodes_at", refused)
    monkeypatch.setattr(Corpus, "get_nodes", refused)


@pytest.fixture
def index() -> CorpusIndex:
    bodies = {name: "\n\n".join(f"# Part {part}\n\n{QUESTION} {part} of {name} {WORDS[part]}." for part in range(6)) for name in ("fox", "hen", "owl")}
    return CorpusIndex.from_documents([document(name, body) for name, body in bodies.items()], embed_model=MODEL, **SIZES)


@given(contents=st.dictionaries(names, texts, max_size=4), changed=st.lists(changes, max_size=3), given_options=options)
@settings(max_examples=60, deadline=None)
def test_as_when_each_passage_is_read_first(contents: dict[str, str], changed: list[tuple[str, str, str]], given_options: dict[str, Any]) -> None:
    index = CorpusIndex.from_documents([document(name, text) for name, text in contents.items()], embed_model=MODEL, **SIZES)
    retriever = index.as_retriever("hierarchical", **given_options)
    for change in [None, *changed]:
        if change is not None:
            kind, name, text = change
            index.update_ref_doc(document(name, text)) if kind == "update" else index.delete_ref_doc(name, delete_from_docstore=True)
        for question in (QUESTION, "hen"):
            expected = read_first(retriever, question)
            assert shown(retriever.retrieve(question)) == expected
            ids = [(node.node_id, score) for node, score in expected]
            assert retriever.retrieve_ids(question) == ids
            if change is None:
                assert shown(asyncio.run(retriever.aretrieve(question))) == expected
                assert asyncio.run(retriever.aretrieve_ids(question)) == ids


def test_nodes_of_the_final_list_only_are_read(index: CorpusIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    nodes_at = Corpus.nodes_at
    monkeypatch.setattr(Corpus, "nodes_at", lambda self, state, positions: read.append(len(positions)) or nodes_at(self, state, positions))
    assert len(index.as_retriever("hierarchical", similarity_top_k=3).retrieve(QUESTION)) == 3
    assert read == [3]


def test_no_node_is_read_for_ids(index: CorpusIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = index.as_retriever("hierarchical", similarity_top_k=3)
    expected = [(node.node_id, score) for node, score in read_first(retriever, QUESTION)]
    above = EntityGraphRetriever(retriever, corpus_graph(index.corpus), nodes=index.corpus)
    above.retrieve(QUESTION)
    never_read(monkeypatch)
    assert retriever.retrieve_ids(QUESTION) == expected
    assert asyncio.run(retriever.aretrieve_ids(QUESTION)) == expected
    assert retriever.retrieve_ids("") == asyncio.run(retriever.aretrieve_ids("")) == []
    assert above._ask(QueryBundle(QUESTION))[:3] == [node_id for node_id, _ in expected]


def test_what_goes_or_comes_while_it_is_looked_for(index: CorpusIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = index.as_retriever("hierarchical", similarity_top_k=5)
    best = retriever.retrieve(QUESTION)[0].node
    retrieve_ids = HybridRetriever.retrieve_ids

    def then(change: Callable[[], None]) -> list[tuple[BaseNode, float | None]]:
        def changed(self: HybridRetriever, query: Any) -> Any:
            found = retrieve_ids(self, query)
            monkeypatch.setattr(HybridRetriever, "retrieve_ids", retrieve_ids)
            change()
            return found

        monkeypatch.setattr(HybridRetriever, "retrieve_ids", changed)
        return shown(retriever.retrieve(QUESTION))

    found = then(lambda: index.update_ref_doc(document(str(best.ref_doc_id), "# Other\n\nNothing of that kind.")))
    assert best.node_id not in {node.node_id for node, _ in found}
    gone = str(found[0][0].ref_doc_id)
    found = then(lambda: index.delete_ref_doc(gone, delete_from_docstore=True))
    assert found
    assert gone not in {node.ref_doc_id for node, _ in found}
    assert found == read_first(retriever, QUESTION)


def test_another_writer_is_seen(tmp_path: Path) -> None:
    with (
        CorpusIndex.from_documents([document("fox", "net sales of the fox")], embed_model=MODEL, persist_dir=tmp_path) as writer,
        CorpusIndex.load(tmp_path, embed_model=MODEL, read_only=True) as reader,
    ):
        retriever = reader.as_retriever("hierarchical")
        assert [hit.node.get_content() for hit in retriever.retrieve(QUESTION)] == ["net sales of the fox"]
        writer.update_ref_doc(document("fox", "net costs of the fox"))
        assert [hit.node.get_content() for hit in retriever.retrieve(QUESTION)] == ["net costs of the fox"]
        writer.update_ref_doc(document("fox", "tax of the fox"))
        assert [reader.docstore.get_node(node_id).get_content() for node_id, _ in retriever.retrieve_ids(QUESTION)] == ["tax of the fox"]


def test_a_node_that_leads_to_another_one_is_followed(index: CorpusIndex) -> None:
    target = TextNode(id_="target", text="net sales of the fox, told elsewhere", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="owl")})
    index.insert_nodes([IndexNode(id_="sign", text="net sales of the fox", index_id="target", obj=target)])
    retriever = index.as_retriever("hierarchical", similarity_top_k=50)
    expected = read_first(retriever, QUESTION)
    assert shown(retriever.retrieve(QUESTION)) == expected
    assert retriever.retrieve_ids(QUESTION) == [(node.node_id, score) for node, score in expected]


def test_who_listens_to_the_retriever_hears_of_its_nodes(index: CorpusIndex) -> None:
    heard = LlamaDebugHandler(print_trace_on_end=False)
    corpus = index.corpus
    hybrid = index.as_retriever("hybrid")
    hybrid.callback_manager = CallbackManager([heard])
    retriever = HierarchicalRetriever(hybrid, nodes=corpus, units=index._scorer_of_units(), similarity_top_k=2)
    assert shown(retriever.retrieve(QUESTION)) == read_first(retriever, QUESTION)
    assert [len(pair[1].payload["nodes"]) > 2 for pair in heard.get_event_pairs()] == [True, True]


def test_rows_of_another_corpus_are_no_places(index: CorpusIndex) -> None:
    other = CorpusIndex.from_documents([document("other", "nothing"), document("fox", "fox")], embed_model=MODEL)
    retriever = HierarchicalRetriever(index.as_retriever("hybrid"), nodes=index.corpus, units=other._scorer_of_units(), min_passages=1, min_documents=1)
    assert shown(retriever.retrieve(QUESTION)) == read_first(retriever, QUESTION)


def test_many_ask_while_one_writes(index: CorpusIndex) -> None:
    retriever = index.as_retriever("hierarchical", similarity_top_k=4)
    done = threading.Event()

    def ask() -> set[str]:
        found: set[str] = set()
        while not done.is_set():
            found.update(hit.node.get_content() for hit in retriever.retrieve(QUESTION))
        return found

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        for number in range(12):
            index.update_ref_doc(document("fox", f"# New\n\nnet sales of the fox, version {number}"))
        done.set()
        assert all("net sales" in text for one in asking for text in one.result())
    assert shown(retriever.retrieve(QUESTION)) == read_first(retriever, QUESTION)
