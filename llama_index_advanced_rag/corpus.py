"""The corpus: documents, nodes, postings and vectors as one state, changed in one transaction. It knows no retriever."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError
from llama_index_advanced_rag.stores.database import CorpusDatabase
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.node_source import sort_key
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

Vector = npt.NDArray[np.float32]
_SETTINGS = "settings"
_BATCH = 2000


@dataclass(frozen=True, slots=True)
class CorpusSettings:
    """What the stored state was made with; it is saved, and a corpus cannot be changed under other settings.

    Attributes:
        analyzer: `TextAnalyzer.to_dict()`.
        embedding: identity of the embedding model, None until the first vector is stored.
        embedding_name: the name the user gave for it, None when an object was given.
        dimension: length of the vectors, None until the first one is stored.
        external_vectors: vectors live in a vector store of the user's.
        chunk_size: most tokens of a chunk, None for what the model's window holds.
        chunk_overlap: tokens that neighbouring chunks share.
        own_transformations: nodes were made by transformations of the user's.
    """

    analyzer: dict[str, Any]
    embedding: str | None = None
    embedding_name: str | None = None
    dimension: int | None = None
    external_vectors: bool = False
    chunk_size: int | None = None
    chunk_overlap: int = 32
    own_transformations: bool = False


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """One document ready to be stored: its nodes and, in the same order, their embedding hashes and term counts."""

    document: Document
    nodes: Sequence[BaseNode]
    embed_hashes: Sequence[str]
    term_counts: Sequence[Mapping[str, int]]


class Corpus:
    """Documents, nodes, postings and vectors under one lock and one database transaction.

    Args:
        database: an open database.
        vector_store: the user's own vector store; None keeps the vectors here.

    Attributes:
        documents: the document store (a LlamaIndex `BaseDocumentStore`).
        postings: BM25 postings of all nodes.
        vectors: the vector store.
    """

    def __init__(self, database: CorpusDatabase, *, settings: CorpusSettings | None = None, vector_store: BasePydanticVectorStore | None = None) -> None:
        self.database = database
        self.documents = SQLDocumentStore(database)
        self._lock = RLock()
        self._external = vector_store
        if settings is None:
            self.settings = CorpusSettings(**database.get_meta(_SETTINGS))
        else:
            self.settings = settings
            database.set_meta(_SETTINGS, asdict(settings))
        if self.settings.external_vectors and vector_store is None:
            raise ConfigurationError(
                "This index keeps its vectors in an external vector store. Pass it again: CorpusIndex.load(persist_dir, vector_store=...)."
            )
        self.analyzer = TextAnalyzer.from_dict(self.settings.analyzer)
        self._load()

    @classmethod
    def create(cls, folder: Path | None, settings: CorpusSettings, *, vector_store: BasePydanticVectorStore | None = None) -> "Corpus":
        """An empty corpus in a folder, or in memory when the folder is None."""
        return cls(CorpusDatabase(folder, create=True), settings=settings, vector_store=vector_store)

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False, vector_store: BasePydanticVectorStore | None = None) -> "Corpus":
        """The corpus stored in a folder.

        Raises:
            IndexNotFoundError: there is none.
            IndexFormatError: it is of another format, or not ours.
        """
        return cls(CorpusDatabase(folder, read_only=read_only), vector_store=vector_store)

    def _load(self) -> None:
        """Build the arrays in memory from the rows."""
        self._version = self.database.data_version()
        postings = PostingsStore(self.analyzer)
        vectors = FlatVectorStore(keep_nodes=False) if self._external is None else self._external
        every = self.documents.iter_nodes(_BATCH)
        while nodes := list(islice(every, _BATCH)):
            ids = [node.node_id for node in nodes]
            counts = self._stored_counts(ids)
            postings.add_term_counts(ids, [counts[node_id] for node_id in ids], sort_keys=[sort_key(node) for node in nodes])
            if self._external is None:
                known = self._stored_vectors(ids)
                vectors.add([_with_vector(node, known[node.node_id]) for node in nodes])
        self.postings, self.vectors = postings, vectors

    def refresh(self) -> bool:
        """Load again when another process has committed since; True when it had."""
        with self._lock:
            if self.database.data_version() == self._version:
                return False
            self.settings = CorpusSettings(**self.database.get_meta(_SETTINGS))
            self._load()
            return True

    def _stored_counts(self, node_ids: Sequence[str]) -> dict[str, dict[str, int]]:
        rows = self.database.query_in("SELECT node_id, counts FROM postings WHERE node_id IN ({})", node_ids)
        return {node_id: json.loads(counts) for node_id, counts in rows}

    def _stored_vectors(self, node_ids: Sequence[str]) -> dict[str, Vector]:
        sql = "SELECT n.node_id, v.vector FROM nodes n JOIN vectors v ON v.embed_hash = n.embed_hash WHERE n.node_id IN ({})"
        return {node_id: np.frombuffer(blob, dtype="<f4") for node_id, blob in self.database.query_in(sql, node_ids)}

    def vectors_by_hash(self, embed_hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors already stored for these content hashes."""
        rows = self.database.query_in("SELECT embed_hash, vector FROM vectors WHERE embed_hash IN ({})", sorted(set(embed_hashes)))
        return {embed_hash: np.frombuffer(blob, dtype="<f4") for embed_hash, blob in rows}

    def document_hashes(self, ref_doc_ids: Sequence[str]) -> dict[str, str]:
        """Hashes of those of the documents that are stored."""
        return dict(self.database.query_in("SELECT ref_doc_id, hash FROM documents WHERE ref_doc_id IN ({})", ref_doc_ids))

    def _node_ids_of(self, ref_doc_ids: Sequence[str]) -> list[str]:
        return [row[0] for row in self.database.query_in("SELECT node_id FROM nodes WHERE ref_doc_id IN ({})", ref_doc_ids)]

    def describe_documents(self) -> list[tuple[str, str | None, dict[str, Any], int]]:
        """Id, hash, metadata and number of nodes of each document, by id."""
        sql = (
            "SELECT d.ref_doc_id, d.hash, d.metadata, count(n.node_id) FROM documents d "
            "LEFT JOIN nodes n ON n.ref_doc_id = d.ref_doc_id GROUP BY d.ref_doc_id ORDER BY d.ref_doc_id"
        )
        return [(ref_doc_id, digest, json.loads(metadata), count) for ref_doc_id, digest, metadata, count in self.database.query(sql)]

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """Nodes in the order asked; ids that are gone are left out."""
        return self.documents.get_nodes(list(node_ids), raise_error=False)

    def check_embedding(self, identity: str) -> None:
        """Check that vectors of this model can be compared with the stored ones.

        Raises:
            EmbeddingMismatchError: the stored vectors come from another model.
        """
        stored = self.settings.embedding
        if stored is not None and stored != identity:
            raise EmbeddingMismatchError(
                f"This index was built with the embedding model {stored!r}, but {identity!r} was given: their vectors cannot be compared. "
                "Pass the model it was built with as embed_model=..., or build a new index in another persist_dir."
            )

    def bind_embedding(self, identity: str, *, name: str | None) -> None:
        """Say which model the vectors come from, before the first are written.

        Raises:
            EmbeddingMismatchError: the stored vectors come from another model.
        """
        self.check_embedding(identity)
        if self.settings.embedding is None:
            settings = replace(self.settings, embedding=identity, embedding_name=name)
            self.database.set_meta(_SETTINGS, asdict(settings))
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
        with self._lock:
            replaced = [item.document.id_ for item in prepared] + list(deleted)
            gone = self._node_ids_of(replaced)
            fresh = [_with_vector(node, vectors[digest]) for item in prepared for node, digest in zip(item.nodes, item.embed_hashes, strict=True)]
            settings = self._with_dimension(vectors)
            with self.database.transaction():
                self._write_rows(prepared, vectors, deleted, settings)
                if self._external is not None:
                    self._write_outside(self._external, fresh, replaced)
            self.settings = settings
            self._replace_in_memory(gone, fresh, [count for item in prepared for count in item.term_counts])

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
        with self._lock:
            plain = [node.model_copy(update={"embedding": None}) for node in nodes]
            fresh = [_with_vector(node, vectors[digest]) for node, digest in zip(nodes, embed_hashes, strict=True)]
            counts = [self.postings.term_counts(node.get_content(metadata_mode=MetadataMode.EMBED)) for node in nodes]
            settings, ids = self._with_dimension(vectors), [node.node_id for node in nodes]
            with self.database.transaction():
                before = self._hashes_of_nodes(ids)
                self._write_vectors(vectors)
                self.documents.add_documents(plain)
                self.database.executemany("UPDATE nodes SET embed_hash = ? WHERE node_id = ?", zip(embed_hashes, ids, strict=True))
                self._write_counts(ids, counts)
                self._forget_unused(before)
                self.database.set_meta(_SETTINGS, asdict(settings))
                if self._external is not None:
                    self._external.add(fresh)
            self.settings = settings
            self._replace_in_memory(ids, fresh, counts)

    def _with_dimension(self, vectors: Mapping[str, Vector]) -> CorpusSettings:
        lengths = {len(vector) for vector in vectors.values()}
        known = self.settings.dimension
        if len(lengths | ({known} if known else set())) > 1:
            raise EmbeddingMismatchError(
                f"The embedding model gave vectors of length {sorted(lengths)}, but this index holds vectors of length {known}. "
                "Use the model it was built with."
            )
        return replace(self.settings, dimension=known or next(iter(lengths), None))

    def _write_rows(self, prepared: Sequence[PreparedDocument], vectors: Mapping[str, Vector], deleted: Sequence[str], settings: CorpusSettings) -> None:
        before = self._hashes_of_documents([*(item.document.id_ for item in prepared), *deleted])
        self._write_vectors(vectors)
        self.documents.delete_documents(deleted)
        for item in prepared:
            self.documents.put_document(item.document, item.nodes, embed_hashes=item.embed_hashes)
            self._write_counts([node.node_id for node in item.nodes], item.term_counts)
        self._forget_unused(before)
        if settings != self.settings:
            self.database.set_meta(_SETTINGS, asdict(settings))

    def _write_vectors(self, vectors: Mapping[str, Vector]) -> None:
        rows = [(digest, np.ascontiguousarray(vector, dtype="<f4").tobytes()) for digest, vector in vectors.items()]
        self.database.executemany("INSERT OR IGNORE INTO vectors (embed_hash, vector) VALUES (?, ?)", rows)

    def _write_counts(self, node_ids: Sequence[str], counts: Sequence[Mapping[str, int]]) -> None:
        rows = [(node_id, json.dumps(count)) for node_id, count in zip(node_ids, counts, strict=True)]
        self.database.executemany("INSERT OR REPLACE INTO postings (node_id, counts) VALUES (?, ?)", rows)

    def _hashes_of_documents(self, ref_doc_ids: Sequence[str]) -> list[tuple[str]]:
        return self.database.query_in("SELECT DISTINCT embed_hash FROM nodes WHERE embed_hash IS NOT NULL AND ref_doc_id IN ({})", ref_doc_ids)

    def _hashes_of_nodes(self, node_ids: Sequence[str]) -> list[tuple[str]]:
        return self.database.query_in("SELECT DISTINCT embed_hash FROM nodes WHERE embed_hash IS NOT NULL AND node_id IN ({})", node_ids)

    def _forget_unused(self, embed_hashes: Sequence[tuple[str]]) -> None:
        """Delete those of the vectors that no node refers to any more."""
        unused = "DELETE FROM vectors WHERE embed_hash = ? AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.embed_hash = vectors.embed_hash)"
        self.database.executemany(unused, embed_hashes)

    def _write_outside(self, store: BasePydanticVectorStore, fresh: Sequence[BaseNode], replaced: Sequence[str]) -> None:
        for ref_doc_id in replaced:
            store.delete(ref_doc_id)
        if fresh:
            store.add(list(fresh))

    def _replace_in_memory(self, gone: Sequence[str], fresh: Sequence[BaseNode], counts: Sequence[Mapping[str, int]]) -> None:
        self.postings.delete(gone)
        self.postings.add_term_counts([node.node_id for node in fresh], counts, sort_keys=[sort_key(node) for node in fresh])
        if self._external is None:
            self.vectors.delete_nodes(list(gone))
            self.vectors.add(list(fresh))

    def delete_nodes(self, node_ids: Sequence[str]) -> None:
        """Remove single nodes everywhere; their document stays."""
        with self._lock:
            with self.database.transaction():
                before = self._hashes_of_nodes(node_ids)
                self.database.executemany("DELETE FROM nodes WHERE node_id = ?", [(node_id,) for node_id in node_ids])
                self._forget_unused(before)
                if self._external is not None:
                    self._external.delete_nodes(list(node_ids))
            self.postings.delete(node_ids)
            if self._external is None:
                self.vectors.delete_nodes(list(node_ids))

    def persist(self, folder: Path) -> None:
        """Copy the stored state into another folder; the folder must not hold an index."""
        self.database.backup_to(folder)

    def sizes(self) -> dict[str, int]:
        """Numbers of documents, nodes and vectors, and bytes of text, vectors and postings."""
        one = lambda sql: int(self.database.query(sql)[0][0] or 0)  # noqa: E731
        return {
            "documents": one("SELECT count(*) FROM documents"),
            "nodes": one("SELECT count(*) FROM nodes"),
            "distinct_vectors": one("SELECT count(*) FROM vectors"),
            "text_bytes": one("SELECT sum(length(CAST(text AS BLOB))) FROM documents"),
            "vector_bytes": one("SELECT sum(length(vector)) FROM vectors"),
            "postings_bytes": one("SELECT sum(length(CAST(counts AS BLOB))) FROM postings"),
        }

    def close(self) -> None:
        """Close the database; closing twice is fine."""
        self.database.close()


def _with_vector(node: BaseNode, vector: Vector) -> BaseNode:
    """A copy of the node that carries the vector; the node given stays as it is."""
    return node.model_copy(update={"embedding": vector.tolist()})
