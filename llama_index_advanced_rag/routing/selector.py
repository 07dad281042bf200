"""A router inside LlamaIndex's own `RouterQueryEngine` and `RouterRetriever`."""

from collections.abc import Collection, Sequence
from itertools import chain, count

from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import QueryBundle
from llama_index.core.tools.types import ToolMetadata

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.routing.deciding import RouteDecider, RouteDecision
from llama_index_advanced_rag.routing.route import Route, known_route
from llama_index_advanced_rag.routing.router import RouteFunction, Router, router_of


class RouteSelector(BaseSelector):
    """Lets a router choose among tools; there is always a choice, and it always exists.

    A tool is a route with its name and description. A tool without a name is called `choice 1`, `choice 2`, ... by its place, the
    second of a name `tool#2`. A router that fails, does not know or names what is not there is reported, and the default is
    taken. As many LLM calls as the router makes; `Settings.llm` is never touched, but `RouterQueryEngine` and `RouterRetriever` read it when
    they are made without `llm=`.

    Args:
        router: the router, or a function from the question to a name.
        default: the choice in doubt: its name, or its index from 0; None = the first.
        max_routes: most choices for one question; with more than one the stock router asks all of them and merges.

    Raises:
        ConfigurationError: the arguments cannot work; or, at `select`, there is nothing to choose from, or no such default.

    Example:
        >>> from llama_index_advanced_rag.routing.router import FunctionRouter
        >>> selector = RouteSelector(FunctionRouter(lambda question: "sql" if "how many" in question else None), default="text")
        >>> tools = [ToolMetadata("Counts and sums.", name="sql"), ToolMetadata("All else.", name="text")]
        >>> selector.select(tools, "how many orders?").ind, selector.select(tools, "why so late?").ind
        (0, 1)
    """

    def __init__(self, router: Router | RouteFunction, *, default: str | int | None = None, max_routes: int = 1) -> None:
        self._router, self._max_routes = router_of(router), whole_number("max_routes", max_routes)
        self._default = default if default is None or isinstance(default, str) else whole_number("default", default, least=0)

    def _select(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        decider = self._decider(choices)
        return _result(decider.decide(query), decider.names)

    async def _aselect(self, choices: Sequence[ToolMetadata], query: QueryBundle) -> SelectorResult:
        decider = self._decider(choices)
        return _result(await decider.adecide(query), decider.names)

    def _decider(self, choices: Sequence[ToolMetadata]) -> RouteDecider:
        if not choices:
            raise ConfigurationError("There is nothing to choose from: the list of choices is empty. Give the router at least one tool.")
        names = distinct_names([choice.name for choice in choices])
        routes = [Route(name, choice.description or known_route(name).description) for name, choice in zip(names, choices, strict=True)]
        return RouteDecider(self._router, routes, default=self._default_of(names), max_routes=self._max_routes)

    def _default_of(self, names: Sequence[str]) -> str:
        if isinstance(self._default, str):
            return self._default
        place = self._default or 0
        if place >= len(names):
            raise ConfigurationError(f"default is {place!r}. There are {len(names)} choices, so it must be an index from 0 to {len(names) - 1}, or a name.")
        return names[place]

    # The router's prompts are the selector's own: LlamaIndex cannot update a prompt of a part of a part ("selector:router:choose_route").
    def _get_prompts(self) -> PromptDictType:
        return self._router._get_prompts()  # noqa: SLF001

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        self._router._update_prompts(prompts_dict)  # noqa: SLF001

    def _get_prompt_modules(self) -> PromptMixinType:
        return self._router._get_prompt_modules()  # noqa: SLF001


def distinct_names(names: Sequence[str | None]) -> list[str]:
    """A name of its own for each, in their order. The first of a name keeps it.

    Example:
        >>> distinct_names(["tool", None, "tool", "web"])
        ['tool', 'choice 2', 'tool#2', 'web']
    """
    taken = {name for name in names if name and name.strip()}
    left = set(taken)
    distinct: list[str] = []
    for place, name in enumerate(names, start=1):
        if name in left:
            left.remove(name)
            distinct.append(name)
        else:
            distinct.append(_free(name if name in taken else f"choice {place}", taken))
            taken.add(distinct[-1])
    return distinct


def _free(name: str | None, taken: Collection[str]) -> str:
    """The name, or the first of `name#2`, `name#3`, ... that is not taken."""
    return next(own for own in chain([f"{name}"], (f"{name}#{number}" for number in count(2))) if own not in taken)


def _result(decision: RouteDecision, names: Sequence[str]) -> SelectorResult:
    reason = f"In doubt, so the default is taken: {decision.reason}" if decision.in_doubt else str(decision.reason)
    return SelectorResult(selections=[SingleSelection(index=names.index(name), reason=reason) for name in decision.routes])
