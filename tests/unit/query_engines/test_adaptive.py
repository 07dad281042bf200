"""AdaptiveQueryEngine: retrievers, engines and no documents as routes; fallbacks, budgets, streams, async, metadata."""

import asyncio
import json
import threading
from typing import Any

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import AsyncStreamingResponse, Response, StreamingResponse
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.prompts import DIRECT_ANSWER, GROUNDED_ANSWER
from llama_index_advanced_rag.query_engines.adaptive import AdaptiveQueryEngine
from llama_index_advanced_rag.query_engines.engine_retriever import EngineRetriever
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.query_engines.grounded_chat import GroundedChatEngine
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.testing import ScriptedLLM, check_query_engine_contract, forbidden_settings_llm
from llama_index_advanced_rag.trace import capture_trace, report

FOXES, WHALES = "Foxes eat mice. Cats sleep all day.", "Whales eat krill. Seals sleep on ice."


def words(node_id: str, text: str) -> LexicalRetriever:
    return LexicalRetriever.from_defaults(nodes=[TextNode(id_=node_id, text=text)], language="en")


class Foreign(BaseQueryEngine):
    """Somebody else's engine: answers by itself, can fail or wait, and has metadata that JSON cannot hold."""

    def __init__(self, answer: str = "from elsewhere", *, sources: bool = True, error: Exception | None = None, gate: threading.Event | None = None) -> None:
        super().__init__(callback_manager=None)
        self.answer, self.sources, self.error, self.gate, self.asked = answer, sources, error, gate, 0

    def _query(self, query_bundle: QueryBundle) -> Response:
        self.asked += 1
        if self.gate is not None:
            self.gate.wait(10)
        if self.error is not None:
            raise self.error
        nodes = [NodeWithScore(node=TextNode(id_="f", text="Foxes sleep at noon."), score=0.4)] if self.sources else []
        return Response(self.answer, source_nodes=nodes, metadata={"own": object(), "kept": 1})

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        return self._query(query_bundle)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}


def by_word(question: str) -> list[str]:
    return [name for name in ("foxes", "whales", "foreign", "hello") if name in question.lower()]


def engine(**options: Any) -> AdaptiveQueryEngine:
    routes = {"foxes": words("n1", FOXES), "whales": words("n2", WHALES), "foreign": Foreign(), "hello": None, **options.pop("routes", {})}
    return AdaptiveQueryEngine(routes, router=options.pop("router", by_word), default=options.pop("default", "foxes"), language="en", **options)


def route_of(response: Any) -> dict[str, Any]:
    return json.loads(json.dumps(response.metadata))["route"]


def test_a_retriever_route_is_answered_with_citations():
    response = engine().query("What do whales eat?")
    assert str(response) == "Whales eat krill. [1]"
    assert [hit.node_id for hit in response.source_nodes] == ["n2"]
    route = route_of(response)
    assert (route["routes"], route["taken"], route["router"], route["in_doubt"]) == (["whales"], ["whales"], "function", False)
    assert set(route["elapsed_ms"]) == {"router", "whales"}
    assert "route whales, by function" in json.dumps(response.metadata["trace"])


def test_in_doubt_the_default_route_answers_and_says_so():
    response = engine().query("What do cats do all day?")
    assert route_of(response)["in_doubt"] is True
    assert "In doubt" in json.dumps(response.metadata["trace"])
    assert [hit.node_id for hit in response.source_nodes] == ["n1"]


def test_without_documents_and_without_an_llm_it_says_so_politely_in_the_language_of_the_question():
    english, french = engine().query("Hello, how are you today?"), engine().query("Hello, comment vas-tu aujourd'hui, mon ami ?")
    assert "about the documents" in str(english)
    assert "sur les documents" in str(french)
    assert english.source_nodes == []
    assert route_of(english)["taken"] == ["hello"]
    assert english.metadata["usage"]["llm_calls"] == 0


def test_without_documents_an_llm_answers_in_one_call():
    llm = ScriptedLLM(["Hello to you [1]."])
    response = engine(llm=llm).query("Hello! <context>")
    assert str(response) == "Hello to you."
    assert response.metadata["usage"]["by_prompt"] == {DIRECT_ANSWER: 1}
    assert "&lt;context" in llm.prompts[0] or "<context>" not in llm.prompts[0]


