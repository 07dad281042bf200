"""What an index holds and what it is called: LlamaIndex's view of a corpus."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.indices.base import BaseIndex
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.errors import ReadOnlyIndexError
from llama_index_advanced_rag.modes import AVAILABLE_MODES
from llama_index_advanced_rag.storage_view import write_index_struct
from llama_index_advanced_rag.stores.sqlite.database_schema import FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One document of the index."""

    ref_doc_id: str
    title: str
    n_nodes: int
    hash: str | None
    metadata: dict[str, Any]


class StoredIndex(BaseIndex[IndexDict]):
    """A `BaseIndex` over a `Corpus`: name, contents, copies."""

    index_struct_cls = IndexDict
    _corpus: Corpus
    _folder: Path | None
    _read_only: bool

    @property
    def corpus(self) -> Corpus:
        """The state behind this index."""
        return self._corpus

    @property
    def vector_store(self) -> BasePydanticVectorStore:
        """The vectors: the store given, else one in memory that follows the rows of this index."""
        return self._corpus.vectors

    def set_index_id(self, index_id: str) -> None:
        """Give the index a name of its own; it is stored."""
        self._refuse_read_only()
        super().set_index_id(index_id)
        write_index_struct(self._corpus.database, self.index_struct)

    @property
    def summary(self) -> str:
        """What the index is about, for whoever chooses between several; it is stored."""
        return str(self.index_struct.summary)

    @summary.setter
    def summary(self, new_summary: str) -> None:
        self._refuse_read_only()
        self.index_struct.summary = new_summary
        write_index_struct(self._corpus.database, self.index_struct)

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """Node ids and metadata of each document."""
        return self._corpus.documents.get_all_ref_doc_info() or {}

    def list_documents(self) -> list[DocumentInfo]:
        """The documents, by id."""
        rows = self._corpus.describe_documents()
        return [
            DocumentInfo(ref_doc_id, str(metadata.get("title") or metadata.get("file_name") or ref_doc_id), count, digest, metadata)
            for ref_doc_id, digest, metadata, count in rows
        ]

    def info(self) -> dict[str, Any]:
        """Numbers of documents, nodes and vectors, bytes of each kind, language, embedding model, format version."""
        settings = self._corpus.settings
        return {
            **self._corpus.sizes(),
            "embedding": settings.embedding,
            "extractor": settings.extractor,
            "dimension": settings.dimension,
            "language": self._corpus.analyzer.language,
            "external_vectors": settings.external_vectors,
            "format_version": FORMAT_VERSION,
            "modes": [mode.value for mode in AVAILABLE_MODES],
        }

    def __repr__(self) -> str:
        if self._corpus.database.closed:
            return f"{type(self).__name__}(closed)"
        counts, place = self._corpus.counts(), "in memory" if self._folder is None else f"in {self._folder.name!r}"
        modes = ", ".join(mode.value for mode in AVAILABLE_MODES)
        return f"{type(self).__name__}({counts['documents']} documents, {counts['nodes']} nodes, {place}, modes: {modes})"

    def persist(self, persist_dir: str | Path) -> None:
        """Copy the index into another folder, for `load`; a copy of this index that is there is replaced. The own folder is always up to date.

        Raises:
            ConfigurationError: the folder holds another index.
        """
        self.storage_context.persist(persist_dir=persist_dir)

    def _refuse_read_only(self) -> None:
        if self._read_only:
            raise ReadOnlyIndexError("The index was opened with read_only=True and cannot be changed. Open it with CorpusIndex.load(persist_dir).")
