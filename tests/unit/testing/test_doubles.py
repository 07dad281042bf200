import asyncio

import numpy as np
import pytest
from llama_index.core.schema import TextNode

from llama_index_advanced_rag._concurrency import run_all
from llama_index_advanced_rag.testing import DeterministicEmbedding, RendezvousEmbedding, ScriptedLLM, count_events, forbidden_settings_llm
from llama_index_advanced_rag.testing.observing import snapshot


def test_answers_come_in_order_and_the_last_one_stays():
    llm = ScriptedLLM(["one", lambda prompt: prompt.upper(), "last"])
    assert [llm.complete(prompt).text for prompt in ("a", "b", "c", "d")] == ["one", "B", "last", "last"]
    assert llm.prompts == ["a", "b", "c", "d"]


async def test_the_four_ways_of_asking_give_the_same_answer():
    llm = ScriptedLLM(["two words"])
    assert llm.complete("p").text == (await llm.acomplete("p")).text == "two words"
    assert "".join(piece.delta for piece in llm.stream_complete("p")) == "two words"
    assert "".join([piece.delta async for piece in await llm.astream_complete("p")]) == "two words"
    assert [piece.text for piece in llm.stream_complete("p")] == ["two ", "two words"]
    assert len(llm.prompts) == 5


async def test_an_exception_is_raised_in_every_way():
    llm = ScriptedLLM([ConnectionError("down")])
    for ask in (llm.complete, lambda prompt: list(llm.stream_complete(prompt))):
        with pytest.raises(ConnectionError, match="down"):
            ask("p")
    with pytest.raises(ConnectionError, match="down"):
        await llm.acomplete("p")
    assert llm.prompts == ["p"] * 3


def test_threads_never_get_the_same_answer_twice():
    llm = ScriptedLLM([str(number) for number in range(200)])
    parts = [outcome.unwrap() for outcome in run_all([lambda: [llm.complete("p").text for _ in range(50)]] * 4)]
    assert sorted(int(text) for part in parts for text in part) == list(range(200))


async def test_an_async_delay_lets_others_run():
    llm, done = ScriptedLLM(["slow"], delay_s=0.05), []
    task = asyncio.ensure_future(llm.acomplete("p"))
    await asyncio.sleep(0)
    done.append("other")
    assert not task.done()
    assert (await task).text == "slow"


async def test_equal_words_have_equal_vectors_in_every_way_of_asking():
    model = DeterministicEmbedding(dimensions=16)
    vector = model.get_text_embedding("Red fox!")
    assert len(vector) == 16
    assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert vector == model.get_query_embedding("fox red") == await model.aget_text_embedding("fox red") == await model.aget_query_embedding("FOX red.")
    assert model.get_text_embedding_batch(["fox red"]) == [vector]
    assert model.get_text_embedding("") == pytest.approx([0.25] * 16)
    assert "fox red" in model.texts


def test_shared_words_are_closer_than_none():
    model = DeterministicEmbedding()
    fox, foxes, sea = (np.array(model.get_text_embedding(text)) for text in ("the red fox", "a red fox sleeps", "deep blue water"))
    assert fox @ foxes > fox @ sea


def test_a_text_can_be_made_to_fail():
    model = DeterministicEmbedding(fail_on="poison")
    model.get_text_embedding("fine")
    with pytest.raises(ConnectionError, match="the embedding service is down"):
        model.get_text_embedding("a poison text")


def test_the_rendezvous_meets_in_threads_and_fails_alone():
    model = RendezvousEmbedding(2, timeout_s=5.0)
    assert all(outcome.ok for outcome in run_all([lambda: model.get_query_embedding("a"), lambda: model.get_query_embedding("b")]))
    with pytest.raises(TimeoutError, match="1 of 2 query embeddings were in flight together"):
        RendezvousEmbedding(2, timeout_s=0.01).get_query_embedding("alone")


def test_the_settings_llm_is_forbidden_and_put_back():
    from llama_index.core import Settings

    before = Settings._llm
    with forbidden_settings_llm() as prompts:
        with pytest.raises(AssertionError, match=r"Settings\.llm was called"):
            Settings.llm.complete("who are you?")
        assert prompts == ["who are you?"]
    assert Settings._llm is before


def test_events_are_counted_in_the_block_only():
    from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever

    retriever = LexicalRetriever.from_defaults(nodes=[TextNode(text="fox")])
    with count_events() as counts:
        retriever.retrieve("fox")
    retriever.retrieve("fox")
    assert (counts["RetrievalStartEvent"], counts["RetrievalEndEvent"]) == (1, 1)


def test_a_snapshot_sees_every_change():
    node = TextNode(text="fox", metadata={"year": 1})
    before = snapshot([node])
    assert snapshot([node]) == before
    node.metadata["year"] = 2
    assert snapshot([node]) != before
