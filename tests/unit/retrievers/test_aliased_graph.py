"""A graph with aliases beside the one without, through changes."""

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.retrievers.graph_source import AliasedGraph, CorpusGraph, GraphSource, corpus_graph
from llama_index_advanced_rag.testing import DeterministicEmbedding

TEXTS = {
    "bridge": "Helena Brook built the bridge of the Ohio State University.",
    "town": "OSU lies in Columbus.",
    "river": "Columbus lies on the Scioto.",
}
MODEL = DeterministicEmbedding(dimensions=16)


class Alike(DeterministicEmbedding):
    """To which all texts are the same."""

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, *[0.0] * 15] for _ in texts]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]


class Broken(DeterministicEmbedding):
    """That is not there."""

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        raise OSError("no model")

    def _get_text_embedding(self, text: str) -> list[float]:
        raise OSError("no model")


def index_of(*names: str, model: BaseEmbedding = MODEL) -> CorpusIndex:
    return CorpusIndex.from_documents([Document(id_=name, text=TEXTS[name]) for name in names], embed_model=model, language="en")


def edges(graph: EntityGraph) -> set[tuple[str, str, float]]:
    aliases = graph.aliases.tocoo()
    return {(graph.keys[row], graph.keys[column], weight) for row, column, weight in zip(aliases.row, aliases.col, aliases.data, strict=True)}


def test_both_graphs_live_side_by_side() -> None:
    with index_of(*TEXTS) as index:
        source = CorpusGraph(index.corpus)
        aliased = source.aliased()
        assert isinstance(aliased, GraphSource)
        assert source.aliased() is aliased
        assert aliased.graph() is aliased.graph()
        assert edges(source.graph()) == set()
        assert {("osu", "ohio state university", 0.9), ("ohio state university", "osu", 0.9)} == edges(aliased.graph())
        assert aliased.graph().mentions is source.graph().mentions
        assert aliased.documents(aliased.graph()) == source.documents(source.graph())


def test_after_every_change_it_is_that_of_a_fresh_index() -> None:
    vectors = TextVectors(Alike(dimensions=16))
    with index_of("town") as index:
        source = CorpusGraph(index.corpus)
        aliased = source.aliased(vectors)
        aliased.graph()
        for change, left in (
            (lambda: index.insert(Document(id_="bridge", text=TEXTS["bridge"])), ("town", "bridge")),
            (lambda: index.insert(Document(id_="river", text=TEXTS["river"])), ("town", "bridge", "river")),
            (lambda: index.delete_ref_doc("bridge"), ("town", "river")),
            (lambda: index.apply(deleted=["town", "river"]), ()),
        ):
            change()
            with index_of(*left) as fresh:
                expected = AliasedGraph(CorpusGraph(fresh.corpus), TextVectors(Alike(dimensions=16))).graph()
            assert edges(aliased.graph()) == edges(expected)
            assert (left == ()) == (aliased.graph().aliases.nnz == 0)
            assert source.graph().aliases.nnz == 0


def test_other_vectors_make_another_graph() -> None:
    with index_of(*TEXTS) as index:
        source, vectors = CorpusGraph(index.corpus), TextVectors(Alike(dimensions=16))
        assert source.aliased(vectors) is source.aliased(vectors)
        assert source.aliased(vectors).graph().aliases.nnz > source.aliased().graph().aliases.nnz


def test_a_model_that_fails_is_asked_again_and_the_plain_graph_does_not_notice() -> None:
    with index_of(*TEXTS) as index:
        source = CorpusGraph(index.corpus)
        aliased = source.aliased(TextVectors(Broken(dimensions=16)))
        for _ in range(2):
            with pytest.raises(OSError, match="no model"):
                aliased.graph()
        assert source.graph().n_chunks == len(TEXTS)


def test_the_mode_walks_over_aliases_where_asked_to() -> None:
    with index_of(*TEXTS) as index:
        question = "In which town did Helena Brook build?"
        plain = index.as_retriever("graph", guard=0)
        before = [(hit.node_id, hit.score) for hit in plain.retrieve(question)]
        aliased = index.as_retriever("graph", guard=0, aliases=True)
        walked = {hit.node.ref_doc_id: hit for hit in aliased.retrieve(question)}
        assert set(walked) == set(TEXTS)
        assert [(hit.node_id, hit.score) for hit in plain.retrieve(question)] == before
        np.testing.assert_array_equal(corpus_graph(index.corpus).graph().aliases.toarray(), 0)
        assert corpus_graph(index.corpus).aliased(index._text_vectors()).graph().aliases.nnz > 0
