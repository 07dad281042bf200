"""Faults of LlamaIndex's own docstore and vector store that ours do not have."""

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery

from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.testing import stock_fault


def make_node(node_id, doc, **metadata):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=doc)}
    return TextNode(id_=node_id, text=node_id, embedding=[1.0, len(node_id) / 10], metadata=metadata, relationships=source)


def sql_document_store():
    return SQLDocumentStore(CorpusDatabase(None))


def both(ours, stock, reason):
    return pytest.mark.parametrize("make", [pytest.param(ours, id="ours"), pytest.param(stock, id="stock", marks=stock_fault(reason))])


@both(FlatVectorStore, SimpleVectorStore, "core 0.14.25: SimpleVectorStore ignores doc_ids")
def test_doc_ids_restrict(make):
    store = make()
    store.add([make_node("a", "d0"), make_node("bb", "d1")])
    assert store.query(VectorStoreQuery(query_embedding=[1.0, 0.1], similarity_top_k=2, doc_ids=["d1"])).ids == ["bb"]


@both(FlatVectorStore, SimpleVectorStore, "core 0.14.25: SimpleVectorStore refuses nested filters")
def test_nested_filters(make):
    store = make()
    store.add([make_node("a", "d0", year=1), make_node("bb", "d1", year=2)])
    filters = MetadataFilters(filters=[MetadataFilters(filters=[MetadataFilter(key="year", value=2)])])
    assert store.query(VectorStoreQuery(query_embedding=[1.0, 0.1], similarity_top_k=2, filters=filters)).ids == ["bb"]


@both(FlatVectorStore, SimpleVectorStore, "core 0.14.25: one value of another type makes every filtered query raise TypeError")
def test_mixed_types_in_metadata(make):
    store = make()
    store.add([make_node("a", "d0", year="unknown"), make_node("bb", "d1", year=2)])
    filters = MetadataFilters(filters=[MetadataFilter(key="year", value=1, operator=">")])
    assert store.query(VectorStoreQuery(query_embedding=[1.0, 0.1], similarity_top_k=2, filters=filters)).ids == ["bb"]


@both(sql_document_store, SimpleDocumentStore, "core 0.14.25: adelete_document leaves the node in its document's list")
async def test_async_delete_is_complete(make):
    store = make()
    store.add_documents([make_node("a", "d"), make_node("b", "d")])
    await store.adelete_document("a")
    assert store.get_ref_doc_info("d").node_ids == ["b"]


@both(sql_document_store, SimpleDocumentStore, "core 0.14.25: the hash outlives delete_ref_doc, so a refresh never inserts again")
def test_delete_ref_doc_forgets_the_hash(make):
    store = make()
    store.set_document_hash("d", "hash of a document whose nodes a vector store keeps")
    store.delete_ref_doc("d", raise_error=False)
    assert store.get_document_hash("d") is None
