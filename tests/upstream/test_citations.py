"""Faults of the stock citation engine (core 0.14.25), each beside ours: numbers, identity of what is cited, spans, dangling marks.

Issues 7299 and 17439, pull request 22537 of run-llama/llama_index.
"""

from collections.abc import Callable

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.testing import ScriptedLLM, stock_fault

DOCUMENT = "Foxes eat mice. Cats sleep all day. Cows give milk."
Make = Callable[[str], BaseQueryEngine]


class TwoNodes(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        spans = {"first": (0, 35), "second": (36, 51)}
        nodes = [TextNode(id_=name, text=DOCUMENT[start:end], start_char_idx=start, end_char_idx=end) for name, (start, end) in spans.items()]
        return [NodeWithScore(node=node, score=0.5) for node in nodes]


def ours(answer: str) -> BaseQueryEngine:
    return GroundedQueryEngine(TwoNodes(), llm=ScriptedLLM([answer]), language="en")


def stock(answer: str) -> BaseQueryEngine:
    return CitationQueryEngine(TwoNodes(), llm=ScriptedLLM([answer]))


def check_only_cited_nodes_are_sources(make: Make) -> None:
    response = make("Milk [2].").query("What do cows give?")
    assert len(response.source_nodes) == 1


def check_sources_keep_the_identity_of_the_retrieved_nodes(make: Make) -> None:
    response = make("Mice [1], milk [2].").query("Who eats what?")
    assert {node.node.node_id for node in response.source_nodes} <= {"first", "second"}


def check_a_citation_resolves_to_a_span(make: Make) -> None:
    response = make("Mice [1].").query("What do foxes eat?")
    node = response.source_nodes[0].node
    assert (node.start_char_idx, node.end_char_idx) == (0, 35)
    assert DOCUMENT[node.start_char_idx : node.end_char_idx] == node.get_content()


def check_a_dangling_number_is_flagged(make: Make) -> None:
    response = make("Mice [1] and cheese [7].").query("What do foxes eat?")
    assert "[7]" not in str(response)


def check_numbers_follow_the_order_of_use(make: Make) -> None:
    response = make("Milk [2], then mice [1].").query("Who eats what?")
    assert str(response) == "Milk [1], then mice [2]."


CHECKS = [
    check_only_cited_nodes_are_sources,
    check_sources_keep_the_identity_of_the_retrieved_nodes,
    check_a_citation_resolves_to_a_span,
    check_a_dangling_number_is_flagged,
    check_numbers_follow_the_order_of_use,
]


@pytest.mark.parametrize("check", CHECKS)
def test_ours(check: Callable[[Make], None]) -> None:
    check(ours)


@stock_fault("core 0.14.25: CitationQueryEngine lists every chunk under a new id without offsets, cited or not, and never looks at the numbers")
@pytest.mark.parametrize("check", CHECKS)
def test_stock(check: Callable[[Make], None]) -> None:
    check(stock)


def test_our_citation_is_a_sentence_with_its_place_in_the_document() -> None:
    response = ours("Sleep [2].").query("What do cats do?")
    (citation,) = response.metadata["citations"]
    assert (citation["node_id"], citation["start"], citation["end"]) == ("first", 16, 35)
    assert citation["text"] == "Cats sleep all day."
