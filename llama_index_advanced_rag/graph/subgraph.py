"""What the graph knows around some entities and between them, small enough to be read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import NamedTuple, TypeVar

import numpy as np

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.connections import Connections
from llama_index_advanced_rag.graph.entity_graph import STORE_FACT, EntityGraph
from llama_index_advanced_rag.graph.graph_walk import Mask
from llama_index_advanced_rag.graph.records import Relation
from llama_index_advanced_rag.graph.verbalize import Step, fact_sentence, path_sentence, subgraph_text
from llama_index_advanced_rag.graph.walk_story import chunk_title
from llama_index_advanced_rag.ranking.connecting_paths import connecting_paths, neighbourhood
from llama_index_advanced_rag.usage import count_tokens as count_global_tokens

MAX_HOPS = 3
MAX_FACTS = 40
_MOST_SEEDS = 16
_MOST_PATHS = 10
_MOST_AROUND = 500
_MAX_DEGREE = 200
_MAX_EDGES = 50_000

T = TypeVar("T")
Relevance = Callable[[Sequence[Relation]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class SubGraph:
    """A part of a graph.

    Attributes:
        entities: names, those that were asked for first, then the nearest.
        facts: most important first, each once.
        paths: how two of the entities that were asked for are connected, the shortest first.
        fact_chunks: node ids of the chunks that say each fact.
        path_chunks: node ids of the chunks that each path rests on.
    """

    entities: tuple[str, ...] = ()
    facts: tuple[Relation, ...] = ()
    paths: tuple[tuple[Step, ...], ...] = ()
    fact_chunks: tuple[tuple[str, ...], ...] = ()
    path_chunks: tuple[tuple[str, ...], ...] = ()

    def text(self, language: str = "en", max_tokens: int = 500, *, count_tokens: Callable[[str], int] = count_global_tokens) -> str:
        """The paths and facts as sentences, a line for each, as far as the budget goes; "" where there is nothing to say. See `subgraph_text`."""
        return subgraph_text(self.facts, self.paths, language=language, max_tokens=max_tokens, count_tokens=count_tokens)

    def chunks_behind(self, text: str, language: str = "en") -> list[str]:
        """Node ids of the chunks that say what stands in a text made by `text` in that language, in its order, each once."""
        lines = set(text.splitlines())
        told = [(path_sentence(path, language=language), chunks) for path, chunks in zip(self.paths, self.path_chunks, strict=True)]
        told += [(fact_sentence(fact, language=language), chunks) for fact, chunks in zip(self.facts, self.fact_chunks, strict=True)]
        return _distinct(chain.from_iterable(chunks for sentence, chunks in told if f"- {sentence}" in lines))


def subgraph(
    graph: EntityGraph | Connections,
    seeds: Sequence[int],
    *,
    max_hops: int = MAX_HOPS,
    max_facts: int = MAX_FACTS,
    allowed: Mask | None = None,
    relevance: Relevance | None = None,
) -> SubGraph:
    """The facts around some entities, and the shortest ways between each two of them.

    A way goes over facts and aliases; only where none is short enough, over chunks that name two entities together too. One that leads through a third
    of the entities is left out: its parts are told. Entities with more than 200 connections are not passed through, only begun or ended at.

    Args:
        graph: an entity graph, or one made ready by `Connections.of`, which is worth it for more than one question.
        seeds: entities, most important first; the first 16 count.
        max_hops: most steps from entity to entity, of a way and of the way to a fact; 1 to 3.
        max_facts: most facts, at least 0.
        allowed: (n_chunks,) the chunks whose names and facts count; None = all. Not with `Connections`, which have their own.
        relevance: scores facts, higher is better; it orders those that are equally near. None = the more telling ones first.

    Raises:
        ConfigurationError: a number is out of range, or a seed is no entity of the graph.

    Example:
        >>> graph = EntityGraph.from_triples({"c1": [("Anthropic", "created", "Claude")], "c2": [("Claude", "uses", "Transformer")]})
        >>> found = subgraph(graph, graph.link("Anthropic and Transformer"))
        >>> found.entities
        ('Anthropic', 'Transformer', 'Claude')
        >>> print(found.text())
        How they are connected:
        - Anthropic created Claude; Claude uses Transformer.

    Source: sub-graph context of G-Retriever (He et al. 2024, arXiv:2402.07630), with shortest paths between the seeds in place of a Steiner tree.
    """
    if whole_number("max_hops", max_hops) > MAX_HOPS:
        raise ConfigurationError(f"max_hops is {max_hops!r}. It must be from 1 to {MAX_HOPS}: over more steps everything is connected with everything.")
    whole_number("max_facts", max_facts, least=0)
    ready = graph if isinstance(graph, Connections) else Connections.of(graph, allowed=allowed)
    if isinstance(graph, Connections) and allowed is not None:
        raise ConfigurationError("allowed was given with Connections. It must be given to Connections.of, where the graph is made ready.")
    chosen = list(dict.fromkeys(int(seed) for seed in seeds))[:_MOST_SEEDS]
    around = neighbourhood(ready.related, chosen, hops=max_hops, max_nodes=_MOST_AROUND, max_degree=_MAX_DEGREE)
    hops = dict(zip(around.nodes.tolist(), around.hops.tolist(), strict=True))
    ways = _ways(ready, chosen, max_hops)
    facts = _facts_around(ready, hops, relevance, max_facts)
    entities = _distinct([*chosen, *chain.from_iterable(way.entities for way in ways), *hops])
    told = [_told(ready, way) for way in ways]
    return SubGraph(
        tuple(ready.graph.names[entity] for entity in entities),
        tuple(fact.relation for fact in facts),
        tuple(steps for steps, _ in told),
        tuple(_ids(ready.graph, fact.chunks) for fact in facts),
        tuple(chunks for _, chunks in told),
    )


class _Fact(NamedTuple):
    """A fact, how many steps its ends are away from the seeds together, and the chunks that say it."""

    relation: Relation
    distance: int
    chunks: list[int]


class _Way(NamedTuple):
    """Entities from one seed to another, and for each step the chunk that names both, where there is one."""

    entities: tuple[int, ...]
    chunks: tuple[int | None, ...]

    @property
    def ends(self) -> frozenset[int]:
        """The two seeds."""
        return frozenset((self.entities[0], self.entities[-1]))


def _ways(ready: Connections, seeds: Sequence[int], max_hops: int) -> list[_Way]:
    """The best way between each two seeds, the shortest first, those over facts before others."""
    pairs = {frozenset(pair) for pair in combinations(seeds, 2)}
    if not pairs:
        return []
    found = connecting_paths(ready.related, seeds, max_hops=max_hops, max_paths=len(pairs), max_degree=_MAX_DEGREE)
    ways = [_Way(path.nodes, (None,) * path.hops) for path in found]
    left = pairs - {way.ends for way in ways}
    apart = [seed for seed in seeds if any(seed in pair for pair in left)]
    if apart:
        met = connecting_paths(ready.meetings, apart, max_hops=2 * max_hops, max_paths=len(pairs), max_degree=_MAX_DEGREE, max_edges=_MAX_EDGES)
        ways += [way for path in met if (way := _met(ready, path.nodes)).ends in left]
    return [way for way in ways if not set(seeds) & set(way.entities[1:-1])][:_MOST_PATHS]


def _met(ready: Connections, nodes: Sequence[int]) -> _Way:
    """A path through `meetings`: every other node is what two entities meet in."""
    chunks = (node - ready.graph.n_entities for node in nodes[1::2])
    return _Way(tuple(nodes[::2]), tuple(chunk if chunk < ready.graph.n_chunks else None for chunk in chunks))


def _told(ready: Connections, way: _Way) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """The steps of a way, and node ids of the chunks that it rests on."""
    graph = ready.graph
    steps: list[Step] = []
    chunks: list[int] = []
    for one, other, chunk in zip(way.entities[:-1], way.entities[1:], way.chunks, strict=True):
        known = ready.facts_between(one, other)[:1]
        fact = graph.facts.relations[known[0]] if known else None
        rests_on = [int(graph.facts.chunks[place]) for place in known] or ([] if chunk is None else [chunk])
        source = chunk_title(graph, rests_on[0]) if rests_on and fact is None else None
        steps.append(Step(graph.names[one], graph.names[other], fact, source))
        chunks += rests_on
    return tuple(steps), _ids(graph, chunks)


def _facts_around(ready: Connections, hops: Mapping[int, int], relevance: Relevance | None, max_facts: int) -> list[_Fact]:
    """The facts among these entities, the nearest first, of equally near ones the most fitting."""
    facts = _nearest_facts(ready, hops)
    fit = [0.0] * len(facts) if relevance is None or not facts else [float(score) for score in relevance([fact.relation for fact in facts])]
    order = sorted(range(len(facts)), key=lambda number: (facts[number].distance, -fit[number], number))
    return [facts[number] for number in order[:max_facts]]


def _nearest_facts(ready: Connections, hops: Mapping[int, int]) -> list[_Fact]:
    """The facts among these entities, each once: the nearest first, then those of entities with few connections, at most 500."""
    facts, degrees = ready.graph.facts, np.diff(ready.related.indptr)
    places = ready.facts_among([*hops])
    places = places[facts.subjects[places] != facts.objects[places]]
    subjects, targets = facts.subjects[places], facts.objects[places]
    distances = np.array([hops[one] + hops[other] for one, other in zip(subjects.tolist(), targets.tolist(), strict=True)], dtype=np.int64)
    order = np.lexsort((places, degrees[subjects] * degrees[targets], distances))
    said: dict[object, _Fact] = {}
    for place, distance in zip(places[order].tolist(), distances[order].tolist(), strict=True):
        key = _wording(facts.relations[place])
        if key not in said and len(said) == _MOST_AROUND:
            break
        said.setdefault(key, _Fact(facts.relations[place], distance, [])).chunks.append(int(facts.chunks[place]))
    return list(said.values())


def _wording(fact: Relation) -> tuple[object, ...]:
    """What two chunks must both say to say the same."""
    properties = tuple(sorted((name, repr(value)) for name, value in fact.properties.items()))
    return fact.subject, fact.predicate, fact.object, properties


def _ids(graph: EntityGraph, chunks: Iterable[int]) -> tuple[str, ...]:
    """Node ids, without those that only stand for a fact of a graph store."""
    return tuple(_distinct(chunk for place in chunks if not (chunk := graph.chunk_ids[place]).startswith(STORE_FACT)))


def _distinct(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
