"""The LLM router: an LLM reads the question and what the routes are for, and names some of them."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, cast

from llama_index.core.bridge.pydantic import BaseModel, model_validator
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError, LLMOutputError
from llama_index_advanced_rag.prompts import ROUTE, ROUTE_PROMPT, escape_tags
from llama_index_advanced_rag.routing.route import Route
from llama_index_advanced_rag.routing.router import RouteChoice, Router
from llama_index_advanced_rag.structured_answers import aask_parsed, ask_parsed, json_objects, validated
from llama_index_advanced_rag.text.both_ends import both_ends

_QUESTION_CHARS, _DESCRIPTION_CHARS, _REASON_CHARS = 4000, 2000, 300
_LONGEST_NUMBER = 9
_LISTED_AS = re.compile(r"\A\s*\d{1,3}[.)]\s+")  # "2. text", as the prompt lists it
_UNEXPLAINED = "the LLM names it"


class NamedRoute(BaseModel):
    """A route that an LLM names, by its name or by its number."""

    name: Any
    reason: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """A name or a number by itself is taken as one."""
        return {"name": value} if isinstance(value, (str, int)) and not isinstance(value, bool) else value


class RouteAnswer(BaseModel):
    """What an LLM answers: routes, best first."""

    routes: list[NamedRoute]


class LLMRouter(Router):
    """An LLM chooses among the routes by their names and descriptions.

    One LLM call; a second one, with what was wrong, when the answer cannot be used; none where there is one route only. An answer
    counts when it is one JSON object in which every route exists; when both answers do not, no route is chosen. A question of more
    than 4,000 characters is shown by its two ends. There are no scores.

    Args:
        llm: the LLM.
        prompt: replaces the prompt `choose_route`, see `prompts`: a template with `routes_str`, `query_str`, `max_choices` and `note_str`.
        max_choices: most routes that are chosen.

    Raises:
        ConfigurationError: there is no LLM, or `max_choices` is no whole number of at least 1.

    Example:
        >>> from llama_index_advanced_rag.testing import ScriptedLLM
        >>> llm = ScriptedLLM(['{"routes": [{"name": "sql", "reason": "Something is counted."}]}'])
        >>> LLMRouter(llm).choose(QueryBundle("How many orders?"), [Route("sql", "Counts and sums."), Route("text", "All else.")])
        RouteChoice(names=('sql',), reason='Something is counted.', scores={})
    """

    name: ClassVar[str] = "llm"

    def __init__(self, llm: LLM, *, prompt: BasePromptTemplate | None = None, max_choices: int = 1) -> None:
        if cast(object, llm) is None:
            raise ConfigurationError("llm is None. LLMRouter asks an LLM: give one, or take RuleRouter() or EmbeddingRouter(embed_model), which need none.")
        self._llm, self._prompt = llm, prompt or ROUTE_PROMPT
        self._max_choices = whole_number("max_choices", max_choices)

    def choose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """The routes that the LLM names, each once.

        Raises:
            Exception: what the LLM raised.
        """
        if len(routes) == 1:
            return _the_only_one(routes[0])
        try:
            return ask_parsed(self._llm, ROUTE, self._prompt, self._variables(query, routes), self._reader(routes))
        except LLMOutputError as error:
            return RouteChoice((), str(error).rstrip("."))

    async def achoose(self, query: QueryBundle, routes: Sequence[Route]) -> RouteChoice:
        """The async twin of `choose`."""
        if len(routes) == 1:
            return _the_only_one(routes[0])
        try:
            return await aask_parsed(self._llm, ROUTE, self._prompt, self._variables(query, routes), self._reader(routes))
        except LLMOutputError as error:
            return RouteChoice((), str(error).rstrip("."))

    def _variables(self, query: QueryBundle, routes: Sequence[Route]) -> dict[str, Any]:
        return {
            "routes_str": "\n".join(f"{number}. {_shown(route.name)}: {_shown(route.description)}" for number, route in enumerate(routes, start=1)),
            "query_str": escape_tags(both_ends(query.query_str, _QUESTION_CHARS), "routes", "question"),
            "max_choices": min(self._max_choices, len(routes)),
        }

    def _reader(self, routes: Sequence[Route]) -> "partial[RouteChoice]":
        return partial(read_choice, names=[route.name for route in routes], max_choices=self._max_choices)

    def _get_prompts(self) -> PromptDictType:
        return {ROUTE: self._prompt}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        self._prompt = prompts_dict.get(ROUTE, self._prompt)


def read_choice(answer: str, *, names: Sequence[str], max_choices: int) -> RouteChoice:
    """The routes in an LLM's answer, whatever stands around its JSON.

    A route is named as it is listed, in any case, or by its number from 1. What stands behind the first `max_choices` is left out.

    Args:
        answer: what the LLM said.
        names: the routes, in the order in which they were listed.
        max_choices: most routes taken.

    Raises:
        ValueError: there is no JSON object that fits, one of its routes does not exist, it names none, or two objects say different things.

    Example:
        >>> read_choice('Sure: {"routes": [{"name": 2}]}', names=["sql", "text"], max_choices=1).names
        ('text',)
        >>> read_choice('{"routes": [{"name": "web"}]}', names=["sql", "text"], max_choices=1)
        Traceback (most recent call last):
        ValueError: There is no route 'web'. The routes are 1. 'sql', 2. 'text'.
    """
    choices: list[RouteChoice] = []
    problem: str | None = None
    for value in json_objects(answer):
        read = validated(RouteAnswer, value)
        if isinstance(read, RouteAnswer):
            choices.append(_choice(read, names, max_choices))
        else:
            problem = problem or read
    if not choices:
        raise ValueError(problem or 'It holds no JSON object like {"routes": [{"name": "...", "reason": "..."}]}.')
    if any(choice.names != choices[0].names for choice in choices):
        raise ValueError("It holds several JSON objects that name different routes.")
    return choices[0]


def _choice(read: RouteAnswer, names: Sequence[str], max_choices: int) -> RouteChoice:
    if not read.routes:
        raise ValueError(f"It names no route. Name the one that fits best of {_listed(names)}.")
    reasons: dict[str, str] = {}
    for named in read.routes:
        reasons.setdefault(_existing(named.name, names), " ".join((named.reason or "").split())[:_REASON_CHARS])
    chosen = tuple(reasons)[:max_choices]
    return RouteChoice(chosen, reasons[chosen[0]] or _UNEXPLAINED)


def _existing(said: Any, names: Sequence[str]) -> str:
    """The route of a name or number."""
    number = said if isinstance(said, int) and not isinstance(said, bool) else None
    if isinstance(said, str):
        if said in names:
            return said
        bare = _shown(_LISTED_AS.sub("", said))
        alike = [name for name in names if _shown(name).casefold() in (_shown(said).casefold(), bare.casefold())]
        if len(alike) == 1:
            return alike[0]
        digits = said.strip()
        number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER else None
    if number is not None and 1 <= number <= len(names):
        return names[number - 1]
    raise ValueError(f"There is no route {said!r:.100}. The routes are {_listed(names)}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"{number}. {name!r}" for number, name in enumerate(names, start=1))


def _shown(text: str) -> str:
    """A name or a description as the prompt shows it: on one line, bounded, without the tags of the prompt."""
    return escape_tags(" ".join(text.split()), "routes", "question")[:_DESCRIPTION_CHARS]


def _the_only_one(route: Route) -> RouteChoice:
    return RouteChoice((route.name,), "there is no other route")
