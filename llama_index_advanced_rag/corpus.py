"""The corpus: documents, nodes, postings and vectors as one state, changed in one transaction. It knows no retriever."""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.corpus_writes import PreparedDocument, ReadyNodes, Vector
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.documents.node_writer import NOT_SEARCHED, Found, NewDocument, NodeWriter
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.postings.corpus_postings import CorpusPostings
from llama_index_advanced_rag.stores.rows.positions import Positions
from llama_index_advanced_rag.stores.rows.row_checks import reclaim
from llama_index_advanced_rag.stores.rows.row_compaction import compact, settle
from llama_index_advanced_rag.stores.rows.row_copy import copy_files
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_snapshot import frozen
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.sqlite.sqlite_file import damage_reported
from llama_index_advanced_rag.stores.vectors.external_vectors import ExternalChange, ExternalVectors
from llama_index_advanced_rag.stores.vectors.vector_checks import checked_vectors
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric
from llama_index_advanced_rag.text.analyzer import TextAnalyzer


class Corpus:
    """Documents, nodes, postings and vectors: rows of one database and array files beside it, changed in one transaction.

    A search works on the `state()` of its beginning. A row that has been deleted since has no node any more: whoever finds
    that calls `refresh` and searches again. A document is seen whole, old or new.

    Args:
        database: an open database that holds settings.
        vector_store: the user's own vector store; None keeps the vectors here.
        unread: leave the array files alone until the first `refresh`, for repairing them.

    Attributes:
        documents: the document store (a LlamaIndex `BaseDocumentStore`).
        postings: BM25 postings of all nodes, for searching.
        vectors: the vector store.
        external: the user's vector store and what it may differ in; None when the vectors are here.
        rows: the searchable rows.
        settings: what the stored state was made with.
    """

    def __init__(self, database: CorpusDatabase, *, vector_store: BasePydanticVectorStore | None = None, unread: bool = False) -> None:
        self.database = database
        self.settings = CorpusSettings.read(database)
        if self.settings.external_vectors and vector_store is None:
            raise ConfigurationError(
                "This index keeps its vectors in an external vector store. Pass it again: CorpusIndex.load(persist_dir, vector_store=...)."
            )
        self.documents = SQLDocumentStore(database, list_split=False)  # what is built over `docs` would find each passage twice
        self._writer = NodeWriter(database)
        self.analyzer = TextAnalyzer.from_dict(self.settings.analyzer)
        self.external = None if vector_store is None else ExternalVectors(database, vector_store)
        self._metric = VectorMetric.COSINE if vector_store is None else VectorMetric.DOT  # of vectors kept for somebody else nothing is changed
        self.rows = RowFiles(database, metric=self._metric if vector_store is None else None, unread=unread)
        self.postings = CorpusPostings(self.analyzer, self.rows, self)
        self.vectors: BasePydanticVectorStore = (
            FlatVectorStore._of_rows(self, metric=self._metric) if vector_store is None else vector_store  # noqa: SLF001
        )

    @classmethod
    def create(cls, folder: Path | None, settings: CorpusSettings, *, vector_store: BasePydanticVectorStore | None = None) -> "Corpus":
        """An empty corpus in a folder, or in memory when the folder is None; it exists whole or not at all.

        Raises:
            ConfigurationError: another process has made one with other settings there in the meantime.
        """
        corpus = cls._over(CorpusDatabase(folder, create=True, first_meta=settings.to_meta()), vector_store)
        if not corpus.settings.same_build(settings):
            corpus.close()
            raise ConfigurationError(f"Another process has just made an index with other settings in {str(folder)!r}. Open that one, or name another folder.")
        return corpus

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False, vector_store: BasePydanticVectorStore | None = None, unread: bool = False) -> "Corpus":
        """The corpus stored in a folder.

        Raises:
            IndexNotFoundError: there is none.
            IndexFormatError: it is of another format, not ours, or damaged.
        """
        return cls._over(CorpusDatabase(folder, read_only=read_only), vector_store, unread=unread)

    @classmethod
    def _over(cls, database: CorpusDatabase, vector_store: BasePydanticVectorStore | None, *, unread: bool = False) -> "Corpus":
        try:
            return cls(database, vector_store=vector_store, unread=unread)
        except BaseException:
            database.close()
            raise

    def refresh(self) -> bool:
        """Make what another process has committed since the state; True when there was something. Without a commit this costs microseconds."""
        with self.database.alone():
            changed = self.rows.refresh()
            if changed:
                self.settings = CorpusSettings.read(self.database)
            return changed

    def state(self) -> RowState:
        """What a search sees."""
        return self.rows.state()

    @contextmanager
    def frozen(self) -> Generator[None, None, None]:
        """A block that begins with the newest state and in which nothing changes: what is found there has its node."""
        with frozen(self.database, self.refresh):
            yield

    def nodes_at(self, state: RowState, positions: Positions) -> list[BaseNode | None]:
        """The node of each position; None for one that has been deleted since."""
        rows = state.row_ids[positions].tolist()
        found = self.documents.nodes_of_rows(rows)
        return [found.get(row) for row in rows]

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """Nodes in the order asked; ids that are gone are left out, and then the state becomes the newest, so that whoever searches again finds it."""
        nodes = self.documents.get_nodes(list(node_ids), raise_error=False)
        if len(nodes) < len(node_ids):
            self.refresh()
        return nodes

    def document_hashes(self, ref_doc_ids: Sequence[str]) -> dict[str, str]:
        """Hashes of those of the documents that are stored."""
        return dict(self.database.query_in("SELECT ref_doc_id, hash FROM documents WHERE ref_doc_id IN ({})", ref_doc_ids))

    def describe_documents(self) -> list[tuple[str, str | None, dict[str, Any], int]]:
        """Id, hash, metadata and number of searched nodes of each document, by id."""
        sql = (
            "SELECT d.ref_doc_id, d.hash, d.metadata, count(n.embed_hash) FROM documents d "
            "LEFT JOIN nodes n ON n.ref_doc_id = d.ref_doc_id GROUP BY d.ref_doc_id ORDER BY d.ref_doc_id"
        )
        with damage_reported():
            return [(ref_doc_id, digest, json.loads(metadata), count) for ref_doc_id, digest, metadata, count in self.database.query(sql)]

    def vectors_by_hash(self, embed_hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors already stored for these content hashes."""
        return self.rows.vectors_of_hashes(embed_hashes)

    def nodes_of_documents(self, ref_doc_ids: Sequence[str]) -> list[BaseNode]:
        """The searchable nodes of documents, in the order of their rows."""
        rows = self.database.query_in("SELECT row FROM nodes WHERE row IS NOT NULL AND ref_doc_id IN ({})", ref_doc_ids)
        return list(self.documents.nodes_of_rows(sorted(row[0] for row in rows)).values())

    def vectors_of_nodes(self, node_ids: Sequence[str]) -> NDArray[Any]:
        """(n, dimension) vectors of searchable nodes, as they are stored."""
        rows = self.rows.table.rows_of_nodes(node_ids)
        return self.rows.vectors()[np.searchsorted(self.state().row_ids, [rows[node_id] for node_id in node_ids])]

    def bind_embedding(self, identity: str, *, name: str | None) -> None:
        """Say which model the vectors come from, before the first are written.

        Raises:
            EmbeddingMismatchError: the stored vectors come from another model.
        """
        if self.settings.with_embedding(identity, name=name) != self.settings:
            with self.database.transaction():  # another process may have bound one meanwhile
                settings = CorpusSettings.read(self.database).with_embedding(identity, name=name)
                settings.write(self.database)
            self.settings = settings

    def write(self, prepared: Sequence[PreparedDocument], vectors: Mapping[str, Vector], deleted: Sequence[str] = ()) -> None:
        """Replace documents and delete others, all in one transaction.

        An external vector store is written last, inside the transaction: if it fails, nothing is committed here.

        Args:
            prepared: documents with their nodes; a stored document of the same id is replaced.
            vectors: vectors by embedding hash for all hashes of `prepared`, each of shape (dimension,).
            deleted: ids of documents to remove; unknown ids are ignored.

        Raises:
            EmbeddingMismatchError: vectors of another length than the stored ones.
            ConfigurationError: a vector that cannot be stored; the message names the node.
            StorageError: the disk refused; nothing has changed.
        """
        nodes = [node for item in prepared for node in item.ready.nodes]
        replaced = [*(item.document.id_ for item in prepared), *deleted]
        with self._change(vectors, ref_doc_ids=replaced) as external:
            matrix = self._matrix(nodes, [digest for item in prepared for digest in item.ready.embed_hashes], vectors)
            self.documents.delete_documents(deleted)
            new = [_with_outline(item) for item in prepared]
            self._writer.put_documents(new, first_row=self.rows.next_row)
            self.rows.append(matrix, [count for item in prepared for count in item.ready.term_counts], n_new=len(nodes))
            if external is not None:
                external.replace(nodes, matrix)

    def write_nodes(self, ready: ReadyNodes, vectors: Mapping[str, Vector]) -> None:
        """Add ready nodes, in place of stored nodes of the same ids, in one transaction.

        Args:
            ready: nodes with or without a document of the corpus, each id once.
            vectors: vectors by embedding hash.

        Raises:
            EmbeddingMismatchError: vectors of another length than the stored ones.
            ConfigurationError: a vector that cannot be stored; the message names the node.
            StorageError: the disk refused; nothing has changed.
        """
        ids = [node.node_id for node in ready.nodes]
        with self._change(vectors, node_ids=[*(node.node_id for node in ready.outline), *ids]) as external:
            matrix = self._matrix(ready.nodes, ready.embed_hashes, vectors)
            numbered = enumerate(zip(ids, ready.embed_hashes, strict=True), start=self.rows.next_row)
            found = {node.node_id: NOT_SEARCHED for node in ready.outline} | {node_id: Found(digest, row) for row, (node_id, digest) in numbered}
            self._writer.add_nodes([*ready.outline, *ready.nodes], found=found)
            self.rows.append(matrix, ready.term_counts, n_new=len(ids))
            if external is not None:
                external.replace(ready.nodes, matrix)

    def delete_nodes(self, node_ids: Sequence[str]) -> None:
        """Remove single nodes everywhere; their document stays."""
        with self._change({}, node_ids=node_ids) as external:
            self.database.executemany("DELETE FROM nodes WHERE node_id = ?", ((node_id,) for node_id in node_ids))
            if external is not None:
                external.remove()

    @contextmanager
    def _change(self, vectors: Mapping[str, Vector], *, ref_doc_ids: Sequence[str] = (), node_ids: Sequence[str] = ()) -> Generator[ExternalChange | None]:
        """One transaction over rows, array files and settings, announced where there is a second store."""
        with nullcontext() if self.external is None else self.external.announced(ref_doc_ids, node_ids) as external:
            with self.rows.change(), external or nullcontext():
                reclaim(self.rows)
                self.settings = CorpusSettings.read(self.database)  # another process may have settled the dimension
                settings = self.settings.with_dimension({len(vector) for vector in vectors.values()})
                yield external
                if settings != self.settings:
                    settings.write(self.database)
            self.settings = settings

    def _matrix(self, nodes: Sequence[BaseNode], embed_hashes: Sequence[str], vectors: Mapping[str, Vector]) -> NDArray[Any]:
        """The vectors of the nodes as they are stored; what is stored already is taken as it is, to the last bit."""
        stored = self.rows.vectors_of_hashes(embed_hashes)
        fresh = {digest: node.node_id for node, digest in zip(nodes, embed_hashes, strict=True) if digest not in stored}
        stored.update(zip(fresh, self.as_stored([vectors[digest] for digest in fresh], list(fresh.values())), strict=True))
        return np.array([stored[digest] for digest in embed_hashes])

    def as_stored(self, vectors: Sequence[Vector], node_ids: Sequence[str]) -> NDArray[Any]:
        """(n, dimension) vectors of these nodes in the form in which they are stored: of length 1 unless they are kept for an external store.

        Raises:
            EmbeddingMismatchError: vectors of another length than the stored ones.
            ConfigurationError: one is not finite, or zero; the message names the node.
        """
        return checked_vectors(np.array(vectors), node_ids, self._metric, self.settings.dimension if len(vectors) else 0)

    def settle(self) -> None:
        """Keep searches fast after many changes: compact when most rows are dead, note the order of many new rows."""
        settle(self.rows)

    def compact(self) -> None:
        """Rewrite the array files without dead rows, as one segment, and give the space back to the disk."""
        with self.rows.change():
            compact(self.rows)
        self.database.shrink()

    def persist(self, folder: Path) -> None:
        """Copy the stored state into another folder; the folder must not hold another index."""
        with self.database.alone():
            self.refresh()
            copy_files(self.rows, folder)
            self.database.backup_to(folder)

    def counts(self) -> dict[str, int]:
        """Numbers of documents, of nodes that are searched, and of those that were split into them (documents and sections)."""
        documents = self.database.query("SELECT count(*) FROM documents")[0][0]
        nodes, searched = self.database.query("SELECT count(*), count(embed_hash) FROM nodes")[0]
        return {"documents": int(documents), "nodes": int(searched), "outline_nodes": int(nodes - searched)}

    def sizes(self) -> dict[str, int]:
        """Numbers of documents, nodes and searchable rows, and bytes of text, records (text included), vectors and postings. Reads all text."""
        text = self.database.query("SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM documents")
        return {**self.counts(), "text_bytes": int(text[0][0]), "record_bytes": self.database.size(), **self.rows.sizes()}

    def close(self) -> None:
        """Close the database; closing twice is fine."""
        self.database.close()


def _with_outline(item: PreparedDocument) -> NewDocument:
    """A document with all its nodes; those that are not searched by themselves have no embedding hash."""
    ready = item.ready
    return NewDocument(item.document, item.digest, [*ready.outline, *ready.nodes], [*[None] * len(ready.outline), *ready.embed_hashes])
