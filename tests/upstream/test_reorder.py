"""Faults of the stock LongContextReorder (core 0.14.25); ours passes each check, the stock component is a strict xfail."""

from collections.abc import Callable

import pytest
from llama_index.core.postprocessor import LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.postprocessors.lost_in_the_middle import LostInTheMiddleReorder
from llama_index_advanced_rag.testing import stock_fault


def ours() -> LostInTheMiddleReorder:
    return LostInTheMiddleReorder(min_nodes=2)


def order(reorder: BaseNodePostprocessor, scores: list[float | None]) -> str:
    nodes = [NodeWithScore(node=TextNode(id_=f"r{rank}", text=f"{rank}"), score=score) for rank, score in enumerate(scores, start=1)]
    return " ".join(item.node.node_id for item in reorder.postprocess_nodes(nodes))


def check_best_first(reorder: BaseNodePostprocessor, count: int) -> None:
    assert order(reorder, [1.0 - rank / 100 for rank in range(count)]).split()[0] == "r1"


def check_missing_scores(reorder: BaseNodePostprocessor) -> None:
    assert order(reorder, [None] * 5) == "r1 r3 r5 r4 r2"


def check_order_of_a_reranker(reorder: BaseNodePostprocessor) -> None:
    """A reranker that only orders (RankGPT) leaves the retrieval scores as they were."""
    assert order(reorder, [0.2, 0.9, 0.5, 0.7, 0.1]) == "r1 r3 r5 r4 r2"


def check_ties_are_stable(reorder: BaseNodePostprocessor) -> None:
    assert order(reorder, [0.5] * 4) == "r1 r3 r4 r2"


@pytest.mark.parametrize("count", range(1, 12))
def test_the_best_node_is_first_for_odd_and_even_numbers(count: int):
    check_best_first(ours(), count)


@pytest.mark.parametrize("check", [check_missing_scores, check_order_of_a_reranker, check_ties_are_stable])
def test_the_incoming_order_is_the_rank(check: Callable[[BaseNodePostprocessor], None]):
    check(ours())


@stock_fault("core 0.14.25: LongContextReorder puts the best node last for an even number of nodes")
@pytest.mark.parametrize("count", [2, 4, 8])
def test_stock_best_node_first(count: int):
    check_best_first(LongContextReorder(), count)


@stock_fault("core 0.14.25: LongContextReorder sorts by score, so missing scores, ties and order-only rerankers lose their order")
@pytest.mark.parametrize("check", [check_missing_scores, check_order_of_a_reranker, check_ties_are_stable])
def test_stock_incoming_order(check: Callable[[BaseNodePostprocessor], None]):
    check(LongContextReorder())


def test_document_order_is_a_mode():
    """Issue 14212: the top k in the order of the document."""
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")}
    nodes = [NodeWithScore(node=TextNode(id_=f"at{start}", text="x", start_char_idx=start, relationships=source), score=0.5) for start in (300, 0, 100)]
    assert [item.node.node_id for item in LostInTheMiddleReorder(order="document").postprocess_nodes(nodes)] == ["at0", "at100", "at300"]
