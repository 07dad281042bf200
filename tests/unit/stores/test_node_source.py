import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.schema import Document, NodeRelationship, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_advanced_rag.errors import NodeSourceError
from llama_index_advanced_rag.stores.node_source import (
    DictNodeSource,
    DocstoreNodeSource,
    NodeSource,
    read_docstore_nodes,
    read_index_nodes,
    sort_key,
)


class TextStore(SimpleVectorStore):
    """A store that keeps the text itself, as Chroma or Qdrant do."""

    stores_text: bool = True
    _kept: dict = PrivateAttr(default_factory=dict)
    _refuses: bool = PrivateAttr(default=False)

    def add(self, nodes, **kwargs):
        self._kept.update({node.node_id: node for node in nodes})
        return super().add(nodes, **kwargs)

    def get_nodes(self, node_ids=None, filters=None):
        if self._refuses:
            raise NotImplementedError("get_nodes not implemented")
        return list(self._kept.values())


def nodes(*ids):
    return [TextNode(id_=node_id, text=f"text {node_id}") for node_id in ids]


def index_over(store, some, **kwargs):
    return VectorStoreIndex(some, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=MockEmbedding(embed_dim=3), **kwargs)


def test_sources_keep_the_asked_order_and_leave_out_the_unknown():
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes("a", "b", "c"))
    for source in (DictNodeSource(nodes("a", "b", "c")), DocstoreNodeSource(docstore)):
        assert isinstance(source, NodeSource)
        assert [node.node_id for node in source.get_nodes(["c", "x", "a"])] == ["c", "a"]
        assert source.get_nodes([]) == []


def test_dict_source_adds_replaces_and_deletes():
    source = DictNodeSource(nodes("a"))
    source.add([TextNode(id_="a", text="new"), TextNode(id_="b", text="b")])
    source.delete(["b", "unknown"])
    assert len(source) == 1
    assert "a" in source
    assert source.get_nodes(["a"])[0].get_content() == "new"


def test_sort_key_orders_by_document_offset_and_id():
    first = TextNode(id_="z", text="x", start_char_idx=5)
    second = TextNode(id_="a", text="x", start_char_idx=40)
    for node in (first, second):
        node.relationships[NodeRelationship.SOURCE] = Document(id_="doc", text="").as_related_node_info()
    assert sort_key(first) < sort_key(second)
    assert sort_key(TextNode(id_="n", text="")) == chr(0) + "0" * 12 + chr(0) + "n"


def test_reads_an_index_with_nodes_in_the_docstore():
    index = index_over(SimpleVectorStore(), nodes("b", "a"))
    assert [node.node_id for node in read_index_nodes(index)] == ["a", "b"]


def test_reads_only_the_leaves_of_a_hierarchical_index():
    document = Document(id_="d", text="One sentence. " * 200)
    levels = HierarchicalNodeParser.from_defaults(chunk_sizes=[256, 64]).get_nodes_from_documents([document])
    context = StorageContext.from_defaults()
    context.docstore.add_documents(levels)
    leaves = get_leaf_nodes(levels)
    index = VectorStoreIndex(leaves, storage_context=context, embed_model=MockEmbedding(embed_dim=3))
    assert {node.node_id for node in read_index_nodes(index)} == {node.node_id for node in leaves}


def test_reads_nodes_from_a_store_that_keeps_text():
    index = index_over(TextStore(), nodes("a", "b"))
    assert not index.docstore.docs
    assert [node.node_id for node in read_index_nodes(index)] == ["a", "b"]


def test_a_store_that_refuses_names_the_ways_out():
    store = TextStore()
    store._refuses = True
    with pytest.raises(NodeSourceError, match=r"TextStore.*get_nodes not implemented.*nodes=.*docstore=.*store_nodes_override"):
        read_index_nodes(index_over(store, nodes("a")))
    assert len(read_index_nodes(index_over(store, nodes("a"), store_nodes_override=True))) == 1


def test_vectors_without_their_docstore_are_an_error_and_an_empty_index_is_not():
    store = SimpleVectorStore()
    index_over(store, nodes("a"))
    orphan = VectorStoreIndex([], storage_context=StorageContext.from_defaults(vector_store=store), embed_model=MockEmbedding(embed_dim=3))
    with pytest.raises(NodeSourceError, match="vectors without text"):
        read_index_nodes(orphan)
    assert read_index_nodes(index_over(SimpleVectorStore(), [])) == []


def test_documents_that_were_split_are_left_out_of_a_docstore():
    document, whole = Document(id_="d", text="long"), Document(id_="whole", text="short")
    chunk = TextNode(id_="c", text="lo")
    chunk.relationships[NodeRelationship.SOURCE] = document.as_related_node_info()
    docstore = SimpleDocumentStore()
    docstore.add_documents([document, whole, chunk])
    assert {node.node_id for node in read_docstore_nodes(docstore)} == {"c", "whole"}
