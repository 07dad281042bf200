"""Answers that a program reads: one repair, and an error that says what came instead."""

import pytest
from llama_index.core import PromptTemplate
from llama_index.core.bridge.pydantic import BaseModel

from llama_index_advanced_rag.errors import BudgetExceededError, LLMOutputError
from llama_index_advanced_rag.structured_answers import aask_parsed, ask_parsed, json_objects, validated
from llama_index_advanced_rag.testing import ScriptedLLM
from llama_index_advanced_rag.usage import UsageLedger, capture_usage

PROMPT = PromptTemplate("How many {things}?\n{note_str}")


def even(answer: str) -> int:
    if int(answer) % 2:
        raise ValueError(f"{answer} is odd.")
    return int(answer)


def asked(llm: ScriptedLLM, **options) -> int:
    return ask_parsed(llm, "count", PROMPT, {"things": "foxes"}, even, **options)


def test_a_usable_answer_is_one_call():
    llm = ScriptedLLM(["4"])
    with capture_usage() as usage:
        assert asked(llm) == 4
    assert usage.by_prompt == {"count": 1}
    assert llm.prompts == ["How many foxes?\n"]


def test_the_second_prompt_says_what_was_wrong():
    llm = ScriptedLLM(["3", "4"])
    assert asked(llm) == 4
    assert llm.prompts[1] == "How many foxes?\nYour last answer could not be used: 3 is odd. Answer again, with the JSON only.\n"


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_the_error_says_what_came_instead(attempts: int):
    llm = ScriptedLLM(["3", "5", "many foxes" * 100])
    with pytest.raises(LLMOutputError, match=rf"'count' could not be used after {attempts} attempt") as caught:
        asked(llm, attempts=attempts)
    assert len(llm.prompts) == attempts
    assert caught.value.attempts == attempts
    assert caught.value.output == ["3", "5", ("many foxes" * 100)[:300]][attempts - 1]


def test_a_long_problem_is_cut():
    llm = ScriptedLLM(["foxes " * 10_000, "4"])
    assert ask_parsed(llm, "count", PROMPT, {"things": "foxes"}, lambda answer: even(answer) if len(answer) < 9 else _refuse(answer)) == 4
    assert len(llm.prompts[1]) < 1000


def _refuse(answer: str) -> int:
    raise ValueError(answer)


@pytest.mark.parametrize("answers", [[ConnectionError("down")], ["3", ConnectionError("down")], [ValueError("window too small")]])
def test_what_the_llm_raises_passes_as_it_is(answers):
    with pytest.raises(type(answers[-1]), match="down|window") as caught:
        asked(ScriptedLLM(answers))
    assert caught.value is answers[-1]


def test_a_budget_holds_for_the_repair_too():
    llm = ScriptedLLM(["3", "4"])
    with capture_usage(UsageLedger(max_calls=1)), pytest.raises(BudgetExceededError):
        asked(llm)
    assert len(llm.prompts) == 1


def test_other_errors_of_the_parser_are_not_the_llms_fault():
    with pytest.raises(KeyError):
        ask_parsed(ScriptedLLM(["4"]), "count", PROMPT, {"things": "foxes"}, {}.__getitem__)


def test_the_variables_given_are_left_alone():
    variables = {"things": "foxes"}
    ask_parsed(ScriptedLLM(["3", "4"]), "count", PROMPT, variables, even)
    assert variables == {"things": "foxes"}


async def test_async_is_as_sync():
    for answers in (["4"], ["3", "4"]):
        ours, theirs = ScriptedLLM(answers), ScriptedLLM(answers)
        assert await aask_parsed(ours, "count", PROMPT, {"things": "foxes"}, even) == asked(theirs)
        assert ours.prompts == theirs.prompts
    with pytest.raises(LLMOutputError, match="after 2 attempt"):
        await aask_parsed(ScriptedLLM(["3"]), "count", PROMPT, {"things": "foxes"}, even)
    with pytest.raises(ConnectionError, match="down"):
        await aask_parsed(ScriptedLLM([ConnectionError("down")]), "count", PROMPT, {"things": "foxes"}, even)


@pytest.mark.parametrize(
    ("answer", "objects"),
    [
        ("", []),
        ("no JSON", []),
        ("[1, 2]", []),
        ('```json\n{"a": 1}\n```', [{"a": 1}]),
        ('{thinking} {"a": {"b": 2}} and {"c": 3}', [{"a": {"b": 2}}, {"c": 3}]),
        ('{"a": 1', []),
        ("{" * 100_000, []),
        ('{"a":' * 100_000, []),
        ('{"a": ' + "9" * 10_000 + "}", []),
    ],
)
def test_objects_are_found_in_whatever_stands_around_them(answer: str, objects: list):
    assert list(json_objects(answer)) == objects


def test_what_does_not_fit_is_said():
    class Line(BaseModel):
        places: list[int]

    assert validated(Line, {"places": [1, 2]}) == Line(places=[1, 2])
    assert validated(Line, {"places": [1, "two"]}).startswith("places.1: ")
    assert validated(Line, {}) == "places: Field required."
    assert isinstance(validated(Line, None), str)
