import asyncio
import threading

import pytest
from llama_index.core.embeddings import BaseEmbedding, MockEmbedding

from llama_index_advanced_rag.embeddings.async_calls import aembed_query, aembed_texts
from llama_index_advanced_rag.embeddings.multilingual import MultilingualE5Embedding
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.testing import DeterministicEmbedding


class InTheLoop(BaseEmbedding):
    """A local model as the documentation of LlamaIndex writes one: the async methods call the sync ones."""

    def _embed(self, text: str) -> list[float]:
        SEEN.append(threading.get_ident())
        return [float(len(text)), 1.0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Batched(InTheLoop):
    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return [self._embed(text) for text in texts]


SEEN: list[int] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    SEEN.clear()


async def test_a_model_that_embeds_in_its_coroutine_is_asked_in_a_thread():
    model = InTheLoop()
    assert await aembed_query(model, ["one", "three"]) == model.get_agg_embedding_from_queries(["one", "three"])
    assert await aembed_texts(model, ["a", "bb"]) == [[1.0, 1.0], [2.0, 1.0]]
    assert SEEN.count(threading.get_ident()) == 2, "only the comparison ran here"


async def test_a_model_that_awaits_is_awaited():
    assert await aembed_texts(Batched(), ["a"]) == [[1.0, 1.0]]
    assert len(SEEN) == SEEN.count(threading.get_ident()) == 1
    model = DeterministicEmbedding(delay_s=0.01)
    assert await aembed_query(model, ["fox"]) == model.get_query_embedding("fox")


async def test_nothing_to_embed():
    assert await aembed_texts(MockEmbedding(embed_dim=2), []) == []


async def test_dense_search_with_a_local_model_leaves_the_loop_free():
    retriever = DenseRetriever(FlatVectorStore(), InTheLoop())
    await retriever.aretrieve("fox")
    assert SEEN
    assert threading.get_ident() not in SEEN


async def check_thread(model: BaseEmbedding, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def embed(_: BaseEmbedding, query: str) -> list[float]:
        threads.append(threading.get_ident())
        return [1.0]

    monkeypatch.setattr(type(model), "_get_query_embedding", embed)
    await aembed_query(model, ["fox"])
    assert threads
    assert threading.get_ident() not in threads


async def test_the_multilingual_model_leaves_the_loop_free(monkeypatch: pytest.MonkeyPatch):
    await check_thread(MultilingualE5Embedding(), monkeypatch)


@pytest.mark.offline_model
async def test_the_packaged_model_leaves_the_loop_free(minilm: BaseEmbedding, monkeypatch: pytest.MonkeyPatch):
    await check_thread(minilm, monkeypatch)
