"""Somebody's index made searchable for anchors: its nodes with the sections around them, and its vectors."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, Document
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.in_memory import dense_over
from llama_index_advanced_rag.stores.node_source import DictNodeSource, read_index_nodes


def index_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    """The nodes an index retrieves, and those in its docstore that were split into others.

    Raises:
        NodeSourceError: the text of the nodes cannot be read.
    """
    outer = [node for node in index.docstore.docs.values() if node.child_nodes and not isinstance(node, Document)]
    return list({node.node_id: node for node in [*outer, *read_index_nodes(index)]}.values())


def dense_over_index(index: BaseIndex[Any], nodes: Sequence[BaseNode], embed_model: BaseEmbedding) -> DenseRetriever:
    """Search by embedding over the vector store of an index; over its passages, embedded now, where it has none.

    Args:
        index: an index whose vectors are of this model.
        nodes: its nodes of all levels.
        embed_model: embeds the questions.
    """
    store = getattr(index, "vector_store", None)
    if isinstance(store, BasePydanticVectorStore):
        return DenseRetriever(store, embed_model, nodes=DictNodeSource(nodes))
    return dense_over([node for node in nodes if not node.child_nodes], embed_model)
