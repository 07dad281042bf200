"""What the stock RouterQueryEngine and RouterRetriever do wrong, row by row: the same check passes on ours and fails on theirs."""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, MultiSelection, SelectorResult, SingleSelection
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.llms.mock import MockLLM
from llama_index.core.objects import ObjectIndex
from llama_index.core.query_engine import RouterQueryEngine, ToolRetrieverRouterQueryEngine
from llama_index.core.retrievers import RouterRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool, ToolMetadata

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.query_engines.adaptive import AdaptiveQueryEngine
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.routing.route import Route
from llama_index_advanced_rag.routing.router import RouteChoice, Router
from llama_index_advanced_rag.testing import forbidden_settings_llm, stock_fault

Engines = dict[str, BaseQueryEngine]
MakeEngine = Callable[[Engines], BaseQueryEngine]
MakeRetriever = Callable[[dict[str, BaseRetriever]], BaseRetriever]


class All(BaseSelector):
    """Chooses everything."""

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        return MultiSelection(selections=[SingleSelection(index=place, reason="all") for place in range(len(choices))])

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        pass


class Engine(BaseQueryEngine):
    """Answers with its name; can fail, or wait until others are asked."""

    def __init__(self, name: str, *, error: Exception | None = None, barrier: threading.Barrier | None = None) -> None:
        super().__init__(callback_manager=None)
        self.name, self.error, self.barrier = name, error, barrier

    def _query(self, query_bundle: QueryBundle) -> Response:
        if self.barrier is not None:
            self.barrier.wait(timeout=0.5)
        if self.error is not None:
            raise self.error
        node = TextNode(id_=self.name, text=f"{self.name} says that foxes eat mice.")
        return Response(f"answer of {self.name}", source_nodes=[NodeWithScore(node=node, score=1.0)], metadata={})

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        return await asyncio.to_thread(self._query, query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}


class Scored(BaseRetriever):
    """Finds given nodes with given scores."""

    def __init__(self, scores: dict[str, float], callback_manager: CallbackManager | None = None) -> None:
        self.scores = scores
        super().__init__(callback_manager=callback_manager)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(id_=name, text=name), score=score) for name, score in self.scores.items()]


def our_engine(engines: Engines) -> BaseQueryEngine:
    names = list(engines)
    return AdaptiveQueryEngine(engines, router=lambda question: names, default=names[0], max_routes=len(names), language="en")


def stock_engine(engines: Engines) -> BaseQueryEngine:
    tools = [QueryEngineTool(query_engine=engine, metadata=ToolMetadata(name=name, description=name)) for name, engine in engines.items()]
    return RouterQueryEngine(All(), tools, llm=MockLLM())


def our_retriever(retrievers: dict[str, BaseRetriever], callback_manager: CallbackManager | None = None) -> BaseRetriever:
    names = list(retrievers)
    return AdaptiveRetriever(retrievers, router=lambda question: names, max_routes=len(names), callback_manager=callback_manager)


def stock_retriever(retrievers: dict[str, BaseRetriever], callback_manager: CallbackManager | None = None) -> BaseRetriever:
    tools = [RetrieverTool(retriever=item, metadata=ToolMetadata(name=name, description=name)) for name, item in retrievers.items()]
    router = RouterRetriever(All(), tools, llm=MockLLM())
    router.callback_manager = callback_manager or router.callback_manager
    return router


# [7f]: one engine that fails does not take the others with it


def check_one_failing_engine(make: MakeEngine) -> None:
    response = make({"good": Engine("good"), "bad": Engine("bad", error=ConnectionError("down"))}).query("What do foxes eat?")
    assert [hit.node_id for hit in response.source_nodes] == ["good"]


def test_one_failing_engine():
    check_one_failing_engine(our_engine)


@stock_fault("core 0.14.25: one failing engine kills the query")
def test_one_failing_engine_stock():
    check_one_failing_engine(stock_engine)


# Sync, several engines are asked side by side


def check_engines_side_by_side(make: MakeEngine) -> None:
    barrier = threading.Barrier(2)
    response = make({"one": Engine("one", barrier=barrier), "two": Engine("two", barrier=barrier)}).query("What do foxes eat?")
    assert len(response.source_nodes) > 0


def test_engines_side_by_side():
    check_engines_side_by_side(our_engine)


@stock_fault("core 0.14.25: sync multi runs one engine after another")
def test_engines_side_by_side_stock():
    check_engines_side_by_side(stock_engine)


# issues/17349, issues/18779: `aquery` over several engines works in a running loop, and they overlap (mended upstream)


@pytest.mark.parametrize("make", [our_engine, stock_engine])
async def test_aquery_over_two_engines(make):
    barrier = threading.Barrier(2)
    response = await make({"one": Engine("one", barrier=barrier), "two": Engine("two", barrier=barrier)}).aquery("What do foxes eat?")
    assert len(response.source_nodes) > 0


# [16h]: what was chosen is in the metadata, as JSON


