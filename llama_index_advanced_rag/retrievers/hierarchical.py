"""Retrieval that knows where a passage stands: documents and sections choose, passages inside them answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.hierarchy.units import document_of
from llama_index_advanced_rag.ranking.coarse_to_fine import MIN_DOCUMENTS, MIN_PASSAGES, weighted_mean
from llama_index_advanced_rag.ranking.score_scale import ScoreRange, scale_lists
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer, UnitScores
from llama_index_advanced_rag.stores.node_source import sort_key

CANDIDATES = 200


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a question comes to before passages are searched."""

    scores: UnitScores
    documents: dict[str, float]
    retriever: BaseRetriever


class HierarchicalRetriever(TracedRetriever):
    def __init__(
        self,
        retriever: BaseRetriever,
        *,
        units: UnitScorer,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        document_weight: float = 1.0,
        section_weight: float = 0.0,
        min_documents: int = MIN_DOCUMENTS,
        min_passages: int = MIN_PASSAGES,
        candidates: int = CANDIDATES,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity_top_k=similarity_top_k, filters=filters, callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose
        )
        self._retriever = retriever
        self._units = units
        self._weights = np.array([1.0, document_weight, section_weight])
        self._min_documents = whole_number("min_documents", min_documents)
        self._min_passages = whole_number("min_passages", min_passages)
        self._candidates = whole_number("candidates", candidates)

    stage: ClassVar[str] = "hierarchical"

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        plan = self._plan(query_bundle.query_str)
        return self._placed(plan, plan.retriever.retrieve(query_bundle))

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        plan = await in_thread(self._plan, query_bundle.query_str)
        return await in_thread(self._placed, plan, await plan.retriever.aretrieve(query_bundle))

    def _plan(self, query: str) -> _Plan:
        scores = self._units.scores(query, filters=self._filters)
        documents = scores.choose_documents(min_documents=self._min_documents, min_passages=self._min_passages)
        retriever = self._retriever
        if isinstance(retriever, TracedRetriever):
            retriever = retriever.with_top_k(max(self._candidates, self._similarity_top_k)).with_filters(_within(self._filters, documents))
        return _Plan(scores, documents, retriever)

    def _placed(self, plan: _Plan, hits: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """The hits in a new order: by their own score, their document's and their section's."""
        if not hits:
            return []
        natural = getattr(self._retriever, "score_range", None)
        own = scale_lists([[hit.score for hit in hits]], [None], [natural if isinstance(natural, ScoreRange) else None])[0]
        sections = self._section_shares(plan, hits)
        parts = np.array([[score, plan.documents.get(document_of(hit.node), 0.0), share] for score, hit, share in zip(own, hits, sections, strict=True)])
        values = weighted_mean(parts, self._weights).tolist()
        order = sorted(range(len(hits)), key=lambda place: (-values[place], sort_key(hits[place].node)))[: self._similarity_top_k]
        return [NodeWithScore(node=hits[place].node, score=values[place]) for place in order]

    def _section_shares(self, plan: _Plan, hits: Sequence[NodeWithScore]) -> list[float]:
        table, scores = plan.scores.table, plan.scores.units
        places = [table.index_of(hit.node) for hit in hits]
        above = [[place for place in table.ancestors(index) if table.units[place].level] if index is not None else [] for index in places]
        values = [max((float(scores[place]) for place in line), default=0.0) for line in above]
        best = max(values)
        return [value / best if best > 0 else 0.0 for value in values]


def _within(filters: MetadataFilters | None, documents: dict[str, float]) -> MetadataFilters | None:
    if not documents:
        return filters
    only = MetadataFilter(key="ref_doc_id", value=list(documents), operator=FilterOperator.IN)
    return MetadataFilters(filters=[only] if filters is None else [filters, only], condition=FilterCondition.AND)
