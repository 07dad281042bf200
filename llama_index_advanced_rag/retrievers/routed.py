"""What came of the routes that were taken for a question."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.schema import NodeWithScore

from llama_index_advanced_rag.routing.deciding import RouteDecision


@dataclass(slots=True)
class Routed:
    """A question on its routes.

    Attributes:
        decision: what the router said.
        taken: the routes that answered; the default route where it stood in for others.
        hits: the nodes, best first.
        dropped: routes that failed, were late or found nothing, and what happened.
        elapsed_ms: milliseconds of each route that was asked.
        others: with `explain`, what the other routes would have found: node ids, best first.
    """

    decision: RouteDecision
    taken: tuple[str, ...] = ()
    hits: list[NodeWithScore] = field(default_factory=list[NodeWithScore])
    dropped: dict[str, str] = field(default_factory=dict[str, str])
    elapsed_ms: dict[str, float] = field(default_factory=dict[str, float])
    others: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary, the nodes left out; `elapsed_ms` holds the router's under `"router"`."""
        decided = self.decision.to_dict()
        elapsed: Mapping[str, float] = {"router": decided.pop("elapsed_ms"), **self.elapsed_ms}
        return {
            **decided,
            "taken": list(self.taken),
            "dropped": dict(self.dropped),
            "elapsed_ms": dict(elapsed),
            "others": {name: list(ids) for name, ids in self.others.items()},
        }
