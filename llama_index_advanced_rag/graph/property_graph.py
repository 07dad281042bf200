"""The entity graph of a property graph store of LlamaIndex."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from llama_index.core.graph_stores.types import (
    KG_SOURCE_REL,
    TRIPLET_SOURCE_KEY,
    VECTOR_SOURCE_KEY,
    ChunkNode,
    LabelledNode,
    PropertyGraphStore,
)
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.entity_graph import STORE_FACT, EntityGraph
from llama_index_advanced_rag.graph.name_fold import ChunkText
from llama_index_advanced_rag.graph.node_names import names_of
from llama_index_advanced_rag.graph.properties import clean_name
from llama_index_advanced_rag.graph.records import NAME, ExtractionRecord, Mention, PropertyValue, Relation
from llama_index_advanced_rag.graph.store_rows import StoreRelation, StoreRows, read_store
from llama_index_advanced_rag.text.gazetteer import Gazetteer
from llama_index_advanced_rag.text.name_words import name_key, name_words
from llama_index_advanced_rag.trace import report

_AMONG_CHUNKS = ("PARENT", "CHILD", "PREVIOUS", "NEXT")
_MENTIONS = "MENTIONS"
_BARE = ("__Node__", "Chunk")
_TO_DOCUMENTS = (*_AMONG_CHUNKS, KG_SOURCE_REL)
_INTERNAL = frozenset({TRIPLET_SOURCE_KEY, VECTOR_SOURCE_KEY, "doc_id", "document_id", "ref_doc_id", "id"})
_NO_DOCUMENT = "None"
Pairs = dict[str, dict[str, None]]


def graph_of_store(store: PropertyGraphStore, *, titles: Mapping[str, str] | None = None, texts: Mapping[str, str] | None = None) -> EntityGraph:
    """The graph of what a store holds now; later changes are not seen. 0 LLM calls.

    A chunk names an entity where a relation joins the two, whatever its label, where the entity or a fact of it has the id of the chunk as
    `triplet_source_id`, and where the name is found in the text of the chunk. A fact belongs to the chunks that it names as its source; if it names
    none, to the first chunk that names both its ends; if there is none, to a chunk of its own without text, whose id begins with `STORE_FACT`.
    Relations between chunks and documents are no facts. Properties of facts are kept, without the ids that LlamaIndex keeps there and without the
    metadata of the chunk, which its extractors copy into every fact.

    Args:
        store: any store of LlamaIndex, in memory or on a server; one that a property graph index has filled, or another.
        titles: titles of chunks by id, in place of those in their metadata.
        texts: texts of chunks by id, for chunks whose text the store does not keep.

    Raises:
        ConfigurationError: it is no property graph store.

    Example:
        >>> from llama_index.core.graph_stores import ChunkNode, EntityNode, SimplePropertyGraphStore
        >>> from llama_index.core.graph_stores.types import Relation as StoredRelation
        >>> store = SimplePropertyGraphStore()
        >>> store.upsert_nodes([ChunkNode(id_="c1", text="Claude is made by Anthropic."), EntityNode(name="Claude"), EntityNode(name="Anthropic")])
        >>> store.upsert_relations([StoredRelation(label="MADE_BY", source_id="Claude", target_id="Anthropic", properties={"triplet_source_id": "c1"})])
        >>> graph_of_store(store)
        EntityGraph(1 chunks, 2 entities, 2 mentions, 1 facts)
    """
    if not isinstance(cast("object", store), PropertyGraphStore):
        raise ConfigurationError(f"The store is {store!r:.200}. It must be a PropertyGraphStore. Pass index.property_graph_store, for example.")
    rows = read_store(store)
    links = _Links.of(rows)
    chunks = _chunks(rows, links.chunks, texts or {})
    said = _Said.of(rows, links, chunks)
    _find_unrelated(rows, links, chunks, said)
    return EntityGraph.from_records({chunk: ChunkText(text, said.record(chunk, _names(chunk, rows, titles or {}))) for chunk, text in chunks.items()})


class _Links(NamedTuple):
    """What the nodes and relations of a store are to each other.

    Attributes:
        chunks: ids of all chunks, those that are only named as a source included.
        named: the chunks that name an entity, by id of the entity.
        facts: relations between entities.
        documents: ids of nodes that are neither chunk nor entity.
    """

    chunks: set[str]
    named: Pairs
    facts: list[StoreRelation]
    documents: set[str]

    @classmethod
    def of(cls, rows: StoreRows) -> "_Links":
        holders: Iterable[Mapping[str, Any]] = [*(node.properties for node in rows.nodes.values()), *(row.properties for row in rows.relations)]
        chunks = {source for properties in holders for source in _sources(properties)}
        chunks |= {node_id for node_id, node in rows.nodes.items() if isinstance(node, ChunkNode)}
        chunks |= {row.source for row in rows.relations if row.label == _MENTIONS and _is_bare(rows.nodes.get(row.source))}
        links = cls(chunks, defaultdict(dict), [], set())
        for node_id, node in rows.nodes.items():
            if node_id not in chunks:
                links.named[node_id].update(dict.fromkeys(_sources(node.properties)))
        for row in rows.relations:
            links._add(row)
        return links

    def _add(self, row: StoreRelation) -> None:
        is_chunk = row.source in self.chunks, row.target in self.chunks
        if is_chunk == (False, False):
            self.facts.append(row)
        elif is_chunk == (True, False) and row.label in _TO_DOCUMENTS:
            self.documents.add(row.target)
        elif is_chunk == (False, True) and row.label in _AMONG_CHUNKS:
            self.documents.add(row.source)
        elif is_chunk != (True, True):
            chunk, entity = (row.source, row.target) if is_chunk[0] else (row.target, row.source)
            self.named[entity][chunk] = None


class _Said(NamedTuple):
    """Names and facts by the id of the chunk that says them."""

    names: Pairs
    facts: dict[str, list[Relation]]

    @classmethod
    def of(cls, rows: StoreRows, links: _Links, chunks: dict[str, str]) -> "_Said":
        """What is said; a fact without a source adds a chunk of its own."""
        said = cls(defaultdict(dict), defaultdict(list))
        for entity, sources in links.named.items():
            for chunk in sources:
                said.names[chunk][_name(rows.nodes.get(entity), entity)] = None
        order = {chunk: place for place, chunk in enumerate(chunks)}
        for row in links.facts:
            subject, target = (_name(rows.nodes.get(end), end) for end in (row.source, row.target))
            common = links.named.get(row.source, {}).keys() & links.named.get(row.target, {}).keys()
            sources = _sources(row.properties) or ([min(common, key=order.__getitem__)] if common else [])
            for chunk in sources or [STORE_FACT + " | ".join(clean_name(part) for part in (subject, row.label, target))]:
                chunks.setdefault(chunk, "")
                said.facts[chunk].append(Relation(subject, row.label, target, _told_properties(row.properties, rows.nodes.get(chunk))))
        return said

    def record(self, chunk: str, names: tuple[str, ...]) -> ExtractionRecord:
        mentions = tuple(Mention(name, NAME, -1, -1) for name in sorted(self.names.get(chunk, ())))
        return ExtractionRecord(mentions, tuple(self.facts.get(chunk, ())), names)


def _is_bare(node: LabelledNode | None) -> bool:
    """Whether Neo4j made a node only because a relation leads to it: it has no name, though `get` gives it as an entity."""
    return node is not None and node.label in _BARE and "name" not in node.properties


def _sources(properties: Mapping[str, Any]) -> list[str]:
    """Ids of the chunks that a node or relation comes from."""
    given = properties.get(TRIPLET_SOURCE_KEY)
    listed = cast("Iterable[object]", given) if isinstance(given, (list, tuple, set)) else [given]
    return sorted({source for source in listed if isinstance(source, str) and source})


def _name(node: LabelledNode | None, node_id: str) -> str:
    """The name of an entity: Neo4j gives its id for it, and the name as a property."""
    written = node.properties.get("name") if node is not None else None
    return written if isinstance(written, str) and name_key(written) else str(getattr(node, "name", None) or node_id)


def _chunks(rows: StoreRows, chunk_ids: Iterable[str], texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of the chunks, in the order of their documents."""
    found = {chunk: str(getattr(rows.nodes.get(chunk), "text", "")) for chunk in {*chunk_ids, *texts}}
    ordered = sorted(found, key=lambda chunk: _place(rows.nodes.get(chunk), chunk))
    return {chunk: texts.get(chunk, found[chunk]) for chunk in ordered}


