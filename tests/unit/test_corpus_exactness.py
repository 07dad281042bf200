"""Whatever was inserted, changed, deleted and reopened: an index answers as one that was built anew from the documents that are left."""

import itertools
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import BaseNode, Document

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.graph.graph_walk import GraphWalk
from llama_index_advanced_rag.graph.records import ExtractionRecord
from llama_index_advanced_rag.testing import DeterministicEmbedding

WORDS = ("fox", "foxes", "sea", "whale", "tax", "revenue", "2023", "81,797", "été", "renard", "the", "of", "mer", "Lake", "District", "Q3", "2022", "Fox")
MODES = ("lexical", "dense", "hybrid")
QUESTIONS = ("fox", "whale in the sea", "revenue of 2023", "été renard mer", "81,797", " ".join(WORDS))
MODEL = DeterministicEmbedding(dimensions=16)

Contents = Mapping[str, tuple[str, str]]  # id to text and title
names = st.sampled_from([f"d{number}" for number in range(6)] + ["é/à b.txt"])
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
flat = st.lists(sentences, max_size=6).map(". ".join)  # the same sentence in two documents, none at all, several chunks
headed = st.lists(st.tuples(st.integers(1, 3), sentences, flat), min_size=1, max_size=4).map(
    lambda parts: "\n\n".join(f"{'#' * level} {title}\n\n{body}" for level, title, body in parts)
)
texts = flat | headed
documents = st.tuples(texts, st.sampled_from(["", "Title", "fox", "Lake District", "Lake District (film)", "Q3 2022"]))
corpora = st.dictionaries(names, documents, max_size=5)
changes = st.one_of(
    st.tuples(st.just("insert"), names, documents),
    st.tuples(st.just("update"), names, documents),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("refresh"), corpora),
    st.tuples(st.just("apply"), corpora, st.sets(names, max_size=3)),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("compact")),
)


def to_documents(contents: Contents) -> list[Document]:
    return [Document(text=text, id_=name, metadata={"title": title} if title else {}) for name, (text, title) in contents.items()]


LIVING = ("documents", "nodes", "rows", "text_bytes", "graph_bytes")


def build(contents: Contents, **options: object) -> CorpusIndex:
    return CorpusIndex.from_documents(to_documents(contents), embed_model=MODEL, chunk_size=12, chunk_overlap=4, **options)


STRUCTURED = ("hierarchical", "anchor", "graph")


def found(index: CorpusIndex, mode: str, question: str, top_k: int) -> list[tuple[BaseNode, float]]:
    return [(hit.node, hit.score or 0.0) for hit in index.as_retriever(mode, similarity_top_k=top_k).retrieve(question)]


def assert_same_answers(one: CorpusIndex, other: CorpusIndex, *more: tuple[str, str, int]) -> None:
    asked = [*more, *itertools.product(MODES, QUESTIONS, (3, 1000)), *itertools.product(STRUCTURED, (QUESTIONS[1], QUESTIONS[-1]), (1000,))]
    for mode, question, top_k in asked:
        answers, wanted = found(one, mode, question, top_k), found(other, mode, question, top_k)
        assert [node.node_id for node, _ in answers] == [node.node_id for node, _ in wanted], (mode, question)
        assert [node for node, _ in answers] == [node for node, _ in wanted]
        assert [score for _, score in answers] == pytest.approx([score for _, score in wanted], abs=1e-6), (mode, question)


def records(index: CorpusIndex) -> dict[str, ExtractionRecord]:
    """What each searchable node says, by its id."""
    rows = index.corpus.rows.table.all_rows().tolist()
    said, nodes = index.corpus.records_of_rows(rows), index.corpus.documents.nodes_of_rows(rows)
    assert set(said) == set(rows), "each has a record"
    return {node.node_id: said[row] for row, node in nodes.items()}


