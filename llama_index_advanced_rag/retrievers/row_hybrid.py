"""Hybrid search by position: all children read one state of one corpus, and nodes are built for the fused hits only."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from llama_index_advanced_rag._concurrency import Outcome, arun_all, in_search_thread, in_thread, run_all
from llama_index_advanced_rag.retrievers.children import Child
from llama_index_advanced_rag.retrievers.errands import Errand, took_part
from llama_index_advanced_rag.retrievers.fusing import ListFusion
from llama_index_advanced_rag.retrievers.row_errand import RowErrand
from llama_index_advanced_rag.retrievers.row_search import RowRetriever, distinct, own_shares
from llama_index_advanced_rag.retrievers.shared_search import in_shared_search
from llama_index_advanced_rag.stores.rows.positions import NOTHING, Found, Positions, best_first, pairs
from llama_index_advanced_rag.stores.rows.row_state import RowSpace, RowState
from llama_index_advanced_rag.stores.rows.search_and_read import Seen, search_and_read

R = TypeVar("R")
T = TypeVar("T")
Read = Callable[[RowState, Positions], Sequence[T | None]]


def children_space(children: Sequence[Child]) -> RowSpace | None:
    """The corpus whose rows all these children search; None when one searches elsewhere, or has listeners or objects of its own."""
    spaces = [_own_space(child) for child in children]
    return spaces[0] if spaces and all(space is not None and space is spaces[0] for space in spaces) else None


def _own_space(child: Child) -> RowSpace | None:
    retriever = child.retriever
    if not isinstance(retriever, RowRetriever) or retriever.object_map or retriever.callback_manager.handlers:
        return None
    return retriever.row_space


@dataclass(frozen=True, slots=True)
class RowFusion:
    """What the children found in one state, and the fused list."""

    errands: Sequence[RowErrand]
    founds: Sequence[Found]
    fused: Sequence[tuple[int, float]]

    @property
    def lists(self) -> list[list[tuple[int, float]]]:
        """Positions and scores of each child."""
        return [pairs(found) for found in self.founds]


@dataclass(frozen=True)
class RowHybrid:
    """Asks errands over the rows of one space and fuses what they find."""

    space: RowSpace
    fusion: ListFusion
    top_k: int

    def find(self, errands: Sequence[Errand], read: Read[T]) -> Seen[RowFusion, T]:
        """Search and read the fused hits, in a traced search all hits of the children.

        Args:
            errands: what is asked, side by side.
            read: what is wanted of the positions.
        """
        return self._find([RowErrand(item) for item in errands], read, None)

    async def afind(
        self, key: Hashable, errands: Sequence[Errand], read: Read[T], *, begin: Callable[[], object], then: Callable[[Seen[RowFusion, T]], R]
    ) -> R:
        """The async twin of `find`: models are awaited, all the rest runs in one thread, or in one for each child where there is a time limit.

        Searches that wait for a thread under the same key are made together, unless a trace listens.

        Args:
            key: of all searches with the same children, settings and `read`.
            errands: what is asked.
            read: what is wanted of the positions.
            begin: called in the thread before the search.
            then: what is made of the result, in the thread.
        """
        rows, limits = [RowErrand(item) for item in errands], [item.child.timeout_s for item in errands]
        if any(limit is not None for limit in limits):
            state = await in_thread(self._begun, begin)
            outcomes = await arun_all([partial(item.arun, state) for item in rows], timeouts_s=limits)
            return await in_thread(lambda: then(self._find(rows, read, Answered(state, outcomes))))
        asking = [item for item in rows if item.asks_a_model]
        for item, outcome in zip(asking, await arun_all([item.aprepare for item in asking]), strict=True):
            item.failure = outcome.error
        search = partial(self._find_all, read, begin, then)
        if any(item.trace is not None for item in errands):
            return (await in_search_thread(search, [rows]))[0].unwrap()
        return await in_shared_search(key, search, rows)

    def _find_all(
        self, read: Read[T], begin: Callable[[], object], then: Callable[[Seen[RowFusion, T]], R], queries: Sequence[Sequence[RowErrand]]
    ) -> list[Outcome[R]]:
        """What each query comes to; several are searched together, and when that fails one by one, to see for which."""
        begin()
        if len(queries) > 1:
            together = run_all([partial(self._find_together, queries, read)])[0]
            if together.ok:
                return [run_all([partial(then, seen)])[0] for seen in together.unwrap()]
        return [run_all([partial(self._then_of, rows, read, then)])[0] for rows in queries]

    def _then_of(self, rows: Sequence[RowErrand], read: Read[T], then: Callable[[Seen[RowFusion, T]], R]) -> R:
        return then(self._find(rows, read, None))

    def _find_together(self, queries: Sequence[Sequence[RowErrand]], read: Read[T]) -> list[Seen[RowFusion, T]]:
        seen = self._find_batch(queries, read)
        return [
            Seen(seen.state, fusion, at) for fusion, at in zip(seen.result, own_shares([_fused_positions(one) for one in seen.result], seen.at), strict=True)
        ]

    def _begun(self, begin: Callable[[], object]) -> RowState:
        begin()
        return self.space.state()

    def _find(self, errands: Sequence[RowErrand], read: Read[T], first: "Answered | None") -> Seen[RowFusion, T]:
        search = _Search(self, errands, None if first is None else first.outcomes)
        return search_and_read(self.space, search, self._wanted, read, state=None if first is None else first.state, by_ids=_by_ids(errands))

    def find_batch(self, queries: Sequence[Sequence[Errand]], read: Read[T]) -> list[Seen[RowFusion, T]]:
        """Search for several queries, each child all of them at once, and read the fused hits.

        Args:
            queries: for each query its errands; the same children in the same order.
            read: what is wanted of the positions.
        """
        return self._find_together([[RowErrand(item) for item in errands] for errands in queries], read)

    def _find_batch(self, rows: Sequence[Sequence[RowErrand]], read: Read[T]) -> Seen[list[RowFusion], T]:
        for column in zip(*rows, strict=True):
            _prepare_together([item for item in column if not item.is_ready])
        return search_and_read(self.space, partial(self._fused_batch, rows), _all_fused, read, by_ids=any(map(_by_ids, rows)))

    def _fused_batch(self, queries: Sequence[Sequence[RowErrand]], state: RowState) -> list[RowFusion]:
        columns = [_run_together(state, column) for column in zip(*queries, strict=True)]
        return [self.judged(errands, outcomes, state) for errands, outcomes in zip(queries, zip(*columns, strict=True), strict=True)]

    def judged(self, errands: Sequence[RowErrand], outcomes: Sequence[Outcome[Found]], state: RowState) -> RowFusion:
        """The fusion of the outcomes that are lists.

        Raises:
            Exception: the first real error, when all failed.
        """
        kept = took_part([item.errand for item in errands], outcomes)
        return self.fused(
            [item for item, keep in zip(errands, kept, strict=True) if keep],
            [outcome.unwrap() for outcome, keep in zip(outcomes, kept, strict=True) if keep],
            state,
        )

    def fused(self, errands: Sequence[RowErrand], founds: Sequence[Found], state: RowState) -> RowFusion:
        """The fused list of what was found."""

        def ordered(scores: Mapping[int, float], limit: int | None) -> list[tuple[int, float]]:
            positions, values = np.fromiter(scores, np.intp, len(scores)), np.fromiter(scores.values(), np.float64, len(scores))
            return pairs(best_first(positions, values, limit or max(1, len(scores)), state.names))

        lists = [pairs(found) for found in founds]
        return RowFusion(errands, founds, self.fusion.fuse([item.errand.child for item in errands], lists, ordered, self.top_k))

    @staticmethod
    def _wanted(fusion: RowFusion) -> Positions:
        if any(item.errand.trace is not None for item in fusion.errands):
            return distinct(fusion.founds)
        return _fused_positions(fusion)


@dataclass(frozen=True, slots=True)
class Answered:
    """The state to begin with, and what errands have come to in it already; None = ask them."""

    state: RowState
    outcomes: Sequence[Outcome[Found]] | None


class _Search:
    """The search of one query, over one state after another; who has failed once is not asked again."""

    def __init__(self, hybrid: RowHybrid, errands: Sequence[RowErrand], outcomes: Sequence[Outcome[Found]] | None) -> None:
        self._hybrid, self._errands, self._outcomes = hybrid, errands, outcomes
        self._took_part: Sequence[RowErrand] | None = None

    def __call__(self, state: RowState) -> RowFusion:
        if self._took_part is not None:
            return self._hybrid.fused(self._took_part, [item.run(state) for item in self._took_part], state)
        outcomes = _ask(self._errands, state) if self._outcomes is None else self._outcomes
        fusion = self._hybrid.judged(self._errands, outcomes, state)
        self._took_part = fusion.errands
        return fusion


def _ask(errands: Sequence[RowErrand], state: RowState) -> list[Outcome[Found]]:
    """What each errand finds in a state.

    Side by side where one may be late, and where several ask a model; ranking alone keeps both cores busy in one thread, and
    starting threads for it costs more than it brings.
    """
    limits = [item.errand.child.timeout_s for item in errands]
    if any(limit is not None for limit in limits):
        return run_all([partial(item.run, state) for item in errands], timeouts_s=limits)
    asking = [item for item in errands if item.asks_a_model]
    for item, outcome in zip(asking, run_all([item.prepare for item in asking]), strict=True):
        item.failure = outcome.error
    return [run_all([partial(item.run, state)])[0] for item in errands]


def _prepare_together(errands: Sequence[RowErrand]) -> None:
    """Make the probes of one child for several queries; when that fails, one by one, to see for which."""
    if not errands:
        return
    retriever = errands[0].retriever
    together = run_all([lambda: retriever.probes([item.errand.bundle for item in errands])])[0]
    if together.ok:
        for item, probe in zip(errands, together.unwrap(), strict=True):
            item.know(Outcome(probe, None, 0.0))
        return
    for item in errands:
        item.know(run_all([partial(retriever.probe, item.errand.bundle)])[0])


def _run_together(state: RowState, errands: Sequence[RowErrand]) -> list[Outcome[Found]]:
    """What one child finds for several queries; when that fails, one by one, to see for which."""
    probes = [item.probe for item in errands]
    together = run_all([partial(errands[0].retriever.ranked, state, probes)])[0]
    if not together.ok:
        return [run_all([partial(item.run, state)])[0] for item in errands]
    return [Outcome(found, item.failure, together.elapsed_ms) for item, found in zip(errands, together.unwrap(), strict=True)]


def _fused_positions(fusion: RowFusion) -> Positions:
    return np.array([position for position, _ in fusion.fused], dtype=np.intp)


def _all_fused(fusions: Sequence[RowFusion]) -> Positions:
    return np.unique(np.concatenate([_fused_positions(fusion) for fusion in fusions])) if fusions else NOTHING.positions


def _by_ids(errands: Sequence[RowErrand]) -> bool:
    return any(item.retriever.by_ids for item in errands)
