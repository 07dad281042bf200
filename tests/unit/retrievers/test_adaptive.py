"""AdaptiveRetriever: the decision, the default that stands in, several routes at once, time, explanations."""

import asyncio
import json
import threading
import time
from collections.abc import Sequence

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.testing import check_retriever_contract, forbidden_settings_llm
from llama_index_advanced_rag.testing.observing import count_events
from llama_index_advanced_rag.trace import capture_trace


def hits(*ids: str) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=node_id, text=f"text of {node_id}"), score=1.0 / place) for place, node_id in enumerate(ids, start=1)]


class Fixed(BaseRetriever):
    """Finds the same nodes for every question; can fail, wait for a gate, and counts."""

    def __init__(self, *ids: str, error: Exception | None = None, gate: threading.Event | None = None) -> None:
        self.ids, self.error, self.gate, self.asked = ids, error, gate, 0
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked += 1
        if self.gate is not None:
            self.gate.wait(10)
        if self.error is not None:
            raise self.error
        return hits(*self.ids)


def by_word(question: str) -> list[str]:
    """The routes named in the question."""
    return [word for word in question.split() if word in ("one", "two", "nothing", "failing", "odd")]


def adaptive(default: str = "two", **options) -> AdaptiveRetriever:
    routes = {"one": Fixed("a", "b"), "two": Fixed("b", "c"), "nothing": Fixed(), "failing": Fixed(error=ConnectionError("down")), "none": None}
    return AdaptiveRetriever({**routes, **options.pop("routes", {})}, router=options.pop("router", by_word), default=default, **options)


def ids(found: Sequence[NodeWithScore]) -> list[str]:
    return [hit.node_id for hit in found]


@pytest.mark.parametrize(
    ("question", "found", "taken"),
    [
        ("one", ["a", "b"], ("one",)),
        ("?", ["b", "c"], ("two",)),
        ("nothing", ["b", "c"], ("two",)),
        ("failing", ["b", "c"], ("two",)),
        ("odd", ["b", "c"], ("two",)),
        ("odd one", ["a", "b"], ("one",)),
    ],
)
def test_the_decision_is_taken_and_the_default_stands_in(question, found, taken):
    retriever = adaptive()
    routed = retriever.search(QueryBundle(question))
    assert (ids(routed.hits), routed.taken) == (found, taken)
    assert ids(asyncio.run(retriever.asearch(QueryBundle(question))).hits) == found
    assert ids(retriever.retrieve(question)) == found


def test_what_happened_is_told_in_metadata_and_trace():
    with capture_trace() as trace:
        routed = adaptive().search(QueryBundle("failing"))
    told = json.loads(json.dumps(routed.to_dict()))
    assert told["routes"] == ["failing"]
    assert told["taken"] == ["two"]
    assert told["dropped"] == {"failing": "ConnectionError: down"}
    assert set(told["elapsed_ms"]) == {"router", "failing", "two"}
    notes = " ".join(note.message for note in trace.all_notes())
    assert "route failing, by function: by_word says so" in notes
    assert "'two' stands in" in notes
    assert [child.stage for child in trace.children] == ["failing", "two"]
    assert trace.for_node("b")[-1].why == "two #1 (1)"


def test_everything_failed_raises_the_first_real_exception():
    retriever = adaptive(default="late", routes={"late": Fixed(error=TimeoutError("slow"))})
    with pytest.raises(ConnectionError, match="down"):
        retriever.retrieve("failing")
    with pytest.raises(TimeoutError, match="slow"):
        retriever.retrieve("?")


def test_a_default_that_finds_nothing_is_no_failure():
    assert adaptive(default="nothing").retrieve("failing") == []


def test_several_routes_are_merged_by_the_guard_and_a_failing_one_is_dropped():
    routed = adaptive(max_routes=3).search(QueryBundle("one failing two"))
    assert ids(routed.hits) == ["a", "b", "c"]
    assert routed.taken == ("one", "two")
    assert list(routed.dropped) == ["failing"]
    assert [hit.score for hit in routed.hits] == [1.0, 0.5, pytest.approx(1 / 3)]
    fused = adaptive(max_routes=2, fusion="reciprocal_rank").retrieve("one two")
    assert fused[0].node_id == "b"
    assert fused[0].score == pytest.approx(1 / 61 + 1 / 62)


def test_no_more_routes_than_allowed_and_no_more_nodes_than_wanted():
    assert adaptive(max_routes=1).search(QueryBundle("two one")).taken == ("two",)
    assert len(adaptive(max_routes=2, similarity_top_k=2).retrieve("one two")) == 2


def test_routes_run_side_by_side():
    barrier = threading.Barrier(2)

    class Meeting(Fixed):
        def _retrieve(self, query_bundle):
            barrier.wait(timeout=10)
            return super()._retrieve(query_bundle)

    retriever = adaptive(max_routes=2, routes={"one": Meeting("a"), "two": Meeting("b")})
    assert ids(retriever.retrieve("one two")) == ["a", "b"]
    assert ids(asyncio.run(retriever.aretrieve("one two"))) == ["a", "b"]


