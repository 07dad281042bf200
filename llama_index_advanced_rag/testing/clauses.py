"""The clauses of the contract: each checks one thing and names itself in the error."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import NodeWithScore

from llama_index_advanced_rag.trace import RetrievalTrace

T = TypeVar("T")
Ranking = list[tuple[str, float | None]]


class ContractError(AssertionError):
    """A component breaks a clause of the contract.

    Attributes:
        clause: short name of the clause.
    """

    def __init__(self, component: object, clause: str, detail: str) -> None:
        self.clause = clause
        super().__init__(f"{type(component).__name__} breaks the clause {clause!r}: {detail}")


def ranking(nodes: Sequence[NodeWithScore]) -> Ranking:
    """Node ids and scores in order: what two equal results share."""
    return [(item.node.node_id, item.score) for item in nodes]


def same(component: object, clause: str, expected: Any, actual: Any) -> None:
    """Two results must be equal.

    Raises:
        ContractError: they differ.
    """
    if expected != actual:
        raise ContractError(component, clause, f"expected {expected!r:.600}, got {actual!r:.600}")


def well_formed(component: object, nodes: Sequence[NodeWithScore], *, by_score: bool = True, scored: bool = True) -> None:
    """Ids are unique, scores are plain finite floats (or None where `scored` is False), best first.

    Raises:
        ContractError: they are not.
    """
    ids = [item.node.node_id for item in nodes]
    if len(ids) != len(set(ids)):
        raise ContractError(component, "unique ids", f"a node came twice: {ids!r:.600}")
    scores = [item.score for item in nodes if scored or item.score is not None]
    for score in scores:
        if type(score) is not float or not math.isfinite(score):
            raise ContractError(component, "plain float scores", f"a score is {score!r} of type {type(score).__name__}; it must be a finite float")
    json.dumps(scores)
    if by_score and any(one < two for one, two in pairwise(scores) if one is not None and two is not None):
        raise ContractError(component, "best first", f"the scores increase: {scores!r:.600}")


def events_paired(component: object, counts: Mapping[str, int], start: str, end: str, *, required: bool) -> None:
    """As many end events as start events; at least one pair when required."""
    if counts.get(start, 0) != counts.get(end, 0) or (required and not counts.get(start)):
        raise ContractError(component, "events paired", f"{counts.get(start, 0)} {start} and {counts.get(end, 0)} {end}")


def trace_present(component: object, trace: RetrievalTrace, result: Sequence[NodeWithScore], *, traced: bool) -> None:
    """The trace holds evidence for each node and is JSON; nothing is checked unless `traced`."""
    if not traced:
        return
    silent = [item.node.node_id for item in result if not trace.for_node(item.node.node_id)]
    if silent:
        raise ContractError(component, "trace", f"no evidence for {silent!r:.600}")
    serialisable(component, "trace is JSON", trace.to_dict())


def metadata_serialisable(component: object, response: RESPONSE_TYPE, *, traced: bool) -> None:
    """The metadata of a response are JSON and hold the trace when `traced`."""
    metadata = response.metadata or {}
    if traced and "trace" not in metadata:
        raise ContractError(component, "trace", f"response.metadata has no 'trace', only {sorted(metadata)!r}")
    serialisable(component, "response metadata is JSON", metadata)


def serialisable(component: object, clause: str, value: Any) -> None:
    """The value is JSON."""
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise ContractError(component, clause, str(error)) from error


def empty_query_answered(component: object, ask: Callable[[], object]) -> None:
    """An empty question gives a result, or a `ValueError` that says something."""
    try:
        ask()
    except ContractError:
        raise
    except ValueError as error:
        if not str(error):
            raise ContractError(component, "empty query", "the error says nothing") from error
    except Exception as error:
        raise ContractError(component, "empty query", f"raised {error!r}; return nothing or raise a ValueError that says what to do") from error


def no_llm_called(component: object, prompts: Sequence[str]) -> None:
    """`Settings.llm` received no prompt."""
    if prompts:
        raise ContractError(component, "no LLM without an LLM", f"Settings.llm was asked: {prompts[0]!r:.300}")


def answer_of(response: RESPONSE_TYPE) -> tuple[str, Ranking]:
    """Text and sources: what two equal responses share."""
    return str(response), ranking(response.source_nodes)


async def suspending(component: object, call: Callable[[], Awaitable[T]], *, required: bool) -> T:
    """The result of an async call that leaves the event loop free at least once."""
    task = asyncio.ensure_future(call())
    await asyncio.sleep(0)
    if required and task.done() and task.exception() is None:
        raise ContractError(component, "async suspends", "the async call did all its work in one step and blocked the event loop")
    return await task


async def inside_loop(component: object, call: Callable[[], T]) -> T:
    """The result of a sync call made inside a running event loop."""
    try:
        return call()
    except RuntimeError as error:
        raise ContractError(component, "works in a running event loop", f"raised {error!r}") from error
