"""The entity graph: who is named where, and who is related to whom, as sparse arrays made from records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.fold_arrays import GraphFacts, Ids, fold_arrays
from llama_index_advanced_rag.graph.name_fold import ChunkText, NameFold
from llama_index_advanced_rag.graph.records import ExtractionRecord, Relation
from llama_index_advanced_rag.text.gazetteer import Gazetteer, NameFound
from llama_index_advanced_rag.text.name_words import NameWord, name_key, name_words
from llama_index_advanced_rag.trace import report

if TYPE_CHECKING:
    import networkx as nx
    from llama_index.core.graph_stores.types import PropertyGraphStore
    from scipy.sparse import csr_array

STORE_FACT = "fact of the graph store: "
"""The id of a chunk begins with it that only stands for a fact of which no passage is known."""
_PARTS = 3


@dataclass(frozen=True, eq=False)
class EntityGraph:
    """Chunks and entities, and the edges between them. Immutable; the same chunks give the same arrays, in whatever order they came.

    Attributes:
        chunk_ids: node ids of the chunks; a chunk is its place in this list.
        keys: what the entities are known by, sorted; an entity is its place in this list.
        names: how they are usually written.
        mentions: (n_chunks, n_entities) how often a chunk names an entity, the title of its document included; a name that several
            entities have is shared among them.
        own: (n_chunks, n_entities) 1 where the document of a chunk, or its heading, is called like an entity.
        titles: (n_chunks,) the first of these, as a rule the title of the document; -1 where there is none.
        facts: the relations.
        aliases: (n_entities, n_entities) symmetric, in (0, 1]: how likely two names mean the same.
        gazetteer: finds the names in a text.
        namesakes: entities that one name may mean, where it is not just the entity of that key.
    """

    chunk_ids: list[str]
    keys: list[str]
    names: list[str]
    mentions: "csr_array"
    own: "csr_array"
    titles: Ids
    facts: GraphFacts
    aliases: "csr_array"
    gazetteer: Gazetteer
    namesakes: Mapping[str, tuple[int, ...]]

    @property
    def n_chunks(self) -> int:
        """Number of chunks, those without an entity included."""
        return len(self.chunk_ids)

    @property
    def n_entities(self) -> int:
        """Number of entities."""
        return len(self.keys)

    @cached_property
    def document_frequency(self) -> Ids:
        """(n_entities,) in how many chunks each is named."""
        return np.bincount(self.mentions.indices, minlength=self.n_entities)

    @cached_property
    def chunks_of(self) -> "csr_array":
        """(n_entities, n_chunks) the mentions, by entity."""
        return self.mentions.T.tocsr()

    @cached_property
    def is_passage(self) -> NDArray[np.bool_]:
        """(n_chunks,) False where a chunk only stands for a fact of a graph store."""
        return np.array([not chunk_id.startswith(STORE_FACT) for chunk_id in self.chunk_ids], dtype=bool)

    @cached_property
    def place_of_chunk(self) -> Mapping[str, int]:
        """Where each node id stands in `chunk_ids`."""
        return {chunk_id: place for place, chunk_id in enumerate(self.chunk_ids)}

    @cached_property
    def place_of_key(self) -> Mapping[str, int]:
        """Where each key stands in `keys`."""
        return {key: place for place, key in enumerate(self.keys)}

    def entities_of(self, key: str) -> tuple[int, ...]:
        """The entities that a name may mean; none where it is not known."""
        known = self.namesakes.get(key)
        if known is not None:
            return known
        place = self.place_of_key.get(key)
        return () if place is None else (place,)

    def names_in(self, question: Sequence[NameWord]) -> list[NameFound]:
        """The known names among the words of a question, in order, without overlap.

        Where there are no capitals, as people type questions, names are found in lower case too.
        """
        any_case = not any(word.shown and not word.key[0].isdigit() for word in question[1:])
        return self.gazetteer.find(question, any_case=any_case)

    def link(self, text: str) -> list[int]:
        """The entities that a question names, in its order, each once; see `names_in`.

        Example:
            >>> graph = EntityGraph.from_triples({"c1": [("Claude", "created by", "Anthropic")]})
            >>> [graph.names[entity] for entity in graph.link("who made claude?")]
            ['Claude']
        """
        return list(dict.fromkeys(entity for name in self.names_in(name_words(text)) for entity in self.entities_of(name.key)))

    @classmethod
    def from_fold(cls, fold: NameFold, chunks: Mapping[int, str], *, aliases: Mapping[tuple[str, str], float] | None = None) -> "EntityGraph":
        """The graph of folded records.

        Args:
            fold: the records, settled.
            chunks: node id of each chunk by its number in the fold, in the order that settles ties.
            aliases: how alike two names are, by their keys; pairs with an unknown key are left out.
        """
        arrays = fold_arrays([fold.chunks[number] for number in chunks], aliases or {})
        names = [fold.spelling(key) for key in arrays.keys]
        known = fold.names.copy()  # the fold goes on changing, the graph does not
        return cls(list(chunks.values()), arrays.keys, names, arrays.mentions, arrays.own, arrays.titles, arrays.facts, arrays.aliases, known, arrays.namesakes)

    @classmethod
    def from_records(cls, chunks: Mapping[str, ChunkText], *, aliases: Mapping[tuple[str, str], float] | None = None) -> "EntityGraph":
        """The graph of chunks in memory.

        Args:
            chunks: text and record of each chunk by its node id, in the order that settles ties.
            aliases: see `from_fold`.
        """
        fold = NameFold()
        for number, said in enumerate(chunks.values()):
            fold.add(number, said)
        fold.settle(lambda _: {})
        return cls.from_fold(fold, dict(enumerate(chunks)), aliases=aliases)

    @classmethod
    def from_triples(
        cls, triples: Mapping[str, Iterable[Sequence[str]]], *, titles: Mapping[str, str] | None = None, texts: Mapping[str, str] | None = None
    ) -> "EntityGraph":
        """The graph of ready triples.

        Args:
            triples: (subject, predicate, object) that each chunk says, by its node id. One that has other than three parts, or an empty
                end, is left out and counted in one warning.
            titles: titles of chunks by node id, each an entity of its own.
            texts: texts of chunks by node id: the names of the triples are found in them too.

        Example:
            >>> graph = EntityGraph.from_triples({"c1": [("Anthropic", "created", "Claude")], "c2": [("Claude", "uses", "Transformer")]})
            >>> graph
            EntityGraph(2 chunks, 3 entities, 4 mentions, 2 facts)
        """
        triples = {chunk: [*of_chunk] for chunk, of_chunk in triples.items()}
        titles, texts = titles or {}, texts or {}
        chunks = dict.fromkeys([*triples, *titles, *texts])
        said = {
            chunk: ChunkText(texts.get(chunk, ""), ExtractionRecord((), _relations(triples.get(chunk, ())), (titles[chunk],) if chunk in titles else ()))
            for chunk in chunks
        }
        _report_unusable(triples, said)
        return cls.from_records(said)

    @classmethod
    def from_property_graph(
        cls, store: "PropertyGraphStore", *, titles: Mapping[str, str] | None = None, texts: Mapping[str, str] | None = None
    ) -> "EntityGraph":
        """The graph of what a LlamaIndex property graph store holds now; see `property_graph.graph_of_store`."""
        from llama_index_advanced_rag.graph.property_graph import graph_of_store

        return graph_of_store(store, titles=titles, texts=texts)

    def to_networkx(self) -> "nx.MultiGraph[Any]":
        """The graph for drawing and for algorithms of networkx (which must be installed).

        Nodes are `("chunk", node_id)` and `("entity", key)`, the latter with `name`; edges have `kind` ("mention", "fact", "alias") and
        `weight`, facts `predicate`, `chunk` and their properties.
        """
        from llama_index_advanced_rag.graph.networkx_graph import networkx_of

        return networkx_of(self)

    def __repr__(self) -> str:
        return f"EntityGraph({self.n_chunks} chunks, {self.n_entities} entities, {self.mentions.nnz} mentions, {len(self.facts.relations)} facts)"


def _relations(triples: Iterable[Sequence[str | None]]) -> tuple[Relation, ...]:
    read = (["" if part is None else str(part) for part in triple] for triple in triples if len(triple) == _PARTS)
    return tuple(Relation(subject, predicate, target) for subject, predicate, target in read)


def _report_unusable(triples: Mapping[str, Sequence[Sequence[str]]], said: Mapping[str, ChunkText]) -> None:
    """One warning for all triples that say nothing."""
    given = sum(map(len, triples.values()))
    used = sum(name_key(fact.subject) != "" != name_key(fact.object) for chunk in said.values() for fact in chunk.record.relations)
    if used < given:
        report("warning", f"{given - used} of {given} triples are left out: they do not have three parts, or a subject or object without a word.")
