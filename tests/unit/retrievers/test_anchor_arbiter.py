"""The arbiter: what is read from an answer, and what happens when it cannot be read."""

import pytest
from llama_index.core.llms import LLMMetadata
from llama_index.core.schema import TextNode

from llama_index_advanced_rag.hierarchy.units import UnitTable
from llama_index_advanced_rag.prompts import ANCHOR_ARBITER, ANCHOR_ARBITER_PROMPT
from llama_index_advanced_rag.retrievers.anchors.arbiter import Arbiter, parse_verdict
from llama_index_advanced_rag.retrievers.anchors.candidates import Candidate
from llama_index_advanced_rag.retrievers.anchors.outline import NumberedOutline
from llama_index_advanced_rag.retrievers.anchors.regions import region_of
from llama_index_advanced_rag.testing import ScriptedLLM
from llama_index_advanced_rag.trace import capture_trace
from llama_index_advanced_rag.usage import UsageLedger, capture_usage

GOOD = '{"units": [{"number": 2, "reason": "It says so."}, {"number": 1}]}'


def outline(*headings: str) -> NumberedOutline:
    nodes = [TextNode(id_=heading, text="x", metadata={"section_path": heading}) for heading in headings]
    table = UnitTable.from_nodes(nodes)
    return NumberedOutline(tuple(Candidate(region_of(node, table)) for node in nodes), "\n".join(f"[{n}] {h}" for n, h in enumerate(headings, start=1)), "none")


def asked(answers, *, max_units: int = 5, **limits):
    llm = ScriptedLLM(answers)
    arbiter = Arbiter(llm, ANCHOR_ARBITER_PROMPT, max_units)
    with capture_usage(UsageLedger(**limits)) as usage, capture_trace() as trace:
        chosen = arbiter.choose("why?", outline("Scope", "Termination", "Penalties"))
    return [(one.region.title, reason) for one, reason in chosen], usage, [note.message for note in trace.notes], llm


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here you are:\n{GOOD}\nI hope this helps.",
        f'{{thinking}} {{"plan": 1}} {GOOD}',
        '{"units": [{"number": "2", "reason": "It says so.", "page": 4}, {"number": 1, "reason": null}], "comment": "none"}',
    ],
)
def test_what_stands_around_the_json_does_not_matter(answer):
    chosen, usage, notes, _ = asked([answer])
    assert chosen == [("Termination", "It says so."), ("Scope", "")]
    assert usage.by_prompt == {ANCHOR_ARBITER: 1}
    assert notes == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "no JSON object"),
        ("Termination and Penalties", "no JSON object"),
        ('{"units": [{"name": "Termination", "reason": "x"}]}', "units.0.number"),
        ('{"units": "Termination"}', "units"),
        ('{"units": [{"number": 2.5}]}', "units.0.number"),
        ('[{"number": 2}]', "units"),
        ("{" * 5000, "no JSON object"),
        ('{"a":' * 5000, "no JSON object"),
        ('{"units": [{"number": ' + "9" * 5000 + "}]}", "no JSON object|number"),
    ],
)
def test_what_cannot_be_read_is_asked_again_once_and_then_reported(answer, problem):
    with pytest.raises(ValueError, match=problem):
        parse_verdict(answer)
    chosen, usage, notes, llm = asked([answer, answer, GOOD])
    assert chosen == []
    assert usage.calls == 2
    assert len(notes) == 1
    assert "order of their scores" in notes[0]
    assert "after 2 attempt(s)" in notes[0]
    assert "could not be used" in llm.prompts[1]
    assert "could not be used" not in llm.prompts[0]


def test_the_repaired_answer_counts():
    chosen, usage, notes, _ = asked(["Termination", GOOD])
    assert [title for title, _ in chosen] == ["Termination", "Scope"]
    assert usage.calls == 2
    assert notes == []


def test_numbers_that_do_not_exist_are_reported_and_the_others_count():
    chosen, usage, notes, _ = asked(['{"units": [{"number": 99}, {"number": 3}, {"number": 0}, {"number": -1}, {"number": 3, "reason": "again"}]}'])
    assert chosen == [("Penalties", "")]
    assert usage.calls == 1
    assert len(notes) == 1
    assert "[99, 0, -1]" in notes[0]


def test_only_numbers_that_do_not_exist_choose_nothing():
    chosen, usage, notes, _ = asked(['{"units": [{"number": 99}]}'])
    assert chosen == []
    assert usage.calls == 1
    assert len(notes) == 2


def test_no_part_is_an_answer_too():
    chosen, usage, notes, _ = asked(['{"units": []}'])
    assert chosen == []
    assert usage.calls == 1
    assert "named no part" in notes[0]


def test_more_parts_than_asked_for_are_cut():
    chosen, *_ = asked(['{"units": [{"number": 1}, {"number": 2}, {"number": 3}]}'], max_units=2)
    assert [title for title, _ in chosen] == ["Scope", "Termination"]


@pytest.mark.parametrize("answers", [[ConnectionError("down")], ["nonsense", ConnectionError("down")]])
def test_an_llm_that_fails_has_no_say(answers):
    chosen, _, notes, _ = asked(answers)
    assert chosen == []
    assert "ConnectionError: down" in notes[0]


def test_a_budget_without_room_is_reported():
    chosen, usage, notes, llm = asked([GOOD], max_calls=0)
    assert chosen == []
    assert usage.calls == 0
    assert llm.prompts == []
    assert "BudgetExceededError" in notes[0]


async def test_async_is_as_sync():
    for answers in ([GOOD], ["nonsense", GOOD], ["nonsense"], [ConnectionError("down")]):
        chosen, *_ = asked(answers)
        again = await Arbiter(ScriptedLLM(answers), ANCHOR_ARBITER_PROMPT, 5).achoose("why?", outline("Scope", "Termination", "Penalties"))
        assert [(one.region.title, reason) for one, reason in again] == chosen


def test_a_small_window_gets_a_short_outline():
    class Small(ScriptedLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(context_window=4096, num_output=-1)

    assert Arbiter(Small(), ANCHOR_ARBITER_PROMPT, 5).most_entries < Arbiter(ScriptedLLM(), ANCHOR_ARBITER_PROMPT, 5).most_entries
