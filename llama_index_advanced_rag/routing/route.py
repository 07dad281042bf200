"""Routes: the ways a question can be answered, as a router sees them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.text.question_routes.ranking import COMPLEX, MODERATE, NONE, SIMPLE, STRUCTURAL

_DESCRIPTIONS = {
    NONE: "No document is needed: greetings, thanks, small talk, questions about the assistant, arithmetic, translating or rewriting a given text.",
    SIMPLE: "One passage answers, and it shares words or meaning with the question: a definition, a fact, a rule, a date, a contact, a how-to.",
    MODERATE: "One bridge: the answer is about something that the question describes through something else, so two passages that share a name are joined.",
    COMPLEX: "Several things are joined: comparisons, relations between named things, several bridges, causes across documents, lists of many things.",
    STRUCTURAL: "The place in the documents matters: a section, chapter, article, annex, page, table or figure, and figures that stand in tables of reports.",
}
ROUTER = "router"
"""What the router itself is called among the routes of a retriever, in timings and prompts; none of these can have this name."""
KNOWN_ROUTES = tuple(_DESCRIPTIONS)


@dataclass(frozen=True, slots=True)
class Route:
    """A way to answer, as a router sees it.

    Attributes:
        name: what decisions, traces and metadata call it.
        description: which questions it is for, in a sentence.
        examples: questions for it, for `EmbeddingRouter`.
    """

    name: str
    description: str = ""
    examples: tuple[str, ...] = ()


def known_route(name: str) -> Route:
    """The route of a name; one of the five routes of this package has its description.

    Example:
        >>> known_route("structural").description[:38]
        'The place in the documents matters: a '
        >>> known_route("sql").description
        ''
    """
    return Route(name, _DESCRIPTIONS.get(name, ""))


def checked_routes(routes: Iterable[Route]) -> tuple[Route, ...]:
    """The routes, if a router can choose among them.

    Raises:
        ConfigurationError: there is none, a name is empty, or two have the same.
    """
    listed = tuple(routes)
    if not listed:
        raise ConfigurationError("There are no routes. Give at least one.")
    refuse_unnamed([route.name for route in listed])
    return listed


def refuse_unnamed(names: Sequence[str]) -> None:
    """Refuse names that do not tell routes apart.

    Raises:
        ConfigurationError: one is empty, or is there twice.
    """
    if not all(isinstance(name, str) and name.strip() for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"The names of the routes are {list(names)!r}. Each must be a text that is not empty.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"More than one route is called {', '.join(map(repr, twice))}. Give each a name of its own.")