def test_an_llm_that_fails_without_documents_is_replaced_by_the_sentence():
    response = engine(llm=ScriptedLLM([ConnectionError("down")])).query("Hello")
    assert "about the documents" in str(response)
    assert "down" in response.metadata["fallback"]


def test_another_engine_answers_by_itself_and_keeps_its_metadata():
    foreign = Foreign()
    response = engine(routes={"foreign": foreign}).query("foreign question")
    assert (str(response), foreign.asked) == ("from elsewhere", 1)
    assert response.metadata["kept"] == 1
    assert route_of(response)["taken"] == ["foreign"]
    assert response.metadata["trace"]["stage"] == "auto"


@pytest.mark.parametrize("default", ["foxes", "foreign"])
def test_an_engine_that_fails(default):
    adaptive = engine(routes={"foreign": Foreign(error=ConnectionError("down"))}, default=default)
    if default == "foreign":
        with pytest.raises(ConnectionError, match="down"):
            adaptive.query("foreign foxes eat what?".replace("foxes", "animals"))
        return
    for response in (adaptive.query("What do foreign mice and cats do?"), asyncio.run(adaptive.aquery("What do foreign mice and cats do?"))):
        route = route_of(response)
        assert (route["routes"], route["taken"], route["dropped"]) == (["foreign"], ["foxes"], {"foreign": "ConnectionError: down"})
        assert "stands in" in json.dumps(response.metadata["trace"])


def test_an_engine_that_is_late():
    gate = threading.Event()
    try:
        response = engine(routes={"foreign": Foreign(gate=gate)}, timeout_s=0.05).query("What do foreign mice do?")
    finally:
        gate.set()
    assert route_of(response)["dropped"] == {"foreign": "TimeoutError: no answer within 0.05 s"}


def test_a_grounded_engine_keeps_its_way_of_answering():
    own = GroundedQueryEngine(words("n3", "Whales sing."), llm=ScriptedLLM(["They sing [1]."]), language="en")
    response = engine(routes={"whales": own}).query("What do whales do?")
    assert str(response) == "They sing [1]."
    assert [hit.node_id for hit in response.source_nodes] == ["n3"]


def test_several_routes_become_one_answer():
    response = engine(max_routes=3, max_sentences=3).query("What do foxes and whales eat, and when do foreign foxes sleep?")
    assert route_of(response)["taken"] == ["foxes", "whales", "foreign"]
    assert sorted(response.metadata["retrieved"]) == ["f", "n1", "n2"]


def test_the_answer_of_an_engine_without_sources_is_a_node_when_merged():
    [hit] = EngineRetriever(Foreign("42 orders", sources=False), "sql").retrieve("How many orders?")
    assert (hit.node.get_content(), hit.node.metadata) == ("42 orders", {"engine": "sql"})
    assert EngineRetriever(Foreign("", sources=False), "sql").retrieve("How many orders?") == []
    again = asyncio.run(EngineRetriever(Foreign("42 orders", sources=False), "sql").aretrieve("How many orders?"))
    assert [item.node_id for item in again] == [hit.node_id]


def test_budgets():
    llm = ScriptedLLM(["They eat mice [1]."])
    none = engine(llm=llm, max_llm_calls=0).query("What do foxes eat?")
    assert str(none) == "Foxes eat mice. [1]"
    assert "budget of 0 LLM call" in none.metadata["fallback"]
    assert llm.prompts == []
    assert "budget of 10 tokens" in engine(llm=llm, max_tokens=10).query("What do foxes eat?").metadata["fallback"]
    assert engine(llm=llm, max_llm_calls=1).query("What do foxes eat?").metadata["usage"]["llm_calls"] == 1


def test_streams():
    adaptive = engine(streaming=True)
    response = adaptive.query("What do foxes eat?")
    assert isinstance(response, StreamingResponse)
    assert "".join(response.response_gen) == "Foxes eat mice. [1]"
    assert route_of(response)["taken"] == ["foxes"]
    assert response.metadata["citations"][0]["node_id"] == "n1"
    assert isinstance(adaptive.query("Hello"), StreamingResponse)
    assert isinstance(adaptive.with_streaming(False).query("What do foxes eat?"), Response)

    async def pieces() -> str:
        streamed = await adaptive.aquery("What do foxes eat?")
        assert isinstance(streamed, AsyncStreamingResponse)
        return "".join([piece async for piece in streamed.async_response_gen()])

    assert asyncio.run(pieces()) == "Foxes eat mice. [1]"


