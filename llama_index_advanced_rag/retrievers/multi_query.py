"""Other wordings of a question, written by an LLM."""

import json
import re
from collections.abc import Iterable
from typing import Any, cast

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index_advanced_rag import usage
from llama_index_advanced_rag.prompts import MULTI_QUERY
from llama_index_advanced_rag.trace import report

_FENCE = re.compile(r"^\s*```\w*\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
_ARRAY = re.compile(r"\[.*\]", re.DOTALL)
_ITEM = re.compile(r"^\s*(?:\d+\s*[.):]|[-*•])\s+(\S.*)$")
_QUOTED = re.compile(r"^[\"'«“„`]\s*(.*?)\s*[\"'»”“`]$")


def other_queries(llm: LLM | None, prompt: BasePromptTemplate, query: str, count: int) -> list[str]:
    """At most `count` other wordings of a query. One LLM call; if it fails, none, and the trace says why. None and no call without an LLM."""
    if llm is None or count < 1:
        return []
    try:
        answer = usage.predict(llm, MULTI_QUERY, prompt, num_queries=count, query_str=query)
    except Exception as error:  # noqa: BLE001 - the original query goes on alone, and the trace says so
        return _none_because(f"the LLM failed with {type(error).__name__}: {error}")
    return _accepted(answer, query, count)


async def aother_queries(llm: LLM | None, prompt: BasePromptTemplate, query: str, count: int) -> list[str]:
    """The async twin of `other_queries`."""
    if llm is None or count < 1:
        return []
    try:
        answer = await usage.apredict(llm, MULTI_QUERY, prompt, num_queries=count, query_str=query)
    except Exception as error:  # noqa: BLE001 - the original query goes on alone, and the trace says so
        return _none_because(f"the LLM failed with {type(error).__name__}: {error}")
    return _accepted(answer, query, count)


def parse_queries(answer: str) -> list[str]:
    r"""The queries in an LLM's answer: a JSON array of strings, else the lines that are numbered or bulleted.

    Anything around them (an introduction, a code fence) is dropped; other text holds no query.

    Example:
        >>> parse_queries('["net sales 2023", "revenue of Apple"]')
        ['net sales 2023', 'revenue of Apple']
        >>> parse_queries('Here are 2 queries:\n1. net sales 2023\n2) "revenue of Apple"')
        ['net sales 2023', 'revenue of Apple']
        >>> parse_queries("I cannot help with that.")
        []
    """
    fenced = _FENCE.match(answer)
    text = fenced.group(1) if fenced else answer
    array = _ARRAY.search(text)
    queries = _json_strings(text) or (_json_strings(array.group(0)) if array else [])
    if not queries:
        queries = [_QUOTED.sub(r"\1", match.group(1).strip().rstrip(",")) for match in map(_ITEM.match, text.splitlines()) if match]
    return [query.strip() for query in queries if query.strip()]


def _json_strings(text: str) -> list[str]:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return []
    if not isinstance(value, list):
        return []
    items = cast("list[object]", value)
    return [item for item in items if isinstance(item, str)]


def _accepted(answer: str, query: str, count: int) -> list[str]:
    queries = list(_without_repeats([query, *parse_queries(answer)]))[1 : count + 1]
    if not queries:
        return _none_because(f"the answer holds no new query: {answer[:300]!r}")
    report("info", f"also searched: {queries!r}")
    return queries


def _without_repeats(queries: Iterable[str]) -> Iterable[str]:
    first: dict[str, str] = {}
    for query in queries:
        first.setdefault(" ".join(query.casefold().split()), query)
    return first.values()


def _none_because(reason: str) -> list[str]:
    report("warning", f"Only the original query was searched, because {reason}")
    return []
