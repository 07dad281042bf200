"""The contract suite is itself tested: a good component passes, each deliberately broken one is caught by the right clause."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from llama_index.core import Settings
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.testing import (
    ContractError,
    DeterministicEmbedding,
    check_postprocessor_contract,
    check_query_engine_contract,
    check_retriever_contract,
)
from llama_index_advanced_rag.trace import Evidence, RetrievalTrace, capture_trace, current_trace, stage_trace

FRENCH = MetadataFilters(filters=[MetadataFilter(key="lang", value="fr")])
Options = dict[str, Any]


def corpus() -> list[TextNode]:
    return [TextNode(text=f"text {number}", id_=f"n{number}", metadata={"lang": "fr" if number % 2 else "en"}) for number in range(5)]


class GoodRetriever(TracedRetriever):
    """Finds every node, whatever the question."""

    stage = "good"

    def __init__(self, nodes: list[TextNode], *, similarity_top_k: int, filters: MetadataFilters | None = None) -> None:
        super().__init__(similarity_top_k=similarity_top_k, filters=filters)
        self.nodes = nodes

    def scored(self) -> list[NodeWithScore]:
        wanted = [node for node in self.nodes if self.filters is None or node.metadata["lang"] == "fr"]
        return [NodeWithScore(node=node, score=1.0 / (rank + 1)) for rank, node in enumerate(wanted)]

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.scored()[: self.similarity_top_k]
        trace = current_trace()
        if trace is not None:
            for rank, item in enumerate(found, 1):
                trace.add(Evidence(item.node.node_id, self.stage, rank, item.score, "is there"))
        return found


class ChangesMetadata(GoodRetriever):
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = super()._find(query_bundle)
        found[0].node.metadata["seen"] = True
        return found


class ChangesBundle(GoodRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query_bundle.embedding = [1.0]
        return super()._retrieve(query_bundle)


class Unsorted(GoodRetriever):
    def scored(self) -> list[NodeWithScore]:
        return super().scored()[::-1]


class NumpyScores(GoodRetriever):
    def scored(self) -> list[NodeWithScore]:
        found = super().scored()
        for item in found:
            item.score = np.float32(item.score)  # type: ignore[assignment]
        return found


class NotANumber(GoodRetriever):
    def scored(self) -> list[NodeWithScore]:
        return [NodeWithScore(node=node, score=float("nan")) for node in self.nodes]


class Twice(GoodRetriever):
    def retrieve(self, str_or_query_bundle: Any) -> list[NodeWithScore]:
        found = super().retrieve(str_or_query_bundle)
        return found + found[-1:]


class IgnoresTopK(GoodRetriever):
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.with_top_k(3)._find(query_bundle) if self.similarity_top_k < 3 else super()._find(query_bundle)


class IgnoresFilters(GoodRetriever):
    def scored(self) -> list[NodeWithScore]:
        return self.with_filters(None).scored() if self.filters else super().scored()


class FiltersTooLate(GoodRetriever):
    def scored(self) -> list[NodeWithScore]:
        everything = [NodeWithScore(node=node, score=1.0) for node in self.nodes][: self.similarity_top_k]
        return [item for item in everything if self.filters is None or item.node.metadata["lang"] == "fr"]


class Blocking(GoodRetriever):
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._retrieve(query_bundle)


class AsyncDiffers(GoodRetriever):
    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return (await super()._afind(query_bundle))[:1]


class Random(GoodRetriever):
    calls = 0

    def scored(self) -> list[NodeWithScore]:
        Random.calls += 1
        return [NodeWithScore(node=node, score=float(-Random.calls)) for node in self.nodes]


class Silent(GoodRetriever):
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.scored()[: self.similarity_top_k]


class TraceWithObjects(GoodRetriever):
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        trace = current_trace()
        if trace is not None:
            trace.add(Evidence("n0", self.stage, 1, None, "has an object", {"node": self.nodes[0]}))
        return super()._find(query_bundle)


class AsksSettingsLLM(GoodRetriever):
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with suppress(AssertionError):
            Settings.llm.complete("rewrite the question")
        return super()._find(query_bundle)


class CrashesOnEmpty(GoodRetriever):
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query_bundle.query_str[0]
        return super()._find(query_bundle)


class NoEvents(GoodRetriever):
    def retrieve(self, str_or_query_bundle: Any) -> list[NodeWithScore]:
        bundle = str_or_query_bundle if isinstance(str_or_query_bundle, QueryBundle) else QueryBundle(str_or_query_bundle)
        return self._retrieve(bundle)


class RunsALoop(GoodRetriever):
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        async def nothing() -> None: ...

        work = nothing()
        try:
            asyncio.run(work)
        finally:
            work.close()
        return super()._find(query_bundle)


class OtherIds(GoodRetriever):
    def _find_ids(self, query_bundle: QueryBundle) -> list[tuple[str, float]]:
        return [("n0", 1.0)]


class BatchesMixed(GoodRetriever):
    def retrieve_batch(self, queries: Any, *, show_progress: bool = False) -> list[list[NodeWithScore]]:
        return [self.retrieve(query)[:1] for query in queries]


class BatchesBlocking(GoodRetriever):
    async def aretrieve_batch(self, queries: Any, *, show_progress: bool = False) -> list[list[NodeWithScore]]:
        return self.retrieve_batch(queries)


def check(kind: type[GoodRetriever]) -> None:
    nodes = corpus()
    check_retriever_contract(lambda **options: kind(nodes, **options), queries=["a question"], filters=FRENCH, nodes=nodes)


def test_a_good_retriever_passes():
    check(GoodRetriever)


@pytest.mark.parametrize(
    ("kind", "clause"),
    [
        (ChangesMetadata, "inputs unchanged"),
        (ChangesBundle, "inputs unchanged"),
        (Unsorted, "best first"),
        (NumpyScores, "plain float scores"),
        (NotANumber, "plain float scores"),
        (Twice, "unique ids"),
        (IgnoresTopK, "top_k"),
        (IgnoresFilters, "filters"),
        (FiltersTooLate, "filters before top_k"),
        (Blocking, "async suspends"),
        (AsyncDiffers, "sync equals async"),
        (Random, "sync equals async"),
        (Silent, "trace"),
        (TraceWithObjects, "trace is JSON"),
        (AsksSettingsLLM, "no LLM without an LLM"),
        (CrashesOnEmpty, "empty query"),
        (NoEvents, "events paired"),
        (RunsALoop, "works in a running event loop"),
        (OtherIds, "ids are those of retrieve"),
        (BatchesMixed, "a batch is one by one"),
        (BatchesBlocking, "async suspends"),
    ],
)
def test_a_broken_retriever_is_caught(kind: type[GoodRetriever], clause: str):
    with pytest.raises(ContractError) as caught:
        check(kind)
    assert caught.value.clause == clause


def test_an_empty_corpus_finds_nothing():
    def from_empty() -> BaseRetriever:
        return GoodRetriever(corpus(), similarity_top_k=5)

    with pytest.raises(ContractError, match="empty corpus"):
        check_retriever_contract(lambda **options: GoodRetriever(corpus(), **options), queries=["q"], make_empty=from_empty)


def test_a_reload_that_loses_nodes_is_caught():
    with pytest.raises(ContractError, match="persist and reload"):
        check_retriever_contract(
            lambda **options: GoodRetriever(corpus(), **options), queries=["q"], reload=lambda _: GoodRetriever(corpus()[:1], similarity_top_k=5)
        )


class Embeds(GoodRetriever):
    def __init__(self, model: BaseEmbedding, blocking: bool) -> None:
        super().__init__(corpus(), similarity_top_k=5)
        self.model, self.blocking = model, blocking

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.blocking:
            self.model.get_query_embedding(query_bundle.query_str)
        else:
            await self.model.aget_query_embedding(query_bundle.query_str)
        return self._find(query_bundle)


@pytest.mark.parametrize("blocking", [False, True])
def test_concurrent_calls_must_overlap(blocking: bool):
    def run() -> None:
        check_retriever_contract(lambda **options: GoodRetriever(corpus(), **options), queries=["q"], make_with_embedding=lambda model: Embeds(model, blocking))

    if not blocking:
        run()
        return
    with pytest.raises(ContractError, match=r"concurrent calls overlap.*1 of 2"):
        run()


async def test_the_suite_runs_inside_a_running_loop():
    check(GoodRetriever)


def test_settings_are_as_before_after_a_check():
    before = Settings._llm
    check(GoodRetriever)
    assert Settings._llm is before


class GoodRerank(BaseNodePostprocessor):
    """Scores by the length of the text."""

    def make(self, item: NodeWithScore, score: float) -> NodeWithScore:
        return NodeWithScore(node=item.node, score=score)

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        ranked = sorted((self.make(item, float(len(item.node.get_content()))) for item in nodes), key=lambda item: -float(item.score or 0))
        with stage_trace("rerank") as trace:
            if trace is not None:
                for rank, item in enumerate(ranked, 1):
                    trace.add(Evidence(item.node.node_id, "rerank", rank, float(item.score or 0), "is long"))
        return ranked


class SharesScores(GoodRerank):
    def make(self, item: NodeWithScore, score: float) -> NodeWithScore:
        item.score = score
        return item


class CopiesButChangesInput(GoodRerank):
    def make(self, item: NodeWithScore, score: float) -> NodeWithScore:
        item.score = score
        return NodeWithScore(node=item.node, score=score)


class NumpyRerank(GoodRerank):
    def make(self, item: NodeWithScore, score: float) -> NodeWithScore:
        made = NodeWithScore(node=item.node, score=score)
        made.score = np.float32(score)  # type: ignore[assignment]
        return made


class InventsNodes(GoodRerank):
    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        return super()._postprocess_nodes(nodes or [NodeWithScore(node=corpus()[0], score=1.0)], query_bundle)


def scored() -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text="word " * (number + 1), id_=f"n{number}"), score=0.5) for number in range(4)]


def test_a_good_postprocessor_passes():
    check_postprocessor_contract(GoodRerank, scored(), "a question")


@pytest.mark.parametrize(
    ("kind", "clause", "options"),
    [
        (SharesScores, "new scored nodes", {}),
        (CopiesButChangesInput, "inputs unchanged", {}),
        (NumpyRerank, "plain float scores", {}),
        (InventsNodes, "no nodes", {}),
        (GoodRerank, "events paired", {"reranks": True}),
    ],
)
def test_a_broken_postprocessor_is_caught(kind: type[GoodRerank], clause: str, options: Options):
    with pytest.raises(ContractError) as caught:
        check_postprocessor_contract(kind, scored(), "a question", **options)
    assert caught.value.clause == clause


class GoodEngine(BaseQueryEngine):
    """Answers with what the good retriever finds."""

    def __init__(self, retriever: BaseRetriever | None = None) -> None:
        super().__init__(callback_manager=None)
        self.retriever = retriever or GoodRetriever(corpus(), similarity_top_k=3)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    def respond(self, nodes: list[NodeWithScore], trace: RetrievalTrace) -> Response:
        return Response("an answer", source_nodes=nodes, metadata={"trace": trace.to_dict()})

    def _query(self, query_bundle: QueryBundle) -> Response:
        with capture_trace(query_bundle.query_str) as trace:
            return self.respond(self.retriever.retrieve(query_bundle), trace)

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        with capture_trace(query_bundle.query_str) as trace:
            return self.respond(await self.retriever.aretrieve(query_bundle), trace)


class NoTraceInMetadata(GoodEngine):
    def respond(self, nodes: list[NodeWithScore], trace: RetrievalTrace) -> Response:
        return Response("an answer", source_nodes=nodes, metadata={})


class ObjectsInMetadata(GoodEngine):
    def respond(self, nodes: list[NodeWithScore], trace: RetrievalTrace) -> Response:
        return Response("an answer", source_nodes=nodes, metadata={"trace": trace})


class EngineBlocks(GoodEngine):
    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        return self._query(query_bundle)


class EngineTellsTime(GoodEngine):
    def respond(self, nodes: list[NodeWithScore], trace: RetrievalTrace) -> Response:
        return Response(str(time.perf_counter_ns()), source_nodes=nodes, metadata={"trace": trace.to_dict()})


class EngineAsksSettingsLLM(GoodEngine):
    def respond(self, nodes: list[NodeWithScore], trace: RetrievalTrace) -> Response:
        with suppress(AssertionError):
            Settings.llm.complete("answer")
        return super().respond(nodes, trace)


class EventlessEngine(CustomQueryEngine):
    def custom_query(self, query_str: str) -> Response:
        return Response("an answer", metadata={"trace": {}})


def test_a_good_engine_passes():
    check_query_engine_contract(GoodEngine, "a question")


@pytest.mark.parametrize(
    ("make", "clause"),
    [
        (NoTraceInMetadata, "trace"),
        (ObjectsInMetadata, "response metadata is JSON"),
        (EngineBlocks, "async suspends"),
        (EngineTellsTime, "sync equals async"),
        (EngineAsksSettingsLLM, "no LLM without an LLM"),
        (EventlessEngine, "events paired"),
        (lambda: GoodEngine(NumpyScores(corpus(), similarity_top_k=3)), "plain float scores"),
    ],
)
def test_a_broken_engine_is_caught(make: Callable[[], BaseQueryEngine], clause: str):
    with pytest.raises(ContractError) as caught:
        check_query_engine_contract(make, "a question")
    assert caught.value.clause == clause


def test_the_rendezvous_needs_its_parties():
    from llama_index_advanced_rag.testing import RendezvousEmbedding

    with pytest.raises(TimeoutError, match="1 of 2"):
        RendezvousEmbedding(2, timeout_s=0.01).get_query_embedding("alone")
    assert len(DeterministicEmbedding(8).get_query_embedding("alone")) == 8
