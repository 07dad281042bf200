"""Who listens, who writes where, and what is kept; how a trace looks is tested in test_trace.py."""

import asyncio
import json
import logging

import pytest

from llama_index_advanced_rag._concurrency import arun_all, run_all
from llama_index_advanced_rag.trace import Evidence, RetrievalTrace, capture_trace, current_trace, report, stage_trace, use_trace


def evidence(node_id: str, stage: str = "lexical", rank: int = 1, score: float | None = 2.5) -> Evidence:
    return Evidence(node_id, stage, rank, score, f"{stage} says so", {"term": 1.0})


def test_without_a_listener_there_is_no_trace():
    assert current_trace() is None
    with stage_trace("lexical") as trace:
        assert trace is None
        assert current_trace() is None


def test_capture_listens_and_stops():
    with capture_trace("why?") as trace:
        assert current_trace() is trace
        with stage_trace("lexical", "why") as stage:
            assert stage is not None
            stage.add(evidence("n"))
    assert current_trace() is None
    assert (trace.query, [child.stage for child in trace.children], trace.children[0].query) == ("why?", ["lexical"], "why")
    assert trace.elapsed_ms is not None
    assert trace.elapsed_ms >= trace.children[0].elapsed_ms >= 0


def test_a_capture_inside_another_is_its_child():
    with capture_trace("outer") as outer, capture_trace("inner", stage="chat") as inner:
        pass
    assert outer.children == [inner]
    assert inner.stage == "chat"


def test_the_trace_ends_with_its_block_also_when_it_raises():
    with pytest.raises(LookupError), capture_trace() as trace, stage_trace("dense"):
        raise LookupError
    assert current_trace() is None
    assert trace.children[0].elapsed_ms is not None


def test_use_trace_hands_a_trace_over_and_none_silences():
    mine = RetrievalTrace("mine")
    with capture_trace() as trace:
        with use_trace(mine):
            report("info", "to mine")
        with use_trace(None):
            assert current_trace() is None
    assert ([note.message for note in mine.notes], trace.notes) == (["to mine"], [])


def test_threads_write_into_the_callers_trace_in_the_order_of_the_parts():
    with capture_trace("q") as trace:
        parts = [trace.child(name) for name in ("first", "second")]

        def work(part: RetrievalTrace) -> None:
            with use_trace(part):
                report("info", part.stage)

        run_all([lambda: work(parts[0]), lambda: work(parts[1])])
    assert [[note.message for note in child.notes] for child in trace.children] == [["first"], ["second"]]


async def test_tasks_side_by_side_do_not_see_each_others_trace():
    async def ask(name: str) -> RetrievalTrace:
        with capture_trace(name) as trace:
            await asyncio.sleep(0)
            with stage_trace("dense") as stage:
                await asyncio.sleep(0)
                assert current_trace() is stage
                stage.add(evidence(name, "dense"))
        return trace

    one, two = [outcome.unwrap() for outcome in await arun_all([lambda: ask("one"), lambda: ask("two")])]
    assert [trace.query for trace in one.walk()] == ["one", "one"]
    assert two.for_node("two")
    assert not two.for_node("one")


def make_tree() -> RetrievalTrace:
    trace = RetrievalTrace("hybrid", "quoi ?")
    trace.child("dense").add(evidence("n", "dense"))
    lexical = trace.child("lexical", "quoi d'autre ?")
    lexical.add(evidence("n", "lexical", 2))
    lexical.note("warning", "one child failed")
    trace.add(evidence("n", "hybrid", 1, None))
    return trace


def test_evidence_of_a_node_comes_as_the_stages_ran():
    trace = make_tree()
    assert [item.stage for item in trace.for_node("n")] == ["dense", "lexical", "hybrid"]
    assert trace.for_node("m") == []
    assert [part.stage for part in trace.walk()] == ["hybrid", "dense", "lexical"]
    assert [(note.level, note.stage) for note in trace.all_notes()] == [("warning", "lexical")]


def test_a_trace_is_json_in_its_own_letters():
    trace = make_tree()
    assert json.loads(trace.to_json()) == trace.to_dict()
    assert "é" in RetrievalTrace("x", "été").to_json()
    assert trace.to_dict()["children"][1]["query"] == "quoi d'autre ?"
    told = {"node_id": "n", "stage": "hybrid", "rank": 1, "score": None, "why": "hybrid says so", "details": {"term": 1.0}}
    assert trace.to_dict()["evidence"] == [told]


@pytest.mark.parametrize(("level", "number"), [("info", logging.INFO), ("warning", logging.WARNING), ("error", logging.ERROR)])
def test_a_report_reaches_the_trace_and_the_log(caplog: pytest.LogCaptureFixture, level, number: int):
    with caplog.at_level(logging.INFO, logger="llama_index_advanced_rag"), capture_trace(stage="s") as trace:
        report(level, "100 % left out")
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(number, "100 % left out")]
    assert [(note.level, note.stage, note.message) for note in trace.notes] == [(level, "s", "100 % left out")]


def test_a_report_without_a_listener_is_logged(caplog: pytest.LogCaptureFixture):
    report("warning", "nobody listens")
    assert "nobody listens" in caplog.text
