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

SHOWN = 10
_STAGE = "margin:0.2em 0 0.2em 1em"
_TABLE = "border-collapse:collapse;margin:0.4em 0"
_CELL = "text-align:left;vertical-align:top;padding:0.2em 0.8em 0.2em 0;border-bottom:1px solid rgba(128,128,128,0.3)"
_FAINT = "opacity:0.7;font-size:90%"
_NOTE = "margin:0.2em 0"


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
class NodeLabel:
    """What a person calls a node: the title of its document, and how the node begins."""

    title: str
    beginning: str = ""


@dataclass(frozen=True, slots=True)
class TraceNote:
    """Something that happened on the way: a child that failed, a fallback that was taken."""

    level: Level
    stage: str
    message: str


@dataclass(repr=False)
class RetrievalTrace:
    """What happened for one query: evidence, notes, timings in milliseconds, and the traces of the parts in order.

    Printed, or drawn in a notebook, it shows the first ten nodes of each stage, by their labels; `to_dict` has all, by id.

    Attributes:
        labels: what a person calls the nodes, by id; used for printing and drawing only.
    """

    stage: str
    query: str = ""
    evidence: list[Evidence] = field(default_factory=list[Evidence])
    notes: list[TraceNote] = field(default_factory=list[TraceNote])
    elapsed_ms: float | None = None
    children: list["RetrievalTrace"] = field(default_factory=list["RetrievalTrace"])
    labels: dict[str, NodeLabel] = field(default_factory=dict[str, NodeLabel])

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

    def all_labels(self) -> dict[str, NodeLabel]:
        """The labels of this trace and of all below it."""
        return {node_id: label for trace in self.walk() for node_id, label in trace.labels.items()}

    def __repr__(self) -> str:
        return f"RetrievalTrace({self.stage!r}, {self.query!r}, {len(self.evidence)} nodes, parts: {[child.stage for child in self.children]!r})"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, depth: int = 0, labels: Mapping[str, NodeLabel] | None = None) -> list[str]:
        """The trace as indented text, a line an item."""
        known = self.all_labels() if labels is None else labels
        pad = "  " * depth
        lines = [f"{pad}{self.stage}: {_extent(self)}"]
        lines += [f"{pad}  ! {note.message}" for note in self.notes]
        for child in self.children:
            lines += child.lines(depth + 1, known)
        lines += [f"{pad}  {item.rank}. {_called(item, known)}  {_score(item.score)}  {item.why}" for item in self.evidence[:SHOWN]]
        return lines + ([f"{pad}  … {len(self.evidence) - SHOWN} more"] if len(self.evidence) > SHOWN else [])

    def _repr_html_(self) -> str:
        return _drawn(self, self.all_labels(), is_open=True, above="")


def _extent(trace: RetrievalTrace) -> str:
    number = len(trace.evidence)
    nodes = f"{number} node{'s' if number > 1 else ''}" if number else "" if trace.children else "no nodes"
    took = "" if trace.elapsed_ms is None else f"{trace.elapsed_ms:.1f} ms"
    return ", ".join(part for part in (nodes, took) if part)


def _called(item: Evidence, labels: Mapping[str, NodeLabel]) -> str:
    label = labels.get(item.node_id)
    return item.node_id if label is None else f"{label.title} [{item.node_id[:8]}]"


def _drawn(trace: RetrievalTrace, labels: Mapping[str, NodeLabel], *, is_open: bool, above: str) -> str:
    """One stage as HTML: its table, then its parts, folded away once a table is seen; colours that suit light and dark pages."""
    query = f" &middot; <i>{html.escape(trace.query)}</i>" if trace.query not in ("", above) else ""
    summary = f"<summary><b>{html.escape(trace.stage)}</b>{query} &middot; {_extent(trace)}</summary>"
    notes = "".join(f"<div style='{_NOTE}'><b>{note.level}</b>: {html.escape(note.message)}</div>" for note in trace.notes)
    rows = "".join(_row(item, labels.get(item.node_id)) for item in trace.evidence[:SHOWN])
    more = f"<div style='{_FAINT}'>and {len(trace.evidence) - SHOWN} more</div>" if len(trace.evidence) > SHOWN else ""
    heads = "".join(f"<th style='{_CELL}'>{head}</th>" for head in ("#", "score", "passage", "why"))
    table = f"<table style='{_TABLE}'><tr>{heads}</tr>{rows}</table>{more}" if rows else ""
    parts = "".join(_drawn(child, labels, is_open=is_open and not rows, above=trace.query) for child in trace.children)
    return f"<details style='{_STAGE}'{' open' if is_open else ''}>{summary}{notes}{table}{parts}</details>"


def _row(item: Evidence, label: NodeLabel | None) -> str:
    name = f"<code>{html.escape(item.node_id)}</code>" if label is None else f"<b>{html.escape(label.title)}</b>"
    beginning = f"<br><span style='{_FAINT}'>{html.escape(label.beginning)}</span>" if label is not None and label.beginning else ""
    cells = (str(item.rank), _score(item.score), name + beginning, html.escape(item.why))
    return f"<tr title='{html.escape(item.node_id)}'>" + "".join(f"<td style='{_CELL}'>{cell}</td>" for cell in cells) + "</tr>"


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
