"""What becomes of the answer, or the failure, of somebody else's engine on a route."""

import copy
import json
from dataclasses import replace

from llama_index.core.base.response.schema import RESPONSE_TYPE

from llama_index_advanced_rag._concurrency import Outcome
from llama_index_advanced_rag.answering.turn import Turn
from llama_index_advanced_rag.retrievers.routed import Routed
from llama_index_advanced_rag.routing.deciding import RouteDecision

_REASON_CHARS = 300


def told_by_engine(turn: Turn, decision: RouteDecision, response: RESPONSE_TYPE, elapsed_ms: float) -> RESPONSE_TYPE:
    """A copy of the answer of an engine, with `route`, `usage` and `trace` beside its own metadata.

    What JSON cannot hold of those is written as text.
    """
    name = decision.routes[0]
    routed = Routed(decision, (name,), elapsed_ms={name: elapsed_ms})
    own = copy.copy(response)
    kept = json.loads(json.dumps(response.metadata or {}, default=str, ensure_ascii=False))
    own.metadata = {**kept, "route": routed.to_dict(), "usage": turn.ledger.to_dict(), "trace": turn.trace.to_dict()}
    return own


def after_engine(decision: RouteDecision, answer: Outcome[RESPONSE_TYPE], routed: Routed) -> Routed:
    """What the default route found, told as what came after an engine that gave no answer."""
    name = decision.routes[0]
    dropped, elapsed = {name: failure(answer), **routed.dropped}, {name: answer.elapsed_ms, **routed.elapsed_ms}
    return replace(routed, decision=decision, dropped=dropped, elapsed_ms=elapsed)


def failure(answer: Outcome[RESPONSE_TYPE]) -> str:
    """Why there is no answer."""
    return f"{type(answer.error).__name__}: {answer.error}"[:_REASON_CHARS]
