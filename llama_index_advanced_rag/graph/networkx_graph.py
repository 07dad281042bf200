"""The entity graph as a graph of networkx."""

from typing import TYPE_CHECKING, Any

from llama_index_advanced_rag._optional import require
from llama_index_advanced_rag.graph.entity_graph import EntityGraph

if TYPE_CHECKING:
    import networkx as nx


def networkx_of(graph: EntityGraph) -> "nx.MultiGraph[Any]":
    """A copy of the graph for drawing and for algorithms of networkx; see `EntityGraph.to_networkx` for what its nodes and edges carry.

    A fact is told from its `subject` to its `object`, keys of entities, since edges have no direction. Properties of facts that are called like
    something else of the edge are in `properties` only, which has them all.

    Args:
        graph: the graph.

    Returns:
        Chunks, then entities, in the order of the graph; mentions, then facts, then aliases. A fact weighs 1.

    Raises:
        MissingExtraError: networkx is not installed.

    Example:
        >>> drawn = networkx_of(EntityGraph.from_triples({"c1": [("Anthropic", "created", "Claude")]}))
        >>> list(drawn.nodes)
        [('chunk', 'c1'), ('entity', 'anthropic'), ('entity', 'claude')]
        >>> [(edge["kind"], edge.get("predicate")) for *_, edge in drawn.edges(data=True)]
        [('mention', None), ('mention', None), ('fact', 'created')]
    """
    networkx = require("networkx", extra="graph", feature="a graph of networkx")
    made: nx.MultiGraph[Any] = networkx.MultiGraph()
    chunks = [("chunk", chunk) for chunk in graph.chunk_ids]
    entities = [("entity", key) for key in graph.keys]
    made.add_nodes_from(chunks)
    made.add_nodes_from((node, {"name": name}) for node, name in zip(entities, graph.names, strict=True))
    for chunk, entity, weight in _entries(graph.mentions):
        made.add_edge(chunks[chunk], entities[entity], kind="mention", weight=weight)
    ends = zip(graph.facts.subjects.tolist(), graph.facts.objects.tolist(), graph.facts.chunks.tolist(), graph.facts.relations, strict=True)
    for subject, target, chunk, fact in ends:
        known = {"subject": graph.keys[subject], "object": graph.keys[target], "predicate": fact.predicate, "chunk": graph.chunk_ids[chunk]}
        told = {**fact.properties, **known, "kind": "fact", "weight": 1.0, "properties": dict(fact.properties)}
        made.add_edges_from([(entities[subject], entities[target], told)])
    for one, other, weight in _entries(graph.aliases):
        if one < other:
            made.add_edge(entities[one], entities[other], kind="alias", weight=weight)
    return made


def _entries(matrix: Any) -> list[tuple[int, int, float]]:
    """Row, column and value of what is stored, row by row."""
    listed = matrix.tocoo()
    rows, columns = listed.coords
    return list(zip(rows.tolist(), columns.tolist(), listed.data.tolist(), strict=True))
