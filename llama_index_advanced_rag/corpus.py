"""The corpus: documents, nodes, postings, vectors and records as one state, changed in one transaction. It knows no retriever."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

from llama_index_advanced_rag.corpus_contents import CorpusContents
from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.corpus_writes import PreparedDocument, ReadyNodes, Vector
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.extraction import ExtractorType, stored_extractor
from llama_index_advanced_rag.graph.extractor import Extractor
from llama_index_advanced_rag.graph.stored_records import StoredRecords
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.documents.node_writer import NOT_SEARCHED, Found, NodeWriter
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.postings.corpus_postings import CorpusPostings
from llama_index_advanced_rag.stores.rows.row_checks import reclaim
from llama_index_advanced_rag.stores.rows.row_compaction import compact, settle
from llama_index_advanced_rag.stores.rows.row_copy import copy_files
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.vectors.external_vectors import ExternalChange, ExternalVectors
from llama_index_advanced_rag.stores.vectors.vector_checks import checked_vectors
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric
from llama_index_advanced_rag.text.analyzer import TextAnalyzer


class Corpus(CorpusContents):
    """Documents, nodes, postings, vectors and records: rows of one database and array files beside it, changed in one transaction.

    A search works on the `state()` of its beginning. A row that has been deleted since has no node any more: whoever finds
    that calls `refresh` and searches again. A document is seen whole, old or new.

    Args:
        database: an open database that holds settings.
        vector_store: the user's own vector store; None keeps the vectors here.
        extractor: what its records were read with, to change it; None finds ours again.
        unread: leave the array files alone until the first `refresh`, for repairing them.

    Attributes:
        documents: the document store (a LlamaIndex `BaseDocumentStore`).
        postings: BM25 postings of all nodes, for searching.
        vectors: the vector store.
        external: the user's vector store and what it may differ in; None when the vectors are here.
        rows: the searchable rows.
        records: what the nodes of rows say of names and facts.
        settings: what the stored state was made with.
        shared: what floors above have made of it, by name; one for all who ask.
    """

    def __init__(
        self,
        database: CorpusDatabase,
        *,
        vector_store: BasePydanticVectorStore | None = None,
        extractor: ExtractorType | None = None,
        unread: bool = False,
    ) -> None:
        self.database = database
        self.settings = CorpusSettings.read(database)
        if self.settings.external_vectors and vector_store is None:
            raise ConfigurationError(
                "This index keeps its vectors in an external vector store. Pass it again: CorpusIndex.load(persist_dir, vector_store=...)."
            )
        self.documents = SQLDocumentStore(database, list_split=False)  # what is built over `docs` would find each passage twice
        self.records = StoredRecords(database)
        self.shared: dict[str, Any] = {}
        self._writer = NodeWriter(database)
        self._extractor: ExtractorType | None = extractor
        self.analyzer = TextAnalyzer.from_dict(self.settings.analyzer)
        self.external = None if vector_store is None else ExternalVectors(database, vector_store)
        self._metric = VectorMetric.COSINE if vector_store is None else VectorMetric.DOT  # of vectors kept for somebody else nothing is changed
        self.rows = RowFiles(database, metric=self._metric if vector_store is None else None, unread=unread)
        self.postings = CorpusPostings(self.analyzer, self.rows, self)
        self.vectors: BasePydanticVectorStore = (
            FlatVectorStore._of_rows(self, metric=self._metric) if vector_store is None else vector_store  # noqa: SLF001
        )

    @classmethod
    def create(
        cls, folder: Path | None, settings: CorpusSettings, *, vector_store: BasePydanticVectorStore | None = None, extractor: ExtractorType | None = None
    ) -> "Corpus":
        """An empty corpus in a folder, or in memory when the folder is None; it exists whole or not at all.

        Raises:
            ConfigurationError: another process has made one with other settings there in the meantime.
        """
        corpus = cls._over(CorpusDatabase(folder, create=True, first_meta=settings.to_meta()), vector_store=vector_store, extractor=extractor)
        if not corpus.settings.same_build(settings):
            corpus.close()
            raise ConfigurationError(f"Another process has just made an index with other settings in {str(folder)!r}. Open that one, or name another folder.")
        return corpus

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False, **options: Any) -> "Corpus":
        """The corpus stored in a folder, with the options of the constructor.

        Raises:
            IndexNotFoundError: there is none.
            IndexFormatError: it is of another format, not ours, or damaged.
        """
        return cls._over(CorpusDatabase(folder, read_only=read_only), **options)

    @classmethod
    def _over(cls, database: CorpusDatabase, **options: Any) -> "Corpus":
        try:
            return cls(database, **options)
        except BaseException:
            database.close()
            raise

    @property
    def extractor(self) -> Extractor | None:
        """What reads the names and facts of new nodes; None when none are kept.

        Raises:
            ConfigurationError: it must be passed to change this corpus, or another one was passed.
        """
        extractor = self._extractor = stored_extractor(self.settings.extractor, self._extractor)
        return extractor

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
        bodies = [body for item in prepared for body in item.ready.record_bodies()]
        replaced = [*(item.document.id_ for item in prepared), *deleted]
        with self._change(vectors, ref_doc_ids=replaced) as external:
            matrix = self._matrix(nodes, [digest for item in prepared for digest in item.ready.embed_hashes], vectors)
            self.documents.delete_documents(deleted)
            self._writer.put_documents([item.with_outline() for item in prepared], first_row=self.rows.next_row)
            self._put_records(bodies)
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
        ids, bodies = [node.node_id for node in ready.nodes], ready.record_bodies()
        with self._change(vectors, node_ids=[*(node.node_id for node in ready.outline), *ids]) as external:
            matrix = self._matrix(ready.nodes, ready.embed_hashes, vectors)
            numbered = enumerate(zip(ids, ready.embed_hashes, strict=True), start=self.rows.next_row)
            found = {node.node_id: NOT_SEARCHED for node in ready.outline} | {node_id: Found(digest, row) for row, (node_id, digest) in numbered}
            self._writer.add_nodes([*ready.outline, *ready.nodes], found=found)
            self._put_records(bodies)
            self.rows.append(matrix, ready.term_counts, n_new=len(ids))
            if external is not None:
                external.replace(ready.nodes, matrix)

    def delete_nodes(self, node_ids: Sequence[str]) -> None:
        """Remove single nodes everywhere; their document stays."""
        with self._change({}, node_ids=node_ids) as external:
            self.database.executemany("DELETE FROM nodes WHERE node_id = ?", ((node_id,) for node_id in node_ids))
            if external is not None:
                external.remove()

    def _put_records(self, bodies: Sequence[bytes]) -> None:
        """Store the records of the nodes that get the next rows."""
        self.records.rows.put(range(self.rows.next_row, self.rows.next_row + len(bodies)), bodies)

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

    def close(self) -> None:
        """Close the database; closing twice is fine."""
        self.database.close()
