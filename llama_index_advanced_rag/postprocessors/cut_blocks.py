"""Give back to a retrieved passage the rest of the table or list that the chunk border cut off."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import NodeSource
from llama_index_advanced_rag.text.lines import is_list_item, is_table_row
from llama_index_advanced_rag.trace import Evidence, stage_trace

_LINES_READ = 3
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_UNFINISHED = (":", ";", ",")


class CutBlockCompletion(BaseNodePostprocessor):
    r"""Adds the neighbours into which a table or a list of a retrieved node goes on.

    A node that ends inside a table or list, or with the line that announces one, gets the node after it; one that begins
    inside gets the node before it, which has the head. Each stands next to its node and has its score. Nodes that were
    retrieved themselves keep their place. Neighbours are found by the PREVIOUS and NEXT relations, in the same document
    only. The results are new `NodeWithScore` objects; nothing is changed, nothing is dropped. 0 LLM calls.

    Args:
        nodes: where neighbours are read.
        filters: neighbours must match these too: what a retriever may not find must not slip in here.
        callback_manager: kept for LlamaIndex; no event is emitted.

    Example:
        >>> from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
        >>> from llama_index_advanced_rag.stores.node_source import DictNodeSource
        >>> source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
        >>> head = TextNode(id_="a", text="Sales:\nPhones 10 20", relationships={**source, NodeRelationship.NEXT: RelatedNodeInfo(node_id="b")})
        >>> rest = TextNode(id_="b", text="Total 30 40", relationships=source)
        >>> [hit.node_id for hit in CutBlockCompletion(DictNodeSource([head, rest])).postprocess_nodes([NodeWithScore(node=head, score=1.0)])]
        ['a', 'b']
    """

    stage: ClassVar[str] = "cut_blocks"

    _nodes: NodeSource = PrivateAttr()
    _filters: MetadataFilters | None = PrivateAttr()

    def __init__(self, nodes: NodeSource, *, filters: MetadataFilters | None = None, callback_manager: CallbackManager | None = None) -> None:
        super().__init__(callback_manager=callback_manager or CallbackManager())
        self._nodes, self._filters = nodes, filters

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "CutBlockCompletion"

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        with stage_trace(self.stage, query_bundle.query_str if query_bundle is not None else None) as trace:
            neighbours = self._neighbours([hit.node for hit in nodes])
            result = list(_completed(nodes, neighbours))
            if trace is not None:
                trace.evidence += _evidence(result, nodes)
        return result

    async def _apostprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        return await in_thread(self._postprocess_nodes, nodes, query_bundle)

    def _neighbours(self, nodes: Sequence[BaseNode]) -> dict[str, BaseNode]:
        """The neighbours that may be added, by id."""
        retrieved = {node.node_id for node in nodes}
        wanted = dict.fromkeys(node_id for node in nodes for node_id in _wanted(node) if node_id is not None and node_id not in retrieved)
        documents = {node.ref_doc_id for node in nodes}
        return {
            node.node_id: node
            for node in self._nodes.get_nodes(list(wanted))
            if node.ref_doc_id in documents and metadata_matches(filterable_metadata(node), self._filters)
        }


def ends_inside_block(text: str) -> bool:
    r"""Whether a text ends in a table or list, or by announcing one.

    Example:
        >>> [ends_inside_block(text) for text in ("Sales:\nPhones 10 20", "as follows (in millions):", "It rose.\nCosts", "It rose.")]
        [True, True, False, False]
    """
    lines = _lines(text)[-_LINES_READ:]
    if not lines or _SENTENCE_END.search(lines[-1]):
        return False
    return any(is_table_row(line) or is_list_item(line) or line.endswith(_UNFINISHED) for line in lines)


def begins_inside_block(text: str) -> bool:
    r"""Whether a text begins in a table or list.

    Example:
        >>> [begins_inside_block(text) for text in ("Phones 10 20\nTotal 30 40", "2. The second item", "It rose.")]
        [True, True, False]
    """
    lines = _lines(text)[:1]
    return any(is_table_row(line) or is_list_item(line) for line in lines)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _wanted(node: BaseNode) -> tuple[str | None, str | None]:
    """Ids of the nodes before and after that a node needs."""
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    before, after = node.prev_node, node.next_node
    return (
        before.node_id if before is not None and begins_inside_block(text) else None,
        after.node_id if after is not None and ends_inside_block(text) else None,
    )


def _completed(hits: Sequence[NodeWithScore], neighbours: Mapping[str, BaseNode]) -> Iterator[NodeWithScore]:
    left = dict(neighbours)
    for hit in hits:
        score = None if hit.score is None else float(hit.score)
        before, after = (left.pop(node_id, None) if node_id is not None else None for node_id in _wanted(hit.node))
        yield from (NodeWithScore(node=node, score=score) for node in (before, hit.node, after) if node is not None)


def _evidence(result: Sequence[NodeWithScore], nodes: Sequence[NodeWithScore]) -> list[Evidence]:
    retrieved = {hit.node_id for hit in nodes}
    why = {True: "retrieved", False: "holds the rest of a table or list of its neighbour"}
    return [Evidence(hit.node_id, CutBlockCompletion.stage, place, hit.score, why[hit.node_id in retrieved]) for place, hit in enumerate(result, start=1)]
