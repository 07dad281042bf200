"""A router inside LlamaIndex's own `RouterQueryEngine` and `RouterRetriever`."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import PromptTemplate, Settings
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import CustomQueryEngine, RouterQueryEngine
from llama_index.core.retrievers import RouterRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool, RetrieverTool, ToolMetadata

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.prompts import ROUTE, ROUTE_PROMPT
from llama_index_advanced_rag.routing.embedding import EmbeddingRouter
from llama_index_advanced_rag.routing.llm import LLMRouter
from llama_index_advanced_rag.routing.route import known_route
from llama_index_advanced_rag.routing.router import FunctionRouter, RouteChoice, Router
from llama_index_advanced_rag.routing.selector import RouteSelector, distinct_names
from llama_index_advanced_rag.testing import DeterministicEmbedding, RendezvousEmbedding, ScriptedLLM
from llama_index_advanced_rag.trace import capture_trace

pytestmark = pytest.mark.usefixtures("settings_llm_untouched")

TOOLS = [ToolMetadata("Counts and sums.", name="sql"), ToolMetadata("What is new.", name="web"), ToolMetadata("All else.", name="text")]


def by_word(question: str) -> list[str] | None:
    """Names the tools that the question names."""
    return [word for word in question.split() if word in ("sql", "web", "text", "choice", "tool", "shell")] or None


class Seen(Router):
    """Keeps the routes it was shown, and names those that it is told to."""

    name = "seen"

    def __init__(self, *places: int) -> None:
        self.places, self.routes = places, ()

    def choose(self, query, routes):
        self.routes = routes
        return RouteChoice(tuple(routes[place].name for place in self.places), None)  # type: ignore[arg-type]


class Answers(CustomQueryEngine):
    name: str

    def custom_query(self, query_str: str) -> Response:
        return Response(self.name, source_nodes=[NodeWithScore(node=TextNode(id_=self.name, text=self.name), score=1.0)])


class Finds(BaseRetriever):
    def __init__(self, name: str) -> None:
        self.found = [NodeWithScore(node=TextNode(id_=name, text=name), score=1.0)]
        super().__init__()

    def _retrieve(self, query_bundle):
        return self.found


def engine(selector: RouteSelector, tools=TOOLS) -> RouterQueryEngine:
    engines = [QueryEngineTool(Answers(name=f"engine {place}"), metadata) for place, metadata in enumerate(tools)]
    return RouterQueryEngine(selector, engines, llm=MockLLM())


def retriever(selector: RouteSelector, tools=TOOLS) -> RouterRetriever:
    return RouterRetriever(selector, [RetrieverTool(Finds(f"node {place}"), metadata) for place, metadata in enumerate(tools)], llm=MockLLM())


def test_the_choice_is_an_index_with_a_reason():
    result = RouteSelector(by_word).select(TOOLS, "web please")
    assert (result.ind, result.reason) == (1, "by_word says so")
    assert RouteSelector(by_word, max_routes=2).select(TOOLS, QueryBundle("text web sql")).inds == [2, 1]


@pytest.mark.parametrize(("default", "index"), [(None, 0), (0, 0), (2, 2), ("web", 1)])
@pytest.mark.parametrize("router", [lambda question: None, lambda question: "shell", lambda question: 1 / 0])
async def test_doubt_and_failure_end_at_the_default_and_are_reported(router, default, index):
    selector = RouteSelector(router, default=default)
    with capture_trace() as trace:
        result = selector.select(TOOLS, "why?")
    assert result.ind == index
    assert result.reason.startswith("In doubt, so the default is taken: ")
    assert trace.notes
    assert (await selector.aselect(TOOLS, "why?")).inds == [index]


def test_a_question_without_words_is_the_defaults():
    assert RouteSelector(by_word, default="text").select(TOOLS, " ").ind == 2


def test_tools_are_routes_with_names_of_their_own():
    router = Seen(3)
    tools = [ToolMetadata("a", name="tool"), ToolMetadata("b"), ToolMetadata("c", name="tool"), ToolMetadata("d", name="tool"), ToolMetadata("", name="simple")]
    assert RouteSelector(router).select(tools, "why?").ind == 3
    assert [route.name for route in router.routes] == ["tool", "choice 2", "tool#2", "tool#3", "simple"]
    assert [route.description for route in router.routes] == ["a", "b", "c", "d", known_route("simple").description]


def test_texts_are_choices_too():
    router = Seen(1)
    assert RouteSelector(router).select(["about foxes", "about whales"], "why?").ind == 1
    assert [(route.name, route.description) for route in router.routes] == [("choice 1", "about foxes"), ("choice 2", "about whales")]
    assert RouteSelector(lambda question: None, default="choice 2").select(["about foxes", "about whales"], "why?").ind == 1


def test_reasons_are_always_text():
    assert RouteSelector(Seen(2)).select(TOOLS, "why?").reasons == ["None"]


@given(st.lists(st.one_of(st.none(), st.sampled_from(["tool", "tool#2", "tool#3", "choice 1", "choice 2", "", " "])), max_size=8))
def test_names_are_distinct(names):
    distinct = distinct_names(names)
    assert len(set(distinct)) == len(names)
    assert all(name.strip() for name in distinct)
    for name in {name for name in names if name and name.strip()}:
        assert distinct[names.index(name)] == name


def test_nothing_to_choose_from_is_said():
    with pytest.raises(ConfigurationError, match=r"nothing to choose from.* Give the router at least one tool"):
        RouteSelector(by_word).select([], "why?")


@pytest.mark.parametrize(("default", "told"), [(3, "There are 3 choices, so it must be an index from 0 to 2"), ("shell", "default route is 'shell'")])
def test_a_default_that_does_not_exist_is_said(default, told):
    with pytest.raises(ConfigurationError, match=told):
        RouteSelector(by_word, default=default).select(TOOLS, "web")


@pytest.mark.parametrize(("options", "told"), [({"default": -1}, "default is -1"), ({"default": True}, "default is True"), ({"max_routes": 0}, "max_routes")])
def test_what_cannot_work_is_refused(options, told):
    with pytest.raises(ConfigurationError, match=told):
        RouteSelector(by_word, **options)
    with pytest.raises(ConfigurationError, match="router is 'rules'"):
        RouteSelector("rules")


def test_the_prompts_of_the_router_are_the_selectors():
    llm = ScriptedLLM(['{"routes": [{"name": "web"}]}'])
    selector = RouteSelector(LLMRouter(llm))
    assert selector.get_prompts() == {ROUTE: ROUTE_PROMPT}
    stock = engine(selector)
    assert stock.get_prompts()[f"selector:{ROUTE}"] == ROUTE_PROMPT
    stock.update_prompts(stock.get_prompts())
    stock.update_prompts({f"selector:{ROUTE}": PromptTemplate("Pick from {routes_str}")})
    assert str(stock.query("why?")) == "engine 1"
    assert llm.prompts == ["Pick from 1. sql: Counts and sums.\n2. web: What is new.\n3. text: All else."]


async def test_the_stock_query_engine_asks_one_engine():
    stock = engine(RouteSelector(by_word, default="text"))
    for question, answer in (("web", "engine 1"), ("why?", "engine 2"), ("shell", "engine 2")):
        assert str(stock.query(question)) == answer
        assert str(await stock.aquery(question)) == answer


async def test_the_stock_query_engine_asks_several_engines():
    stock = engine(RouteSelector(by_word, max_routes=2))
    for response in (stock.query("text sql"), await stock.aquery("text sql")):
        assert [node.node_id for node in response.source_nodes] == ["engine 2", "engine 0"]
        assert response.metadata["selector_result"].inds == [2, 0]


async def test_the_stock_retriever_asks_one_or_several():
    for max_routes, expected in ((1, ["node 2"]), (2, ["node 2", "node 0"])):
        stock = retriever(RouteSelector(by_word, max_routes=max_routes))
        assert [hit.node_id for hit in stock.retrieve("text sql")] == expected
        assert [hit.node_id for hit in await stock.aretrieve("text sql")] == expected


def test_tools_of_one_name_are_told_apart():
    tools = [ToolMetadata("red fox", name="tool"), ToolMetadata("blue whale", name="tool")]
    selector = RouteSelector(EmbeddingRouter(DeterministicEmbedding()))
    assert str(engine(selector, tools).query("the blue whale")) == "engine 1"
    assert [hit.node_id for hit in retriever(selector, tools).retrieve("the red fox")] == ["node 0"]


async def test_async_calls_wait_together():
    model = RendezvousEmbedding(2)
    stock = retriever(RouteSelector(EmbeddingRouter(model, examples={"web": ["news"], "sql": ["count"], "text": ["why"]})))
    found = await asyncio.gather(stock.aretrieve("news"), stock.aretrieve("why"))
    assert [[hit.node_id for hit in hits] for hits in found] == [["node 1"], ["node 2"]]


def test_the_settings_are_not_asked():
    assert Settings._llm is None
    assert RouteSelector(FunctionRouter(by_word)).select(TOOLS, "web").ind == 1


def test_a_tool_may_be_called_router():
    selector = RouteSelector(lambda question: "router")
    assert selector.select([ToolMetadata("a", name="text"), ToolMetadata("b", name="router")], "What?").ind == 1
