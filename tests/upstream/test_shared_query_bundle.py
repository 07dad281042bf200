"""What stock dense retrieval does to a shared QueryBundle and to doc_ids, and what ours does instead."""

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms.mock import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, QueryBundle, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import DeterministicEmbedding, stock_fault


class Mirrored(DeterministicEmbedding):
    """Another model of the same size: its vectors mean something else."""

    def _vector(self, text: str) -> list[float]:
        return [-value for value in reversed(super()._vector(text))]


def nodes(prefix: str) -> list[TextNode]:
    made = [TextNode(id_=f"{prefix} {text}", text=text) for text in ("alpha fox", "beta sea", "gamma field", "delta dawn")]
    for number, node in enumerate(made):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"doc{number % 2}")
    return made


def ours(prefix: str, model: Any, **options: Any) -> DenseRetriever:
    found = nodes(prefix)
    index = VectorStoreIndex(found, embed_model=model)
    return DenseRetriever(index.vector_store, model, nodes=DictNodeSource(found), similarity_top_k=options.pop("similarity_top_k", 1), **options)


def stock(prefix: str, model: Any, **options: Any) -> BaseRetriever:
    return VectorStoreIndex(nodes(prefix), embed_model=model).as_retriever(similarity_top_k=options.pop("similarity_top_k", 1), **options)


def best(retriever: BaseRetriever, query: Any = "alpha fox") -> list[str]:
    return [hit.node_id for hit in retriever.retrieve(query)]


# [p02]: an embedding made by one index does not reach the next


def check_two_models_one_bundle(make: Any) -> None:
    bundle = QueryBundle("alpha fox")
    assert best(make("one", DeterministicEmbedding()), bundle) == ["one alpha fox"]
    assert best(make("two", Mirrored()), bundle) == ["two alpha fox"]
    assert bundle == QueryBundle("alpha fox")


def test_two_models_one_bundle():
    check_two_models_one_bundle(ours)


@stock_fault("core 0.14.25: the sync retriever writes its embedding into the caller's bundle")
def test_two_models_one_bundle_stock():
    check_two_models_one_bundle(stock)


async def check_two_models_in_one_fusion(retriever: BaseRetriever) -> None:
    bundle = QueryBundle("alpha fox")
    found = retriever.retrieve(bundle)
    assert {hit.node_id for hit in found} == {"one alpha fox", "two alpha fox"}
    assert [(hit.node_id, hit.score) for hit in await retriever.aretrieve("alpha fox")] == [(hit.node_id, hit.score) for hit in found]
    assert bundle == QueryBundle("alpha fox")


async def test_two_models_in_one_fusion():
    await check_two_models_in_one_fusion(HybridRetriever([ours("one", DeterministicEmbedding()), ours("two", Mirrored())], child_top_n=1))


async def test_two_stock_retrievers_in_our_fusion():
    await check_two_models_in_one_fusion(HybridRetriever([stock("one", DeterministicEmbedding()), stock("two", Mirrored())], child_top_n=1))


@stock_fault("core 0.14.25: the second index searches with the first one's vector, sync and async differ")
async def test_two_models_in_one_fusion_stock():
    retrievers = [stock("one", DeterministicEmbedding()), stock("two", Mirrored())]
    await check_two_models_in_one_fusion(QueryFusionRetriever(retrievers, llm=MockLLM(), num_queries=1, use_async=False, similarity_top_k=10))


# [p02], issues/11602, pull/22966: doc_ids


@pytest.mark.parametrize(("doc_ids", "expected"), [(["doc1"], {"n beta sea", "n delta dawn"}), ([], set())])
def test_doc_ids(doc_ids, expected):
    assert set(best(ours("n", DeterministicEmbedding(), doc_ids=doc_ids, similarity_top_k=4))) == expected


@pytest.mark.parametrize(("doc_ids", "expected"), [(["doc1"], {"n beta sea", "n delta dawn"}), ([], set())])
@stock_fault("core 0.14.25: SimpleVectorStore ignores doc_ids")
def test_doc_ids_stock(doc_ids, expected):
    assert set(best(stock("n", DeterministicEmbedding(), doc_ids=doc_ids, similarity_top_k=4))) == expected