@pytest.mark.parametrize("limit", [{"timeout_s": 0.05}, {"max_seconds": 0.05}])
def test_a_late_route_is_dropped_for_those_that_answered(limit):
    gate = threading.Event()
    try:
        routed = adaptive(max_routes=2, routes={"two": Fixed("z", gate=gate)}, default="one", **limit).search(QueryBundle("one two"))
    finally:
        gate.set()
    assert routed.taken == ("one",)
    assert list(routed.dropped) == ["two"]
    assert routed.dropped["two"].startswith("TimeoutError: no answer within 0.0")


def test_when_the_time_is_up_nothing_stands_in():
    gate = threading.Event()
    started = time.perf_counter()
    try:
        with pytest.raises(TimeoutError):
            adaptive(routes={"one": Fixed("a", gate=gate), "two": Fixed("b", gate=gate)}, max_seconds=0.05).retrieve("one")
    finally:
        gate.set()
    assert time.perf_counter() - started < 5


def test_explain_asks_the_others_and_changes_nothing():
    retriever = adaptive(explain=True)
    with capture_trace() as trace:
        routed = retriever.search(QueryBundle("one"))
    assert [child.stage for child in trace.children] == ["one", "two, not taken", "nothing, not taken", "failing, not taken"]
    assert [item.stage for item in trace.for_node("b")] == ["one", "two, not taken", "auto"]
    assert ids(routed.hits) == ["a", "b"]
    assert routed.others == {"two": ["b", "c"], "nothing": []}
    assert routed.dropped == {"failing": "ConnectionError: down"}
    stood_in = retriever.search(QueryBundle("nothing"))
    assert (stood_in.taken, stood_in.others) == (("two",), {"one": ["a", "b"]})
    assert retriever.retrievers["one"].asked == 2, "once for each question"


def test_a_route_without_documents_finds_none():
    routed = adaptive(router=lambda question: "none").search(QueryBundle("Hello"))
    assert (routed.hits, routed.taken, routed.dropped) == ([], ("none",), {})


def test_filters_hold_on_every_route():
    node = TextNode(id_="x", text="foxes", metadata={"year": 2020})
    words = LexicalRetriever.from_defaults(nodes=[node, TextNode(id_="y", text="foxes", metadata={"year": 2021})], language="en")

    class Foreign(Fixed):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=node, score=1.0)]

    retriever = adaptive(routes={"one": words, "two": Foreign()}, router=lambda question: "one" if "foxes" in question else "two")
    filtered = retriever.with_filters(MetadataFilters(filters=[MetadataFilter(key="year", value=2021)]))
    assert ids(filtered.retrieve("foxes")) == ["y"]
    assert ids(filtered.retrieve("owls")) == []


def test_the_bundle_is_only_read_and_events_are_paired():
    bundle = QueryBundle("one", embedding=[1.0])
    with count_events() as counts:
        adaptive().retrieve(bundle)
    assert bundle == QueryBundle("one", embedding=[1.0])
    assert counts["RetrievalStartEvent"] == counts["RetrievalEndEvent"] == 2, "one for the call, one for the route that was asked"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"default": "four"}, "The default route is 'four'"),
        ({"max_routes": 0}, "max_routes is 0"),
        ({"timeout_s": 0}, "timeout_s is 0"),
        ({"max_seconds": -1}, "max_seconds is -1"),
        ({"descriptions": {"five": "x"}}, r"name \['five'\]"),
        ({"router": "rules"}, "router is 'rules'"),
        ({"fusion": "best"}, "fusion"),
        ({"routes": {"one": "no retriever"}}, "'one' is a str"),
        ({"routes": {"router": Fixed("a")}}, "A route is called 'router'"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        adaptive(**options)


def test_without_routes_and_with_names_that_the_rules_do_not_know():
    with pytest.raises(ConfigurationError, match="There are no routes"):
        AdaptiveRetriever({}, router=by_word)
    with pytest.raises(ConfigurationError, match="the rules know"):
        AdaptiveRetriever({"sql": Fixed("a"), "text": Fixed("b")})


def test_contract():
    texts = ["Foxes live in forests.", "Whales live in the sea.", "Owls hunt in forests."]
    nodes = [TextNode(id_=f"n{number}", text=text, metadata={"lang": "en"}) for number, text in enumerate(texts)]

    def make(**options) -> AdaptiveRetriever:
        words = LexicalRetriever.from_defaults(nodes=nodes, language="en")
        return AdaptiveRetriever(
            {"one": words, "two": words}, router=lambda question: ("one", "two") if "forests" in question else None, max_routes=2, **options
        )

    with forbidden_settings_llm():
        check_retriever_contract(make, queries=["Who lives in forests?", "Who lives in the sea?", "zzz"])