def assert_same_state(one: CorpusIndex, other: CorpusIndex) -> None:
    assert records(one) == records(other)
    assert one.list_documents() == other.list_documents()
    assert {name: info.node_ids for name, info in one.ref_doc_info.items()} == {name: info.node_ids for name, info in other.ref_doc_info.items()}
    for index in (one, other):
        assert index.verify().problems == []
    assert {name: one.corpus.sizes()[name] for name in LIVING} == {name: other.corpus.sizes()[name] for name in LIVING}
    assert_same_graph(one, other)


def assert_same_graph(one: CorpusIndex, other: CorpusIndex) -> None:
    """Entities, edges, meanings of names, and what is reached from each entity: to the last bit."""
    graphs = [index.as_retriever("graph")._search._walks.source.graph() for index in (one, other)]  # the one that the index keeps and updates
    parts = [(graph.chunk_ids, graph.keys, graph.names, dict(graph.namesakes), list(graph.facts.relations), graph.titles.tolist()) for graph in graphs]
    assert parts[0] == parts[1]
    for name in ("mentions", "own", "aliases"):
        left, right = (getattr(graph, name) for graph in graphs)
        assert all(np.array_equal(getattr(left, array), getattr(right, array)) for array in ("indptr", "indices", "data")), name
    left, right = (GraphWalk.of(graph) for graph in graphs)
    for entity in range(min(5, graphs[0].n_entities)):
        assert np.array_equal(left.reach({entity: 1.0}, [0]).values, right.reach({entity: 1.0}, [0]).values)


def change(index: CorpusIndex, contents: dict[str, tuple[str, str]], step: tuple[object, ...], folder: Path) -> CorpusIndex:
    """Do one step to the index and to the plain dictionary that it must equal."""
    match step:
        case ("insert" | "update" as kind, str(name), (str(text), str(title))):
            contents[name] = (text, title)
            (index.insert if kind == "insert" else index.update_ref_doc)(*to_documents({name: (text, title)}))
        case ("delete", str(name)):
            contents.pop(name, None)
            index.delete_ref_doc(name)
        case ("refresh", dict(new)):
            contents.update(new)
            index.refresh_ref_docs(to_documents(new))
        case ("apply", dict(new), set(gone)):
            for name in gone:
                contents.pop(name, None)
            contents.update(new)
            index.apply(updated=to_documents(new), deleted=sorted(gone))
        case ("compact",):
            index.compact()
        case _:
            index.close()
            return CorpusIndex.load(folder, embed_model=MODEL)
    return index


@settings(max_examples=18, deadline=None)
@given(start=corpora, steps=st.lists(changes, min_size=1, max_size=6))
def test_after_any_changes_the_answers_are_those_of_a_fresh_build(start: Contents, steps: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, contents = Path(place) / "index", dict(start)
        index = build(start, persist_dir=folder)
        for step in steps:
            for mode in ("hierarchical", "graph"):
                found(index, mode, QUESTIONS[1], 3)  # what is read once for each state is read now
            index = change(index, contents, step, folder)
        with index, build(contents) as fresh:
            assert_same_state(index, fresh)
            assert_same_answers(index, fresh, ("vote", QUESTIONS[-1], 1000))


@settings(max_examples=12, deadline=None)
@given(left=corpora, right=corpora)
def test_a_and_b_without_b_is_a(left: Contents, right: Contents) -> None:
    only_right = {name: value for name, value in right.items() if name not in left}
    with build({**left, **only_right}) as both, build(left) as alone:
        both.apply(deleted=list(only_right))
        assert_same_state(both, alone)
        assert_same_answers(both, alone)


@settings(max_examples=8, deadline=None)
@given(contents=corpora, data=st.data())
def test_the_order_in_which_documents_come_does_not_matter(contents: Contents, data: st.DataObject) -> None:
    order = data.draw(st.permutations(list(contents)))
    with build(contents) as one, build({}) as other:
        for name in order:
            other.insert(*to_documents({name: contents[name]}))
        assert_same_state(one, other)
        assert_same_answers(one, other)
