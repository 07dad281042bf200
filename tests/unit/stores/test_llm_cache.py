import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator

import pytest
from llama_index.core import ChatPromptTemplate, PromptTemplate
from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.llms import ChatMessage
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.llms.openai import OpenAI

from llama_index_advanced_rag import SQLiteKVStore, usage
from llama_index_advanced_rag.errors import BudgetExceededError
from llama_index_advanced_rag.stores.llm_cache import LLMCache
from llama_index_advanced_rag.testing import ScriptedLLM
from llama_index_advanced_rag.trace import capture_trace
from llama_index_advanced_rag.usage import UsageLedger, capture_usage, count_tokens, use_llm_cache

PROMPT = PromptTemplate("Say {word}.")
WAYS = ["predict", "apredict", "stream", "astream"]


@pytest.fixture
def cache():
    with SQLiteKVStore() as store:
        yield LLMCache(store)


async def ask(way, llm, word="yes", name="say", prompt=PROMPT):
    if way == "predict":
        return usage.predict(llm, name, prompt, word=word)
    if way == "apredict":
        return await usage.apredict(llm, name, prompt, word=word)
    if way == "stream":
        return "".join(usage.stream(llm, name, prompt, word=word))
    return "".join([token async for token in await usage.astream(llm, name, prompt, word=word)])


@pytest.mark.parametrize("again", WAYS)
@pytest.mark.parametrize("way", WAYS)
async def test_what_one_way_was_answered_is_kept_for_every_way(way, again, cache):
    llm = ScriptedLLM(["yes yes", "other"])
    with use_llm_cache(cache), capture_usage() as outer, capture_usage(UsageLedger(max_calls=1)) as ledger:
        assert [await ask(way, llm), await ask(again, llm), await ask(way, llm)] == ["yes yes"] * 3
    assert llm.prompts == ["Say yes."]
    expected = {"llm_calls": 1, "prompt_tokens": count_tokens("Say yes."), "completion_tokens": count_tokens("yes yes"), "by_prompt": {"say": 1}, "cached": 2}
    assert ledger.to_dict() == outer.to_dict() == expected


@pytest.mark.parametrize("way", WAYS)
async def test_without_a_block_nothing_is_kept(way, cache):
    llm = ScriptedLLM(["one", "two", "three", "four"])
    assert await ask(way, llm) == "one"
    with use_llm_cache(cache):
        assert await ask(way, llm) == "two"
        with use_llm_cache(None):
            assert await ask(way, llm) == "three"
        assert await ask(way, llm) == "two"
    assert await ask(way, llm) == "four"


@pytest.mark.parametrize("way", WAYS)
async def test_a_failed_or_empty_answer_is_not_kept(way, cache):
    llm = ScriptedLLM([ConnectionError("down"), "", "yes"])
    with use_llm_cache(cache):
        with pytest.raises(ConnectionError, match="down"):
            await ask(way, llm)
        assert [await ask(way, llm) for _ in range(3)] == ["", "yes", "yes"]
    assert len(cache) == 1


async def test_a_stream_that_was_dropped_is_not_kept(cache):
    llm = ScriptedLLM(["one two three"])
    with use_llm_cache(cache):
        tokens = usage.stream(llm, "say", PROMPT, word="yes")
        assert isinstance(tokens, Generator)
        assert next(tokens) == "one "
        tokens.close()
        atokens = await usage.astream(llm, "say", PROMPT, word="yes")
        assert isinstance(atokens, AsyncGenerator)
        assert await anext(atokens) == "one "
        await atokens.aclose()
    assert len(cache) == 0


async def test_a_stream_that_breaks_is_not_kept(cache):
    def broken():
        yield "one "
        raise ConnectionError("broken")

    class Breaking(ScriptedLLM):
        def stream(self, prompt, **variables):
            return broken()

    with use_llm_cache(cache), pytest.raises(ConnectionError, match="broken"):
        await ask("stream", Breaking())
    assert len(cache) == 0


async def test_a_stream_read_after_the_block_is_kept_and_a_kept_one_comes_at_once(cache):
    llm = ScriptedLLM(["one two three"])
    with use_llm_cache(cache):
        tokens = usage.stream(llm, "say", PROMPT, word="yes")
    assert list(tokens) == ["one ", "two ", "three"]
    with use_llm_cache(cache):
        assert list(usage.stream(llm, "say", PROMPT, word="yes")) == ["one two three"]
        assert [token async for token in await usage.astream(llm, "say", PROMPT, word="yes")] == ["one two three"]


async def test_a_budget_that_is_used_up_still_gives_what_is_kept(cache):
    llm = ScriptedLLM(["yes"])
    with use_llm_cache(cache), capture_usage(UsageLedger(max_calls=1)) as ledger:
        assert [await ask("predict", llm), await ask("predict", llm)] == ["yes", "yes"]
        with pytest.raises(BudgetExceededError):
            await ask("predict", llm, word="no")
    assert (ledger.calls, ledger.cached) == (1, 1)


class Chat(ScriptedLLM):
    @property
    def metadata(self):
        return LLMMetadata(model_name="chat", is_chat_model=True)


