"""Somebody's nodes made searchable for anchors: those of an index with the sections around them, and their embeddings."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.node_source import NodeSource, read_index_nodes


def index_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    """The nodes an index retrieves, and those in its docstore that were split into others.

    Raises:
        NodeSourceError: the text of the nodes cannot be read.
    """
    outer = [node for node in index.docstore.docs.values() if node.child_nodes and not isinstance(node, Document)]
    return list({node.node_id: node for node in [*outer, *read_index_nodes(index)]}.values())


def embedded_leaves(leaves: Sequence[BaseNode], embed_model: BaseEmbedding, nodes: NodeSource, index: BaseIndex[Any] | None) -> DenseRetriever:
    """Search by embedding over the vector store of an index; without one over passages that are embedded now.

    Args:
        leaves: the passages.
        embed_model: embeds them, and the questions.
        nodes: where their nodes are read from.
        index: an index whose vectors are of this model.
    """
    store = getattr(index, "vector_store", None)
    if isinstance(store, BasePydanticVectorStore):
        return DenseRetriever(store, embed_model, nodes=nodes)
    vectors = FlatVectorStore(keep_nodes=False)
    embeddings = embed_model.get_text_embedding_batch([node.get_content(metadata_mode=MetadataMode.EMBED) for node in leaves]) if leaves else []
    vectors.add([node.model_copy(update={"embedding": embedding}) for node, embedding in zip(leaves, embeddings, strict=True)])
    return DenseRetriever(vectors, embed_model, nodes=nodes)
