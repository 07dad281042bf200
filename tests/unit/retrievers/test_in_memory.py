"""Search over nodes that somebody gives: by words, and by meaning where there is a model."""

import pytest
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.retrievers.in_memory import dense_over, search_nodes
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.testing.observing import snapshot

TEXTS = {"fox": "The red fox hunts.", "sea": "The sea is blue.", "hen": "A hen sleeps."}


def nodes() -> list[BaseNode]:
    return [TextNode(id_=name, text=text, metadata={"kind": name}, excluded_embed_metadata_keys=["kind"]) for name, text in TEXTS.items()]


def test_without_a_model_by_words() -> None:
    retriever = search_nodes(nodes())
    assert isinstance(retriever, LexicalRetriever)
    assert [hit.node_id for hit in retriever.retrieve("foxes")] == ["fox"]


def test_with_a_model_by_words_and_meaning_and_each_node_is_embedded_once() -> None:
    model = DeterministicEmbedding()
    retriever = search_nodes(nodes(), embed_model=model, language="en")
    assert isinstance(retriever, HybridRetriever)
    assert model.texts == list(TEXTS.values())
    assert retriever.retrieve("red fox")[0].node_id == "fox"
    assert len(model.texts) == len(TEXTS) + 1


def test_by_meaning_alone() -> None:
    retriever = dense_over(nodes(), DeterministicEmbedding())
    assert isinstance(retriever, DenseRetriever)
    found = retriever.with_top_k(1).retrieve("blue sea")
    assert [(hit.node_id, hit.node.get_content()) for hit in found] == [("sea", "The sea is blue.")]
    sea = MetadataFilters(filters=[MetadataFilter(key="kind", value="hen")])
    assert [hit.node_id for hit in retriever.with_filters(sea).retrieve("blue sea")] == ["hen"]


def test_the_nodes_given_are_not_changed() -> None:
    given = nodes()
    before = snapshot(given)
    search_nodes(given, embed_model=DeterministicEmbedding()).retrieve("fox")
    assert snapshot(given) == before


def test_nothing_to_search() -> None:
    model = DeterministicEmbedding()
    assert search_nodes([], embed_model=model).retrieve("fox") == []
    assert search_nodes([]).retrieve("fox") == []
    assert dense_over([], model).retrieve("fox") == []


def test_a_model_that_fails_is_raised_as_it_is() -> None:
    with pytest.raises(ConnectionError, match="the embedding service is down"):
        search_nodes(nodes(), embed_model=DeterministicEmbedding(fail_on="fox"))
