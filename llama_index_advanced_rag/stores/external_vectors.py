"""The user's own vector store beside our rows: what is about to change there is noted first, so that a failure in between is known."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.database import CorpusDatabase
from llama_index_advanced_rag.trace import report

Pending = tuple[str, str]
_DELETE = "DELETE FROM pending WHERE ref_doc_id = ? AND node_id = ?"


class ExternalVectors:
    """Keeps a LlamaIndex vector store in step with the nodes of a database.

    Two stores have no common transaction. So what is going to change there is committed here first (table `pending`), then the
    store is written, and our own commit takes the note away. Whatever goes wrong in between, the note says which
    documents the two may differ in.

    Args:
        database: holds the nodes.
        store: the user's vector store.
    """

    def __init__(self, database: CorpusDatabase, store: BasePydanticVectorStore) -> None:
        self._database = database
        self.store = store

    def pending(self) -> list[Pending]:
        """Document id and node id (one of them empty) of what the two stores may differ in."""
        return [(row[0], row[1]) for row in self._database.query("SELECT ref_doc_id, node_id FROM pending")]

    @contextmanager
    def announced(self, *, ref_doc_ids: Sequence[str] = (), node_ids: Sequence[str] = ()) -> Generator[None, None, None]:
        """Note what is about to change there; the block commits our side and calls `done` in the same transaction."""
        notes = [*((ref_doc_id, "") for ref_doc_id in ref_doc_ids), *(("", node_id) for node_id in node_ids)]
        self._database.executemany("INSERT OR IGNORE INTO pending VALUES (?, ?)", notes)
        try:
            yield
        except BaseException:
            report("warning", f"The vector store and this index may differ in {len(notes)} documents or nodes now. index.verify(repair=True) makes them agree.")
            raise

    def done(self, *, ref_doc_ids: Sequence[str] = (), node_ids: Sequence[str] = ()) -> None:
        """Take the notes away; joins the transaction that makes it true."""
        self._database.executemany(_DELETE, [*((ref_doc_id, "") for ref_doc_id in ref_doc_ids), *(("", node_id) for node_id in node_ids)])

    def replace(self, ref_doc_ids: Sequence[str], nodes: Sequence[BaseNode], vectors: NDArray[Any]) -> None:
        """Put nodes with their vectors there in place of all nodes of these documents."""
        for ref_doc_id in ref_doc_ids:
            self.store.delete(ref_doc_id)
        self.add(nodes, vectors)

    def add(self, nodes: Sequence[BaseNode], vectors: NDArray[Any]) -> None:
        """Put nodes with their vectors there."""
        if nodes:
            self.store.add([node.model_copy(update={"embedding": vector.tolist()}) for node, vector in zip(nodes, vectors, strict=True)])