def _place(node: LabelledNode | None, node_id: str) -> tuple[str, int, str]:
    properties = {} if node is None else node.properties
    start = 0
    if isinstance(content := properties.get("_node_content"), str):
        try:
            start = int(json.loads(content).get("start_char_idx") or 0)
        except (ValueError, AttributeError, TypeError):
            report("info", f"The offset of chunk {node_id!r} cannot be read from its properties: it is taken to begin its document.")
    return _document(properties), start, node_id


def _document(properties: Mapping[str, Any]) -> str:
    document = properties.get("ref_doc_id")
    return document if isinstance(document, str) and document != _NO_DOCUMENT else ""


def _names(chunk: str, rows: StoreRows, titles: Mapping[str, str]) -> tuple[str, ...]:
    if chunk in titles:
        return (titles[chunk],)
    node = rows.nodes.get(chunk)
    if not isinstance(node, ChunkNode):
        return ()
    document = _document(node.properties)
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)} if document else {}
    return names_of(TextNode(metadata=dict(node.properties), relationships=source))  # type: ignore[arg-type]


def _told_properties(properties: Mapping[str, Any], chunk: LabelledNode | None) -> dict[str, PropertyValue]:
    """What is said of a fact, without what is said of its chunk."""
    of_chunk: Mapping[str, Any] = {} if chunk is None else chunk.properties
    own = ((str(key), value) for key, value in properties.items() if key not in _INTERNAL and not str(key).startswith("_"))
    return {key: _value(value) for key, value in own if value not in (None, "") and (key not in of_chunk or of_chunk[key] != value)}


def _value(value: object) -> PropertyValue:
    if isinstance(value, (str, int, float, bool)):
        return value
    return ", ".join(str(item) for item in cast("Iterable[object]", value)) if isinstance(value, (list, tuple)) else str(value)


def _find_unrelated(rows: StoreRows, links: _Links, chunks: Mapping[str, str], said: _Said) -> None:
    """Entities of which nothing is known but their name belong to the chunks that write it; those that none writes lead nowhere."""
    known = {end for row in links.facts for end in (row.source, row.target)} | {entity for entity, sources in links.named.items() if sources}
    known |= links.chunks | links.documents
    names = (_name(node, node_id) for node_id, node in rows.nodes.items() if node_id not in known)
    alone = {key: name for name in sorted(names, reverse=True) if (key := name_key(name))}
    gazetteer = Gazetteer(alone)
    written = [(chunk, found.key) for chunk, text in chunks.items() for found in gazetteer.find(name_words(text))] if alone else []
    for chunk, key in written:
        said.names[chunk][alone[key]] = None
    if left := alone.keys() - {key for _, key in written}:
        report("info", f"{len(left)} entities of the store are left out, as {alone[min(left)]!r}: they have no relation, and no chunk names them.")
