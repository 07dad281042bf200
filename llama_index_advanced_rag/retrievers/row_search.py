"""Search by position: what retrievers over one corpus share. They read one state of its rows, and build nodes for the final hits only."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle

from llama_index_advanced_rag._concurrency import in_search_thread, in_thread
from llama_index_advanced_rag.retrievers.base import ScoredIds, TracedRetriever
from llama_index_advanced_rag.stores.node_source import own_copy
from llama_index_advanced_rag.stores.rows.positions import NOTHING, Found, Positions, pairs
from llama_index_advanced_rag.stores.rows.row_state import RowSpace, RowState
from llama_index_advanced_rag.stores.rows.search_and_read import positions_of, read_ids, scored, search_and_read
from llama_index_advanced_rag.trace import Evidence, current_trace

S = TypeVar("S")
T = TypeVar("T")


class RowHit(NamedTuple):
    """One hit with its node."""

    position: int
    score: float
    node: BaseNode


def common_space(part: object, nodes: object) -> RowSpace | None:
    """The corpus whose rows a store searches, if it is also where the nodes come from; else None."""
    space = getattr(part, "row_space", None)
    return cast(RowSpace, space) if space is not None and space is nodes else None


def distinct(founds: Sequence[Found]) -> Positions:
    """All positions of several results, each once."""
    return np.unique(np.concatenate([found.positions for found in founds])) if founds else NOTHING.positions


def hits_at(found: Found, at: Mapping[int, BaseNode]) -> list[RowHit]:
    """The hits whose nodes are there, best first."""
    return [RowHit(position, score, at[position]) for position, score in pairs(found) if position in at]


def own_shares(wanted: Sequence[Positions], at: Mapping[int, T]) -> list[dict[int, T]]:
    """What stands at the positions of several queries; a node that two of them found is copied, so that each result can be written to."""
    given: set[int] = set()

    def share(position: int) -> T:
        item = at[position]
        copied = cast("T", own_copy(item)) if position in given and isinstance(item, BaseNode) else item
        given.add(position)
        return copied

    return [{position: share(position) for position in positions.tolist() if position in at} for positions in wanted]


def scored_nodes(ranked: Sequence[tuple[int, float]], at: Mapping[int, BaseNode]) -> list[NodeWithScore]:
    """The hits that are there."""
    return [NodeWithScore(node=at[position], score=score) for position, score in ranked if position in at]


@cache
def finds_like(kind: type[TracedRetriever], home: type[TracedRetriever]) -> bool:
    """True when a class searches with the methods of `home`, so that what is found another way than through them is the same."""
    return all(_definer(kind, name) is _definer(home, name) for name in ("_find", "_afind", "_retrieve", "_aretrieve"))


def _definer(kind: type, name: str) -> type:
    return next(base for base in kind.__mro__ if name in vars(base))


class RowRetriever(TracedRetriever):
    """A retriever that ranks rows where its store and its nodes are those of one corpus, and nodes where they are not.

    A child implements the ranking of rows (`probe`, `rank`, `row_evidence`) and of nodes (`_find_nodes`, `_afind_nodes`). They are
    not marked abstract: LlamaIndex wraps each implementation of an abstract method in a span, which costs more than they do.

    Attributes:
        probe_awaits: making the probe asks a model, so that `aprobe` is awaited; else `probe` is called in the thread of the search.
    """

    probe_awaits: ClassVar[bool] = False
    _space: RowSpace | None = None

    @property
    def row_space(self) -> RowSpace | None:
        """The rows that are searched by position; None where nodes are searched, as in a subclass that finds in its own way."""
        return self._space if finds_like(type(self), RowRetriever) else None

    @property
    def by_ids(self) -> bool:
        """True when only certain nodes or documents are searched."""
        return False

    def probe(self, query_bundle: QueryBundle) -> Any:
        """What is looked for in any state; None when the query can find nothing."""
        raise NotImplementedError

    async def aprobe(self, query_bundle: QueryBundle) -> Any:
        """The async twin of `probe`."""
        return await in_thread(self.probe, query_bundle)

    def probes(self, query_bundles: Sequence[QueryBundle]) -> list[Any]:
        """`probe` of several queries."""
        return [self.probe(bundle) for bundle in query_bundles]

    def rank(self, state: RowState, probes: Sequence[Any]) -> list[Found]:
        """The best rows for each probe that is not None, under this retriever's filters; at most `similarity_top_k` each."""
        raise NotImplementedError

    def row_evidence(self, state: RowState, probe: Any, hits: Sequence[RowHit]) -> list[Evidence]:
        """Why each hit was found."""
        raise NotImplementedError

    def _find_nodes(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """`_find` over nodes."""
        raise NotImplementedError

    async def _afind_nodes(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The async twin of `_find_nodes`."""
        raise NotImplementedError

    def ranked(self, state: RowState, probes: Sequence[Any]) -> list[Found]:
        """`rank`, and nothing for a probe that is None."""
        asked = [probe for probe in probes if probe is not None]
        founds = iter(self.rank(state, asked) if asked else [])
        return [NOTHING if probe is None else next(founds) for probe in probes]

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.row_space is None:
            return self._find_nodes(query_bundle)
        self._see_changes()
        return self._row_hits(self.row_space, self.probe(query_bundle))

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.row_space is None:
            return await self._afind_nodes(query_bundle)
        if not self.probe_awaits:
            return await in_search_thread(self._find, query_bundle)
        return await in_search_thread(self._fresh, self._row_hits, self.row_space, await self.aprobe(query_bundle))

    def _find_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        if self.row_space is None:
            return None
        self._see_changes()
        return self._row_ids(self.row_space, self.probe(query_bundle))

    async def _afind_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        if self.row_space is None or not self.probe_awaits:
            return None if self.row_space is None else await in_search_thread(self._find_ids, query_bundle)
        return await in_search_thread(self._fresh, self._row_ids, self.row_space, await self.aprobe(query_bundle))

    def _find_batch(self, query_bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]] | None:
        if self.row_space is None:
            return None
        self._see_changes()
        probes, space = self.probes(query_bundles), self.row_space
        seen = search_and_read(space, lambda state: self.ranked(state, probes), distinct, space.nodes_at, by_ids=self.by_ids)
        shares = own_shares([found.positions for found in seen.result], seen.at)
        return [scored_nodes(pairs(found), at) for found, at in zip(seen.result, shares, strict=True)]

    def _fresh(self, find: Callable[[RowSpace, Any], T], space: RowSpace, probe: Any) -> T:
        self._see_changes()
        return find(space, probe)

    def _row_hits(self, space: RowSpace, probe: Any) -> list[NodeWithScore]:
        if probe is None:
            return []
        seen = search_and_read(space, lambda state: self.rank(state, [probe])[0], positions_of, space.nodes_at, by_ids=self.by_ids)
        hits = hits_at(seen.result, seen.at)
        trace = current_trace()
        if trace is not None:
            trace.evidence += self.row_evidence(seen.state, probe, hits)
        return [NodeWithScore(node=hit.node, score=hit.score) for hit in hits]

    def _row_ids(self, space: RowSpace, probe: Any) -> ScoredIds:
        if probe is None:
            return []
        return scored(search_and_read(space, lambda state: self.rank(state, [probe])[0], positions_of, read_ids, by_ids=self.by_ids))
