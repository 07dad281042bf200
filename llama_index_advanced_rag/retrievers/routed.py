"""What came of the routes that were taken for a question, and the default route that stands in where nothing came."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from llama_index.core.schema import NodeWithScore

from llama_index_advanced_rag.retrievers.errands import first_real_error
from llama_index_advanced_rag.routing.deciding import RouteDecision
from llama_index_advanced_rag.trace import report

_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Routed:
    """A question on its routes.

    Attributes:
        decision: what the router said.
        taken: the routes that answered; the default route where it stood in for others.
        hits: the nodes, best first.
        asked: the routes that were asked for an answer; none where the question needs no documents.
        dropped: routes that failed, were late or found nothing, and what happened.
        elapsed_ms: milliseconds of each route that was asked.
        others: with `explain`, what the other routes would have found: node ids, best first.
        failed: the exceptions of asked routes.
        response: the answer of an engine that answers by itself.
    """

    decision: RouteDecision
    taken: tuple[str, ...] = ()
    hits: Sequence[NodeWithScore] = ()
    asked: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict[str, str])
    elapsed_ms: Mapping[str, float] = field(default_factory=dict[str, float])
    others: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    failed: Mapping[str, BaseException] = field(default_factory=dict[str, BaseException])
    response: Any = None

    @property
    def nothing_came(self) -> bool:
        """Whether routes were asked, and all in vain."""
        return bool(self.asked) and not self.hits and self.response is None

    def then(self, later: "Routed") -> "Routed":
        """What came of these routes, and of others after them."""
        others = {name: ids for name, ids in {**self.others, **later.others}.items() if name not in later.taken}
        return Routed(
            self.decision,
            later.taken,
            later.hits,
            (*self.asked, *later.asked),
            {**self.dropped, **later.dropped},
            {**self.elapsed_ms, **later.elapsed_ms},
            others,
            {**self.failed, **later.failed},
            later.response,
        )

    def checked(self) -> "Routed":
        """The same, unless everything failed.

        Raises:
            Exception: the first real exception, when all routes failed that were asked.
        """
        if self.asked and all(name in self.failed for name in self.asked):
            raise first_real_error(list(self.failed.values()))
        return self

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary, the nodes left out; `elapsed_ms` holds the router's under `"router"`."""
        decided = self.decision.to_dict()
        return {
            **decided,
            "taken": list(self.taken),
            "dropped": dict(self.dropped),
            "elapsed_ms": {"router": decided["elapsed_ms"], **self.elapsed_ms},
            "others": {name: list(ids) for name, ids in self.others.items()},
        }


class Course:
    """The tries for a question: the routes that were decided on, then the default route if nothing came of them and there is time.

    Iterate, and `add` what came of each try.

    Args:
        decision: what the router said.
        default: the route that stands in; None = there is none that could.
        until: when the time is up, by `time.perf_counter`; None = no limit.
    """

    def __init__(self, decision: RouteDecision, default: str | None, until: float | None) -> None:
        self.until = until
        self._decision, self._default = decision, default
        self._whole = Routed(decision)

    def __iter__(self) -> Iterator[RouteDecision]:
        yield self._decision
        in_time = self.until is None or perf_counter() < self.until
        if self._whole.nothing_came and self._default not in (None, *self._decision.routes) and in_time:
            report("info", f"The default route {self._default!r} stands in, because nothing came of {', '.join(map(repr, self._whole.asked))}.")
            yield replace(self._decision, routes=(str(self._default),))

    @property
    def is_first(self) -> bool:
        """Whether nothing has been tried yet; the other routes are asked for the trace then, and not again."""
        return not self._whole.asked

    def add(self, routed: Routed) -> None:
        """Take what came of a try."""
        self._whole = self._whole.then(routed)

    def outcome(self) -> Routed:
        """All that came.

        Raises:
            Exception: all routes failed that were asked.
        """
        return self._whole.checked()


def failure(error: BaseException) -> str:
    """An exception in a short line."""
    return f"{type(error).__name__}: {error}"[:_REASON_CHARS]
