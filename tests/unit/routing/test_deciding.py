"""From what a router says to a decision: there is always one."""

import json

import numpy as np
import pytest
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.routing.deciding import RouteDecider
from llama_index_advanced_rag.routing.route import Route
from llama_index_advanced_rag.routing.router import FunctionRouter, RouteChoice, Router, router_of
from llama_index_advanced_rag.trace import capture_trace

ROUTES = [Route("simple"), Route("graph"), Route("none")]


class Says(Router):
    """Says what it is told to, and counts how often it is asked."""

    name = "says"

    def __init__(self, *names: str, error: Exception | None = None, **scores: float) -> None:
        self.choice, self.error, self.asked = RouteChoice(names, "it says so", scores), error, 0

    def choose(self, query, routes):
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.choice


def decided(router, question: str = "why?", **options):
    with capture_trace() as trace:
        decision = RouteDecider(router, ROUTES, **{"default": "graph", **options}).decide(QueryBundle(question))
    return decision, [(note.level, note.message) for note in trace.notes]


def test_what_the_router_says_is_taken():
    decision, notes = decided(Says("simple", "none", simple=0.9, none=0.1))
    assert decision.routes == ("simple",)
    assert not decision.in_doubt
    assert decision.scores == {"simple": 0.9, "none": 0.1}
    assert decision.elapsed_ms >= 0
    assert notes == [("info", "route simple, by says: it says so (none too, but max_routes is 1)")]
    told = json.loads(json.dumps(decision.to_dict()))
    assert (told["routes"], told["router"], told["reason"], told["in_doubt"]) == (["simple"], "says", "it says so", False)


def test_several_routes_each_once_and_no_more_than_wanted():
    router = Says("simple", "simple", "none", "graph")
    assert decided(router, max_routes=2)[0].routes == ("simple", "none")
    assert decided(router, max_routes=9)[0].routes == ("simple", "none", "graph")


def test_a_router_that_does_not_know_is_noted():
    decision, notes = decided(Says())
    assert (decision.routes, decision.in_doubt) == (("graph",), True)
    assert notes == [("info", "In doubt, so the route 'graph' is taken: it says so.")]


def test_names_that_do_not_exist_are_reported_and_the_others_count():
    decision, notes = decided(Says("sql", "simple"))
    assert (decision.routes, decision.in_doubt) == (("simple",), False)
    assert notes[0] == ("warning", "The router 'says' named routes that do not exist, ['sql']. There are simple, graph, none.")


def test_only_names_that_do_not_exist_end_at_the_default():
    decision, notes = decided(Says("sql", "Simple"))
    assert (decision.routes, decision.in_doubt) == (("graph",), True)
    assert [level for level, _ in notes] == ["warning", "info"]


def test_a_router_that_fails_is_reported():
    decision, notes = decided(Says(error=ConnectionError("down")))
    assert (decision.routes, decision.in_doubt) == (("graph",), True)
    assert "ConnectionError: down" in decision.reason
    assert notes[0][0] == "warning"
    assert "ConnectionError: down" in notes[0][1]


@pytest.mark.parametrize("question", ["", "  \n\t "])
def test_a_question_without_words_asks_nobody(question):
    router = Says("simple")
    decision, _ = decided(router, question)
    assert (decision.routes, decision.in_doubt, router.asked) == (("graph",), True, 0)


async def test_async_is_as_sync():
    for router in (Says("simple"), Says(), Says("sql"), Says(error=ConnectionError("down"))):
        for question in ("why?", ""):
            one = decided(router, question)[0].to_dict()
            other = (await RouteDecider(router, ROUTES, default="graph").adecide(QueryBundle(question))).to_dict()
            assert {**one, "elapsed_ms": 0} == {**other, "elapsed_ms": 0}


