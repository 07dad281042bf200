"""The score of a passage from where it stands: its own, its document's and its section's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.units import UnitTable, document_of
from llama_index_advanced_rag.ranking.coarse_to_fine import MIN_DOCUMENTS, MIN_PASSAGES, weighted_mean
from llama_index_advanced_rag.ranking.score_scale import ScoreRange, scale_lists
from llama_index_advanced_rag.ranking.unit_bm25 import UnitTree
from llama_index_advanced_rag.retrievers.unit_scores import UnitScores
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import sort_key
from llama_index_advanced_rag.trace import Evidence


@dataclass(frozen=True)
class Chosen:
    """The documents and sections that a question is about.

    Attributes:
        scores: of all units by their words; None = none were asked.
        summaries: scores of units by their summaries, 0 to 1, by unit id.
        min_documents: documents to look into, at least.
        min_passages: passages in them, at least.
    """

    scores: UnitScores | None = None
    summaries: Mapping[str, float] = field(default_factory=dict[str, float])
    min_documents: int = MIN_DOCUMENTS
    min_passages: int = MIN_PASSAGES

    def with_summaries(self, summaries: Mapping[str, float]) -> "Chosen":
        """The same, with what the summaries say."""
        return replace(self, summaries=summaries)

    @property
    def table(self) -> UnitTable:
        """The documents and sections."""
        return self.scores.table if self.scores is not None else UnitTable()

    @cached_property
    def documents(self) -> dict[str, float]:
        """The chosen documents, best first, with their shares of 0 to 1; empty when the question has no word of any."""
        if self.scores is None:
            return {}
        return self.scores.choose_documents(self._by_summary, min_documents=self.min_documents, min_passages=self.min_passages)

    def share_of(self, node: BaseNode, own: float) -> float:
        """The share of the document of a passage; of a document that is this passage alone, the passage's own."""
        ref_doc_id = document_of(node)
        place = self.table.place_of_document(ref_doc_id)
        if self.scores is not None and place is not None and self.scores.n_passages[place] <= 1:
            return own
        return self.documents.get(ref_doc_id, 0.0)

    def within(self, filters: MetadataFilters | None) -> MetadataFilters | None:
        """The filters, and those that let only the chosen documents through; where these are too few there is no more filter."""
        if self.scores is None or not self.scores.are_enough(self.documents, min_documents=self.min_documents, min_passages=self.min_passages):
            return filters
        only = self.scores.only(self.documents)
        return only if filters is None else MetadataFilters(filters=[filters, *only.filters] if only.condition == FilterCondition.AND else [filters, only])

    def sections(self, nodes: Sequence[BaseNode]) -> list[tuple[float, str | None]]:
        """For each passage the share of the best section it stands in, relative to the best of all, and that section's path."""
        if self.scores is None:
            return [(0.0, None)] * len(nodes)
        above = [self._sections_above(node) for node in nodes]
        values = self._section_values
        best = [max(places, key=lambda place: values[place], default=None) for places in above]
        highest = max((float(values[place]) for place in best if place is not None), default=0.0)
        if highest <= 0:
            return [(0.0, None)] * len(nodes)
        return [(0.0, None) if place is None else (float(values[place]) / highest, self.table.units[place].path) for place in best]

    def shares_at(self, tree: UnitTree, places: NDArray[np.int32], own: Sequence[float]) -> tuple[list[float], NDArray[np.float64]]:
        """For passages in these units what `share_of` and `sections` say; outside of all sections the share of the document stands for the section's."""
        roots = tree.roots[places]
        alone = [False] * len(roots) if self.scores is None else (self.scores.n_passages[roots] <= 1).tolist()
        shares = [self.documents.get(self.table.units[root].ref_doc_id, 0.0) for root in roots.tolist()]
        documents = [mine if single else share for mine, single, share in zip(own, alone, shares, strict=True)]
        inside, values = tree.parents[places] >= 0, self._best_values(tree.parents, places)
        highest = float(values[inside].max(initial=0.0))
        return documents, np.where(inside, values / highest, documents) if highest > 0 else np.array(documents)

    def _best_values(self, parents: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.float64]:
        """The best value of the sections that each of these units is or stands in; 0.0 where there is none."""
        best, places = np.zeros(len(places)), places.copy()
        inside = np.flatnonzero(parents[places] >= 0)
        while len(inside):
            best[inside] = np.maximum(best[inside], self._section_values[places[inside]])
            places[inside] = parents[places[inside]]
            inside = inside[parents[places[inside]] >= 0]
        return best

    def _sections_above(self, node: BaseNode) -> list[int]:
        index = self.table.index_of(node)
        return [] if index is None else [place for place in self.table.ancestors(index) if self.table.units[place].level]

    @cached_property
    def _by_summary(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
        """(n_units,) what the summaries say of each unit; a document is as good as the best in it."""
        if not self.summaries:
            return None
        values = np.zeros(len(self.table.units))
        for unit_id, score in self.summaries.items():
            place = self.table.place_of_unit(unit_id)
            for above in [] if place is None else self.table.ancestors(place):
                if above == place or self.table.units[above].level == 0:
                    values[above] = max(float(values[above]), score)
        return values

    @cached_property
    def _section_values(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        words = np.zeros(0) if self.scores is None else np.where(self.table.parents >= 0, self.scores.units, 0.0)
        if self._by_summary is None:
            return words
        best = float(words.max(initial=0.0))
        return (words / best if best > 0 else words) + self._by_summary


@dataclass(frozen=True, slots=True)
class Placing:
    """How much document and section count beside the passage, which counts 1."""

    document_weight: float
    section_weight: float

    @classmethod
    def checked(cls, *, document_weight: float, section_weight: float) -> "Placing":
        """The weights, if they can be used.

        Raises:
            ConfigurationError: one is negative or no number.
        """
        for name, value in (("document_weight", document_weight), ("section_weight", section_weight)):
            if isinstance(value, bool) or not 0 <= value < float("inf"):
                raise ConfigurationError(f"{name} is {value!r}. It must be a number of at least 0.")
        return cls(float(document_weight), float(section_weight))

    def as_found(self, hits: Sequence[NodeWithScore], filters: MetadataFilters | None) -> list[NodeWithScore]:
        """The hits as they are, without those that do not match (of retrievers that know no filters)."""
        return [NodeWithScore(node=hit.node, score=None if hit.score is None else float(hit.score)) for hit in _matching(hits, filters)]

    def in_place(self, chosen: Chosen, hits: Sequence[NodeWithScore], filters: MetadataFilters | None, retriever: BaseRetriever) -> list[NodeWithScore]:
        """The hits by the weighted mean of their own share, their document's and their section's, best first.

        A document that is one passage says no more than this, and a passage outside of all sections stands in its document only: then the
        smaller share stands for the missing one, so that structure is no merit by itself.
        """
        kept = _matching(hits, filters)
        own = _shares([hit.score for hit in kept], retriever)
        documents = [chosen.share_of(hit.node, share) for hit, share in zip(kept, own, strict=True)]
        found = chosen.sections([hit.node for hit in kept])
        sections = [around if path is None else share for (share, path), around in zip(found, documents, strict=True)]
        scores = self._means(own, documents, sections).tolist()
        return _ordered([NodeWithScore(node=hit.node, score=score) for hit, score in zip(kept, scores, strict=True)])

    def of_places(
        self, chosen: Chosen, tree: UnitTree, places: NDArray[np.int32], scores: Sequence[float | None], retriever: BaseRetriever
    ) -> NDArray[np.float64]:
        """(n,) the scores that `in_place` gives passages in these units, in the order in which the retriever found them."""
        own = _shares(scores, retriever)
        return self._means(own, *chosen.shares_at(tree, places, own))

    def _means(self, own: Sequence[float], documents: Sequence[float], sections: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.array([1.0, self.document_weight, self.section_weight])
        return weighted_mean(np.array([own, documents, sections]).T.reshape(-1, 3), weights)

    def beside(
        self,
        chosen: Chosen,
        hits: Sequence[NodeWithScore],
        summaries: Sequence[BaseNode],
        filters: MetadataFilters | None,
        retriever: BaseRetriever,
    ) -> list[NodeWithScore]:
        """Passages and summaries in one list, each by its own share of 0 to 1."""
        kept = _matching(hits, filters)
        passages = [NodeWithScore(node=hit.node, score=share) for hit, share in zip(kept, _shares([hit.score for hit in kept], retriever), strict=True)]
        others = [NodeWithScore(node=node, score=float(chosen.summaries[node.node_id])) for node in summaries]
        return _ordered([*passages, *_matching(others, filters)])

    def evidence(self, stage: str, chosen: Chosen, hits: Sequence[NodeWithScore]) -> list[Evidence]:
        """Why each hit stands where it stands."""
        sections = chosen.sections([hit.node for hit in hits])
        ranks = {ref_doc_id: rank for rank, ref_doc_id in enumerate(chosen.documents, start=1)}
        found: list[Evidence] = []
        for rank, (hit, (share, path)) in enumerate(zip(hits, sections, strict=True), start=1):
            document = document_of(hit.node)
            details = {"document": chosen.documents.get(document), "document_rank": ranks.get(document), "section": share, "section_path": path}
            parts = [f"document #{ranks[document]} ({chosen.documents[document]:.2f})" if document in ranks else "passage"]
            parts += [f"section {path!r} ({share:.2f})"] if path else []
            found.append(Evidence(hit.node_id, stage, rank, hit.score, ", ".join(parts), details))
        return found


def _matching(hits: Sequence[NodeWithScore], filters: MetadataFilters | None) -> list[NodeWithScore]:
    return [hit for hit in hits if metadata_matches(filterable_metadata(hit.node), filters)]


def _shares(scores: Sequence[float | None], retriever: BaseRetriever) -> list[float]:
    """The scores of hits on 0 to 1: as they are where the retriever's scores are from 0 to 1, else by min-max."""
    natural = getattr(retriever, "score_range", None)
    known = natural if isinstance(natural, ScoreRange) else None
    unit = ScoreRange(0.0, 1.0)
    return scale_lists([list(scores)], [unit if known == unit else None], [known])[0]


def _ordered(hits: list[NodeWithScore]) -> list[NodeWithScore]:
    return sorted(hits, key=lambda hit: (-(hit.score or 0.0), sort_key(hit.node)))
