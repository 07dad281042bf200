"""The mode `auto` of an index: its five routes, as retriever, engine and chat."""

import asyncio
import json

import pytest
from llama_index.core.schema import Document
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import AdaptiveQueryEngine, CorpusIndex
from llama_index_advanced_rag.errors import ConfigurationError, UnknownArgumentError
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.query_engines.grounded_chat import GroundedChatEngine
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM, forbidden_settings_llm

PAGES = {
    "anthropic": "Anthropic makes the language model Claude.",
    "claude": "Claude is built on the Transformer.",
    "transformer": "The Transformer was proposed by Ashish Vaswani.",
    "handbook": "# Handbook\n\n## 1. Leave\n\nLeave is asked for two weeks before.\n\n## 2. Expenses\n\nExpenses are paid back within a month.",
}
ROUTES = ["none", "simple", "moderate", "complex", "structural"]


@pytest.fixture
def index() -> CorpusIndex:
    documents = [Document(id_=name, text=text, metadata={"kind": "rules" if name == "handbook" else "facts"}) for name, text in PAGES.items()]
    return CorpusIndex.from_documents(documents, embed_model=DeterministicEmbedding(), language="en")


def always(name: str):
    return lambda question: name


def test_the_five_routes(index: CorpusIndex):
    with forbidden_settings_llm():
        engine, retriever = index.as_query_engine(retriever_mode="auto"), index.as_retriever("auto")
    assert isinstance(engine, AdaptiveQueryEngine)
    assert isinstance(retriever, AdaptiveRetriever)
    assert engine.retriever.decider.names == retriever.decider.names == ROUTES
    assert engine.retriever.decider.default == retriever.decider.default == "moderate"
    assert list(retriever.retrievers) == ROUTES[1:]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("llm", [None, ScriptedLLM(["It is Claude [1]."])], ids=["quoted", "written"])
def test_each_route_answers(index: CorpusIndex, route: str, llm: ScriptedLLM | None):
    engine = index.as_query_engine(llm, retriever_mode="auto", router=always(route))
    response = engine.query("What does Anthropic make?")
    again = asyncio.run(engine.aquery("What does Anthropic make?"))
    assert str(response) == str(again)
    assert response.metadata["route"]["taken"] == [route]
    assert bool(response.source_nodes) is (route != "none")
    assert response.metadata["usage"]["llm_calls"] == (llm is not None)
    json.dumps(response.metadata)


def test_an_llm_reads_how_names_are_connected_on_the_complex_route_only(index: CorpusIndex):
    llm = ScriptedLLM(["It is Claude [1]."])
    for route, told in (("moderate", False), ("complex", True)):
        response = index.as_query_engine(llm, retriever_mode="auto", router=always(route)).query("How are Anthropic and the Transformer connected?")
        assert ("subgraph" in json.dumps(response.metadata["trace"])) is told


def test_what_is_found_on_each_route(index: CorpusIndex):
    found = {
        route: [hit.node.ref_doc_id for hit in index.as_retriever("auto", router=always(route)).retrieve("What does section 2 of the handbook say?")]
        for route in ROUTES
    }
    assert found["none"] == []
    assert found["structural"][0] == "handbook"
    assert all(found[route] for route in ROUTES[1:])


def test_filters_hold_and_changes_are_seen(index: CorpusIndex):
    rules = MetadataFilters(filters=[MetadataFilter(key="kind", value="rules")])
    for route in ROUTES[1:]:
        engine = index.as_query_engine(retriever_mode="auto", router=always(route), filters=rules)
        assert {hit.node.ref_doc_id for hit in engine.retriever.retrieve("When is leave asked for?")} == {"handbook"}, route
        assert {hit.node.ref_doc_id for hit in index.as_retriever("auto", router=always(route), filters=rules).retrieve("leave")} == {"handbook"}, route
        index.insert(Document(id_=f"new-{route}", text=f"Leave {route} {route}.", metadata={"kind": "rules"}))
        assert f"new-{route}" in {hit.node.ref_doc_id for hit in engine.retriever.retrieve(f"leave {route}")}, route
        index.delete_ref_doc(f"new-{route}")


def test_routes_can_be_replaced_and_added(index: CorpusIndex):
    own = index.as_query_engine(retriever_mode="lexical")
    engine = index.as_query_engine(retriever_mode="auto", routes={"simple": own, "words": index.as_retriever("lexical")}, router=always("words"))
    assert engine.retriever.decider.names == [*ROUTES, "words"]
    assert engine.query("What does Anthropic make?").metadata["route"]["taken"] == ["words"]


def test_arguments_go_where_they_are_taken_and_others_are_refused(index: CorpusIndex):
    engine = index.as_query_engine(retriever_mode="auto", max_sentences=1, complete_blocks=False, similarity_top_k=2, timeout_s=30, default="simple")
    assert engine.retriever.similarity_top_k == 2
    with pytest.raises(UnknownArgumentError, match="'fission'"):
        index.as_query_engine(retriever_mode="auto", fission=1)
    with pytest.raises(UnknownArgumentError, match="'second_hop'"):
        index.as_retriever("auto", second_hop=1)
    with pytest.raises(ConfigurationError, match="there is no LLM"):
        index.as_query_engine(retriever_mode="auto", router="llm")


def test_the_llm_of_the_index_routes_where_asked(index: CorpusIndex):
    llm = ScriptedLLM(['{"routes": [{"name": "simple", "reason": "one fact"}]}', "Claude [1]."])
    response = index.as_query_engine(llm, retriever_mode="auto", router="llm").query("What does Anthropic make?")
    assert response.metadata["usage"]["by_prompt"] == {"choose_route": 1, "grounded_answer": 1}
    assert response.metadata["route"]["taken"] == ["simple"]


def test_a_chat_takes_each_message_its_own_way(index: CorpusIndex):
    chat = index.as_chat_engine(retriever_mode="auto", similarity_top_k=3)
    assert isinstance(chat, GroundedChatEngine)
    assert chat.chat("What does section 2 of the handbook say?").metadata["route"]["taken"] == ["structural"]
    assert chat.chat("Thank you!").metadata["route"]["taken"] == ["none"]


def test_other_modes_give_the_plain_engine(index: CorpusIndex):
    assert isinstance(index.as_query_engine(), GroundedQueryEngine)


def test_an_empty_index_answers_politely():
    index = CorpusIndex(embed_model=DeterministicEmbedding(), language="en")
    for question in ("What does Anthropic make?", "In which section is leave?", "How are A and B related?", "Hello"):
        assert str(index.as_query_engine(retriever_mode="auto").query(question))
        assert index.as_retriever("auto").retrieve(question) == []


def test_a_route_that_the_rules_never_choose_is_warned_of(index: CorpusIndex, caplog: pytest.LogCaptureFixture):
    own = {"words": index.as_retriever("lexical")}
    for made in (
        lambda **options: index.as_retriever("auto", routes=own, **options),
        lambda **options: index.as_query_engine(retriever_mode="auto", routes=own, **options),
    ):
        caplog.clear()
        made(default="words")
        made(router=always("words"))
        assert "never choose" not in caplog.text
        made()
        assert "The rules never choose ['words']" in caplog.text