@pytest.mark.parametrize("question", ["", "  ", "\n"])
def test_an_empty_question_is_answered_by_a_sentence(question):
    assert str(engine().query(question)) == "The question is empty."
    assert str(asyncio.run(engine().aquery(question))) == "The question is empty."


def test_a_question_of_20000_characters_is_answered():
    response = engine().query("What do whales eat? " + "blah " * 4000)
    assert [hit.node_id for hit in response.source_nodes] == ["n2"]


def test_explain_says_what_the_others_would_have_found():
    route = route_of(engine(explain=True).query("What do foxes eat?"))
    assert route["others"] == {"whales": ["n2"]}, "an engine is not asked to answer for the trace"


def test_a_router_that_fails_or_talks_nonsense_leaves_it_to_the_default():
    def broken(question: str) -> str:
        raise ValueError("no idea")

    for router in (broken, lambda question: "unknown", lambda question: ["unknown", "also"]):
        response = engine(router=router).query("What do foxes eat?")
        assert str(response) == "Foxes eat mice. [1]"
        assert route_of(response)["in_doubt"] is True


def test_from_tools_takes_names_and_descriptions():
    tools = [
        QueryEngineTool.from_defaults(Foreign("a"), name="orders", description="Counts orders."),
        QueryEngineTool.from_defaults(Foreign("b"), name="texts", description="Reads texts."),
    ]
    adaptive = AdaptiveQueryEngine.from_tools(tools, router=lambda question: "texts", default="orders")
    assert str(adaptive.query("?")) == "b"
    assert [route.description for route in adaptive.retriever.decider.routes] == ["Counts orders.", "Reads texts."]


def test_no_tools_and_two_of_one_name_are_refused():
    tool = QueryEngineTool.from_defaults(Foreign(), name="same", description="x")
    with pytest.raises(ConfigurationError, match="There are no query engine tools"):
        AdaptiveQueryEngine.from_tools([])
    with pytest.raises(ConfigurationError, match="More than one route is called 'same'"):
        AdaptiveQueryEngine.from_tools([tool, tool], router=by_word)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"routes": {"foxes": 3}}, "'foxes' leads to a int"), ({"max_llm_calls": -1}, "max_llm_calls is -1"), ({"max_tokens": 0}, "max_tokens is 0")],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        engine(**options)
    for routes in ({}, [], ["foxes"]):
        with pytest.raises(ConfigurationError, match="routes is"):
            AdaptiveQueryEngine(routes)


def test_prompts_can_be_seen_and_changed():
    llm = ScriptedLLM(["Hi.", "Mice [1]."])
    adaptive = engine(llm=llm)
    assert {DIRECT_ANSWER, GROUNDED_ANSWER} <= set(adaptive.get_prompts())
    adaptive.update_prompts({DIRECT_ANSWER: PromptTemplate("Say hi: {query_str}"), GROUNDED_ANSWER: PromptTemplate("Cite: {context_str} {query_str}")})
    adaptive.query("Hello")
    adaptive.query("What do foxes eat?")
    assert llm.prompts[0].startswith("Say hi")
    assert llm.prompts[1].startswith("Cite")


def test_in_a_chat():
    chat = GroundedChatEngine(engine())
    response = chat.chat("What do whales eat?")
    assert str(response) == "Whales eat krill. [1]"
    assert response.metadata["route"]["taken"] == ["whales"]
    streamed = chat.stream_chat("What do foxes eat?")
    assert "".join(streamed.response_gen) == "Foxes eat mice. [1]"


def test_everything_is_in_the_trace_and_contract():
    with capture_trace() as trace:
        engine().query("What do foxes eat?")
    assert [child.stage for child in trace.children] == ["auto"]
    with forbidden_settings_llm():
        check_query_engine_contract(engine, "What do foxes eat?")
        check_query_engine_contract(engine, "Is this a foreign question?")
        check_query_engine_contract(engine, "Hello")


