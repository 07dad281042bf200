import asyncio
from collections.abc import AsyncGenerator, Generator
from threading import Thread

import pytest
from llama_index.core import PromptTemplate

from llama_index_advanced_rag import usage
from llama_index_advanced_rag._concurrency import run_all
from llama_index_advanced_rag.errors import BudgetExceededError
from llama_index_advanced_rag.testing import ScriptedLLM
from llama_index_advanced_rag.usage import UsageLedger, capture_usage, count_tokens, current_ledger

PROMPT = PromptTemplate("Say {word}.")
ASKED, SAID = count_tokens("Say yes."), count_tokens("yes yes")


def ask(name: str = "say") -> str:
    return usage.predict(ScriptedLLM(["yes yes"]), name, PROMPT, word="yes")


async def ask_in(way: str) -> str:
    llm = ScriptedLLM(["yes yes"])
    if way == "predict":
        return usage.predict(llm, "say", PROMPT, word="yes")
    if way == "apredict":
        return await usage.apredict(llm, "say", PROMPT, word="yes")
    if way == "stream":
        return "".join(usage.stream(llm, "say", PROMPT, word="yes"))
    return "".join([token async for token in await usage.astream(llm, "say", PROMPT, word="yes")])


WAYS = ["predict", "apredict", "stream", "astream"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_call_counts_in_every_block_around_it(way: str) -> None:
    with capture_usage() as outer:
        ask("other")
        with capture_usage() as middle, capture_usage() as inner:
            assert await ask_in(way) == "yes yes"
        with capture_usage() as empty:
            pass
    assert inner.to_dict() == middle.to_dict() == {"llm_calls": 1, "prompt_tokens": ASKED, "completion_tokens": SAID, "by_prompt": {"say": 1}, "cached": 0}
    assert outer.to_dict() == {"llm_calls": 2, "prompt_tokens": 2 * ASKED, "completion_tokens": 2 * SAID, "by_prompt": {"other": 1, "say": 1}, "cached": 0}
    assert (empty.calls, empty.total_tokens) == (0, 0)
    assert current_ledger() is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limits", [{"max_calls": 0}, {"max_tokens": ASKED - 1}])
@pytest.mark.parametrize("limited", ["outer", "inner"])
async def test_the_limits_of_every_block_hold_and_a_refused_call_counts_nowhere(way: str, limits: dict[str, int], limited: str) -> None:
    ledgers = {name: UsageLedger(**(limits if name == limited else {})) for name in ("outer", "inner")}
    with capture_usage(ledgers["outer"]), capture_usage(ledgers["inner"]), pytest.raises(BudgetExceededError, match="is used up|does not hold"):
        await ask_in(way)
    assert [(ledger.calls, ledger.total_tokens, ledger.by_prompt) for ledger in ledgers.values()] == [(0, 0, {}), (0, 0, {})]


def test_a_ledger_goes_on_where_it_stopped() -> None:
    ledger = UsageLedger(max_calls=2)
    for _ in range(2):
        with capture_usage(ledger):
            ask()
    with capture_usage(ledger), pytest.raises(BudgetExceededError, match=r"The budget of 2 LLM call\(s\) is used up before prompt 'say'"):
        ask()
    assert ledger.calls == 2


def test_the_same_ledger_twice_counts_once() -> None:
    ledger = UsageLedger()
    with capture_usage(ledger), capture_usage(ledger):
        ask()
    assert ledger.calls == 1


def test_current_ledger_is_the_innermost() -> None:
    with capture_usage() as outer:
        with capture_usage() as inner:
            assert current_ledger() is inner
        assert current_ledger() is outer


def test_without_a_block_nothing_is_counted_and_nothing_formatted() -> None:
    assert current_ledger() is None
    assert ask() == "yes yes"


def test_a_block_that_fails_ends() -> None:
    with pytest.raises(ZeroDivisionError), capture_usage():
        raise ZeroDivisionError
    assert current_ledger() is None


def test_a_call_that_fails_is_counted_without_completion() -> None:
    llm = ScriptedLLM([ConnectionError("down")])
    with capture_usage() as outer, capture_usage() as inner, pytest.raises(ConnectionError):
        usage.predict(llm, "say", PROMPT, word="yes")
    assert [(ledger.calls, ledger.completion_tokens) for ledger in (outer, inner)] == [(1, 0), (1, 0)]


def test_a_dropped_stream_counts_what_came() -> None:
    with capture_usage() as outer, capture_usage() as inner:
        tokens = usage.stream(ScriptedLLM(["yes yes"]), "say", PROMPT, word="yes")
        first = next(iter(tokens))
        assert isinstance(tokens, Generator)
        tokens.close()
    assert outer.completion_tokens == inner.completion_tokens == count_tokens(first)


async def test_a_stream_that_ends_after_the_block_still_counts_in_it() -> None:
    with capture_usage() as outer, capture_usage() as inner:
        tokens = await usage.astream(ScriptedLLM(["yes yes"]), "say", PROMPT, word="yes")
    assert isinstance(tokens, AsyncGenerator)
    assert "".join([token async for token in tokens]) == "yes yes"
    assert outer.completion_tokens == inner.completion_tokens == SAID


def test_threads_of_ours_count_and_limits_are_exact() -> None:
    with capture_usage(UsageLedger(max_calls=5)) as outer, capture_usage() as inner:
        outcomes = run_all([ask for _ in range(12)])
    assert sum(outcome.ok for outcome in outcomes) == outer.calls == inner.calls == 5
    assert all(isinstance(outcome.error, BudgetExceededError) for outcome in outcomes if not outcome.ok)
    assert outer.by_prompt == inner.by_prompt == {"say": 5}


def test_tasks_count_and_a_foreign_thread_does_not() -> None:
    async def both() -> None:
        await asyncio.gather(ask_in("apredict"), ask_in("astream"))

    with capture_usage() as ledger:
        asyncio.run(both())
        thread = Thread(target=ask)
        thread.start()
        thread.join()
    assert ledger.calls == 2


def test_tokens_of_nothing_are_none() -> None:
    assert count_tokens("") == 0
