"""The entity graph of nodes in memory."""

from collections.abc import Sequence

from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.extraction import read_records
from llama_index_advanced_rag.graph.extractor import Extractor
from llama_index_advanced_rag.graph.name_fold import ChunkText
from llama_index_advanced_rag.graph.span_extractor import SpanExtractor
from llama_index_advanced_rag.stores.node_source import sort_key


def graph_of_nodes(nodes: Sequence[BaseNode], *, extractor: Extractor | None = None, language: str = "auto") -> EntityGraph:
    """The graph of what nodes say, read now. 0 LLM calls, unless the extractor makes some.

    Args:
        nodes: the passages.
        extractor: reads names and facts; None = the one of this package.
        language: of the texts, for ours.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> graph_of_nodes([TextNode(text="Claude is made by Anthropic."), TextNode(text="Anthropic is in San Francisco.")], language="en")
        EntityGraph(2 chunks, 3 entities, 4 mentions, 0 facts)
    """
    ordered = sorted(nodes, key=sort_key)
    records = read_records(extractor or SpanExtractor(language), ordered)
    return EntityGraph.from_records(
        {node.node_id: ChunkText(node.get_content(MetadataMode.NONE), record) for node, record in zip(ordered, records, strict=True)}
    )