def test_repr_names_routes_and_router():
    assert "foxes=" in repr(engine())
    assert "'function'" in repr(engine())


def test_concurrent_questions_overlap():
    class Waiting(BaseRetriever):
        def __init__(self) -> None:
            super().__init__()
            self.together = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None

        def _retrieve(self, query_bundle):
            raise AssertionError("asked in sync")

        async def _aretrieve(self, query_bundle):
            if self.together is not None:
                await asyncio.wait_for(self.together.wait(), 10)
            return [NodeWithScore(node=TextNode(id_="n1", text=FOXES), score=1.0)]

    async def both() -> None:
        adaptive = engine(routes={"foxes": Waiting()})
        await asyncio.gather(adaptive.aquery("What do foxes eat?"), adaptive.aquery("When do foxes sleep?"))

    asyncio.run(both())


def test_a_default_engine_keeps_its_answer_when_it_stands_in():
    nothing = words("n9", "zebra")
    for routes in ({"foxes": nothing}, {"foxes": Foreign(error=ConnectionError("down"))}, {"foxes": Foreign("Empty Response", sources=False)}):
        adaptive = engine(routes=routes, default="foreign", router=lambda question: "foxes")
        for response in (adaptive.query("What do birds do?"), asyncio.run(adaptive.aquery("What do birds do?"))):
            assert str(response) == "from elsewhere", routes
            assert (route_of(response)["taken"], list(route_of(response)["dropped"])) == (["foreign"], ["foxes"])


def test_an_engine_that_finds_nothing_leaves_it_to_the_default():
    response = engine(routes={"foreign": Foreign("Empty Response", sources=False)}).query("What do foreign mice and cats do?")
    assert route_of(response)["dropped"] == {"foreign": "it found nothing"}
    assert route_of(response)["taken"] == ["foxes"]


def test_filters_are_refused_for_engines_and_hold_for_retrievers():
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="a")])
    with pytest.raises(ConfigurationError, match="'foreign' lead to query engines"):
        engine(filters=filters)
    nodes = [TextNode(id_=name, text="foxes run", metadata={"tenant": name}) for name in ("a", "b")]
    mine = LexicalRetriever.from_defaults(nodes=nodes, language="en")
    adaptive = AdaptiveQueryEngine({"foxes": mine}, router=by_word, filters=filters, language="en")
    assert adaptive.query("Where do foxes run?").metadata["retrieved"] == ["a"]


def test_a_route_keeps_its_own_number_of_nodes_and_an_engine_all_of_its_nodes():
    nodes = [TextNode(id_=f"n{number}", text="foxes run") for number in range(9)]
    few, many = (LexicalRetriever.from_defaults(nodes=nodes, language="en", similarity_top_k=top_k) for top_k in (2, 9))
    own = GroundedQueryEngine(many, language="en")
    adaptive = engine(routes={"foxes": few}, similarity_top_k=4)
    assert len(adaptive.query("Where do foxes run?").metadata["retrieved"]) == 2
    adaptive = engine(routes={"foxes": own}, similarity_top_k=4)
    assert len(adaptive.query("Where do foxes run?").metadata["retrieved"]) == 9


def test_a_grounded_route_keeps_its_language_and_one_that_overrides_the_query_answers_itself():
    class Own(GroundedQueryEngine):
        def _query(self, query_bundle):
            return Response("overridden", source_nodes=[], metadata={})

    text = "Les contrats finissent après un an. Les chats dorment."
    french = LexicalRetriever.from_defaults(nodes=[TextNode(id_="fr", text=text)], language="fr")
    question = "Quand finissent les contrats ?"
    alone = str(GroundedQueryEngine(french, language="fr").query(question))
    routes = {"foxes": GroundedQueryEngine(french, language="fr"), "whales": Own(french, language="fr")}
    assert str(engine(routes=routes, router=lambda asked: "foxes").query(question)) == alone
    assert str(engine(routes=routes, router=lambda asked: "whales").query(question)) == "overridden"


