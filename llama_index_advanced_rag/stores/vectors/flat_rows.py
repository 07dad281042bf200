"""The rows of a flat vector store: nodes in a database of its own, vectors in array files beside it, changed in one transaction."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError
from llama_index_advanced_rag.stores.documents.document_rows import DocumentRows
from llama_index_advanced_rag.stores.documents.node_codec import DocumentRow, Inherited, encode_node
from llama_index_advanced_rag.stores.rows.positions import Positions
from llama_index_advanced_rag.stores.rows.row_compaction import settle
from llama_index_advanced_rag.stores.rows.row_copy import copy_files
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_manifest import Manifest
from llama_index_advanced_rag.stores.rows.row_snapshot import frozen
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.vectors.flat_folder import check_folder, is_free
from llama_index_advanced_rag.stores.vectors.vector_arguments import check_same, checked_dtype, checked_metric
from llama_index_advanced_rag.stores.vectors.vector_checks import checked_vectors
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric

_KEY = "flat_vectors"
_BATCH = 500
_INSERT_NODE = """
INSERT INTO nodes (node_id, ref_doc_id, ordinal, start_char, end_char, text, body, hash, row) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""


@dataclass(frozen=True)
class FlatSettings:
    """What a store was made with; stands in its database.

    Attributes:
        metric: how vectors are compared.
        keep_nodes: whole nodes are stored, not only what filters and ties need.
        dtype: of the stored vectors, "float32" or "float16".
    """

    metric: VectorMetric = VectorMetric.COSINE
    keep_nodes: bool = True
    dtype: str = "float32"


class FlatRows:
    """Nodes and vectors of a `FlatVectorStore`; implements `RowSpace`.

    Args:
        folder: where they are stored; None = memory.
        settings: for a store that is made now; one that exists keeps its own.
        read_only: open what exists, and refuse writes.

    Raises:
        IndexNotFoundError: `read_only`, and there is none.
        IndexFormatError: the folder holds something else, or is damaged.
    """

    def __init__(self, folder: Path | None, settings: FlatSettings, *, read_only: bool = False) -> None:
        meta = {_KEY: {**asdict(settings), "metric": settings.metric.value}}
        lost = folder is not None and any(folder.glob("*.bin"))  # array files without a database are a damaged store, not a new one
        self.database = CorpusDatabase(folder, read_only=read_only, create=not read_only and not lost, first_meta=meta)
        try:
            self.settings = _stored_settings(self.database)
            self._files = RowFiles(self.database, metric=self.settings.metric, dtype=self.settings.dtype)
        except BaseException:
            self.database.close()
            raise
        self._nodes = DocumentRows(self.database)

    def state(self) -> RowState:
        """What a search sees."""
        return self._files.state()

    def refresh(self) -> bool:
        """Take over what another process has committed; True when there was something."""
        return self._files.refresh()

    @contextmanager
    def frozen(self) -> Generator[None, None, None]:
        """A block that begins with the newest state and in which nothing changes: what is found there has its node."""
        with frozen(self.database, self.refresh):
            yield

    def nodes_at(self, state: RowState, positions: Positions) -> list[BaseNode | None]:
        """The node of each position; None for one that has been deleted since."""
        rows = state.row_ids[positions].tolist()
        found = self._nodes.of_rows(rows)
        return [found.get(row) for row in rows]

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """The nodes with these ids, in that order; unknown ids are left out."""
        found = self._nodes.fetch(list(node_ids))
        return [found[node_id] for node_id in node_ids if node_id in found]

    def all_nodes(self, positions: Positions) -> list[BaseNode]:
        """The nodes of the positions of the newest state, in a `frozen` block."""
        batches = (self.nodes_at(self.state(), positions[start : start + _BATCH]) for start in range(0, len(positions), _BATCH))
        return [node for batch in batches for node in batch if node is not None]

    @property
    def dimension(self) -> int | None:
        """Length of the vectors; None while there are none."""
        return self._files.manifest.dimension if self.state().n_alive else None

    def add(self, nodes: Sequence[BaseNode], vectors: Sequence[Sequence[float]] | NDArray[Any], *, checked: bool = False) -> None:
        """Store nodes with their vectors, in place of stored ones with these ids, in one transaction.

        Args:
            nodes: each id once.
            vectors: of each node.
            checked: they are as `contents` gave them.

        Raises:
            EmbeddingMismatchError: a vector of another length than the stored ones.
            ConfigurationError: a vector that cannot be searched, or metadata that are not JSON; the message names the node.
            StorageError: the disk refused; nothing has changed.
        """
        ids = [node.node_id for node in nodes]
        with self._files.change():
            ready = np.asarray(vectors) if checked else checked_vectors(vectors, ids, self.settings.metric, self.dimension, dtype=self.settings.dtype)
            self._delete(ids)
            self._insert(nodes)
            self._files.append(ready, None, n_new=len(nodes))
        settle(self._files)

    def _insert(self, nodes: Sequence[BaseNode]) -> None:
        known: dict[str | None, Inherited] = {None: Inherited()}
        for ref_doc_id in {node.ref_doc_id for node in nodes} - {None}:
            known[ref_doc_id] = Inherited.from_row(str(ref_doc_id), DocumentRow(None, "{}", None))
        self.database.executemany("INSERT OR IGNORE INTO documents (ref_doc_id) VALUES (?)", ((one,) for one in known if one is not None))
        rows = ((node if self.settings.keep_nodes else _outline(node), row) for row, node in enumerate(nodes, start=self._files.next_row))
        self.database.executemany(
            _INSERT_NODE,
            ((node.node_id, node.ref_doc_id, row, *encode_node(node, known[node.ref_doc_id], keep_embedding=False), None, row) for node, row in rows),
        )

    def _delete(self, node_ids: Sequence[str]) -> None:
        self.database.executemany("DELETE FROM nodes WHERE node_id = ?", ((node_id,) for node_id in node_ids))

    def delete(self, node_ids: Sequence[str]) -> None:
        """Delete nodes by id; unknown ids are ignored."""
        with self._files.change():
            self._delete(node_ids)
            self._start_over_when_empty()
        settle(self._files)

    def delete_document(self, ref_doc_id: str) -> None:
        """Delete the nodes of a document; an unknown id changes nothing."""
        with self._files.change():
            self.database.execute("DELETE FROM documents WHERE ref_doc_id = ?", (ref_doc_id,))
            self._start_over_when_empty()
        settle(self._files)

    def matching(self, node_ids: Sequence[str] | None, filters: MetadataFilters | None) -> Positions:
        """Positions of the living nodes that satisfy all that is given, ascending, in a `frozen` block."""
        state = self.state()
        mask = state.mask(filters, node_ids=node_ids)
        allowed = np.ones(state.n_rows, dtype=bool) if mask is None else mask
        return np.flatnonzero(allowed if state.alive is None else allowed & state.alive)

    def delete_matching(self, node_ids: Sequence[str] | None, filters: MetadataFilters) -> None:
        """Delete the nodes that satisfy the filters, of all or of those with these ids."""
        with self._files.change():
            found = self.state().names.node_ids(self.matching(node_ids, filters))
            self._delete([node_id for node_id in found if node_id is not None])
            self._start_over_when_empty()
        settle(self._files)

    def clear(self) -> None:
        """Delete everything."""
        with self._files.change():
            self.database.execute("DELETE FROM nodes")
            self._start_over_when_empty()

    def _start_over_when_empty(self) -> None:
        """Without nodes nothing ties the store to a length of vectors, and the files are of no use."""
        if not self.state().n_rows or self.database.query("SELECT 1 FROM nodes LIMIT 1"):
            return
        self.database.execute("DELETE FROM documents")
        manifest = self._files.manifest
        self._files.table.start_over()
        self._files.table.write(Manifest(manifest.generation + 1, next_row=manifest.next_row, n_files=manifest.n_files))

    def contents(self) -> Iterator[tuple[list[BaseNode], NDArray[Any]]]:
        """All nodes and their vectors as stored, some at a time, in a `frozen` block."""
        state, vectors = self.state(), self._files.vectors()
        alive = np.arange(state.n_rows) if state.alive is None else np.flatnonzero(state.alive)
        for start in range(0, len(alive), _BATCH):
            block = alive[start : start + _BATCH]
            yield self.all_nodes(block), np.array(vectors[block])

    def copy_to(self, folder: Path) -> None:
        """Write everything into a folder, which must be empty or missing."""
        with self.database.alone():
            self.refresh()
            copy_files(self._files, folder)
            self.database.backup_to(folder)


