"""Order the passages for the reader that comes next."""

from enum import Enum
from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag.ranking.ordering import order_by_document, order_lost_in_the_middle
from llama_index_advanced_rag.trace import Evidence, stage_trace


class PassageOrder(str, Enum):
    """Best passages at both ends, or passages as they stand in their documents."""

    LOST_IN_THE_MIDDLE = "lost_in_the_middle"
    DOCUMENT = "document"


class LostInTheMiddleReorder(BaseNodePostprocessor):
    """Put the best nodes at the two ends of the context, or bring the nodes into document order.

    The incoming order is the rank: a reranker that only orders keeps its say, and scores may be missing. All nodes come
    back, with their scores, in new `NodeWithScore` objects; a score is not the place any more. 0 LLM calls.

    Args:
        min_nodes: fewer nodes than this keep their order (`order="lost_in_the_middle"` only), at least 0.
        order: "lost_in_the_middle": the best first, the second best last, and so on inwards. "document": documents in
            the order of their best node, and in each document by start offset; nodes without an offset come after.
        callback_manager: kept for LlamaIndex; no event is emitted.

    Raises:
        ConfigurationError: an argument cannot work.

    Source: Liu et al. 2023, "Lost in the Middle" (arXiv:2307.03172); see `ranking.ordering`.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> nodes = [NodeWithScore(node=TextNode(text=str(rank))) for rank in range(1, 9)]
        >>> " ".join(item.node.get_content() for item in LostInTheMiddleReorder().postprocess_nodes(nodes))
        '1 3 5 7 8 6 4 2'
    """

    stage: ClassVar[str] = "reorder"

    min_nodes: int = Field(default=8, description="Fewer nodes keep their order.")
    order: PassageOrder = Field(default=PassageOrder.LOST_IN_THE_MIDDLE, description="How the nodes are ordered.")

    def __init__(
        self,
        *,
        min_nodes: int = 8,
        order: PassageOrder | str = PassageOrder.LOST_IN_THE_MIDDLE,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        fields: dict[str, Any] = {"min_nodes": whole_number("min_nodes", min_nodes, least=0), "order": parse_choice(PassageOrder, order, argument="order")}
        super().__init__(**fields, callback_manager=callback_manager or CallbackManager())

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "LostInTheMiddleReorder"

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        with stage_trace(self.stage, query_bundle.query_str if query_bundle is not None else None) as trace:
            ranks = self._ranks(nodes)
            result = [NodeWithScore(node=nodes[rank].node, score=_plain(nodes[rank].score)) for rank in ranks]
            if trace is not None:
                trace.evidence += self._evidence(result, ranks)
        return result

    async def _apostprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        return self._postprocess_nodes(nodes, query_bundle)

    def _ranks(self, nodes: list[NodeWithScore]) -> list[int]:
        if self.order is PassageOrder.DOCUMENT:
            return order_by_document([_place(item.node) for item in nodes])
        return order_lost_in_the_middle(len(nodes)) if len(nodes) >= self.min_nodes else list(range(len(nodes)))

    def _evidence(self, result: list[NodeWithScore], ranks: list[int]) -> list[Evidence]:
        return [
            Evidence(
                item.node.node_id, self.stage, place, item.score, f"number {rank + 1} stands at place {place}", {"order": self.order.value, "rank": rank + 1}
            )
            for place, (item, rank) in enumerate(zip(result, ranks, strict=True), start=1)
        ]


def _plain(score: float | None) -> float | None:
    return None if score is None else float(score)


def _place(node: BaseNode) -> tuple[str, int | None]:
    start = getattr(node, "start_char_idx", None)
    return node.ref_doc_id or node.node_id, start
