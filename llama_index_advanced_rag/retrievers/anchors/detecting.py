"""How the retrievers of an anchor search are asked: passages of a corpus that were read lately are not read again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import IndexNode, NodeWithScore

from llama_index_advanced_rag._concurrency import Outcome, arun_all, in_search_thread, run_all
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.retrievers.anchors.read_nodes import ReadHit, ReadNode, ReadPassages
from llama_index_advanced_rag.retrievers.errands import Errand
from llama_index_advanced_rag.retrievers.row_search import RowRetriever
from llama_index_advanced_rag.stores.rows.search_and_read import positions_of, scored, search_and_read


@dataclass(frozen=True, slots=True)
class Detector:
    """One retriever asked one question.

    Attributes:
        errand: how it is asked.
    """

    errand: Errand

    @property
    def asks_nobody(self) -> bool:
        """Whether rows of a corpus are ranked and no model is asked: threads for that cost more than they bring."""
        retriever = self.errand.retriever
        waits = isinstance(retriever, RowRetriever) and retriever.probe_awaits and self.errand.bundle.embedding is None
        return _kept_of(self.errand) is not None and not waits

    def run(self) -> list[ReadHit]:
        """Ask, in this thread."""
        retriever, kept = self.errand.retriever, _kept_of(self.errand)
        if kept is None or not isinstance(retriever, RowRetriever):
            return _read(self.errand.run())
        found = _find(retriever, kept, retriever.probe(self.errand.bundle))
        return _read(self.errand.run()) if _lead_on(found) else found

    async def arun(self) -> list[ReadHit]:
        """The async twin of `run`."""
        retriever, kept = self.errand.retriever, _kept_of(self.errand)
        if kept is None or not isinstance(retriever, RowRetriever):
            return _read(await self.errand.arun())
        if retriever.probe_awaits:
            found = await in_search_thread(_find, retriever, kept, await retriever.aprobe(self.errand.bundle))
        else:
            found = await in_search_thread(lambda: _find(retriever, kept, retriever.probe(self.errand.bundle)))
        return _read(await self.errand.arun()) if _lead_on(found) else found


def run_detectors(errands: Sequence[Errand]) -> list[Outcome[list[ReadHit]]]:
    """What all of them come to: one after the other where none waits for anybody, else side by side."""
    detectors = [Detector(item) for item in errands]
    if all(detector.asks_nobody for detector in detectors):
        return [run_all([detector.run])[0] for detector in detectors]
    return run_all([detector.run for detector in detectors])


async def arun_detectors(errands: Sequence[Errand]) -> list[Outcome[list[ReadHit]]]:
    """The async twin of `run_detectors`."""
    return await arun_all([Detector(item).arun for item in errands])


def _kept_of(errand: Errand) -> ReadPassages | None:
    """What is known of the passages of the corpus whose rows a retriever searches; None where its search is told to others, which see nodes."""
    retriever = errand.retriever
    if errand.trace is not None or not isinstance(retriever, RowRetriever) or retriever.object_map or retriever.callback_manager.handlers:
        return None
    return ReadPassages.of_corpus(retriever.row_space) if isinstance(retriever.row_space, Corpus) else None


def _find(retriever: RowRetriever, kept: ReadPassages, probe: Any) -> list[ReadHit]:
    retriever._see_changes()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    space = retriever.row_space
    if probe is None or space is None:
        return []
    seen = search_and_read(space, lambda state: retriever.rank(state, [probe])[0], positions_of, kept.at, by_ids=retriever.by_ids)
    return list(scored(seen))


def _read(hits: Sequence[NodeWithScore]) -> list[ReadHit]:
    return [(ReadNode.of(hit.node), hit.score) for hit in hits]


def _lead_on(found: Sequence[ReadHit]) -> bool:
    return any(isinstance(read.node, IndexNode) for read, _ in found)
