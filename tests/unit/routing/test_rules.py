"""The rule router: a thin adapter around the rules, without an LLM and without waiting."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.routing.deciding import RouteDecider
from llama_index_advanced_rag.routing.route import Route, known_route
from llama_index_advanced_rag.routing.router import Router
from llama_index_advanced_rag.routing.rules import RuleRouter

NAMES = ("none", "simple", "moderate", "complex", "structural")
ROUTES = [known_route(name) for name in NAMES]


def choose(question: str, routes=ROUTES, **options):
    return RuleRouter(**options).choose(QueryBundle(question), routes)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Hello!", "none"),
        ("What is a lease?", "simple"),
        ("Where was the director of Solaris born?", "moderate"),
        ("Who is older, Ada Lovelace or Mary Shelley?", "complex"),
        ("Que dit l'article 6 ?", "structural"),
    ],
)
def test_each_route_is_named_with_its_reason(question, name):
    choice = choose(question)
    assert choice.names[0] == name
    assert choice.reason.startswith('"')
    assert choice.scores == {}


def test_it_is_a_router_that_is_called_rules():
    assert isinstance(RuleRouter(), Router)
    assert RuleRouter.name == "rules"
    assert RuleRouter().get_prompts() == {}


def test_a_route_that_is_not_given_is_a_doubt():
    choice = choose("What does clause 12.2 say?", [Route("simple"), Route("graph")])
    assert choice.names == ()
    assert choice.reason == "\"clause 12.2\" is a place in a document, but there is no route 'structural'"


def test_the_next_best_route_is_taken_when_the_best_is_not_given():
    question = "Compare clause 4 of the Paris lease with clause 4 of the Lyon lease."
    assert choose(question).names == ("structural", "complex")
    assert choose(question, [Route("complex"), Route("simple")]).names == ("complex",)


def test_routes_of_other_names_are_never_named():
    assert choose("What is a lease?", [Route("sql"), Route("vector")]).names == ()


@pytest.mark.parametrize("question", ["", "  ", "?", "😀", "什么是合同？", "ما هو العقد؟", "nordic quay ferries"])
def test_no_sign_is_a_doubt(question):
    choice = choose(question)
    assert choice.names == ()
    assert choice.reason == "no sign in the question speaks for a route"


def test_a_language_without_rules_is_a_doubt_that_says_so():
    assert choose("Wer unterschreibt die Aufträge der Firma?").reason == "there are no rules for the language of the question"
    assert choose("What is a lease?", language="de").names == ()


def test_a_given_language_is_kept():
    assert choose("Quel est le délai ?", language="fr").names == ("simple",)


def test_an_unknown_language_is_refused_at_construction():
    with pytest.raises(ConfigurationError, match="language is 'klingon'"):
        RuleRouter(language="klingon")


async def test_the_async_twin_says_the_same():
    query = QueryBundle("What does clause 12.2 say?")
    assert await RuleRouter().achoose(query, ROUTES) == RuleRouter().choose(query, ROUTES)


def test_the_question_is_only_read():
    query = QueryBundle("What does clause 12.2 say?", embedding=[1.0])
    RuleRouter().choose(query, ROUTES)
    assert query == QueryBundle("What does clause 12.2 say?", embedding=[1.0])


def test_a_doubt_ends_at_the_default_route():
    decision = RouteDecider(RuleRouter(), ROUTES, default="moderate").decide(QueryBundle("nordic quay ferries"))
    assert (decision.routes, decision.in_doubt, decision.router) == (("moderate",), True, "rules")


def test_a_question_of_20000_characters_is_read():
    assert choose("blah " * 4000 + "What does clause 12.2 say?").names[0] == "structural"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400), st.lists(st.sampled_from([*NAMES, "sql"]), min_size=1, unique=True))
def test_only_given_routes_are_named(question, names):
    choice = choose(question, [Route(name) for name in names])
    assert set(choice.names) <= set(names) & set(NAMES)
    assert choice.reason
