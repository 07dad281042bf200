"""LostInTheMiddleReorder as a LlamaIndex postprocessor."""

import json

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.postprocessors.lost_in_the_middle import LostInTheMiddleReorder, PassageOrder
from llama_index_advanced_rag.testing import check_postprocessor_contract
from llama_index_advanced_rag.trace import capture_trace


def ranked(count: int, *, scored: bool = True) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=f"r{rank}", text=f"passage {rank}"), score=1 / rank if scored else None) for rank in range(1, count + 1)]


def ids(nodes: list[NodeWithScore]) -> str:
    return " ".join(item.node.node_id for item in nodes)


def passage(node_id: str, document: str | None, start: int | None) -> NodeWithScore:
    links = {} if document is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return NodeWithScore(node=TextNode(id_=node_id, text=node_id, start_char_idx=start, relationships=links), score=0.5)


@pytest.mark.parametrize("order", list(PassageOrder))
def test_it_keeps_the_contract(order: PassageOrder):
    check_postprocessor_contract(lambda: LostInTheMiddleReorder(order=order), ranked(9), "a question", by_score=False)


def test_from_eight_nodes_up_the_best_stand_at_the_ends():
    reorder = LostInTheMiddleReorder()
    assert ids(reorder.postprocess_nodes(ranked(7))) == "r1 r2 r3 r4 r5 r6 r7"
    assert ids(reorder.postprocess_nodes(ranked(8))) == "r1 r3 r5 r7 r8 r6 r4 r2"
    assert ids(LostInTheMiddleReorder(min_nodes=0).postprocess_nodes(ranked(3))) == "r1 r3 r2"


def test_scores_stay_with_their_nodes():
    given = ranked(9)
    for item in LostInTheMiddleReorder().postprocess_nodes(given):
        assert item.score == 1 / int(item.node.node_id[1:])


def test_document_order_whatever_the_number_of_nodes():
    nodes = [passage("b9", "b", 900), passage("a1", "a", 10), passage("x", None, None), passage("b1", "b", 100), passage("b?", "b", None)]
    assert ids(LostInTheMiddleReorder(order="document").postprocess_nodes(nodes)) == "b1 b9 b? a1 x"


def test_the_same_node_may_come_twice():
    assert ids(LostInTheMiddleReorder(min_nodes=2).postprocess_nodes([*ranked(2), *ranked(1)])) == "r1 r1 r2"


async def test_async_gives_the_same():
    assert ids(await LostInTheMiddleReorder().apostprocess_nodes(ranked(8))) == "r1 r3 r5 r7 r8 r6 r4 r2"


def test_the_trace_says_where_each_node_went():
    with capture_trace() as trace:
        LostInTheMiddleReorder(min_nodes=3).postprocess_nodes(ranked(3))
    assert [(item.node_id, item.rank, item.why) for item in trace.children[0].evidence] == [
        ("r1", 1, "number 1 stands at place 1"),
        ("r3", 2, "number 3 stands at place 2"),
        ("r2", 3, "number 2 stands at place 3"),
    ]


def test_it_survives_a_dictionary_and_json():
    reorder = LostInTheMiddleReorder(min_nodes=4, order="document")
    data = json.loads(reorder.to_json())
    assert data == {"min_nodes": 4, "order": "document", "class_name": "LostInTheMiddleReorder"}
    assert LostInTheMiddleReorder.from_dict(data).to_dict() == reorder.to_dict()
    assert isinstance(reorder, BaseNodePostprocessor)


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigurationError, match=r"order is 'best'. It must be one of 'lost_in_the_middle', 'document'"):
        LostInTheMiddleReorder(order="best")
    with pytest.raises(ConfigurationError, match=r"min_nodes is -1\. It must be a whole number of at least 0"):
        LostInTheMiddleReorder(min_nodes=-1)
    with pytest.raises(TypeError, match="nonsense"):
        LostInTheMiddleReorder(nonsense=1)
