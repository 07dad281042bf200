"""The user's own vector store beside our rows: what is about to change there is noted first, so that a failure in between is known."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray
from typing_extensions import Self

from llama_index_advanced_rag.errors import ConfigurationError, StorageError, VectorStoreError
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.vectors.any_vector_store import check_writable, deletes_nodes, holds_nothing
from llama_index_advanced_rag.trace import report

Pending = tuple[str, str]
_INSERT = "INSERT OR IGNORE INTO pending VALUES (?, ?)"
_DELETE = "DELETE FROM pending WHERE ref_doc_id = ? AND node_id = ?"


class ExternalVectors:
    """Keeps a LlamaIndex vector store in step with the nodes of a database.

    Two stores have no common transaction. So what is going to change there is committed here first (table `pending`), then the
    store is written, and our own commit takes the note away. Whatever goes wrong in between, the note says which
    documents the two may differ in, and the next change of these documents, or a repair, makes them agree.

    Args:
        database: holds the nodes.
        store: the user's vector store.

    Raises:
        ConfigurationError: the store has an async client only.
    """

    def __init__(self, database: CorpusDatabase, store: BasePydanticVectorStore) -> None:
        check_writable(store)
        self._database = database
        self.store = store
        notes = self.pending()
        if notes:
            _report_difference(store, len(notes))

    def pending(self) -> list[Pending]:
        """Document id and node id (one of them empty) of what the two stores may differ in."""
        return [(row[0], row[1]) for row in self._database.query("SELECT ref_doc_id, node_id FROM pending")]

    @contextmanager
    def announced(self, ref_doc_ids: Sequence[str], node_ids: Sequence[str]) -> Generator["ExternalChange", None, None]:
        """Note what is about to change there; the block opens a transaction, and in it enters the change and writes through it.

        When the block fails before the store was first called, the notes go again.
        """
        with self._database.alone():
            old = set(self.pending())
            change = ExternalChange(self._database, self.store, ref_doc_ids, node_ids, old)
            self._database.executemany(_INSERT, change.notes)
            try:
                yield change
            except BaseException:
                if change.began:
                    _report_difference(self.store, len(change.notes))
                else:
                    self._database.executemany(_DELETE, [note for note in change.notes if note not in old])
                raise


class ExternalChange:
    """One change of the external store; a `with` block in one transaction of ours, at whose end the two agree.

    Attributes:
        notes: what may differ until it is done.
        began: the store has been called.
    """

    def __init__(
        self, database: CorpusDatabase, store: BasePydanticVectorStore, ref_doc_ids: Sequence[str], node_ids: Sequence[str], old: set[Pending]
    ) -> None:
        self._database, self._store = database, store
        self._ref_doc_ids, self._node_ids = list(dict.fromkeys(ref_doc_ids)), list(dict.fromkeys(node_ids))
        self._old = old
        self._stale: set[str] = set()
        self.notes: list[Pending] = [*((ref_doc_id, "") for ref_doc_id in self._ref_doc_ids), *(("", node_id) for node_id in self._node_ids)]
        self.began = False

    def __enter__(self) -> Self:
        """Look, in the transaction and before anything is changed here, what the store may hold of it.

        Raises:
            StorageError: another process has changed the same documents since they were announced.
        """
        found = self._database.query_in("SELECT ref_doc_id FROM pending WHERE ref_doc_id IN ({})", self._ref_doc_ids)
        found += self._database.query_in("SELECT node_id FROM pending WHERE node_id IN ({})", self._node_ids)
        if len(found) < len(self.notes):
            raise StorageError("Another process has changed the same documents at the same time. Run the update again.")
        held = self._database.query_in("SELECT DISTINCT ref_doc_id FROM nodes WHERE row IS NOT NULL AND ref_doc_id IN ({})", self._ref_doc_ids)
        held += self._database.query_in("SELECT node_id FROM nodes WHERE row IS NOT NULL AND node_id IN ({})", self._node_ids)
        self._stale = {row[0] for row in held} | {ref_doc_id or node_id for ref_doc_id, node_id in self._old}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Take the notes away in the same transaction that makes it true, unless something failed."""
        if kind is None:
            self._database.executemany(_DELETE, self.notes)

    def replace(self, nodes: Sequence[BaseNode], vectors: NDArray[Any]) -> None:
        """Put nodes with their vectors there in place of all that it holds of the announced documents and nodes.

        Raises:
            VectorStoreError: the store failed; it may have done a part.
        """
        self.remove()
        self.add(nodes, vectors)

    def add(self, nodes: Sequence[BaseNode], vectors: NDArray[Any]) -> None:
        """Put nodes with their vectors there.

        Raises:
            VectorStoreError: the store failed; it may have done a part.
        """
        if nodes:
            carrying = [node.model_copy(update={"embedding": vector.tolist()}) for node, vector in zip(nodes, vectors, strict=True)]
            self._call(f"add {len(carrying)} nodes", lambda: self._store.add(carrying))

    def remove(self) -> None:
        """Take away what it may hold of the announced documents and nodes.

        Raises:
            ConfigurationError: the store cannot delete single nodes.
            VectorStoreError: the store failed; it may have done a part.
        """
        if holds_nothing(self._store):
            return
        loose = [node_id for node_id in self._node_ids if node_id in self._stale]
        if loose and not deletes_nodes(self._store):
            raise ConfigurationError(
                f"{type(self._store).__name__} cannot delete or replace the node {loose[0]!r}: it deletes whole documents only. "
                "Delete or update the document of the node."
            )
        for ref_doc_id in self._ref_doc_ids:
            if ref_doc_id in self._stale:
                self._call(f"delete the document {ref_doc_id!r}", lambda wanted=ref_doc_id: self._store.delete(wanted))
        if loose:
            self._call(f"delete {len(loose)} nodes", lambda: self._store.delete_nodes(loose))

    def _call(self, what: str, call: Callable[[], object]) -> None:
        self.began = True
        try:
            call()
        except Exception as error:
            raise VectorStoreError(
                f"{type(self._store).__name__} failed to {what} ({type(error).__name__}: {' '.join(str(error).split())}). Nothing has changed in this index. "
                "When the vector store works again, repeat the update, or call index.verify(repair=True)."
            ) from error


def _report_difference(store: BasePydanticVectorStore, n_notes: int) -> None:
    report(
        "warning",
        f"{type(store).__name__} and this index may differ in {n_notes} documents or nodes: a change was cut off. index.verify(repair=True) makes them agree.",
    )