def check_json_metadata(make: MakeEngine) -> None:
    response = make({"one": Engine("one"), "two": Engine("two")}).query("What do foxes eat?")
    assert "one" in json.dumps(response.metadata)


def test_json_metadata():
    check_json_metadata(our_engine)


@stock_fault("core 0.14.25: selector_result is an object that JSON cannot hold")
def test_json_metadata_stock():
    check_json_metadata(stock_engine)


# No engine at all is refused with what to do, before a question is asked


def check_no_engine(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="Give at least one|It must be retrievers"):
        make()


def test_no_engine():
    check_no_engine(lambda: AdaptiveQueryEngine.from_tools([]))
    check_no_engine(lambda: AdaptiveQueryEngine({}))


@stock_fault("core 0.14.25: an engine over no tools is made, and fails at the first question")
def test_no_engine_stock():
    check_no_engine(lambda: stock_engine({}))


# Two tools of one name are refused: which one was meant cannot be told


def two_of_one_name() -> list[QueryEngineTool]:
    return [QueryEngineTool.from_defaults(Engine(name), name="same", description=name) for name in ("one", "two")]


def test_two_tools_of_one_name():
    with pytest.raises(ConfigurationError, match="'same'"):
        AdaptiveQueryEngine.from_tools(two_of_one_name(), router=lambda question: "same")


@stock_fault("core 0.14.25: two tools of one name are taken")
def test_two_tools_of_one_name_stock():
    with pytest.raises(ValueError, match="same"):
        RouterQueryEngine(All(), two_of_one_name(), llm=MockLLM())


# Without an LLM given, none is looked for


def check_no_llm(make: Callable[[], BaseQueryEngine]) -> None:
    with forbidden_settings_llm() as prompts:
        make().query("What do foxes eat?")
    assert prompts == []


def test_no_llm():
    check_no_llm(lambda: our_engine({"one": Engine("one"), "two": Engine("two")}))


@stock_fault("core 0.14.25: several answers are summed up by Settings.llm")
def test_no_llm_stock():
    tools = [QueryEngineTool.from_defaults(Engine(name), name=name, description=name) for name in ("one", "two")]
    check_no_llm(lambda: RouterQueryEngine(All(), tools))


# [7g]: several lists become one: sorted, and a later list does not overwrite the score of an earlier one


def check_merged_list(make: MakeRetriever) -> None:
    found = make({"one": Scored({"a": 0.95, "b": 0.5}), "two": Scored({"a": 0.2, "c": 0.9})}).retrieve("q")
    scores = [hit.score or 0.0 for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert found[0].node_id == "a"


def test_merged_list():
    check_merged_list(our_retriever)


@stock_fault("core 0.14.25: the last score wins and the list is not sorted")
def test_merged_list_stock():
    check_merged_list(stock_retriever)


# [16i]: one event for the call and one for the retriever that was asked


def check_events(make: Callable[[dict[str, BaseRetriever], CallbackManager], BaseRetriever]) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    manager = CallbackManager([debug])
    make({"one": Scored({"a": 0.95}, manager)}, manager).retrieve("q")
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 2


def test_events():
    check_events(our_retriever)


@stock_fault("core 0.14.25: three retrieval events for one call to one retriever")
def test_events_stock():
    check_events(stock_retriever)


# issues/22369: two questions are routed at the same time


class Meeting(Router):
    """Chooses once two questions are being routed."""

    name = "meeting"

    def __init__(self) -> None:
        self.arrived, self.met = 0, asyncio.Event()

    def choose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        raise AssertionError("asked in sync")

    async def achoose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        self.arrived += 1
        if self.arrived == 2:
            self.met.set()
        await asyncio.wait_for(self.met.wait(), 5)
        return RouteChoice((routes[0].name,), "met")


async def test_two_questions_are_routed_at_once():
    engine = AdaptiveQueryEngine({"one": Engine("one")}, router=Meeting(), language="en")
    answers = await asyncio.gather(engine.aquery("What do foxes eat?"), engine.aquery("What do owls eat?"))
    assert [str(answer) for answer in answers] == ["answer of one", "answer of one"]


@stock_fault("core 0.14.25: ToolRetrieverRouterQueryEngine.aquery retrieves its tools in sync, in the event loop")
async def test_two_questions_are_routed_at_once_stock():
    met, arrived = asyncio.Event(), []

    class Tools(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise AssertionError("asked in sync")

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            arrived.append(query_bundle)
            if len(arrived) == 2:
                met.set()
            await asyncio.wait_for(met.wait(), 5)
            return []

    tools = [QueryEngineTool.from_defaults(Engine("one"), name="one", description="one")]
    from llama_index.core import VectorStoreIndex

    from llama_index_advanced_rag.testing import DeterministicEmbedding

    objects = ObjectIndex.from_objects(tools, index_cls=VectorStoreIndex, embed_model=DeterministicEmbedding()).as_retriever()
    objects._retriever = Tools()
    engine = ToolRetrieverRouterQueryEngine(objects, llm=MockLLM())
    await asyncio.gather(engine.aquery("What do foxes eat?"), engine.aquery("What do owls eat?"))
