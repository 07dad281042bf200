"""Why each node was retrieved: evidence written by every stage into the trace of the current query.

A trace exists only while somebody listens (`capture_trace`, or a query engine that reports it); without a listener
`current_trace()` is None and stages skip the work. The trace is a context variable: threads and tasks started through
`_concurrency` see it. Never enter `capture_trace` or `use_trace` inside a generator: hand the trace object over instead.
"""

import html
import json
import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

Level = Literal["info", "warning", "error"]
_LOG_LEVELS: dict[Level, int] = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_current: ContextVar["RetrievalTrace | None"] = ContextVar("advanced_rag_trace", default=None)
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One stage's word on one node.

    Attributes:
        node_id: the node.
        stage: name of the component that speaks, for example "lexical" or "rerank".
        rank: position in that stage's own result, from 1.
        score: that stage's score, higher is better; None when the stage only orders.
        why: one short sentence for a person.
        details: JSON values for a program (term weights, child ranks, path, ...).
    """

    node_id: str
    stage: str
    rank: int
    score: float | None
    why: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary."""
        return {"node_id": self.node_id, "stage": self.stage, "rank": self.rank, "score": self.score, "why": self.why, "details": dict(self.details)}


@dataclass(frozen=True, slots=True)
class TraceNote:
    """Something that happened on the way: a child that failed, a fallback that was taken."""

    level: Level
    stage: str
    message: str


@dataclass
class RetrievalTrace:
    """What happened for one query: evidence, notes, timings in milliseconds, and the traces of the parts in order."""

    stage: str
    query: str = ""
    evidence: list[Evidence] = field(default_factory=list[Evidence])
    notes: list[TraceNote] = field(default_factory=list[TraceNote])
    elapsed_ms: float | None = None
    children: list["RetrievalTrace"] = field(default_factory=list["RetrievalTrace"])

    def add(self, evidence: Evidence) -> None:
        """Record one piece of evidence."""
        self.evidence.append(evidence)

    def note(self, level: Level, message: str) -> None:
        """Record what happened besides the result."""
        self.notes.append(TraceNote(level, self.stage, message))

    def child(self, stage: str, query: str | None = None) -> "RetrievalTrace":
        """Open a sub-trace; call it for all parts, in order, before the parts run, and the trace is deterministic."""
        sub = RetrievalTrace(stage, self.query if query is None else query)
        self.children.append(sub)
        return sub

    def walk(self) -> Iterator["RetrievalTrace"]:
        """This trace and all below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def for_node(self, node_id: str) -> list[Evidence]:
        """All evidence about one node, children first, as the stages ran."""
        below = [item for child in self.children for item in child.for_node(node_id)]
        return below + [item for item in self.evidence if item.node_id == node_id]

    def all_notes(self) -> list[TraceNote]:
        """The notes of this trace and of all below it."""
        return [note for trace in self.walk() for note in trace.notes]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary: stage, query, elapsed_ms, evidence, notes, children."""
        return {
            "stage": self.stage,
            "query": self.query,
            "elapsed_ms": self.elapsed_ms,
            "evidence": [item.to_dict() for item in self.evidence],
            "notes": [{"level": note.level, "stage": note.stage, "message": note.message} for note in self.notes],
            "children": [child.to_dict() for child in self.children],
        }

    def to_json(self, indent: int | None = None) -> str:
        """The dictionary as JSON text; characters outside ASCII are kept."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, depth: int = 0) -> list[str]:
        """The trace as indented text, a line an item."""
        pad = "  " * depth
        took = "" if self.elapsed_ms is None else f" ({self.elapsed_ms:.1f} ms)"
        lines = [f"{pad}{self.stage}: {len(self.evidence)} nodes{took}"]
        lines += [f"{pad}  ! {note.message}" for note in self.notes]
        for child in self.children:
            lines += child.lines(depth + 1)
        lines += [f"{pad}  {item.rank}. {item.node_id} {_score(item.score)} {item.why}" for item in self.evidence]
        return lines

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{item.rank}</td><td>{_score(item.score)}</td><td><code>{html.escape(item.node_id[:12])}</code></td><td>{html.escape(item.why)}</td></tr>"
            for item in self.evidence
        )
        notes = "".join(f"<p><b>{note.level}</b>: {html.escape(note.message)}</p>" for note in self.notes)
        took = "" if self.elapsed_ms is None else f" &middot; {self.elapsed_ms:.1f} ms"
        table = f"<table><tr><th>rank</th><th>score</th><th>node</th><th>why</th></tr>{rows}</table>" if rows else ""
        inner = "".join(f"<div style='margin-left:1.5em'>{child._repr_html_()}</div>" for child in self.children)
        return f"<details open><summary><b>{html.escape(self.stage)}</b>{took}</summary>{notes}{table}{inner}</details>"


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.4f}"


def current_trace() -> RetrievalTrace | None:
    """The trace of the running query, or None when nobody listens."""
    return _current.get()


@contextmanager
def use_trace(trace: RetrievalTrace | None) -> Generator[RetrievalTrace | None, None, None]:
    """Make a trace the current one for the block and record how long the block took."""
    token = _current.set(trace)
    started = perf_counter()
    try:
        yield trace
    finally:
        _current.reset(token)
        if trace is not None:
            trace.elapsed_ms = (perf_counter() - started) * 1000


@contextmanager
def capture_trace(query: str = "", *, stage: str = "query") -> Generator[RetrievalTrace, None, None]:
    """Listen: everything retrieved in the block explains itself in the yielded trace.

    Inside another capture the new trace becomes its child.

    Example:
        >>> with capture_trace("why?") as trace:
        ...     current_trace().add(Evidence("n1", "lexical", 1, 2.5, "matches: why"))
        >>> trace.for_node("n1")[0].why
        'matches: why'
    """
    parent = _current.get()
    trace = RetrievalTrace(stage, query) if parent is None else parent.child(stage, query)
    with use_trace(trace):
        yield trace


@contextmanager
def stage_trace(stage: str, query: str | None = None) -> Generator[RetrievalTrace | None, None, None]:
    """A sub-trace of the current trace for the block; yields None and does nothing when nobody listens."""
    parent = _current.get()
    with use_trace(None if parent is None else parent.child(stage, query)) as trace:
        yield trace


def report(level: Level, message: str) -> None:
    """Say what happened besides the result: in the current trace, and in the log."""
    trace = _current.get()
    if trace is not None:
        trace.note(level, message)
    logger.log(_LOG_LEVELS[level], "%s", message)
