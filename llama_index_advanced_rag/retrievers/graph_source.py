"""Where a retriever gets the entity graph from: a corpus, whose changes it follows, or one that is ready."""

from collections.abc import Mapping, Sequence

import numpy as np
from llama_index.core.graph_stores.types import PropertyGraphStore
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.aliases import with_aliases
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.extraction import read_records
from llama_index_advanced_rag.graph.graph_walk import Mask
from llama_index_advanced_rag.graph.name_fold import ChunkText, NameFold
from llama_index_advanced_rag.graph.records import ExtractionRecord
from llama_index_advanced_rag.graph.span_extractor import SpanExtractor
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.retrievers.graph_views import GraphSource, GraphViews
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import NodeSource
from llama_index_advanced_rag.stores.rows.row_state import RowState

_IN_ORDER = "SELECT row, node_id FROM nodes WHERE row IS NOT NULL ORDER BY coalesce(ref_doc_id, ''), coalesce(start_char, 0), node_id"
_DOCUMENTS = "SELECT node_id, ref_doc_id FROM nodes WHERE row IS NOT NULL"
_READ_AT_ONCE = 2000


class ReadyGraph:
    """A graph that does not change.

    Args:
        graph: the graph.
        nodes: the nodes of its chunks, whose metadata filters ask.
    """

    def __init__(self, graph: EntityGraph, nodes: NodeSource) -> None:
        self._graph = graph
        self.views = GraphViews(self)
        self._nodes = nodes

    def graph(self) -> EntityGraph:
        """The graph."""
        return self._graph

    def allowed(self, graph: EntityGraph, filters: MetadataFilters) -> Mask:
        """(n_chunks,) the chunks whose nodes match; reads all nodes."""
        matching = {node.node_id for node in self._nodes.get_nodes(graph.chunk_ids) if metadata_matches(filterable_metadata(node), filters)}
        return np.array([chunk in matching for chunk in graph.chunk_ids], dtype=bool)

    def documents(self, graph: EntityGraph) -> list[str]:
        """The id of the document of each chunk; reads all nodes."""
        known = {node.node_id: node.ref_doc_id for node in self._nodes.get_nodes(graph.chunk_ids)}
        return [known.get(chunk) or chunk for chunk in graph.chunk_ids]


class CorpusGraph:
    """The graph of a corpus, folded from its records at the first question, and again after a change for what has changed.

    Rows without a record (of an index built with `extractor=None`) are read by the extractor of this package. 0 LLM calls.

    Args:
        corpus: the corpus.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.views = GraphViews(self)
        self._lock = CopyableLock()
        self._fold = NameFold()
        self._state: RowState | None = None
        self._graph: EntityGraph | None = None
        self._rows: dict[int, str] = {}
        self._aliased: AliasedGraph | None = None

    def aliased(self, vectors: TextVectors | None = None) -> "AliasedGraph":
        """This graph with edges between names that may mean the same; one for all who ask with the same vectors, so that they are found once.

        Args:
            vectors: see `AliasedGraph`.
        """
        with self._lock:
            if self._aliased is None or self._aliased.vectors is not vectors:
                self._aliased = AliasedGraph(self, vectors)
            return self._aliased

    def graph(self) -> EntityGraph:
        """The graph of the newest state; what another process has changed is looked for, as somebody else's retriever beside it would not."""
        self._corpus.refresh()
        with self._lock:
            state = self._corpus.state()
            if self._graph is None or state is not self._state:
                seen = set((state.row_ids if state.alive is None else state.row_ids[state.alive]).tolist())
                rows: dict[int, str] = {row: node_id for row, node_id in self._corpus.database.query(_IN_ORDER) if row in seen}
                if self._graph is None or rows != self._rows:
                    self._update(rows)
                    self._graph, self._rows = EntityGraph.from_fold(self._fold, rows), rows
                self._state = state
            return self._graph

    def allowed(self, graph: EntityGraph, filters: MetadataFilters) -> Mask:
        """(n_chunks,) the chunks whose rows match."""
        state = self._corpus.state()
        mask = state.mask(filters)
        if mask is None:
            return np.ones(graph.n_chunks, dtype=bool)
        positions = np.flatnonzero(mask if state.alive is None else mask & state.alive)
        matching = set(state.row_ids[positions].tolist())
        row_of = {node_id: row for row, node_id in self._rows.items()}
        return np.array([row_of.get(chunk) in matching for chunk in graph.chunk_ids], dtype=bool)

    def documents(self, graph: EntityGraph) -> list[str]:
        """The id of the document of each chunk."""
        known: dict[str, str] = dict(self._corpus.database.query(_DOCUMENTS))
        return [known.get(chunk) or chunk for chunk in graph.chunk_ids]

    def _update(self, rows: Mapping[int, str]) -> None:
        """Fold what has come, unfold what has gone.

        A row never stands for another node, so searches and changes go on meanwhile: what is deleted while it is read says nothing, and is unfolded
        with the next state.
        """
        for row in [row for row in self._fold.chunks if row not in rows]:
            self._fold.remove(row)
        new = [row for row in rows if row not in self._fold.chunks]
        for start in range(0, len(new), _READ_AT_ONCE):
            batch = new[start : start + _READ_AT_ONCE]
            said = self._corpus.records.with_texts(batch)
            read = self._read_now([row for row, (_, record) in said.items() if record is None])
            for row in batch:
                text, record = said.get(row, ("", None))
                self._fold.add(row, ChunkText(text, record or read.get(row, ExtractionRecord())))
        self._fold.settle(self._corpus.texts_of_rows)

    def _read_now(self, rows: Sequence[int]) -> dict[int, ExtractionRecord]:
        """Records of rows that have none."""
        nodes = self._corpus.documents.nodes_of_rows(rows)
        return dict(zip(nodes, read_records(SpanExtractor(self._corpus.analyzer.language), list(nodes.values())), strict=True))