def test_postprocessors_of_a_route_are_used_there_and_once():
    class Marks(BaseNodePostprocessor):
        mark: str

        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [*nodes, NodeWithScore(node=TextNode(id_=self.mark, text="Marks are made."), score=0.0)]

    adaptive = engine(node_postprocessors=[Marks(mark="all")], route_postprocessors={"whales": [Marks(mark="own")]})
    for question, wanted in (("What do whales eat?", ["n2", "all", "own"]), ("What do foxes eat?", ["n1", "all"])):
        assert adaptive.query(question).metadata["retrieved"] == wanted
        assert [hit.node_id for hit in adaptive.retrieve(QueryBundle(question))] == wanted
    with pytest.raises(ConfigurationError, match="route_postprocessors names"):
        engine(route_postprocessors={"owls": []})


def test_a_late_engine_writes_into_no_trace():
    gate, done = threading.Event(), threading.Event()

    class Late(Foreign):
        def _query(self, query_bundle):
            gate.wait(10)
            report("warning", "written late")
            done.set()
            return super()._query(query_bundle)

    with capture_trace() as trace:
        response = engine(routes={"foreign": Late()}, timeout_s=0.05).query("What do foreign mice do?")
    before = json.dumps(trace.to_dict())
    gate.set()
    assert done.wait(10)
    assert json.dumps(trace.to_dict()) == before
    assert "written late" not in json.dumps(response.metadata)


def test_one_clock_for_all_tries():
    gate = threading.Event()
    waiting = {"foreign": Foreign(gate=gate), "foxes": Foreign(gate=gate)}
    try:
        with pytest.raises(TimeoutError):
            engine(routes=waiting, max_seconds=0.2).query("What do foreign mice do?")
        assert waiting["foxes"].asked == 0, "when the time is up nobody is asked"
    finally:
        gate.set()


def test_prompts_go_round_at_any_depth():
    from llama_index.core import Document

    from llama_index_advanced_rag import CorpusIndex
    from llama_index_advanced_rag.testing import DeterministicEmbedding

    index = CorpusIndex.from_documents([Document(text="Foxes eat mice.")], embed_model=DeterministicEmbedding())
    llm = ScriptedLLM(["x"])
    for component in (
        index.as_query_engine(llm, retriever_mode="auto", router="llm"),
        index.as_retriever("auto", router="llm", llm=llm),
        engine(),
    ):
        prompts = component.get_prompts()
        component.update_prompts(prompts)
        assert set(component.get_prompts()) == set(prompts)
    with pytest.raises(ConfigurationError, match="There is no prompt 'grounded'"):
        engine().update_prompts({"grounded": PromptTemplate("x")})
    with pytest.raises(ValueError, match="There is no part 'owls'"):
        engine().update_prompts({"owls:grounded_answer": PromptTemplate("x")})


def test_a_stream_of_another_engine_in_a_chat():
    chat = GroundedChatEngine(engine())
    assert "".join(chat.stream_chat("a foreign question").response_gen) == "from elsewhere"

    async def pieces() -> str:
        streamed = await chat.astream_chat("another foreign question")
        return "".join([piece async for piece in streamed.async_response_gen()])

    assert asyncio.run(pieces()) == "from elsewhere"


def test_an_adaptive_engine_as_a_route_of_another():
    inner = engine()
    response = engine(routes={"whales": inner}, router=lambda question: "whales").query("What do whales eat?")
    assert str(response) == "Whales eat krill. [1]"
    assert (route_of(response)["taken"], route_of(response)["inner"]["taken"]) == (["whales"], ["whales"])


def test_an_engine_around_one_that_cannot_retrieve():
    from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
    from llama_index.core.query_engine import TransformQueryEngine

    wrapped = TransformQueryEngine(Foreign(), query_transform=IdentityQueryTransform())
    assert [hit.node_id for hit in EngineRetriever(wrapped, "x").retrieve("q")] == ["f"]


def test_an_empty_question_has_a_route_too():
    assert route_of(engine().query(""))["in_doubt"] is True


@pytest.mark.parametrize(("message", "words_in_it"), [("Merci !", "sur les documents"), ("Bonjour", "sur les documents"), ("Thanks!", "about the documents")])
def test_a_short_greeting_is_answered_in_its_language(message, words_in_it):
    assert words_in_it in str(engine(router=lambda question: "hello").query(message))
