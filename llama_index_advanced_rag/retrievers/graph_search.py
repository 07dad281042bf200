"""One question on the entity graph: where the walk starts, what it reaches, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.graph_walk import GraphWalk, Reached, entity_weights, trust_in
from llama_index_advanced_rag.graph.second_hop import MOST_PASSAGES, near_question_words
from llama_index_advanced_rag.graph.walk_story import walk_path
from llama_index_advanced_rag.retrievers.graph_views import FactViews, GraphWalks
from llama_index_advanced_rag.retrievers.walk_options import WalkOptions
from llama_index_advanced_rag.stores.node_source import NodeSource
from llama_index_advanced_rag.text.languages import detect_language

_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Walked:
    """The outcome of one walk.

    Attributes:
        walk: the graph it went through.
        reached: what it reached.
        damping: how far it went.
        query: the question.
    """

    walk: GraphWalk
    reached: Reached
    damping: float
    query: str

    def best(self, top_k: int) -> list[tuple[str, float]]:
        """Node ids and shares of the walk's time, best first; equal ones in the order of the graph. Chunks that were not reached are left out."""
        reached = np.flatnonzero((self.reached.chunks > 0) & self.walk.graph.is_passage)
        values = np.round(self.reached.chunks[reached], _DIGITS)
        first = np.flatnonzero(values >= _least_of_best(values, top_k))
        order = first[np.argsort(-values[first], kind="stable")][:top_k]
        best = zip(reached[order].tolist(), values[order].tolist(), strict=True)
        return [(self.walk.graph.chunk_ids[place], value) for place, value in best if value > 0]

    def story(self, node_id: str) -> tuple[str, dict[str, Any]]:
        """Why the walk reached a chunk: a sentence, and the same for programs; empty for a chunk that it did not reach."""
        place = self.walk.graph.place_of_chunk.get(node_id)
        if place is None or self.reached.chunks[place] <= 0:
            return "", {}
        path = walk_path(self.walk, self.reached, place, damping=self.damping)
        facts = [[step.fact.subject, step.fact.predicate, step.fact.object] for step in path.steps if step.fact is not None]
        details = {"walk": float(self.reached.values[place]), "entities": list(path.entities), "chunks": list(path.chunks), "facts": facts}
        return path.told(self._language), details

    @cached_property
    def _language(self) -> str:
        return detect_language(self.query) or "en"


class GraphSearch:
    """Finds passages on a graph.

    Args:
        walks: the graph.
        facts: compares its facts with questions.
        nodes: where texts of passages are read, for the second hop.
    """

    def __init__(self, walks: GraphWalks, facts: FactViews, nodes: NodeSource) -> None:
        self._walks = walks
        self._facts = facts
        self._nodes = nodes

    def walk(self, query: str, found: Sequence[str], options: WalkOptions, filters: MetadataFilters | None) -> Walked | None:
        """The walk of a question; None where it names nothing that is known and no fact fits it.

        Args:
            query: the question.
            found: node ids that another retriever found, best first.
            options: the numbers.
            filters: what may be walked through.
        """
        if not query.strip():
            return None
        walk = self._walks.walk(filters)
        graph = walk.graph
        entities = [entity for entity in graph.link(query) if _is_named(walk, entity)]
        seeds = _normalized(entity_weights(graph, entities))
        for more, weight in ((self._fact_ends(walk, query, options.top_facts), options.fact_weight), (self._second_hop(walk, query, entities, options), 1.0)):
            for entity, share in more.items():
                seeds[entity] = seeds.get(entity, 0.0) + weight * share
        if not sum(seeds.values()):
            return None
        places = [place for place in map(graph.place_of_chunk.get, found[: options.prior_top_n]) if place is not None and _is_allowed(walk, place)]
        trust = trust_in(graph, [entity for entity, share in seeds.items() if share > 0], options.specific_up_to)
        reached = walk.reach(seeds, places, prior_share=options.prior_share, damping=options.damping, trust=trust)
        return Walked(walk, reached, options.damping, query)

    def _fact_ends(self, walk: GraphWalk, query: str, top_facts: int) -> dict[int, float]:
        """The ends of the facts that fit a question best, each by the fact's score / number of passages that name it; together 1."""
        graph = walk.graph
        if not top_facts or not len(graph.facts.relations):
            return {}
        vector = None if self._facts.vectors is None else self._facts.vectors.query_vector(query)
        scores = self._facts.of(graph).scores(query, vector)
        scores = scores if walk.allowed is None else np.where(walk.allowed[graph.facts.chunks], scores, 0.0)
        ends: dict[int, float] = {}
        for fact in np.argsort(-scores, kind="stable").tolist()[:top_facts]:
            for entity in (int(graph.facts.subjects[fact]), int(graph.facts.objects[fact])):
                if scores[fact] > 0 and _is_named(walk, entity):
                    ends[entity] = ends.get(entity, 0.0) + float(scores[fact]) / max(1, int(graph.document_frequency[entity]))
        return _normalized(ends)

    def _second_hop(self, walk: GraphWalk, query: str, entities: Sequence[int], options: WalkOptions) -> Mapping[int, float]:
        """Entities near the question's words in passages of its entities, by `second_hop` x score / number of passages that name them."""
        if not options.second_hop or not entities:
            return {}
        graph = walk.graph
        chunks_of: Any = walk.chunks_of
        named = [chunk for entity in entities for chunk in chunks_of.indices[chunks_of.indptr[entity] : chunks_of.indptr[entity + 1]].tolist()]
        ids = [graph.chunk_ids[chunk] for chunk in list(dict.fromkeys(named))[:MOST_PASSAGES]]
        texts = {node.node_id: node.get_content(MetadataMode.NONE) for node in self._nodes.get_nodes(ids)}
        near = near_question_words(graph, query, entities, texts, language=self._facts.analyzer.language)
        return {entity: options.second_hop * score / max(1, int(graph.document_frequency[entity])) for entity, score in near.items()}


def _least_of_best(values: NDArray[np.float64], top_k: int) -> float:
    """The value of rank `top_k`; time linear in their number."""
    return float(np.partition(values, -top_k)[-top_k]) if top_k < len(values) else 0.0


def _is_named(walk: GraphWalk, entity: int) -> bool:
    """Whether the walk can begin at an entity: a chunk that may be walked through names it, or a fact does."""
    chunks_of: Any = walk.chunks_of
    return bool(chunks_of.indptr[entity + 1] > chunks_of.indptr[entity]) or walk.walk.degrees[walk.graph.n_chunks + entity] > 0


def _is_allowed(walk: GraphWalk, chunk: int) -> bool:
    return walk.allowed is None or bool(walk.allowed[chunk])


def _normalized(weights: Mapping[int, float]) -> dict[int, float]:
    total = sum(weights.values())
    return {entity: weight / total for entity, weight in weights.items()} if total else {}
