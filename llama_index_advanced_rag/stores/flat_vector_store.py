"""An exact vector store in memory or in a folder: one matrix, every filter before the top-k cut, nothing to install or run."""

import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    DEFAULT_PERSIST_DIR,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from typing_extensions import Self

from llama_index_advanced_rag.errors import ConfigurationError, IndexNotCopiedError, NodeSourceError, ReadOnlyIndexError
from llama_index_advanced_rag.stores.rows.row_state import RowSpace
from llama_index_advanced_rag.stores.rows.search_and_read import positions_of, read_ids, scored, search_and_read
from llama_index_advanced_rag.stores.vectors.async_vector_store import AsyncVectorStore
from llama_index_advanced_rag.stores.vectors.flat_folder import is_local, local_folder, persist_file, write_folder
from llama_index_advanced_rag.stores.vectors.flat_rows import FlatRows, open_rows
from llama_index_advanced_rag.stores.vectors.flat_search import checked_search
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric


class FlatVectorStore(AsyncVectorStore):
    """Vectors in one matrix, searched exactly. A drop-in for `VectorStoreIndex.from_vector_store`.

    In a folder, vectors are memory-mapped, text and metadata stay on disk and are read for the hits only, and every change is
    committed, whole or not at all, when the call returns: a process killed at any moment leaves the state before or after it.
    Other processes may read meanwhile and see it at their next search; a second writer waits.

    Filters, `node_ids` and `doc_ids` restrict the candidates before the top-k cut: fewer than k results mean that no more
    match. Filters see a node's own metadata and `ref_doc_id` / `doc_id` / `document_id`. Query modes: `default`, and `mmr`
    with `mmr_threshold` in [0, 1] (0.5; 1 is relevance only). Ties break by document, place in it, and node id. Readers and
    one writer may work side by side from any threads; a search sees the state it began with.

    In a query, `doc_ids=[]` selects nothing. `node_ids=[]` selects nothing with `keep_nodes=False`, and does not restrict
    with `keep_nodes=True`, because `VectorStoreIndex` passes it to every store that keeps text.

    Args:
        persist_dir: keep the store in this folder, where `StorageContext.persist` and `from_persist_dir` have it too; opened
            if it is there, else made. None = memory.
        metric: "cosine" (scores in [-1, 1]), "dot" (unbounded) or "euclidean" (1 / (1 + distance), in (0, 1]).
            None = that of the stored one, else "cosine".
        keep_nodes: hold copies of the nodes, so that no docstore is needed (`stores_text` says the same); False holds
            ids, metadata and vectors only. None = as the stored one, else True.
        dtype: of the stored vectors: "float32", or "float16" for half the space. Scores are of what is stored: float16 changes a
            cosine by up to about 0.0003. None = that of the stored one, else "float32".
        read_only: open what is there, and refuse writes.

    Raises:
        IndexNotFoundError: `read_only`, and there is no store.
        IndexFormatError: the place holds something else, or is damaged.
        ConfigurationError: the stored one was made with another metric, dtype or `keep_nodes`.

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
    dtype: str = "float32"
    read_only: bool = False
    _space: RowSpace = PrivateAttr()
    _rows: FlatRows | None = PrivateAttr(default=None)  # None: the rows are a corpus's, which alone writes them
    _folder: Path | None = PrivateAttr(default=None)

    def __init__(
        self,
        persist_dir: str | Path | None = None,
        *,
        metric: VectorMetric | str | None = None,
        keep_nodes: bool | None = None,
        dtype: str | None = None,
        read_only: bool = False,
        **kwargs: Any,
    ) -> None:
        folder = None if persist_dir is None else Path(persist_file(str(persist_dir)))
        kwargs.pop("stores_text", None)
        self._start(folder, {"metric": metric, "keep_nodes": keep_nodes, "dtype": dtype}, read_only=read_only, **kwargs)

    def _start(self, folder: Path | None, wanted: Mapping[str, Any], *, read_only: bool = False, **kwargs: Any) -> None:
        rows = open_rows(folder, wanted, read_only=read_only)
        held = rows.settings
        fields = {"metric": held.metric, "keep_nodes": held.keep_nodes, "stores_text": held.keep_nodes, "dtype": held.dtype, "read_only": read_only}
        super().__init__(**fields, **kwargs)  # pyright: ignore[reportArgumentType]
        self._rows, self._space, self._folder = rows, rows, folder

    @classmethod
    def _of_rows(cls, space: RowSpace, *, metric: VectorMetric, keep_nodes: bool = False) -> Self:
        """The vectors of a corpus as a store that can be searched and not written."""
        store = cls(metric=metric, keep_nodes=keep_nodes)
        store.close()
        store._rows, store._space = None, space
        return store

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "FlatVectorStore"

    @property
    def client(self) -> None:
        """There is no client: everything is in this process."""

    @property
    def row_space(self) -> RowSpace:
        """The rows themselves, for retrievers that search positions."""
        return self._space

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None while the store is empty."""
        self._space.refresh()
        state = self._space.state()
        return state.matrix.vectors.shape[1] if state.n_alive and state.matrix is not None else None

    def __len__(self) -> int:
        self._space.refresh()
        return self._space.state().n_alive

    def __bool__(self) -> bool:
        return True  # LlamaIndex writes `vector_store or SimpleVectorStore()`

    def __contains__(self, node_id: object) -> bool:
        with self._space.frozen():
            return isinstance(node_id, str) and len(self._space.state().names.positions_of([node_id])) > 0

    def _writable(self) -> FlatRows:
        if self._rows is None:
            raise ReadOnlyIndexError(
                "These are the vectors of a CorpusIndex, which keeps them in step with its texts. Change them through the index: "
                "index.insert_nodes(nodes), index.delete_nodes(node_ids), index.delete_ref_doc(ref_doc_id)."
            )
        return self._rows

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes with their embeddings, replacing those with a known id; of two with one id the later one stays.

        Either all are added or, on an error, none. The nodes are copied without their embedding.

        Raises:
            EmbeddingMismatchError: an embedding of another length than the store's.
            ConfigurationError: an embedding is missing, not finite, or zero under "cosine", or metadata are not JSON; the message names the node.
            StorageError: the disk refused; nothing has changed.
            ReadOnlyIndexError: the store was opened with `read_only=True`, or belongs to a `CorpusIndex`.
        """
        rows, latest = self._writable(), {node.node_id: node for node in nodes}
        missing = next((node.node_id for node in latest.values() if node.embedding is None), None)
        if missing is not None:
            raise ConfigurationError(f"Node {missing!r} has no embedding. Set node.embedding, or insert it through a VectorStoreIndex, which embeds it.")
        if latest:
            rows.add(list(latest.values()), [node.get_embedding() for node in latest.values()])
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document; an unknown id changes nothing."""
        self._writable().delete_document(ref_doc_id)

    def delete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any) -> None:
        """Delete nodes by id, by filters, or those that satisfy both; unknown ids are ignored.

        Raises:
            ConfigurationError: neither is given.
        """
        rows = self._writable()
        if node_ids is None and filters is None:
            raise ConfigurationError("delete_nodes() was called without node_ids and filters. Say which nodes, or call clear() to delete all.")
        if filters is None:
            rows.delete(list(dict.fromkeys(node_ids or [])))
        else:
            rows.delete_matching(node_ids, filters)

    def clear(self) -> None:
        """Delete everything; vectors of another dimension are welcome afterwards."""
        self._writable().clear()

    def close(self) -> None:
        """Let go of the files; a store in memory is gone. A second call does nothing."""
        if self._rows is not None:
            self._rows.database.close()

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Copies of the nodes by id (in that order, unknown ids left out), by filters, or all in the order of arrival.

        Raises:
            NodeSourceError: the store was made with `keep_nodes=False`.
        """
        if not self.keep_nodes or self._rows is None:
            raise NodeSourceError("This FlatVectorStore was made with keep_nodes=False and holds no nodes. Read them from the index's docstore.")
        with self._rows.frozen():
            nodes = self._rows.all_nodes(self._rows.matching(node_ids, filters))
        if node_ids is None:
            return nodes
        place = {node_id: number for number, node_id in enumerate(dict.fromkeys(node_ids))}
        return sorted(nodes, key=lambda node: place[node.node_id])

    def search(
        self,
        vector: Sequence[float],
        top_k: int,
        *,
        filters: MetadataFilters | None = None,
        node_ids: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
    ) -> list[tuple[str, float]]:
        """Node ids and scores, best first; no node is read.

        Args:
            vector: the query, of the store's dimension.
            top_k: most results.
            filters: only nodes whose metadata match.
            node_ids: only these nodes; an empty list selects nothing.
            doc_ids: only nodes of these documents; an empty list selects nothing.
        """
        query = VectorStoreQuery(query_embedding=list(vector), similarity_top_k=top_k, filters=filters, doc_ids=None if doc_ids is None else list(doc_ids))
        search, by_ids = checked_search(query, node_ids, {}), node_ids is not None or doc_ids is not None
        self._space.refresh()
        return scored(search_and_read(self._space, search, positions_of, read_ids, by_ids=by_ids))

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The most similar nodes, best first, with similarities and ids; copies of the nodes when they are kept.

        Raises:
            ConfigurationError: a mode other than `default` and `mmr`, no query embedding, or `mmr_threshold` outside [0, 1].
            EmbeddingMismatchError: the query embedding has another length than the vectors.
        """
        node_ids = query.node_ids or (None if self.keep_nodes else query.node_ids)
        search, by_ids = checked_search(query, node_ids, kwargs), node_ids is not None or query.doc_ids is not None
        self._space.refresh()
        if not self.keep_nodes:
            hits = scored(search_and_read(self._space, search, positions_of, read_ids, by_ids=by_ids))
            return VectorStoreQueryResult(similarities=[score for _, score in hits], ids=[node_id for node_id, _ in hits])
        found = scored(search_and_read(self._space, search, positions_of, self._space.nodes_at, by_ids=by_ids))
        return VectorStoreQueryResult(nodes=[node for node, _ in found], similarities=[score for _, score in found], ids=[node.node_id for node, _ in found])

    def persist(self, persist_path: str = persist_file(DEFAULT_PERSIST_DIR), fs: Any = None) -> None:
        """Write a copy of the store, a folder of that name; an older copy is replaced only when the new one is complete.

        LlamaIndex's `SimpleVectorStore` refuses to read it. Its own path needs nothing: what is there is committed.

        Raises:
            ConfigurationError: the path is a folder with other files in it.
            StorageError: the disk refused.
        """
        if self._rows is None:
            raise ConfigurationError("These are the vectors of a CorpusIndex and are stored with it. Call index.persist(folder).")
        if self._folder is None or not is_local(fs) or Path(persist_path).resolve() != self._folder.resolve():
            write_folder(persist_path, fs, self._rows.copy_to)

    @classmethod
    def from_persist_path(cls, persist_path: str, fs: Any = None, *, read_only: bool = False) -> Self:
        """The store that `persist` wrote; vectors are memory-mapped, and changes are written to it.

        From another file system than this machine's a copy is read, and changes stay in the copy until they are persisted again.

        Raises:
            IndexNotFoundError: there is no such folder.
            IndexFormatError: it is damaged, or holds something else.
        """
        store = cls.__new__(cls)
        with local_folder(persist_path, fs) as folder:
            store._start(folder, {}, read_only=read_only)  # noqa: SLF001 - its own constructor
        if not is_local(fs):
            weakref.finalize(store.row_space, shutil.rmtree, folder, ignore_errors=True)
        return store

    @classmethod
    def from_persist_dir(cls, persist_dir: str = DEFAULT_PERSIST_DIR, namespace: str = "default", fs: Any = None, *, read_only: bool = False) -> Self:
        """The store that `StorageContext.persist(persist_dir)` wrote, see `from_persist_path`."""
        return cls.from_persist_path(persist_file(persist_dir, namespace), fs=fs, read_only=read_only)

    def __deepcopy__(self, memo: Any = None) -> "FlatVectorStore":
        return _restored(*self.__reduce__()[1])

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self._rows is None or self._folder is not None:
            raise IndexNotCopiedError(
                "A FlatVectorStore on disk cannot be pickled or deep-copied. Open it again: FlatVectorStore(persist_dir, read_only=True)."
            )
        with self._rows.frozen():
            contents = list(self._rows.contents())
        return _restored, (type(self), {"metric": self.metric, "keep_nodes": self.keep_nodes, "dtype": self.dtype}, contents)


def _restored(kind: type[FlatVectorStore], settings: dict[str, Any], contents: Sequence[tuple[Sequence[BaseNode], Any]]) -> FlatVectorStore:
    store = kind(**settings)
    for nodes, vectors in contents:
        store._writable().add(nodes, vectors, checked=True)  # noqa: SLF001 - a part of the class
    return store