def open_rows(folder: Path | None, wanted: Mapping[str, Any], *, read_only: bool) -> FlatRows:
    """The rows in a folder, made if they are not there, or in memory.

    Args:
        folder: None = memory.
        wanted: fields of `FlatSettings`; None = as they are stored, else their defaults.
        read_only: open what is there only.

    Raises:
        IndexNotFoundError: `read_only`, and there is nothing.
        IndexFormatError: the folder holds something else, or is damaged.
        ConfigurationError: the stored rows were made with other settings.
    """
    given = {name: value for name, value in wanted.items() if value is not None}
    default = FlatSettings()
    asked = FlatSettings(
        checked_metric(given.get("metric", default.metric)), bool(given.get("keep_nodes", True)), checked_dtype(given.get("dtype", default.dtype))
    )
    if folder is not None and (read_only or not is_free(folder)):
        check_folder(folder)
    rows = FlatRows(folder, asked, read_only=read_only)
    try:
        check_same({name: (getattr(asked, name), getattr(rows.settings, name)) for name in given}, folder)
    except ConfigurationError:
        rows.database.close()
        raise
    return rows


def _stored_settings(database: CorpusDatabase) -> FlatSettings:
    stored = database.get_meta(_KEY)
    if not isinstance(stored, dict):
        raise IndexFormatError(
            f"The folder {str(database.path)!r} holds an index, but no FlatVectorStore. Give another folder, or open it with CorpusIndex.load()."
        )
    return FlatSettings(VectorMetric(stored["metric"]), bool(stored["keep_nodes"]), str(stored["dtype"]))


def _outline(node: BaseNode) -> TextNode:
    """Id, document, place and metadata of a node."""
    start = getattr(node, "start_char_idx", None)
    outline = TextNode(id_=node.node_id, text="", metadata=node.metadata, start_char_idx=start, end_char_idx=start)
    if node.ref_doc_id is not None:
        outline.relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=node.ref_doc_id)}
    return outline
