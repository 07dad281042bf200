"""A row space in memory, and retrievers over it beside the same retrievers over nodes."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from llama_index.core.schema import BaseNode, MetadataMode, TextNode

from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.stores.filters.filter_columns import FilterColumns
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.node_source import DictNodeSource, own_copy, sort_key
from llama_index_advanced_rag.stores.postings.postings_segment import build_segment
from llama_index_advanced_rag.stores.postings.postings_view import PostingsView
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.stores.vectors.vector_matrix import MatrixView, VectorMetric
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.text.analyzer import TextAnalyzer


class Names:
    """Implements `RowNames`; deleted rows have no id."""

    def __init__(self, space: "MemoryRows") -> None:
        self._space, self._nodes = space, space.all_nodes

    def node_ids(self, positions: Any) -> list[str | None]:
        return [None if position in self._space.gone else self._nodes[position].node_id for position in positions.tolist()]

    def in_order(self, positions: Any, limit: int) -> Any:
        return np.array(sorted(positions.tolist(), key=lambda position: sort_key(self._nodes[position]))[:limit], dtype=np.intp)

    def positions_of(self, node_ids: Sequence[str]) -> Any:
        return np.array([position for position, node in enumerate(self._nodes) if node.node_id in node_ids], dtype=np.intp)

    def positions_of_documents(self, ref_doc_ids: Sequence[str]) -> Any:
        return np.array([position for position, node in enumerate(self._nodes) if node.ref_doc_id in ref_doc_ids], dtype=np.intp)

    def metadata(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        return ((position, filterable_metadata(self._nodes[position])) for position in range(start, stop))


class RowPostings(PostingsStore):
    """The postings of a `MemoryRows`."""

    def __init__(self, row_space: "MemoryRows") -> None:
        super().__init__(row_space.analyzer)
        self.row_space = row_space

    def _view(self) -> Any:
        return self.row_space._state.postings, self.row_space.names


class MemoryRows:
    """Implements `RowSpace`: rows that are deleted at once in the store of the nodes, and at the next refresh in the state.

    Attributes:
        gone: positions whose node is deleted.
        before_reading: called before nodes are read, to delete in the middle of a search.
    """

    def __init__(self, nodes: Sequence[BaseNode], deleted: Sequence[int] = ()) -> None:
        self.analyzer, self.model = TextAnalyzer("en"), DeterministicEmbedding()
        self.all_nodes = list(nodes)
        self.gone: set[int] = set(deleted)
        self.refreshed = self.searched = self.read = 0
        self.before_reading: list[Any] = []
        self.names = Names(self)
        texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in self.all_nodes]
        self._counts = [PostingsStore(self.analyzer).term_counts(text) for text in texts]
        self._vectors = np.array([self.model.get_text_embedding(text) for text in texts], dtype=np.float32).reshape(len(texts), self.model.dimensions)
        self._columns = FilterColumns(self.names.metadata)
        self.model.texts.clear()
        self._make()

    def _make(self) -> None:
        alive = np.array([position not in self.gone for position in range(len(self.all_nodes))], dtype=bool)
        lengths = np.array([sum(counts.values()) for counts in self._counts], dtype=np.uint32)
        half = len(self._counts) // 2
        segments = tuple(build_segment(first, part) for first, part in ((0, self._counts[:half]), (half, self._counts[half:])) if part)
        postings = PostingsView(segments, lengths, alive, int(alive.sum()), int(lengths[alive].sum()))
        matrix = MatrixView(VectorMetric.COSINE, self._vectors, alive) if len(self._vectors) else None
        self._state = RowState(0, np.arange(len(alive)), alive, self.names, self._columns, postings, lambda: matrix)

    def state(self) -> RowState:
        self.searched += 1
        return self._state

    def refresh(self) -> bool:
        self.refreshed += 1
        self._make()
        return True

    def frozen(self) -> AbstractContextManager[object]:
        self.refresh()
        self.before_reading.clear()
        return nullcontext()

    def nodes_at(self, state: RowState, positions: Any) -> list[BaseNode | None]:
        self.read += len(positions)
        if self.before_reading:
            self.before_reading.pop()()
        return [None if position in self.gone else own_copy(self.all_nodes[position]) for position in positions.tolist()]

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        return DictNodeSource(self.living()).get_nodes(node_ids)

    def living(self) -> list[BaseNode]:
        return [node for position, node in enumerate(self.all_nodes) if position not in self.gone]

    def lexical(self, **options: Any) -> LexicalRetriever:
        return LexicalRetriever(RowPostings(self), self, **options)

    def dense(self, model: Any = None, **options: Any) -> DenseRetriever:
        store: Any = SimpleNamespace(row_space=self, metric=VectorMetric.COSINE)
        return DenseRetriever(store, model or self.model, nodes=self, **options)

    def hybrid(self, **options: Any) -> HybridRetriever:
        return HybridRetriever({"dense": self.dense(), "lexical": self.lexical()}, **options)

    def node_lexical(self, **options: Any) -> LexicalRetriever:
        return LexicalRetriever.from_defaults(nodes=self.living(), analyzer=self.analyzer, **options)

    def node_dense(self, **options: Any) -> DenseRetriever:
        store = FlatVectorStore(keep_nodes=False)
        store.add([node.model_copy(update={"embedding": self.model.get_text_embedding(node.get_content(MetadataMode.EMBED))}) for node in self.living()])
        return DenseRetriever(store, self.model, nodes=DictNodeSource(self.living()), **options)

    def node_hybrid(self, **options: Any) -> HybridRetriever:
        return HybridRetriever({"dense": self.node_dense(), "lexical": self.node_lexical()}, **options)


def text_nodes(texts: Sequence[str], *, per_document: int = 2) -> list[TextNode]:
    """Nodes n0, n1, ... of documents doc0, doc1, ..., with a column "even"."""
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo

    return [
        TextNode(
            id_=f"n{number}",
            text=text,
            metadata={"even": "yes" if number % 2 == 0 else "no", "number": number},
            excluded_embed_metadata_keys=["even", "number"],
            start_char_idx=100 * (number % per_document),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc{number // per_document}")},
        )
        for number, text in enumerate(texts)
    ]


@pytest.fixture
def make_rows() -> Any:
    """Makes a `MemoryRows` of texts."""
    return lambda texts, **options: MemoryRows(text_nodes(texts), **options)
