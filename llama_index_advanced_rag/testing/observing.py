"""What the contract suite watches a component with: events, forbidden LLM calls, snapshots of inputs."""

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

from llama_index.core import Settings
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import NodeWithScore

from llama_index_advanced_rag.testing.doubles import ScriptedLLM


class EventCounter(BaseEventHandler):
    """Counts the instrumentation events it sees, by class name."""

    _counts: Counter[str] = PrivateAttr(default_factory=Counter)

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "EventCounter"

    @property
    def counts(self) -> Counter[str]:
        """How many events of each class were seen."""
        return self._counts

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Count one event."""
        self._counts[event.class_name()] += 1


@contextmanager
def count_events() -> Generator[Counter[str], None, None]:
    """Count all LlamaIndex events of the block by class name.

    Example:
        >>> from llama_index.core.instrumentation.events.query import QueryStartEvent
        >>> with count_events() as counts:
        ...     get_dispatcher("any").event(QueryStartEvent(query="q"))
        >>> counts["QueryStartEvent"]
        1
    """
    root = get_dispatcher()
    handler = EventCounter()
    root.add_event_handler(handler)
    try:
        yield handler.counts
    finally:
        root.event_handlers.remove(handler)


@contextmanager
def forbidden_settings_llm() -> Generator[list[str], None, None]:
    """Put an LLM into `Settings.llm` that raises when asked; yields the prompts it received; restores the setting after.

    Example:
        >>> with forbidden_settings_llm() as prompts:
        ...     pass
        >>> prompts
        []
    """
    llm = ScriptedLLM([AssertionError("Settings.llm was called although no LLM was given to the component")])
    before = Settings._llm  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the property would resolve a default LLM
    Settings._llm = llm  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    try:
        yield llm.prompts
    finally:
        Settings._llm = before  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def snapshot(nodes: Iterable[Any]) -> list[dict[str, Any]]:
    """Everything a component could change in nodes or scored nodes, as values that compare by content.

    Args:
        nodes: `BaseNode` or `NodeWithScore` objects.
    """
    return [_node_values(node) for node in nodes]


def _node_values(node: Any) -> dict[str, Any]:
    if isinstance(node, NodeWithScore):
        return {"score": node.score, "node": _node_values(node.node)}
    values: dict[str, Any] = node.model_dump()
    return values
