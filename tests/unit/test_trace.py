"""The trace as a person sees it: printed, and drawn in a notebook."""

import re

from llama_index.core.schema import TextNode

from llama_index_advanced_rag import HybridRetriever, LexicalRetriever, capture_trace
from llama_index_advanced_rag.trace import Evidence, NodeLabel, RetrievalTrace, TraceNote


def retrieved(n_nodes: int = 30, title: str = "Foxes") -> RetrievalTrace:
    nodes = [TextNode(text=f"The fox number {number} sleeps.", id_=f"node-{number:02}", metadata={"title": title}) for number in range(n_nodes)]
    words = LexicalRetriever.from_defaults(nodes=nodes, language="en")
    with capture_trace("Where is the <b>fox</b>?") as trace:
        HybridRetriever([words, words.with_top_k(3)], similarity_top_k=20).retrieve("fox")
    return trace


def test_nodes_are_called_by_title_and_beginning() -> None:
    trace = retrieved()
    label = trace.all_labels()["node-00"]
    assert label == NodeLabel("Foxes", "The fox number 0 sleeps.")
    assert "Foxes [node-00]" in str(trace)
    assert "<b>Foxes</b>" in trace._repr_html_()
    assert "The fox number 0 sleeps." in trace._repr_html_()


def test_the_question_is_said_once_and_again_where_it_differs() -> None:
    trace = retrieved()
    assert trace._repr_html_().count("&lt;b&gt;fox") == 1
    assert trace._repr_html_().count("<i>fox</i>") == 1
    assert len(repr(trace)) < 100


def test_a_node_without_label_is_called_by_its_id() -> None:
    trace = RetrievalTrace("other", evidence=[Evidence("n<1>", "other", 1, None, "came first")])
    assert "1. n<1>    came first" in str(trace)
    assert "<code>n&lt;1&gt;</code>" in trace._repr_html_()


def test_everything_is_escaped() -> None:
    trace = retrieved(title="<script>alert(1)</script>")
    trace.notes.append(TraceNote("warning", "query", "a <b> failed"))
    drawn = trace._repr_html_()
    assert "<script>" not in drawn
    assert "Where is the &lt;b&gt;fox&lt;/b&gt;?" in drawn
    assert "a &lt;b&gt; failed" in drawn


def test_ten_nodes_of_a_stage_are_shown_and_the_rest_counted() -> None:
    trace = retrieved()
    drawn = trace._repr_html_()
    assert "and 10 more" in drawn
    assert "… 10 more" in str(trace)
    assert len(trace.to_dict()["children"][0]["evidence"]) == 20


def test_parts_are_folded_below_the_first_table() -> None:
    opened = re.findall(r"<details[^>]*?( open)?><summary><b>([^<]*)</b>", retrieved()._repr_html_())
    assert [(stage, bool(is_open)) for is_open, stage in opened] == [("query", True), ("hybrid", True), ("lexical", False), ("lexical#2", False)]
    assert retrieved()._repr_html_().count("<table") == 3


def test_a_stage_that_found_nothing_says_so() -> None:
    assert str(RetrievalTrace("lexical", elapsed_ms=0.5)) == "lexical: no nodes, 0.5 ms"
