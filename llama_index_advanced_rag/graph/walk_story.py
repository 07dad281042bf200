"""Why a walk reached a chunk: the path through entities, facts and chunks, for programs and as a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.graph_walk import GraphWalk, Mask, Reached
from llama_index_advanced_rag.graph.node_names import is_opaque
from llama_index_advanced_rag.graph.records import Relation
from llama_index_advanced_rag.graph.verbalize import Step, naming_clause, path_sentence
from llama_index_advanced_rag.ranking.walk_paths import strongest_chain


@dataclass(frozen=True, slots=True)
class WalkPath:
    """The strongest path to a chunk.

    Attributes:
        entities: names of the entities on it, from the first to the one that the chunk names; empty where another retriever found the chunk.
        chunks: node ids of the chunks on it, the chunk last.
        steps: the same as steps from entity to entity.
        origin: title of the chunk that it begins with, found by another retriever, "" where that has none; None where it begins with an entity of the
            question.
    """

    entities: tuple[str, ...]
    chunks: tuple[str, ...]
    steps: tuple[Step, ...]
    origin: str | None = None

    def told(self, language: str = "en") -> str:
        """The path as a sentence: its facts, else what names two entities together; the only entity where there are no steps.

        Example:
            >>> WalkPath(("Claude",), ("c1",), ()).told(), WalkPath(("Claude",), ("c0", "c1"), (), "Models").told("fr")
            ('names Claude', 'nomme Claude, comme « Models »')
        """
        if self.steps:
            return path_sentence(self.steps, language=language)
        return naming_clause(self.entities[-1], self.origin or "", language=language) if self.entities else ""


def walk_path(walk: GraphWalk, reached: Reached, chunk: int, *, damping: float) -> WalkPath:
    """The path by which most of what stands at a chunk came there."""
    graph = walk.graph
    chain = strongest_chain(walk.walk, reached.values, reached.nodes, reached.amounts, chunk, damping=damping)
    entities = [node - graph.n_chunks for node in chain if node >= graph.n_chunks]
    steps: list[Step] = []
    last: int | None = None
    between: int | None = None
    for node in chain:
        if node < graph.n_chunks:
            between = node
            continue
        entity = node - graph.n_chunks
        if last is not None:
            fact = fact_between(graph, last, entity, allowed=walk.allowed)
            steps.append(Step(graph.names[last], graph.names[entity], fact, None if between is None else chunk_title(graph, between)))
        last, between = entity, None
    if last is not None:
        steps += _told_by(graph, chunk, last, entities)
    chunks = tuple(graph.chunk_ids[node] for node in chain if node < graph.n_chunks)
    origin = chunk_title(graph, chain[0]) if len(chain) > 1 and chain[0] < graph.n_chunks else None
    return WalkPath(tuple(graph.names[entity] for entity in entities), chunks, tuple(steps), origin)


def _told_by(graph: EntityGraph, chunk: int, entity: int, before: Sequence[int]) -> list[Step]:
    """What a chunk itself says of the entity by which it was reached: the first fact that leads on."""
    facts = graph.facts
    for place in np.flatnonzero((facts.chunks == chunk) & ((facts.subjects == entity) | (facts.objects == entity))).tolist():
        ends = int(facts.subjects[place]), int(facts.objects[place])
        other = ends[1] if ends[0] == entity else ends[0]
        if other not in before:
            return [Step(graph.names[entity], graph.names[other], facts.relations[place])]
    return []


def fact_between(graph: EntityGraph, one: int, other: int, *, allowed: Mask | None = None) -> Relation | None:
    """A fact that relates two entities, in either direction; of several the first. What is said only where it is not `allowed` is not told."""
    facts = graph.facts
    related = ((facts.subjects == one) & (facts.objects == other)) | ((facts.subjects == other) & (facts.objects == one))
    found = np.flatnonzero(related if allowed is None else related & allowed[facts.chunks])
    return facts.relations[int(found[0])] if len(found) else None


def chunk_title(graph: EntityGraph, chunk: int) -> str:
    """What the document of a chunk is called; its node id where it has no name, and "" where that is a made-up one, which tells nobody anything."""
    title = int(graph.titles[chunk])
    if title >= 0:
        return graph.names[title]
    return "" if is_opaque(graph.chunk_ids[chunk]) else graph.chunk_ids[chunk]
