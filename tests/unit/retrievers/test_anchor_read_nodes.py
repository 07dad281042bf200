"""Passages that were read lately: nothing that is kept is ever out of date, written into, or seen by somebody who should see the store."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import set_global_tokenizer
from llama_index.core.schema import BaseNode, Document, IndexNode, NodeWithScore, TextNode
from llama_index.core.utils import get_tokenizer

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.hierarchy.units import UnitTable
from llama_index_advanced_rag.retrievers.anchors import lines as lines_module
from llama_index_advanced_rag.retrievers.anchors.lines import Keywords, read_lines
from llama_index_advanced_rag.retrievers.anchors.read_nodes import ReadNode, ReadPassages
from llama_index_advanced_rag.retrievers.anchors.regions import region_of
from llama_index_advanced_rag.retrievers.anchors.token_counts import count_tokens
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.trace import capture_trace

MODEL = DeterministicEmbedding(dimensions=16)
QUESTION = "fees and penalties of the fox"
WORDS = ("fees", "penalties", "fox", "sea", "notice", "due", "The")
names = st.sampled_from(["a", "b", "c"])
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
texts = st.lists(sentences, min_size=1, max_size=5).map(".\n".join) | st.lists(st.tuples(sentences, sentences), min_size=1, max_size=3).map(
    lambda parts: "\n\n".join(f"# {title}\n\n{body}" for title, body in parts)
)
steps = st.lists(
    st.tuples(st.just("update"), names, texts) | st.tuples(st.just("delete"), names, st.just("")) | st.tuples(st.just("node"), names, sentences), max_size=6
)


def index_of(**contents: str) -> CorpusIndex:
    documents = [Document(text=text, id_=name, metadata={"title": name}) for name, text in contents.items()]
    return CorpusIndex.from_documents(documents, embed_model=MODEL, chunk_size=16, chunk_overlap=0)


def shown(hits: list[NodeWithScore]) -> list[tuple[BaseNode, float | None]]:
    return [(hit.node, hit.score) for hit in hits]


def read_anew(retriever: Any, question: str = QUESTION) -> list[tuple[BaseNode, float | None]]:
    """What is found when a trace listens, for which nodes are read each time."""
    with capture_trace():
        return shown(retriever.retrieve(question))


def kept_in(index: CorpusIndex) -> ReadPassages:
    return ReadPassages.of_corpus(index.corpus)


@given(contents=st.dictionaries(names, texts, max_size=3), changes=steps, embeddings=st.booleans(), top_k=st.sampled_from([1, 3, 20]))
@settings(max_examples=60, deadline=None)
def test_whatever_changes_what_is_found_is_what_is_stored(contents: dict[str, str], changes: list[tuple[str, str, str]], embeddings: bool, top_k: int) -> None:
    index = index_of(**contents)
    retriever = index.as_retriever("anchor", similarity_top_k=top_k, embeddings=embeddings)
    for change in [None, *changes]:
        if change is not None:
            kind, name, text = change
            if kind == "update":
                index.update_ref_doc(Document(text=text, id_=name, metadata={"title": name}))
            elif kind == "delete":
                index.delete_ref_doc(name, delete_from_docstore=True)
            else:
                index.insert_nodes([TextNode(id_=f"loose {name}", text=text)])  # the same id with another text
        for _ in range(2):
            expected = read_anew(retriever)
            assert shown(retriever.retrieve(QUESTION)) == expected
            for node, _ in expected:
                assert index.docstore.get_node(node.node_id) == node
    assert shown(asyncio.run(retriever.aretrieve(QUESTION))) == read_anew(retriever)


def test_passages_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(a="Fees are due. " * 12, b="Penalties of the fox. " * 12)
    read: list[int] = []
    nodes_at = Corpus.nodes_at
    monkeypatch.setattr(Corpus, "nodes_at", lambda self, state, positions: read.append(len(positions)) or nodes_at(self, state, positions))
    first, second = index.as_retriever("anchor"), index.as_retriever("anchor", embeddings=False)
    once = shown(first.retrieve(QUESTION))
    assert sum(read) == index.corpus.counts()["nodes"] == len(kept_in(index))
    read.clear()
    assert shown(first.retrieve(QUESTION)) == once
    assert second.retrieve(QUESTION)
    assert read == [], "retrievers of one index share what was read"


def test_no_more_are_kept_than_said_and_long_ones_not_at_all() -> None:
    index = index_of(a="Fees are due. " * 40)
    index.insert_nodes([TextNode(id_="long", text="Fees are due. " * 1000)])
    corpus, kept = index.corpus, ReadPassages(index.corpus, most=3)
    positions = np.arange(corpus.state().n_rows)
    found = kept.at(corpus.state(), positions)
    assert len(kept) == 3
    assert [read.node.node_id for read in found if read is not None and not read.is_shared] == ["long"]
    again = kept.at(corpus.state(), positions[-4:])
    assert [read is old for read, old in zip(again, found[-4:], strict=True)] == [True, True, True, False]


def test_who_writes_into_a_result_writes_into_nothing_else() -> None:
    index = index_of(a="Fees are due. " * 20)
    retriever = index.as_retriever("anchor", similarity_top_k=3, max_unit_tokens=20)
    expected = read_anew(retriever)
    for _ in range(2):
        for hit in retriever.retrieve(QUESTION):
            hit.node.metadata["title"] = "changed"
            hit.node.metadata.setdefault("list", []).append(1)
            hit.node.excluded_embed_metadata_keys.append("changed")
            hit.node.excluded_llm_metadata_keys.append("changed")
            for related in hit.node.relationships.values():
                for info in related if isinstance(related, list) else [related]:
                    info.metadata["changed"] = True
            hit.node.relationships.clear()
            hit.node.text = "changed"
        assert shown(retriever.retrieve(QUESTION)) == expected


def test_a_row_that_another_process_has_deleted_is_gone(tmp_path: Path) -> None:
    documents = [Document(text=f"Fees of {name}.", id_=name) for name in ("a", "b")]
    with CorpusIndex.from_documents(documents, embed_model=MODEL, persist_dir=tmp_path) as writer, CorpusIndex.load(tmp_path, embed_model=MODEL) as reader:
        kept, state = kept_in(reader), reader.corpus.state()
        assert all(kept.at(state, np.arange(2)))
        writer.delete_ref_doc("a", delete_from_docstore=True)
        assert [read is None for read in kept.at(state, np.arange(2))] == [True, False]
        retriever = reader.as_retriever("anchor")
        assert [hit.node.ref_doc_id for hit in retriever.retrieve("fees")] == ["b"]
        writer.update_ref_doc(Document(text="Other fees of b.", id_="b"))
        assert [hit.node.get_content() for hit in retriever.retrieve("fees")] == ["Other fees of b."]
        writer.compact()
        assert [hit.node.get_content() for hit in retriever.retrieve("fees")] == ["Other fees of b."]


def test_a_node_that_leads_to_another_one_is_followed() -> None:
    index = index_of(a="Fees are due.")
    index.insert_nodes([IndexNode(id_="sign", text="fees and penalties", index_id="there", obj=TextNode(id_="there", text="Fees told elsewhere."))])
    retriever = index.as_retriever("anchor", embeddings=False)
    expected = read_anew(retriever, "fees and penalties")
    assert shown(retriever.retrieve("fees and penalties")) == expected
    assert shown(asyncio.run(retriever.aretrieve("fees and penalties"))) == expected


def test_many_ask_while_one_writes() -> None:
    index = index_of(a="Fees of version 0 are due.", b="Penalties of the fox.")
    retriever, done = index.as_retriever("anchor", similarity_top_k=5), threading.Event()

    def ask() -> list[BaseNode]:
        found: list[BaseNode] = []
        while not done.is_set():
            found += [hit.node for hit in retriever.retrieve(QUESTION)]
        return found

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        for number in range(1, 12):
            index.update_ref_doc(Document(text=f"Fees of version {number} are due.", id_="a", metadata={"title": f"a {number}"}))
        done.set()
        for node in (node for one in asking for node in one.result() if node.ref_doc_id == "a"):
            assert node.metadata["title"].split()[-1] in node.get_content() or node.metadata["title"] == "a", "text and metadata are of one version"
    assert shown(retriever.retrieve(QUESTION)) == read_anew(retriever)


def test_tokens_are_those_of_the_tokenizer_of_the_moment() -> None:
    before = get_tokenizer()
    try:
        for tokenizer, expected in ((str.split, 3), (list, 13), (str.split, 3)):
            set_global_tokenizer(tokenizer)
            assert [count_tokens("Fees are due."), count_tokens("Fees are due.")] == [expected, expected]
            assert count_tokens("Fees " * 5000) == len(tokenizer("Fees " * 5000))
    finally:
        set_global_tokenizer(before)


def test_a_very_long_passage_is_read_in_no_time_and_not_kept() -> None:
    long = "fees of the fox and no end " * 40_000
    lexical = LexicalRetriever.from_defaults(nodes=[TextNode(text="fees"), TextNode(text="fox"), TextNode(text="sea")], language="en")
    kept, started = lines_module._cached_lines.cache_info().currsize, time.perf_counter()
    lines = read_lines(TextNode(text=long), Keywords.of(QUESTION, lexical, TextAnalyzer("en")))
    assert len(lines) > 1000
    assert time.perf_counter() - started < 20
    assert lines_module._cached_lines.cache_info().currsize == kept


def test_where_a_node_stands_is_of_the_table_that_is_asked() -> None:
    node = TextNode(id_="n", text="x", metadata={"section_path": "Fees"})
    read, empty, full = ReadNode.of(node), UnitTable(), UnitTable.from_nodes([node])
    for table in (full, empty, full):
        assert read.region(table) == region_of(node, table)
        assert read.places(table) == (() if table is empty else (0,))


@given(text=texts, question=sentences, first=st.integers(0, 50))
@settings(max_examples=80, deadline=None)
def test_lines_are_those_of_this_text_and_question(text: str, question: str, first: int) -> None:
    lexical = LexicalRetriever.from_defaults(nodes=[TextNode(text=text), TextNode(text="notice"), TextNode(text="sea")], language="en")
    keywords = Keywords.of(question, lexical, TextAnalyzer("en"))
    for node in (TextNode(text=text, start_char_idx=first), TextNode(text=text), TextNode(text=f"{text} sea", metadata={"page_label": "3"})):
        for line in read_lines(node, keywords):
            begin = line.start - (node.start_char_idx or 0)
            assert " ".join(node.text[begin : begin + len(line.text)].split()) == line.text
            assert line.words == keywords.in_terms(keywords.analyzer.tokens(line.text))
            assert (line.node_id, line.page) == (node.node_id, node.metadata.get("page_label"))
