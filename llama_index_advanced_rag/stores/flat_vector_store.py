"""An exact vector store in memory: one float32 matrix, every filter before the top-k cut, nothing to install or run."""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    DEFAULT_PERSIST_DIR,
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import CopyableLock, in_thread
from llama_index_advanced_rag.errors import ConfigurationError, NodeSourceError
from llama_index_advanced_rag.stores.growing_matrix import VectorMatrix
from llama_index_advanced_rag.stores.list_names import ListNames
from llama_index_advanced_rag.stores.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import own_copy, sort_key
from llama_index_advanced_rag.stores.rows import Mask, Positions
from llama_index_advanced_rag.stores.vector_arguments import check_mode, checked_metric, checked_threshold, checked_top_k
from llama_index_advanced_rag.stores.vector_checks import checked_vectors
from llama_index_advanced_rag.stores.vector_file import VectorFile, VectorRow, persist_file, read_vector_file, write_vector_file
from llama_index_advanced_rag.stores.vector_matrix import MatrixView, VectorMetric


class _Snapshot(NamedTuple):
    view: MatrixView
    entries: list[VectorRow]  # append-only; a writer that renumbers starts another list
    row_of: dict[str, int]
    keys: list[str]

    def names(self) -> ListNames:
        return ListNames([], sort_keys=self.keys)

    def mask(self, rows: Sequence[int] | Positions | None) -> Mask | None:
        if rows is None:
            return None
        mask = np.zeros(len(self.view.vectors), dtype=bool)
        mask[np.asarray(rows, dtype=np.intp)] = True
        return mask


