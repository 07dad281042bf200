"""One child of a hybrid retriever asked one query, by position."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from llama_index_advanced_rag._concurrency import Outcome, in_thread
from llama_index_advanced_rag.retrievers.base import node_label
from llama_index_advanced_rag.retrievers.errands import Errand
from llama_index_advanced_rag.retrievers.row_search import RowRetriever, hits_at
from llama_index_advanced_rag.stores.rows.positions import Found
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.trace import use_trace


@dataclass
class RowErrand:
    """One child asked one query, by position.

    Attributes:
        failure: why its query could not be made ready; raised when it is run.
    """

    errand: Errand
    failure: BaseException | None = None
    _probe: list[Any] = field(default_factory=list[Any])  # empty until it is made

    @property
    def retriever(self) -> RowRetriever:
        """The child, with the filters and the top-n of this errand."""
        return cast("RowRetriever", self.errand.retriever)

    @property
    def probe(self) -> Any:
        """What it looks for; None = nothing can be found."""
        return self._probe[0] if self._probe else None

    def know(self, outcome: Outcome[Any]) -> None:
        """Take over what making the probe came to."""
        self.failure = outcome.error
        self._probe = [outcome.value]

    def run(self, state: RowState) -> Found:
        """Rank the rows of a state; the probe is made at first."""
        with self._timed():
            if self.failure is not None:
                raise self.failure
            self._make_probe()
            return self.retriever.ranked(state, self._probe)[0]

    @property
    def is_ready(self) -> bool:
        """True when its probe is made, or has failed to be."""
        return bool(self._probe) or self.failure is not None

    @property
    def asks_a_model(self) -> bool:
        """True when the probe is still to be made by a model."""
        return self.retriever.probe_awaits and self.errand.bundle.embedding is None and not self.is_ready

    def prepare(self) -> None:
        """Make the probe, unless it is made."""
        with self._timed():
            self._make_probe()

    def _make_probe(self) -> None:
        if not self._probe:
            self._probe = [self.retriever.probe(self.errand.bundle)]

    async def aprepare(self) -> None:
        """The async twin of `prepare`."""
        with self._timed():
            self._probe = [await self.retriever.aprobe(self.errand.bundle)]

    async def arun(self, state: RowState) -> Found:
        """The async twin of `run`."""
        if self.asks_a_model:
            await self.aprepare()
        return await in_thread(self.run, state)

    @contextmanager
    def _timed(self) -> Generator[None, None, None]:
        trace = self.errand.trace
        before = 0.0 if trace is None else trace.elapsed_ms or 0.0
        with use_trace(trace):
            yield
        if trace is not None and trace.elapsed_ms is not None:
            trace.elapsed_ms += before

    def explain(self, state: RowState, found: Found, at: Mapping[int, Any]) -> None:
        """Write evidence and labels of its own hits into its trace."""
        if self.errand.trace is not None and self.probe is not None:  # a question without words asks nothing
            hits = hits_at(found, at)
            self.errand.trace.evidence += self.retriever.row_evidence(state, self.probe, hits)
            self.errand.trace.labels.update({hit.node.node_id: node_label(hit.node) for hit in hits})