@pytest.mark.parametrize(
    ("routes", "options", "told"),
    [
        ([], {}, "no routes"),
        ([Route("graph"), Route("graph")], {}, "More than one route is called 'graph'"),
        ([Route("graph"), Route(" ")], {}, "must be a text that is not empty"),
        (ROUTES, {"default": "sql"}, "default route is 'sql'. The routes are 'simple', 'graph', 'none'"),
        (ROUTES, {"max_routes": 0}, "max_routes is 0"),
    ],
)
def test_what_cannot_work_is_refused(routes, options, told):
    with pytest.raises(ConfigurationError, match=told):
        RouteDecider(Says(), routes, **{"default": "graph", **options})


@pytest.mark.parametrize(("said", "names"), [("simple", ("simple",)), (["none", "graph"], ("none", "graph")), (None, ()), ([], ())])
def test_a_function_is_a_router(said, names):
    def by_hand(question):
        return said

    choice = router_of(by_hand).choose(QueryBundle("why?"), ROUTES)
    assert choice.names == names
    assert choice.reason == ("by_hand says so" if names else "by_hand does not know")


def test_a_function_that_fails_or_talks_nonsense_ends_at_the_default():
    assert decided(FunctionRouter(lambda question: 7))[0].routes == ("graph",)
    assert decided(FunctionRouter(lambda question: question[99]))[0].routes == ("graph",)


def test_a_router_is_a_router_or_a_function():
    router = Says()
    assert router_of(router) is router
    with pytest.raises(ConfigurationError, match="router is 'rules'"):
        router_of("rules")


def test_a_route_that_must_be_sure_is_taken_only_with_its_score():
    def decide(scores: dict[str, float]) -> tuple[tuple[str, ...], bool]:
        class Scored(Router):
            name = "scored"

            def choose(self, query, routes):
                return RouteChoice(("none", "simple"), "it looks so", scores)

        decider = RouteDecider(Scored(), [Route("none"), Route("simple"), Route("graph")], default="graph", sure_of={"none": 0.6, "simple": 0.2})
        decision = decider.decide(QueryBundle("Hello?"))
        return decision.routes, decision.in_doubt

    assert decide({}) == (("none",), False), "a router without scores is believed"
    assert decide({"none": 0.6, "simple": 0.4}) == (("none",), False)
    assert decide({"none": 0.5, "simple": 0.4}) == (("simple",), False)
    assert decide({"none": 0.5, "simple": 0.1}) == (("graph",), True)


@pytest.mark.parametrize("said", [[["a"]], [{"name": "simple"}], [None], [3]])
def test_names_that_are_no_names_end_at_the_default(said):
    decider = RouteDecider(FunctionRouter(lambda question: said), [Route("simple"), Route("graph")], default="graph")
    assert decider.decide(QueryBundle("Hello?")).routes == ("graph",)


def test_a_router_that_says_nothing_and_scores_of_other_kinds():
    class Odd(Router):
        name = "odd"

        def __init__(self, said):
            self.said = said

        def choose(self, query, routes):
            return self.said

    decision = RouteDecider(Odd(None), ROUTES, default="graph").decide("What?")
    assert (decision.routes, decision.reason) == (("graph",), "the router said nothing")
    decision = RouteDecider(Odd(RouteChoice(["simple"], "r", {"simple": np.float32(0.5)})), ROUTES, default="graph").decide("What?")
    assert json.loads(json.dumps(decision.to_dict()))["scores"] == {"simple": 0.5}
    assert RouteDecider(Odd("simple"), ROUTES, default="graph").decide("What?").in_doubt is True


async def test_an_async_function_is_a_router_too():
    async def route(question: str) -> str:
        return "simple"

    decider = RouteDecider(router_of(route), ROUTES, default="graph")
    assert (await decider.adecide("What?")).routes == ("simple",)
    assert decider.decide("What?").routes == ("simple",), "in a running event loop as well"


async def test_a_function_and_otherwise_another_router():
    mine = FunctionRouter(lambda question: "simple" if "fox" in question else None, otherwise=Says("none"))
    decider = RouteDecider(mine, ROUTES, default="graph")
    for question, wanted in (("fox", "simple"), ("owl", "none")):
        assert decider.decide(question).routes == (await decider.adecide(question)).routes == (wanted,)
