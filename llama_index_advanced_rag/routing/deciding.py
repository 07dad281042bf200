"""From what a router says to the routes that are taken: doubts, failures and names that do not exist end at the default route."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from llama_index.core.schema import QueryBundle, QueryType

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.routing.route import Route, checked_routes
from llama_index_advanced_rag.routing.router import RouteChoice, Router
from llama_index_advanced_rag.trace import current_trace, report


@dataclass(frozen=True, slots=True)
class RouteDecision:
    """The routes taken for a question.

    Attributes:
        routes: their names, best first; at least one.
        router: name of the router that was asked.
        reason: why these, in a sentence for a person.
        in_doubt: the router did not know, or could not be asked, and the default route is taken.
        scores: how well routes fit, where the router has scores: 0 to 1, higher is better.
        elapsed_ms: milliseconds that the router took.
    """

    routes: tuple[str, ...]
    router: str
    reason: str
    in_doubt: bool = False
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    elapsed_ms: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary."""
        return {
            "routes": list(self.routes),
            "router": self.router,
            "reason": self.reason,
            "in_doubt": self.in_doubt,
            "scores": dict(self.scores),
            "elapsed_ms": self.elapsed_ms,
        }


class RouteDecider:
    """Asks a router and always comes to a decision.

    Args:
        router: says which routes fit.
        routes: what can be chosen.
        default: name of the route that is taken in doubt.
        max_routes: most routes taken for one question.
        sure_of: by name, the least score with which a route is taken, from a router that has scores.

    Raises:
        ConfigurationError: there is no such default, or an argument cannot work.
    """

    def __init__(self, router: Router, routes: Sequence[Route], *, default: str, max_routes: int = 1, sure_of: Mapping[str, float] | None = None) -> None:
        self.router, self.routes = router, checked_routes(routes)
        self.default, self.max_routes = default, whole_number("max_routes", max_routes)
        self._sure_of = dict(sure_of or {})
        if default not in self.names:
            raise ConfigurationError(f"The default route is {default!r}. The routes are {', '.join(map(repr, self.names))}.")

    @property
    def names(self) -> list[str]:
        """The names of the routes."""
        return [route.name for route in self.routes]

    def decide(self, query: QueryType) -> RouteDecision:
        """The routes for a question. A router that fails or does not know is reported, and the default route is taken."""
        started, query = perf_counter(), QueryBundle(query) if isinstance(query, str) else query
        try:
            choice = self._without_words(query) or _normal(self.router.choose(query, self.routes))
        except Exception as error:  # noqa: BLE001 - a question without a router is still a question
            choice = _failed(error)
        return self._decision(choice, started)

    async def adecide(self, query: QueryType) -> RouteDecision:
        """The async twin of `decide`."""
        started, query = perf_counter(), QueryBundle(query) if isinstance(query, str) else query
        try:
            choice = self._without_words(query) or _normal(await self.router.achoose(query, self.routes))
        except Exception as error:  # noqa: BLE001 - as in decide
            choice = _failed(error)
        return self._decision(choice, started)

    def _without_words(self, query: QueryBundle) -> RouteChoice | None:
        return None if query.query_str.strip() else RouteChoice((), "the question has no words")

    def _decision(self, choice: RouteChoice, started: float) -> RouteDecision:
        elapsed_ms, names = (perf_counter() - started) * 1000, self.names
        unknown = [name for name in choice.names if name not in names]
        if unknown:
            report("warning", f"The router {self.router.name!r} named routes that do not exist, {unknown[:5]!r:.300}. There are {', '.join(names)}.")
        known = [name for name in names if name in choice.names]
        sure = sorted((name for name in known if self._is_sure(name, choice)), key=choice.names.index)
        if sure:
            trace = current_trace()
            if trace is not None:
                beyond = f" ({', '.join(sure[self.max_routes :])} too, but max_routes is {self.max_routes})" if len(sure) > self.max_routes else ""
                trace.note("info", f"route {', '.join(sure[: self.max_routes])}, by {self.router.name}: {choice.reason}{beyond}")
            return RouteDecision(tuple(sure[: self.max_routes]), self.router.name, choice.reason, False, choice.scores, elapsed_ms)
        reason = choice.reason
        if known:
            reason = f"{reason}, which is not sure enough for the route {known[0]!r}"
        elif unknown:
            reason = f"the router named {unknown[0]!r:.80}, which does not exist"
        report("info", f"In doubt, so the route {self.default!r} is taken: {reason}.")
        return RouteDecision((self.default,), self.router.name, reason, True, choice.scores, elapsed_ms)

    def _is_sure(self, name: str, choice: RouteChoice) -> bool:
        return not choice.scores or choice.scores.get(name, 0.0) >= self._sure_of.get(name, 0.0)


def _normal(choice: RouteChoice | None) -> RouteChoice:
    """What a router said, its scores as plain numbers; None is taken for not knowing.

    Raises:
        TypeError: it said something else.
    """
    if choice is None:
        return RouteChoice((), "the router said nothing")
    return RouteChoice(tuple(choice.names), str(choice.reason), {str(name): float(score) for name, score in choice.scores.items()})


def _failed(error: Exception) -> RouteChoice:
    reason = f"the router failed with {type(error).__name__}: {error}"
    report("warning", f"No route was chosen, because {reason:.300}")
    return RouteChoice((), reason[:300])