def key(cache, llm=None, name="say", prompt=PROMPT, **variables):
    return cache.key(llm or ScriptedLLM(), name, prompt, {"word": "yes"} | variables)


def test_what_the_answer_depends_on_is_in_the_key(cache):
    def openai(**settings):
        return OpenAI(**{"model": "gpt-4o-mini", "api_key": "one", "temperature": 0.1} | settings)

    keys = [
        key(cache),
        key(cache, word="no"),
        key(cache, name="other"),
        key(cache, prompt=PromptTemplate("Say: {word}.")),
        key(cache, prompt=ChatPromptTemplate([ChatMessage(role="system", content="Say {word}.")])),
        key(cache, ScriptedLLM(system_prompt="Be brief.")),
        key(cache, ScriptedLLM(query_wrapper_prompt=PromptTemplate("<{query_str}>"))),
        key(cache, ScriptedLLM(messages_to_prompt=str)),
        key(cache, Chat()),
        key(cache, openai()),
        key(cache, openai(temperature=0.2)),
        key(cache, openai(max_tokens=9)),
        key(cache, openai(model="gpt-4o")),
        key(cache, openai(api_base="http://localhost:1/v1")),
        key(cache, openai(additional_kwargs={"stop_token": "x"})),
        key(cache, openai(additional_kwargs={"stop": {"x"}})),
        key(cache, openai(additional_kwargs={"stop": {"y"}})),
    ]
    assert len(set(keys)) == len(keys)
    assert all(len(digest) == 64 for digest in keys)
    same = [openai(api_key="two"), openai(timeout=3.0, max_retries=9), openai(default_headers={"authorization": "x"})]
    assert {key(cache, llm) for llm in same} == {key(cache, openai())}
    assert key(cache, prompt=PROMPT.partial_format(word="yes")) == key(cache)


@pytest.mark.parametrize("word", ["é", "\ud800", "\0", "{word}"])
async def test_any_prompt_and_answer(cache, word):
    llm = ScriptedLLM([lambda prompt: prompt[::-1]])
    with use_llm_cache(cache), capture_usage() as ledger:
        assert await ask("predict", llm, word) == await ask("apredict", llm, word) == f".{word[::-1]} yaS"
    assert (ledger.calls, ledger.cached) == (1, 1)


async def test_concurrent_calls(cache):
    llm = ScriptedLLM([lambda prompt: f"<{prompt}>"])
    words = [str(number) for number in range(30)]
    with use_llm_cache(cache), capture_usage() as ledger:
        for _ in range(2):
            assert await asyncio.gather(*(ask("apredict", llm, word) for word in words)) == [f"<Say {word}.>" for word in words]
    assert (ledger.calls, ledger.cached, len(cache)) == (30, 30, 30)


SCRIPT = """
import sys
from llama_index.core import PromptTemplate
from llama_index_advanced_rag import SQLiteKVStore, usage
from llama_index_advanced_rag.stores.llm_cache import LLMCache
from llama_index_advanced_rag.testing import ScriptedLLM
with SQLiteKVStore(sys.argv[1]) as store, usage.use_llm_cache(LLMCache(store)):
    print(usage.predict(ScriptedLLM(["of another process"], messages_to_prompt=str), "say", PromptTemplate("Say {word}."), word="yes"))
"""


async def test_another_process_reads_what_was_kept_on_disk(tmp_path):
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", SCRIPT, str(tmp_path / "kv")], check=True, capture_output=True)
    with SQLiteKVStore(tmp_path / "kv", read_only=True) as store, use_llm_cache(LLMCache(store)), capture_trace() as trace:
        assert await ask("predict", ScriptedLLM(["mine"], messages_to_prompt=str)) == "of another process"
        assert trace.notes == []
        assert await ask("predict", ScriptedLLM(["mine"], messages_to_prompt=str), "no") == "mine"  # answered, and noted that it cannot be kept
        assert [("LLM cache failed with ReadOnlyIndexError" in str(note)) for note in trace.notes] == [True]


@pytest.mark.parametrize("way", WAYS)
async def test_a_cache_that_fails_is_noted_and_the_llm_answers(way):
    cache = LLMCache(store := SQLiteKVStore())
    store.close()
    with use_llm_cache(cache), capture_trace() as trace:
        assert await ask(way, ScriptedLLM(["yes"])) == "yes"
    assert ["LLM cache failed with IndexClosedError" in str(note) for note in trace.notes] == [True, True]


@pytest.mark.parametrize("kind", [SimpleKVStore, SQLiteKVStore])
async def test_any_key_value_store_serves_and_is_shared(kind):
    store = kind()
    store.put("a", {"mine": 1})
    cache, other = LLMCache(store), LLMCache(store, collection="other")
    with use_llm_cache(cache):
        await ask("predict", ScriptedLLM(["yes"]))
    assert (len(cache), len(other)) == (1, 0)
    assert list(store.get_all("llm_cache").values()) == [{"completion": "yes"}]
    assert cache.clear() == 1
    assert (len(cache), store.get_all()) == (0, {"a": {"mine": 1}})
    assert repr(cache).endswith("collection='llm_cache')")
