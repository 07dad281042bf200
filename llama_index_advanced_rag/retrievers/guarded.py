"""What retrievers over the entity graph share: another retriever beside them, whose first hits stay in front of their own list."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Generic, Protocol, TypeVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import in_thread, never_awaits
from llama_index_advanced_rag.ranking.fusion import concatenate_guarded
from llama_index_advanced_rag.retrievers.base import ScoredIds, TracedRetriever, own_bundle
from llama_index_advanced_rag.retrievers.children import named
from llama_index_advanced_rag.retrievers.errands import both, is_empty
from llama_index_advanced_rag.retrievers.merging import Nodes, node_source_of
from llama_index_advanced_rag.retrievers.tunable import TunableOptions
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.trace import Evidence, current_trace

Options = TypeVar("Options", bound=TunableOptions)


class OwnList(Protocol):
    """What a retriever found by itself."""

    def best(self, top_k: int) -> list[tuple[str, float]]:
        """Node ids and scores, best first."""
        ...

    def story(self, node_id: str) -> tuple[str, dict[str, Any]]:
        """Why a node is in the list: a sentence, and the same for programs; empty for one that is not."""
        ...


class GuardedRetriever(TracedRetriever, Generic[Options]):
    """A retriever that puts its own list after the first hits of another retriever, and before the rest of them.

    A child implements `_own`, and says by `_retriever_top_n` how much of the other one it wants.

    Args:
        retriever: the other one.
        nodes: where passages are read.
        tunable: its numbers; `with_parameters` changes them.
        arguments: those of `TracedRetriever`.
    """

    def __init__(self, retriever: BaseRetriever, *, nodes: Nodes, tunable: Options, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._options = tunable
        self._retriever = next(iter(named([retriever]).values()))
        self._nodes = node_source_of(nodes)

    @property
    def parameters(self) -> dict[str, Any]:
        """The numbers that can be tuned, see `evaluation.tuning.tune`."""
        return asdict(self._options)

    def with_parameters(self, **values: Any) -> Self:
        """The same retriever with other numbers; state is shared, this object stays as it is.

        Raises:
            ConfigurationError: there is no such number, or it cannot work.
        """
        other = copy.copy(self)
        other._options = self._options.with_values(**values)  # noqa: SLF001 - of the same class
        return other

    @property
    @abstractmethod
    def _retriever_top_n(self) -> int:
        """How many nodes the retriever is asked for."""

    @abstractmethod
    def _own(self, query_bundle: QueryBundle, found: Sequence[str]) -> OwnList | None:
        """The list of this retriever; None where it has nothing to say.

        Args:
            query_bundle: the question.
            found: node ids that the other retriever found, best first.
        """

    def _child(self) -> BaseRetriever:
        if not isinstance(self._retriever, TracedRetriever):
            return self._retriever
        top_n, filters = max(self._retriever_top_n, self.similarity_top_k), both(self._retriever.filters, self.filters)
        return self._retriever.with_top_k(top_n).with_filters(filters)

    def _ask(self, query_bundle: QueryBundle) -> list[str]:
        """The node ids that the retriever finds, best first, each once."""
        child = self._child()
        if isinstance(child, TracedRetriever):
            return _each_once(child.retrieve_ids(query_bundle))
        return self._matching(child.retrieve(query_bundle))

    async def _aask(self, query_bundle: QueryBundle) -> list[str]:
        child = self._child()
        if isinstance(child, TracedRetriever):
            return _each_once(await child.aretrieve_ids(query_bundle))
        blocks = never_awaits(type(child)._aretrieve)  # noqa: SLF001
        return self._matching(await (in_thread(child.retrieve, query_bundle) if blocks else child.aretrieve(query_bundle)))

    def _matching(self, hits: Sequence[NodeWithScore]) -> list[str]:
        """Of the nodes of somebody else's retriever, which knows nothing of our filters, those that match."""
        return list(dict.fromkeys(hit.node.node_id for hit in hits if metadata_matches(filterable_metadata(hit.node), self.filters)))

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [] if is_empty(query_bundle) else self._merged(query_bundle, self._ask(query_bundle))

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [] if is_empty(query_bundle) else await in_thread(self._merged, query_bundle, await self._aask(query_bundle))

    def _merged(self, query_bundle: QueryBundle, given: Sequence[str]) -> list[NodeWithScore]:
        """The final list, from what the retriever found."""
        own = self._own(query_bundle, given)
        nodes = self._first_nodes(self._order(own, given), given)
        hits = [NodeWithScore(node=node, score=1.0 / rank) for rank, node in enumerate(nodes, start=1)]
        self._explain(own, hits, given)
        return hits

    def _order(self, own: OwnList | None, given: Sequence[str]) -> list[str]:
        best = [] if own is None else [node_id for node_id, _ in own.best(self.similarity_top_k)]
        return concatenate_guarded(given, best, self._options.guard) if best else list(given)

    def _first_nodes(self, order: Sequence[str], given: Sequence[str]) -> list[BaseNode]:
        """The first nodes that are there: one that has been deleted since, or that the graph knows and nobody holds, leaves its place to the next.

        So does one of the own list whose metadata do not match any more: the graph was asked when it was made.
        """
        nodes: list[BaseNode] = []
        asked = set(given)
        place = 0
        while place < len(order) and len(nodes) < self.similarity_top_k:
            wanted = order[place : place + self.similarity_top_k - len(nodes)]
            found = self._nodes.get_nodes(wanted)
            nodes += [node for node in found if node.node_id in asked or metadata_matches(filterable_metadata(node), self.filters)]
            place += len(wanted)
        return nodes

    def rankings(self, query: str, settings: Sequence[Mapping[str, Any]]) -> list[list[frozenset[str]]]:
        """What is found under several settings, the other retriever being asked once.

        Args:
            query: the question.
            settings: values for `with_parameters`.

        Returns:
            For each setting the ranking, best first; of each node its id and that of its document.

        Raises:
            ConfigurationError: a setting cannot work.
        """
        variants, bundle = [self.with_parameters(**setting) for setting in settings], QueryBundle(query)
        if is_empty(bundle):
            return [[] for _ in variants]
        widest = max(variants, key=lambda variant: variant._retriever_top_n, default=self)  # noqa: SLF001 - of the same class
        given = widest._ask(bundle)  # noqa: SLF001
        orders = [variant._order(variant._own(own_bundle(bundle), given), given)[: self.similarity_top_k] for variant in variants]  # noqa: SLF001
        ids = list(dict.fromkeys(node_id for order in orders for node_id in order))
        names = {node.node_id: frozenset({node.node_id, node.ref_doc_id or node.node_id}) for node in self._nodes.get_nodes(ids)}
        return [[names[node_id] for node_id in order if node_id in names] for order in orders]

    def _explain(self, own: OwnList | None, hits: Sequence[NodeWithScore], given: Sequence[str]) -> None:
        trace = current_trace()
        if trace is None:
            return
        name = self._retriever.stage if isinstance(self._retriever, TracedRetriever) else type(self._retriever).__name__
        ranks = {node_id: rank for rank, node_id in enumerate(given, start=1)}
        for rank, hit in enumerate(hits, start=1):
            why, details = ("", {}) if own is None else own.story(hit.node_id)
            beside = f"{name} #{ranks[hit.node_id]}" if hit.node_id in ranks else ""
            told = f"{why.removesuffix('.')}; {beside}" if why and beside else why or beside
            trace.add(Evidence(hit.node_id, self.stage, rank, hit.score, told, details))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._retriever!r}, similarity_top_k={self.similarity_top_k})"


def _each_once(found: ScoredIds) -> list[str]:
    return list(dict.fromkeys(node_id for node_id, _ in found))
