from itertools import pairwise

import pytest
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.postprocessors.cut_blocks import CutBlockCompletion, begins_inside_block, ends_inside_block
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.trace import capture_trace

HEAD, ROWS, TAIL = "Net sales:\nThree Months Ended\nPhones 10 20", "Total 30 40\nTablets 5 6", "Others 7 8\nIt rose."


def chain(*texts: str, ref: str = "d") -> list[TextNode]:
    nodes = [TextNode(id_=f"{ref}{number}", text=text, metadata={"kind": "table"}) for number, text in enumerate(texts)]
    for node in nodes:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=ref)
    for before, after in pairwise(nodes):
        before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=after.node_id)
        after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
    return nodes


def completed(nodes: list[TextNode], hits: list[TextNode], **options: object) -> list[str]:
    found = CutBlockCompletion(DictNodeSource(nodes), **options).postprocess_nodes([NodeWithScore(node=hit, score=0.5) for hit in hits])
    assert all(type(hit.score) is float for hit in found)
    return [hit.node_id for hit in found]


def test_a_table_that_goes_on_gets_its_head_and_its_rest() -> None:
    nodes = chain(HEAD, ROWS, TAIL)
    assert completed(nodes, [nodes[0]]) == ["d0", "d1"]
    assert completed(nodes, [nodes[1]]) == ["d0", "d1", "d2"]
    assert completed(nodes, [nodes[2]]) == ["d1", "d2"]


def test_what_was_retrieved_keeps_its_place_and_is_not_doubled() -> None:
    nodes = chain(HEAD, ROWS, TAIL)
    assert completed(nodes, [nodes[2], nodes[0]]) == ["d1", "d2", "d0"]
    assert completed(nodes, [nodes[1], nodes[0]]) == ["d1", "d2", "d0"]


def test_prose_is_left_alone() -> None:
    nodes = chain("It rose.", "It fell.", "It stayed.")
    assert completed(nodes, [nodes[1]]) == ["d1"]


def test_a_neighbour_must_match_the_filters_and_belong_to_the_document() -> None:
    nodes = chain(HEAD, ROWS)
    assert completed(nodes, [nodes[0]], filters=MetadataFilters(filters=[MetadataFilter(key="kind", value="prose")])) == ["d0"]
    nodes[1].relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="another")
    assert completed(nodes, [nodes[0]]) == ["d0"]


def test_a_neighbour_that_is_gone_is_no_error() -> None:
    nodes = chain(HEAD, ROWS)
    assert completed(nodes[:1], [nodes[0]]) == ["d0"]
    assert completed([], []) == []


async def test_the_async_twin_finds_the_same_and_the_trace_says_why() -> None:
    nodes = chain(HEAD, ROWS)
    hits = [NodeWithScore(node=nodes[0])]
    with capture_trace("q") as trace:
        found = await CutBlockCompletion(DictNodeSource(nodes)).apostprocess_nodes(hits, query_str="q")
    assert [hit.node_id for hit in found] == ["d0", "d1"]
    assert found[0] is not hits[0]
    assert [item.why for stage in trace.walk() for item in stage.evidence] == ["retrieved", "holds the rest of a table or list of its neighbour"]


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("Phones 10 20", True, True),
        ("- one\n- two", True, True),
        ("3° Pour les cadres, de quatre mois.", True, False),
        ("The table shows sales (in millions):\nThree Months Ended\nJuly 1,", False, True),
        ("It rose.\nA heading", False, False),
        ("", False, False),
    ],
)
def test_where_blocks_are_cut(text: str, begins: bool, ends: bool) -> None:
    assert (begins_inside_block(text), ends_inside_block(text)) == (begins, ends)
