"""What a router works with where the user says nothing else."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.routing.route import KNOWN_ROUTES, MODERATE, SIMPLE, Route, known_route
from llama_index_advanced_rag.routing.router import RouteFunction, Router, router_of
from llama_index_advanced_rag.routing.rules import RuleRouter

logger = logging.getLogger(__name__)


def usual_router(given: Router | RouteFunction | None, names: Collection[str], *, default: str | None = None) -> Router:
    """The router given, else the rules, if they can tell the routes apart; of routes but the default that they do not know, a warning is logged.

    Raises:
        ConfigurationError: nothing was given, and the rules know fewer than two of the names.
    """
    if given is not None:
        return router_of(given)
    known = [name for name in names if name in KNOWN_ROUTES]
    if len(known) < min(2, len(names)):
        raise ConfigurationError(
            f"The routes are {', '.join(map(repr, names))}, of which the rules know {known!r}: they tell {', '.join(KNOWN_ROUTES)} apart. "
            "Pass router=: EmbeddingRouter(...) with examples, LLMRouter(...) with descriptions, or a function of the question."
        )
    unknown = [name for name in names if name not in KNOWN_ROUTES and name != default]
    if unknown:
        logger.warning("The rules never choose %s. Pass a router that does, for example FunctionRouter(function, otherwise=RuleRouter()).", unknown)
    return RuleRouter()


def usual_default(given: str | None, names: Sequence[str], *, retrieving: Collection[str]) -> str:
    """The route in doubt: the one given, else "moderate" or "simple", else the first that retrieves, else the first.

    Example:
        >>> usual_default(None, ["none", "simple", "moderate"], retrieving=["simple", "moderate"])
        'moderate'
    """
    wanted = [name for name in (MODERATE, SIMPLE, *names) if name in retrieving]
    return given if given is not None else next(iter([*wanted, *names]), "")


def described(names: Iterable[str], *, descriptions: Mapping[str, str] | None, examples: Mapping[str, Sequence[str]] | None) -> list[Route]:
    """The routes of these names, with what the user says of them.

    Raises:
        ConfigurationError: something is said of a route that does not exist.

    Example:
        >>> described(["sql"], descriptions={"sql": "Counts and sums."}, examples={"sql": ["How many orders?"]})
        [Route(name='sql', description='Counts and sums.', examples=('How many orders?',))]
    """
    listed = list(names)
    said, asked = dict(descriptions or {}), dict(examples or {})
    unknown = [name for name in (*said, *asked) if name not in listed]
    if unknown:
        raise ConfigurationError(f"descriptions and examples name {unknown!r}. The routes are {', '.join(map(repr, listed))}.")
    return [Route(name, said.get(name, known_route(name).description), tuple(asked.get(name, ()))) for name in listed]
