"""Search over nodes in memory, for retrievers that are made from somebody's own nodes."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_advanced_rag.ranking.fusion import FusionMode
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.node_source import DictNodeSource


def search_nodes(nodes: Sequence[BaseNode], *, embed_model: BaseEmbedding | None = None, language: str = "auto") -> TracedRetriever:
    """A retriever over nodes: by words, with a model by words and meaning (they are embedded now).

    Args:
        nodes: what is searched.
        embed_model: embeds nodes and questions; None = words only.
        language: of the texts, see `TextAnalyzer`.

    Raises:
        Exception: what the model raises.
    """
    lexical = LexicalRetriever.from_defaults(nodes=nodes, language=language)
    if embed_model is None:
        return lexical
    return HybridRetriever({"dense": dense_over(nodes, embed_model), "lexical": lexical}, fusion=FusionMode.WEIGHTED)


def dense_over(nodes: Sequence[BaseNode], embed_model: BaseEmbedding) -> DenseRetriever:
    """Search by meaning over nodes, which are embedded now."""
    store = FlatVectorStore(keep_nodes=False)
    vectors: list[Any] = embed_model.get_text_embedding_batch([node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes]) if nodes else []
    store.add([node.model_copy(update={"embedding": vector}) for node, vector in zip(nodes, vectors, strict=True)])
    return DenseRetriever(store, embed_model, nodes=DictNodeSource(nodes))