class FlatVectorStore(BasePydanticVectorStore):
    """Vectors in one float32 matrix, searched exactly. A drop-in for `VectorStoreIndex.from_vector_store`.

    Filters, `node_ids` and `doc_ids` restrict the candidates before the top-k cut: fewer than k results mean that no more
    match. Filters see a node's own metadata and `ref_doc_id` / `doc_id` / `document_id`. Query modes: `default`, and `mmr`
    with `mmr_threshold` in [0, 1] (0.5; 1 is relevance only). Ties break by document, place in it, and node id. Readers and
    one writer may work side by side from any threads; a search sees the state it began with.

    In a query, `doc_ids=[]` selects nothing. `node_ids=[]` selects nothing with `keep_nodes=False`, and does not restrict
    with `keep_nodes=True`, because `VectorStoreIndex` passes it to every store that keeps text.

    Args:
        metric: "cosine" (scores in [-1, 1]), "dot" (unbounded) or "euclidean" (1 / (1 + distance), in (0, 1]).
        keep_nodes: hold copies of the nodes, so that no docstore is needed (`stores_text` says the same); False holds
            ids, metadata and vectors only.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> store = FlatVectorStore()
        >>> store.add([TextNode(id_="east", text="east", embedding=[1.0, 0.0]), TextNode(id_="north", text="north", embedding=[0.0, 1.0])])
        ['east', 'north']
        >>> store.search([3.0, 4.0], top_k=1)
        [('north', 0.8)]
    """

    stores_text: bool = True
    is_embedding_query: bool = True
    metric: VectorMetric = VectorMetric.COSINE
    keep_nodes: bool = True
    _matrix: VectorMatrix = PrivateAttr()
    _entries: list[VectorRow] = PrivateAttr(default_factory=list)
    _keys: list[str] = PrivateAttr(default_factory=list)
    _row_of: dict[str, int] = PrivateAttr(default_factory=dict)
    _ids_of: dict[str | None, dict[str, None]] = PrivateAttr(default_factory=dict)
    _lock: Any = PrivateAttr(default_factory=CopyableLock)

    def __init__(self, *, metric: VectorMetric | str = VectorMetric.COSINE, keep_nodes: bool = True, **kwargs: Any) -> None:
        kwargs.pop("stores_text", None)
        super().__init__(metric=checked_metric(metric), keep_nodes=keep_nodes, stores_text=keep_nodes, **kwargs)  # type: ignore[call-arg]
        self._matrix = VectorMatrix(self.metric)

    def __setstate__(self, state: dict[str, Any]) -> None:
        BaseModel.__setstate__(self, state)  # LlamaIndex's own would make an empty store

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "FlatVectorStore"

    @property
    def client(self) -> None:
        """There is no client: everything is in this process."""

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None while the store is empty."""
        return self._matrix.dimension

    def __len__(self) -> int:
        return len(self._matrix)

    def __bool__(self) -> bool:
        return True  # LlamaIndex writes `vector_store or SimpleVectorStore()`

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._row_of

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes with their embeddings, replacing those with a known id; of two with one id the later one stays.

        Either all are added or, on an error, none. The nodes are copied without their embedding.

        Raises:
            EmbeddingMismatchError: an embedding of another length than the store's.
            ConfigurationError: an embedding is missing, not finite, or zero under "cosine"; the message names the node.
        """
        latest = {node.node_id: node for node in nodes}
        missing = next((node.node_id for node in latest.values() if node.embedding is None), None)
        if missing is not None:
            raise ConfigurationError(f"Node {missing!r} has no embedding. Set node.embedding, or insert it through a VectorStoreIndex, which embeds it.")
        if not latest:
            return []
        entries = [self._entry(node) for node in latest.values()]
        with self._lock:
            vectors = checked_vectors(
                [[] if node.embedding is None else node.embedding for node in latest.values()], list(latest), self.metric, self._matrix.dimension
            )
            self._delete([node_id for node_id in latest if node_id in self._row_of])
            self._append(entries, vectors)
        return [node.node_id for node in nodes]

    def _entry(self, node: BaseNode) -> VectorRow:
        metadata = copy.deepcopy(filterable_metadata(node))
        return VectorRow(node.node_id, node.ref_doc_id, sort_key(node), metadata, own_copy(node) if self.keep_nodes else None)

    def _append(self, entries: Sequence[VectorRow], vectors: Any) -> None:
        rows = self._matrix.append(vectors)
        self._entries.extend(entries)
        self._keys.extend(entry.sort_key for entry in entries)
        for row, entry in zip(rows, entries, strict=True):
            self._row_of[entry.node_id] = row
            self._ids_of.setdefault(entry.ref_doc_id, {})[entry.node_id] = None

    def _delete(self, node_ids: Sequence[str]) -> None:
        if not node_ids:
            return
        rows = [self._row_of.pop(node_id) for node_id in node_ids]
        for row in rows:
            siblings = self._ids_of[self._entries[row].ref_doc_id]
            del siblings[self._entries[row].node_id]
            if not siblings:
                del self._ids_of[self._entries[row].ref_doc_id]
        self._matrix.delete(rows)
        if self._matrix.sparse:
            self._entries = [self._entries[row] for row in self._matrix.compact()]
            self._keys = [entry.sort_key for entry in self._entries]
            self._row_of = {entry.node_id: row for row, entry in enumerate(self._entries)}

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document; an unknown id changes nothing."""
        with self._lock:
            self._delete(list(self._ids_of.get(ref_doc_id, ())))

    def delete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any) -> None:
        """Delete nodes by id, by filters, or those that satisfy both; unknown ids are ignored.

        Raises:
            ConfigurationError: neither is given.
        """
        if node_ids is None and filters is None:
            raise ConfigurationError("delete_nodes() was called without node_ids and filters. Say which nodes, or call clear() to delete all.")
        with self._lock:
            self._delete([entry.node_id for entry in self._selected(node_ids, filters)])

    def clear(self) -> None:
        """Delete everything; vectors of another dimension are welcome afterwards."""
        with self._lock:
            self._matrix, self._entries, self._keys, self._row_of, self._ids_of = VectorMatrix(self.metric), [], [], {}, {}

    def _selected(self, node_ids: Sequence[str] | None, filters: MetadataFilters | None) -> list[VectorRow]:
        with self._lock:
            wanted = self._row_of if node_ids is None else dict.fromkeys(node_ids)
            held = [self._entries[self._row_of[node_id]] for node_id in wanted if node_id in self._row_of]
        return [entry for entry in held if metadata_matches(entry.metadata, filters)]

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Copies of the nodes by id (in that order, unknown ids left out), by filters, or all.

        Raises:
            NodeSourceError: the store was made with `keep_nodes=False`.
        """
        if not self.keep_nodes:
            raise NodeSourceError("This FlatVectorStore was made with keep_nodes=False and holds no nodes. Read them from the index's docstore.")
        return [own_copy(entry.node) for entry in self._selected(node_ids, filters) if entry.node is not None]

    def _snapshot(self) -> _Snapshot:
        with self._lock:
            return _Snapshot(self._matrix.view(), self._entries, self._row_of, self._keys)

    def search(self, vector: Sequence[float], top_k: int, rows: Sequence[int] | Positions | None = None) -> list[tuple[str, float]]:
        """Node ids and scores, best first.

        Args:
            vector: the query, of the store's dimension.
            top_k: most results.
            rows: only these rows, as `rows_matching` gave them; they hold until the next write. None is all.
        """
        now = self._snapshot()
        found, scores = now.view.top(now.view.checked_query(vector), top_k=checked_top_k(top_k), names=now.names(), mask=now.mask(rows))
        return [(now.entries[row].node_id, score) for row, score in zip(found.tolist(), scores.tolist(), strict=True)]

    def rows_matching(
        self, filters: MetadataFilters | None = None, *, node_ids: Sequence[str] | None = None, doc_ids: Sequence[str] | None = None
    ) -> Positions | None:
        """The rows that satisfy all that is given; None when nothing is, `[]` selects nothing."""
        return _rows_matching(self._snapshot(), filters, node_ids, doc_ids)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The most similar nodes, best first, with similarities and ids; copies of the nodes when they are kept.

        Raises:
            ConfigurationError: a mode other than `default` and `mmr`, no query embedding, or `mmr_threshold` outside [0, 1].
            EmbeddingMismatchError: the query embedding has another length than the vectors.
        """
        check_mode(query.mode)
        if query.query_embedding is None:
            raise ConfigurationError("The query has no embedding, and this store searches by vector only. Set query_embedding.")
        now, top_k = self._snapshot(), checked_top_k(query.similarity_top_k)
        vector = now.view.checked_query(query.query_embedding)
        rows = _rows_matching(now, query.filters, query.node_ids or (None if self.keep_nodes else query.node_ids), query.doc_ids)
        if query.mode == VectorStoreQueryMode.MMR:
            relevance = checked_threshold(kwargs.get("mmr_threshold", query.mmr_threshold))
            found, scores = now.view.diverse(vector, top_k=top_k, names=now.names(), relevance=relevance, mask=now.mask(rows))
        else:
            found, scores = now.view.top(vector, top_k=top_k, names=now.names(), mask=now.mask(rows))
        hits = [now.entries[row] for row in found.tolist()]
        nodes = [own_copy(hit.node) for hit in hits if hit.node is not None] if self.keep_nodes else None
        return VectorStoreQueryResult(nodes=nodes, similarities=scores.tolist(), ids=[hit.node_id for hit in hits])

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """The async twin of `add`."""
        return await in_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """The async twin of `delete`."""
        await in_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any) -> None:
        """The async twin of `delete_nodes`."""
        await in_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aget_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The async twin of `get_nodes`."""
        return await in_thread(self.get_nodes, node_ids, filters)

    async def aclear(self) -> None:
        """The async twin of `clear`."""
        await in_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The async twin of `query`."""
        return await in_thread(self.query, query, **kwargs)

    def persist(self, persist_path: str = persist_file(DEFAULT_PERSIST_DIR), fs: Any = None) -> None:
        """Write one file (npz: vectors and JSON, no pickle); an older one is replaced only when the new one is complete."""
        now = self._snapshot()
        live = _live(now, np.arange(len(now.view.vectors)))
        write_vector_file(persist_path, VectorFile(self.metric, self.keep_nodes, now.view.vectors[live], [now.entries[row] for row in live]), fs=fs)

    @classmethod
    def from_persist_path(cls, persist_path: str, fs: Any = None) -> Self:
        """The store that `persist` wrote.

        Raises:
            IndexNotFoundError: there is no such file.
            IndexFormatError: the file is damaged, or is none of ours or of another format version.
        """
        file = read_vector_file(persist_path, fs=fs)
        store = cls(metric=file.metric, keep_nodes=file.keep_nodes)
        if file.rows:
            store._append(file.rows, file.vectors)
        return store

    @classmethod
    def from_persist_dir(cls, persist_dir: str = DEFAULT_PERSIST_DIR, namespace: str = "default", fs: Any = None) -> Self:
        """The store that `StorageContext.persist(persist_dir)` wrote."""
        return cls.from_persist_path(persist_file(persist_dir, namespace), fs=fs)


def _rows_matching(now: _Snapshot, filters: MetadataFilters | None, node_ids: Sequence[str] | None, doc_ids: Sequence[str] | None) -> Positions | None:
    if filters is None and node_ids is None and doc_ids is None:
        return None
    count, documents = len(now.view.vectors), None if doc_ids is None else set(doc_ids)
    candidates = range(count) if node_ids is None else [row for one in node_ids if (row := now.row_of.get(one, count)) < count]
    rows = [
        row
        for row in candidates
        if (documents is None or now.entries[row].ref_doc_id in documents) and (filters is None or metadata_matches(now.entries[row].metadata, filters))
    ]
    return _live(now, np.array(rows, dtype=np.intp))


def _live(now: _Snapshot, rows: Positions) -> Positions:
    rows = np.unique(rows)
    return rows if now.view.alive is None else rows[now.view.alive[rows]]
