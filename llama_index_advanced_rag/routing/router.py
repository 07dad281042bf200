"""What a router is: something that says which of some routes fit a question."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable, iscoroutinefunction
from typing import ClassVar, TypeVar, cast

from llama_index.core.prompts.mixin import PromptDictType, PromptMixin, PromptMixinType
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag._concurrency import in_thread, run_coroutine
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.nested_prompts import update_nested_prompts
from llama_index_advanced_rag.routing.route import Route

T = TypeVar("T")
RouteFunction = Callable[[str], str | Sequence[str] | None] | Callable[[str], Awaitable[str | Sequence[str] | None]]


@dataclass(frozen=True, slots=True)
class RouteChoice:
    """What a router says of a question.

    Attributes:
        names: the routes that fit, best first; empty = it does not know.
        reason: why, in a short sentence for a person.
        scores: how well routes fit, 0 to 1, higher is better; empty where the router has no scores.
    """

    names: tuple[str, ...]
    reason: str
    scores: Mapping[str, float] = field(default_factory=dict[str, float])


class Router(PromptMixin, ABC):
    """Says which of some routes fit a question. A child implements `choose`, and `achoose` where it can await."""

    name: ClassVar[str]

    @abstractmethod
    def choose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """The routes that fit, best first, or none where that is not known.

        Args:
            query: the question; only read.
            routes: what can be chosen; at least one, names are unique.
        """

    async def achoose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """The async twin of `choose`."""
        return await in_thread(self.choose, query, routes)

    def update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Replace prompts by the names that `get_prompts` gives; the others stay.

        Raises:
            ValueError: a name speaks of a part that does not exist.
        """
        update_nested_prompts(self, prompts_dict)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        """No prompts unless a child has some."""

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


class FunctionRouter(Router):
    """A function of the question as a router.

    Args:
        function: given the question, the name of a route, several names best first, or None where it does not know; plain or async.
        otherwise: the router that is asked where the function does not know.

    Example:
        >>> router = FunctionRouter(lambda question: "sql" if "how many" in question.lower() else None)
        >>> router.choose(QueryBundle("How many orders?"), [Route("sql"), Route("text")]).names
        ('sql',)
    """

    name: ClassVar[str] = "function"

    def __init__(self, function: RouteFunction, *, otherwise: Router | None = None) -> None:
        self._function, self._otherwise = function, otherwise

    def choose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """What the function says."""
        said = self._function(query.query_str)
        choice = self._choice(run_coroutine(_awaited(said)) if isawaitable(said) else said)
        return choice if choice.names or self._otherwise is None else self._otherwise.choose(query, routes)

    async def achoose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """The async twin of `choose`; a plain function runs in a thread."""
        said = await self._function(query.query_str) if iscoroutinefunction(self._function) else await in_thread(self._function, query.query_str)
        choice = self._choice(await said if isawaitable(said) else said)
        return choice if choice.names or self._otherwise is None else await self._otherwise.achoose(query, routes)

    def _choice(self, said: str | Sequence[str] | None) -> RouteChoice:
        names = () if said is None else (said,) if isinstance(said, str) else tuple(said)
        told = getattr(self._function, "__name__", type(self._function).__name__)
        return RouteChoice(names, f"{told} says so" if names else f"{told} does not know")

    def _get_prompt_modules(self) -> PromptMixinType:
        return {} if self._otherwise is None else {"otherwise": self._otherwise}


async def _awaited(said: Awaitable[T]) -> T:
    return await said


def router_of(given: "Router | RouteFunction") -> Router:
    """A router, from one or from a function.

    Raises:
        ConfigurationError: it is neither.
    """
    if isinstance(given, Router):
        return given
    if callable(cast(object, given)):
        return FunctionRouter(given)
    raise ConfigurationError(f"router is {given!r}. It must be a Router (RuleRouter(), EmbeddingRouter(...), LLMRouter(...)) or a function of the question.")
