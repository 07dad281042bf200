"""Asking somebody else's engine on a route, and what becomes of its answer."""

import copy
import json
from dataclasses import dataclass

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag._concurrency import Outcome, in_thread, never_awaits
from llama_index_advanced_rag.answering.turn import Turn
from llama_index_advanced_rag.retrievers.routed import Routed, failure
from llama_index_advanced_rag.routing.deciding import RouteDecision
from llama_index_advanced_rag.trace import RetrievalTrace, current_trace, report, use_trace

_NOTHING_FOUND = "Empty Response"  # what LlamaIndex's response synthesizers say where there were no nodes


@dataclass(frozen=True, slots=True)
class EngineErrand:
    """An engine asked a question. Its trace is its own and joined to the parent's afterwards, so that a late thread cannot touch it."""

    engine: BaseQueryEngine
    name: str
    bundle: QueryBundle
    trace: RetrievalTrace | None

    @classmethod
    def to(cls, engine: BaseQueryEngine, name: str, bundle: QueryBundle) -> "EngineErrand":
        """Prepare to ask an engine."""
        return cls(engine, name, copy.copy(bundle), None if current_trace() is None else RetrievalTrace(name, bundle.query_str))

    def run(self) -> RESPONSE_TYPE:
        """Ask, in this thread."""
        with use_trace(self.trace):
            return self.engine.query(self.bundle)

    async def arun(self) -> RESPONSE_TYPE:
        """Ask; an engine that would block the event loop is asked in a thread."""
        with use_trace(self.trace):
            return await aquery(self.engine, self.bundle)

    def routed(self, decision: RouteDecision, outcome: Outcome[RESPONSE_TYPE]) -> Routed:
        """What came of it: an answer, an exception, or nothing."""
        name, response, error = self.name, outcome.value, outcome.error
        parent = current_trace()
        if parent is not None and self.trace is not None:
            parent.children.append(RetrievalTrace(name, self.trace.query) if isinstance(error, TimeoutError) else self.trace)
        dropped = {} if says_something(response) else {name: "it found nothing" if error is None else failure(error)}
        if error is not None:
            report("warning", f"The route {name!r} was dropped: {dropped[name]}")
        return Routed(
            decision,
            taken=(name,),
            asked=(name,),
            dropped=dropped,
            elapsed_ms={name: outcome.elapsed_ms},
            failed={} if error is None else {name: error},
            response=None if dropped else response,
        )


def says_something(response: RESPONSE_TYPE | None) -> bool:
    """Whether a response has sources or an answer; a stream is taken to have one."""
    if response is None:
        return False
    return bool(response.source_nodes) or not hasattr(response, "response") or text_of(response) != ""


def text_of(response: RESPONSE_TYPE) -> str:
    """The text of a whole answer; empty where an engine says that it has none."""
    text = str(response).strip() if getattr(response, "response", None) else ""
    return "" if text == _NOTHING_FOUND else text


def told_by_engine(turn: Turn, routed: Routed) -> RESPONSE_TYPE:
    """A copy of the answer of an engine, with `route`, `usage` and `trace` beside its own metadata; its own `route` stands in it as `inner`.

    What JSON cannot hold of those is written as text. The metadata of a stream are those it had at its beginning.
    """
    own: RESPONSE_TYPE = copy.copy(routed.response)
    kept = json.loads(json.dumps(own.metadata or {}, default=str, ensure_ascii=False))
    inner = {"inner": kept["route"]} if "route" in kept else {}
    own.metadata = {**kept, "route": {**routed.to_dict(), **inner}, "usage": turn.ledger.to_dict(), "trace": turn.trace.to_dict()}
    return own


async def aquery(engine: BaseQueryEngine, query_bundle: QueryBundle) -> RESPONSE_TYPE:
    """Ask an engine; one whose async query blocks the event loop is asked in a thread."""
    if never_awaits(type(engine)._aquery):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return await in_thread(engine.query, query_bundle)
    return await engine.aquery(query_bundle)