class AliasedGraph:
    """The graph of a source with edges between names that may mean the same; those who ask the source itself do not notice. 0 LLM calls.

    All names are embedded at the first question, where there are vectors, and the new ones after a change; then all are compared with each other again.

    Args:
        source: gives the graph.
        vectors: compares names by meaning too; None = by spelling alone, see `text.name_variants`.

    Example:
        >>> from llama_index_advanced_rag.stores.node_source import DictNodeSource
        >>> graph = EntityGraph.from_triples({"c1": [("ACME Corp", "sells", "anvils")], "c2": [("Wile", "works at", "ACME Corporation")]})
        >>> AliasedGraph(ReadyGraph(graph, DictNodeSource())).graph().aliases.nnz
        2
    """

    def __init__(self, source: GraphSource, vectors: TextVectors | None = None) -> None:
        self._source = source
        self._lock = CopyableLock()
        self._last: tuple[EntityGraph, EntityGraph] | None = None
        self.vectors = vectors
        self.views = GraphViews(self)

    def graph(self) -> EntityGraph:
        """The graph of this moment; the same object until something changes.

        Raises:
            Exception: that of the embedding model, as it was; the next question tries again.
        """
        plain = self._source.graph()
        with self._lock:
            if self._last is None or self._last[0] is not plain:
                self._last = (plain, with_aliases(plain, None if self.vectors is None else self.vectors.matrix(plain.names)))
            return self._last[1]

    def allowed(self, graph: EntityGraph, filters: MetadataFilters) -> Mask:
        """(n_chunks,) the chunks whose metadata match."""
        return self._source.allowed(graph, filters)

    def documents(self, graph: EntityGraph) -> list[str]:
        """The id of the document of each chunk."""
        return self._source.documents(graph)


def corpus_graph(corpus: Corpus) -> CorpusGraph:
    """The graph of a corpus, the same to all who ask, so that records are folded once."""
    return corpus.shared.setdefault("graph", CorpusGraph(corpus))


def graph_source_of(graph: object, nodes: NodeSource) -> GraphSource:
    """What gives the graph, whatever it was given as.

    Args:
        graph: an `EntityGraph`, a graph source, a corpus, or a LlamaIndex `PropertyGraphStore`, which is read now.
        nodes: the nodes of the chunks.

    Raises:
        ConfigurationError: something else was given.
    """
    if isinstance(graph, EntityGraph):
        return ReadyGraph(graph, nodes)
    if isinstance(graph, Corpus):
        return corpus_graph(graph)
    if isinstance(graph, PropertyGraphStore):
        from llama_index_advanced_rag.graph.property_graph import graph_of_store

        return ReadyGraph(graph_of_store(graph), nodes)
    if isinstance(graph, GraphSource):
        return graph
    raise ConfigurationError(
        f"graph is {graph!r:.200}. It must be an EntityGraph, a PropertyGraphStore or a CorpusGraph. "
        "Pass index.corpus, or make one with EntityGraph.from_triples(...), for example."
    )
