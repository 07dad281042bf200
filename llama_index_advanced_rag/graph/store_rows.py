"""Everything that a property graph store of LlamaIndex holds, each row once, whatever kind of store it is."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

from llama_index.core.graph_stores.types import EntityNode, LabelledNode, LabelledPropertyGraph, PropertyGraphStore, Triplet

from llama_index_advanced_rag.trace import report

_ASKED_AT_ONCE = 500
_BESIDE_ENTITIES = (
    "MATCH (a)-[r]->(b) WHERE a.id IS NOT NULL AND b.id IS NOT NULL AND NOT (a:`__Entity__` AND b:`__Entity__`) "
    "RETURN DISTINCT a.id AS source, type(r) AS label, b.id AS target"
)


class StoreRelation(NamedTuple):
    """A relation of a store: ids of its ends, its label, its properties."""

    source: str
    label: str
    target: str
    properties: Mapping[str, Any]


class StoreRows(NamedTuple):
    """What a store holds: its nodes by id, and its relations, sorted, each once."""

    nodes: Mapping[str, LabelledNode]
    relations: list[StoreRelation]


def read_store(store: PropertyGraphStore) -> StoreRows:
    """All nodes and relations of a store; relations whose ends were deleted are left out.

    `get_triplets()` gives everything in some stores and nothing in others, so an empty answer is asked for again by the ids of the nodes. Stores that
    answer Cypher are asked for relations of chunks too, which their `get_triplets` leaves out.

    Args:
        store: any store; one in memory is read as it is, the others through `get`, `get_triplets` and `structured_query`.

    Example:
        >>> from llama_index.core.graph_stores import Relation, SimplePropertyGraphStore
        >>> store = SimplePropertyGraphStore()
        >>> store.upsert_nodes([EntityNode(name="Claude"), EntityNode(name="Anthropic")])
        >>> store.upsert_relations([Relation(label="CREATED_BY", source_id="Claude", target_id="Anthropic")])
        >>> read_store(store).relations
        [StoreRelation(source='Claude', label='CREATED_BY', target='Anthropic', properties={})]
    """
    graph = getattr(store, "graph", None)
    return _of_memory(graph) if isinstance(graph, LabelledPropertyGraph) else _of_answers(store)


def _of_memory(graph: LabelledPropertyGraph) -> StoreRows:
    """Its own lists: `get_triplets` takes quadratic time, and fails on a relation whose end was deleted."""
    nodes = dict(graph.nodes)
    nodes.update({node.id: node for node in graph.nodes.values()})  # a relation may name an end by its key or by its id
    known = {(_id(relation.source_id), relation.label, _id(relation.target_id)): relation for relation in graph.relations.values()}
    rows: list[StoreRelation] = []
    for source, label, target in graph.triplets:
        relation = known.get((source, label, target))
        is_held = relation is not None or f"{source}_{label}_{target}" in graph.relations  # two triplets may share a key: one has lost its properties
        if is_held and source in nodes and target in nodes:
            rows.append(StoreRelation(source, label, target, {} if relation is None else relation.properties))
    return StoreRows(nodes, _distinct(rows))


def _of_answers(store: PropertyGraphStore) -> StoreRows:
    nodes = {node.id: node for node in store.get() or ()}
    triplets = list(store.get_triplets() or ())
    if not triplets:
        ids = sorted(nodes)
        batches = (ids[start : start + _ASKED_AT_ONCE] for start in range(0, len(ids), _ASKED_AT_ONCE))
        triplets = list(chain.from_iterable(store.get_triplets(ids=batch) or () for batch in batches))
    for node in chain.from_iterable((triplet[0], triplet[2]) for triplet in triplets):
        nodes.setdefault(_node_id(node), node)
    rows = [_row(triplet) for triplet in triplets] + (_beside_entities(store, nodes) if store.supports_structured_queries else [])
    return StoreRows(nodes, _distinct(rows))


def _row(triplet: Triplet | Sequence[Any]) -> StoreRelation:
    source, relation, target = triplet
    return StoreRelation(_node_id(source), relation.label, _node_id(target), relation.properties)


def _beside_entities(store: PropertyGraphStore, nodes: Mapping[str, LabelledNode]) -> list[StoreRelation]:
    """Relations with a chunk at an end, from a store that answers Cypher."""
    try:
        answer = cast("Sequence[Mapping[str, Any]]", store.structured_query(_BESIDE_ENTITIES) or ())
        found = [StoreRelation(str(row["source"]), str(row["label"]), str(row["target"]), {}) for row in answer]
    except Exception as error:  # noqa: BLE001 - stores have errors of their own, and what they answer is half of what is known
        report(
            "warning",
            f"{type(store).__name__} did not say which chunk names which entity ({type(error).__name__}: {error}). Only `triplet_source_id` counts.",
        )
        return []
    return [row for row in found if row.source in nodes or row.target in nodes]


def _node_id(node: LabelledNode) -> str:
    """The id in the answer to `get`: Neo4j's triplets give the name in its place, and the id as a property."""
    known = node.properties.get("id")
    return known if isinstance(node, EntityNode) and isinstance(known, str) and known else node.id


def _id(name: str) -> str:
    return EntityNode(name=name).id if '"' in name else name


def _distinct(rows: Iterable[StoreRelation]) -> list[StoreRelation]:
    """Each once, in an order that does not depend on that of the store."""
    keyed = {(row.source, row.label, row.target, repr(sorted((key, repr(value)) for key, value in row.properties.items()))): row for row in rows}
    return [keyed[key] for key in sorted(keyed)]
