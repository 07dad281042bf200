"""The corpus: documents, nodes, postings and vectors as one state, changed in one transaction. It knows no retriever."""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.database import CorpusDatabase
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.node_source import sort_key
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.stores.search_rows import SearchRows, Vector, mark
from llama_index_advanced_rag.stores.sqlite_file import damage_reported
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

_BATCH = 2000
_SIZES = {
    "documents": "count(*) FROM documents",
    "nodes": "count(*) FROM nodes",
    "distinct_vectors": "count(*) FROM vectors",
    "text_bytes": "sum(length(CAST(text AS BLOB))) FROM documents",
    "vector_bytes": "sum(length(vector)) FROM vectors",
    "postings_bytes": "sum(length(CAST(counts AS BLOB))) FROM postings",
}


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """One document ready to be stored: its nodes and, in the same order, their embedding hashes and term counts."""

    document: Document
    nodes: Sequence[BaseNode]
    embed_hashes: Sequence[str]
    term_counts: Sequence[Mapping[str, int]]


class Corpus:
    """Documents, nodes, postings and vectors under one database transaction; postings and vectors are also held in memory.

    `postings` and `vectors` are the same objects for the life of the corpus. A change is committed and then taken over in
    memory while nobody else can read rows. So a search that is under way when a change comes may hold ids whose rows are
    gone; it is told so by missing nodes, searches again and sees the new state. It never sees part of a document.

    Args:
        database: an open database that holds settings.
        vector_store: the user's own vector store; None keeps the vectors here.

    Attributes:
        documents: the document store (a LlamaIndex `BaseDocumentStore`).
        postings: BM25 postings of all nodes.
        vectors: the vector store.
        settings: what the stored state was made with.
    """

    def __init__(self, database: CorpusDatabase, *, vector_store: BasePydanticVectorStore | None = None) -> None:
        self.database = database
        self.settings = CorpusSettings.read(database)
        if self.settings.external_vectors and vector_store is None:
            raise ConfigurationError(
                "This index keeps its vectors in an external vector store. Pass it again: CorpusIndex.load(persist_dir, vector_store=...)."
            )
        self.documents = SQLDocumentStore(database, list_split=False)  # what is built over `docs` would find each passage twice
        self.analyzer = TextAnalyzer.from_dict(self.settings.analyzer)
        self.postings = PostingsStore(self.analyzer)
        self.vectors: BasePydanticVectorStore = FlatVectorStore(keep_nodes=False) if vector_store is None else vector_store
        self._own_vectors = vector_store is None
        self._rows = SearchRows(database)
        self._marks: dict[str, int] = {}
        self._version = -1
        self.refresh()

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
    def open(cls, folder: Path, *, read_only: bool = False, vector_store: BasePydanticVectorStore | None = None) -> "Corpus":
        """The corpus stored in a folder.

        Raises:
            IndexNotFoundError: there is none.
            IndexFormatError: it is of another format, or not ours.
        """
        return cls._over(CorpusDatabase(folder, read_only=read_only), vector_store)

    @classmethod
    def _over(cls, database: CorpusDatabase, vector_store: BasePydanticVectorStore | None) -> "Corpus":
        try:
            return cls(database, vector_store=vector_store)
        except BaseException:
            database.close()
            raise

    def refresh(self) -> bool:
        """Take over in memory what another process has committed since; only what differs is read. True when there was something.

        Without a commit this costs microseconds.
        """
        with self.database.alone():
            version = self.database.data_version()
            if version == self._version:
                return False
            with self.database.snapshot(), damage_reported():
                self.settings = CorpusSettings.read(self.database)
                stored = self._rows.marks()
                self._hold([node_id for node_id in self._marks if node_id not in stored], [], [], [])
                self._read([node_id for node_id, value in stored.items() if self._marks.get(node_id) != value], stored)
            self._version = version
            return True

    def _read(self, node_ids: Sequence[str], marks: Mapping[str, int]) -> None:
        for start in range(0, len(node_ids), _BATCH):
            batch = node_ids[start : start + _BATCH]
            stored, counts = {node.node_id: node for node in self.documents.get_nodes(batch, raise_error=False)}, self._rows.term_counts(batch)
            nodes = [stored[node_id] for node_id in batch]
            if self._own_vectors:
                vectors = self._rows.vectors_of_nodes(batch)
                nodes = [self._with_vector(node, vectors[node.node_id]) for node in nodes]
            self._hold([], nodes, [counts[node_id] for node_id in batch], [marks[node_id] for node_id in batch])

    def _hold(self, gone: Iterable[str], fresh: Sequence[BaseNode], counts: Sequence[Mapping[str, int]], marks: Sequence[int]) -> None:
        """Take nodes over in memory in place of others: the new ones come before the old ones go."""
        ids = [node.node_id for node in fresh]
        left = set(gone).difference(ids)
        self.postings.add_term_counts(ids, counts, sort_keys=[sort_key(node) for node in fresh], replacing=left)
        if self._own_vectors:
            self.vectors.add(list(fresh))
            self.vectors.delete_nodes(list(left))
        for node_id in left:
            self._marks.pop(node_id, None)
        self._marks.update(zip(ids, marks, strict=True))

    def _with_vector(self, node: BaseNode, vector: Vector) -> BaseNode:
        """A copy of the node that carries the vector; our own store takes the array, whose numbers are a tenth of a list's size."""
        return node.model_copy(update={"embedding": vector if self._own_vectors else vector.tolist()})

    @contextmanager
    def _change(self) -> Generator[None, None, None]:
        """A change of rows and memory that nobody reads in the middle of; one that is cut short is read again from the rows."""
        with self.database.alone():
            version, self._version = self._version, -1
            yield
            self._version = version

    def document_hashes(self, ref_doc_ids: Sequence[str]) -> dict[str, str]:
        """Hashes of those of the documents that are stored."""
        return dict(self.database.query_in("SELECT ref_doc_id, hash FROM documents WHERE ref_doc_id IN ({})", ref_doc_ids))

    def describe_documents(self) -> list[tuple[str, str | None, dict[str, Any], int]]:
        """Id, hash, metadata and number of nodes of each document, by id."""
        sql = (
            "SELECT d.ref_doc_id, d.hash, d.metadata, count(n.node_id) FROM documents d "
            "LEFT JOIN nodes n ON n.ref_doc_id = d.ref_doc_id GROUP BY d.ref_doc_id ORDER BY d.ref_doc_id"
        )
        return [(ref_doc_id, digest, json.loads(metadata), count) for ref_doc_id, digest, metadata, count in self.database.query(sql)]

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """Nodes in the order asked; ids that are gone are left out, and then memory takes over what is new, so that whoever searches again finds it."""
        nodes = self.documents.get_nodes(list(node_ids), raise_error=False)
        if len(nodes) < len(node_ids):
            self.refresh()
        return nodes

    def vectors_by_hash(self, embed_hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors already stored for these content hashes."""
        return self._rows.vectors(embed_hashes)

    def bind_embedding(self, identity: str, *, name: str | None) -> None:
        """Say which model the vectors come from, before the first are written.

        Raises:
            EmbeddingMismatchError: the stored vectors come from another model.
        """
        settings = self.settings.with_embedding(identity, name=name)
        if settings != self.settings:
            settings.write(self.database)
            self.settings = settings

    def write(self, prepared: Sequence[PreparedDocument], vectors: Mapping[str, Vector], deleted: Sequence[str] = ()) -> None:
        """Replace documents and delete others, all in one transaction; in memory and on disk, or neither.

        An external vector store is written last, inside the transaction: if it fails, nothing is committed here.

        Args:
            prepared: documents with their nodes; a stored document of the same id is replaced.
            vectors: float32 vectors by embedding hash for all hashes of `prepared`, each of shape (dimension,).
            deleted: ids of documents to remove; unknown ids are ignored.

        Raises:
            EmbeddingMismatchError: vectors of another length than the stored ones.
            StorageError: the disk refused; nothing has changed.
        """
        fresh = [self._with_vector(node, vectors[digest]) for item in prepared for node, digest in zip(item.nodes, item.embed_hashes, strict=True)]
        marks = [mark(digest, whole) for item in prepared for whole in (item.document.hash,) for digest in item.embed_hashes]
        replaced = [*(item.document.id_ for item in prepared), *deleted]
        with self._change():
            settings = self.settings.with_dimension({len(vector) for vector in vectors.values()})
            gone = [row[0] for row in self.database.query_in("SELECT node_id FROM nodes WHERE ref_doc_id IN ({})", replaced)]
            with self.database.transaction():
                self._write_rows(prepared, vectors, deleted, settings)
                if not self._own_vectors:
                    _replace_documents(self.vectors, replaced, fresh)
            self.settings = settings
            self._hold(gone, fresh, [count for item in prepared for count in item.term_counts], marks)

    def _write_rows(self, prepared: Sequence[PreparedDocument], vectors: Mapping[str, Vector], deleted: Sequence[str], settings: CorpusSettings) -> None:
        before = self._rows.hashes_of_documents([*(item.document.id_ for item in prepared), *deleted])
        self._rows.put_vectors(vectors)
        self.documents.delete_documents(deleted)
        for item in prepared:
            self.documents.put_document(item.document, item.nodes, embed_hashes=item.embed_hashes)
            self._rows.put_term_counts([node.node_id for node in item.nodes], item.term_counts)
        self._rows.forget_unused(before)
        if settings != self.settings:
            settings.write(self.database)

    def write_nodes(self, nodes: Sequence[BaseNode], embed_hashes: Sequence[str], vectors: Mapping[str, Vector]) -> None:
        """Add ready nodes, in place of stored nodes of the same ids, in one transaction.

        Args:
            nodes: nodes with or without a document of the corpus.
            embed_hashes: their embedding hashes, in the same order.
            vectors: float32 vectors by embedding hash.

        Raises:
            EmbeddingMismatchError: vectors of another length than the stored ones.
            StorageError: the disk refused; nothing has changed.
        """
        ids = [node.node_id for node in nodes]
        fresh = [self._with_vector(node, vectors[digest]) for node, digest in zip(nodes, embed_hashes, strict=True)]
        counts = [self.postings.term_counts(node.get_content(metadata_mode=MetadataMode.EMBED)) for node in nodes]
        with self._change():
            settings = self.settings.with_dimension({len(vector) for vector in vectors.values()})
            with self.database.transaction():
                before = self._rows.hashes_of_nodes(ids)
                self._rows.put_vectors(vectors)
                self.documents.add_documents([node.model_copy(update={"embedding": None}) for node in nodes])
                self._rows.set_hashes(ids, embed_hashes)
                self._rows.put_term_counts(ids, counts)
                self._rows.forget_unused(before)
                settings.write(self.database)
                if not self._own_vectors:
                    self.vectors.add(fresh)
            self.settings = settings
            self._hold([], fresh, counts, [mark(digest, node.hash) for node, digest in zip(nodes, embed_hashes, strict=True)])

    def delete_nodes(self, node_ids: Sequence[str]) -> None:
        """Remove single nodes everywhere; their document stays."""
        with self._change():
            with self.database.transaction():
                before = self._rows.hashes_of_nodes(node_ids)
                self.database.executemany("DELETE FROM nodes WHERE node_id = ?", ((node_id,) for node_id in node_ids))
                self._rows.forget_unused(before)
                if not self._own_vectors:
                    self.vectors.delete_nodes(list(node_ids))
            self._hold(node_ids, [], [], [])

    def persist(self, folder: Path) -> None:
        """Copy the stored state into another folder; the folder must not hold an index."""
        self.database.backup_to(folder)

    def sizes(self) -> dict[str, int]:
        """Numbers of documents, nodes and vectors, and bytes of text, vectors and postings."""
        return {name: int(self.database.query(f"SELECT {what}")[0][0] or 0) for name, what in _SIZES.items()}

    def close(self) -> None:
        """Close the database; closing twice is fine."""
        self.database.close()


def _replace_documents(store: BasePydanticVectorStore, ref_doc_ids: Sequence[str], nodes: Sequence[BaseNode]) -> None:
    for ref_doc_id in ref_doc_ids:
        store.delete(ref_doc_id)
    if nodes:
        store.add(list(nodes))
