"""The front door: one index over documents that is searched by words and by meaning, updated in place, and kept in one folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.embeddings.utils import EmbedType
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType, resolve_llm
from llama_index.core.schema import BaseNode, Document, TransformComponent
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag.corpus import Corpus, CorpusSettings
from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.errors import ConfigurationError, IndexNotFoundError
from llama_index_advanced_rag.indexing import UpdateReport
from llama_index_advanced_rag.modes import (
    AVAILABLE_MODES,
    PARTS,
    RetrievalMode,
    accepted_names,
    build_retriever,
    checked_mode,
    refuse_unknown,
    retriever_class,
)
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine, report_unused_llm
from llama_index_advanced_rag.query_engines.grounded_chat import GroundedChatEngine
from llama_index_advanced_rag.query_engines.stock_chat import stock_chat_engine
from llama_index_advanced_rag.storage_view import holds_index, storage_view, write_signposts
from llama_index_advanced_rag.stores.database_schema import FORMAT_VERSION
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.updatable import UpdatableIndex


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One document of the index."""

    ref_doc_id: str
    title: str
    n_nodes: int
    hash: str | None
    metadata: dict[str, Any]


class CorpusIndex(UpdatableIndex):
    """Documents, searchable by words (BM25) and meaning (embeddings), exact through insert, update and delete.

    Everything lives in one folder (or in memory), changes are transactions, unchanged text is not embedded again, and no
    LLM is used unless one is given.

    Args:
        nodes: ready nodes to start with; usually use `from_documents`.
        persist_dir: folder of the index, made if missing; it must not hold an index yet. None keeps all in memory.
        embed_model: model, or its name; None is `Settings.embed_model` if set, else the packaged model, else one from the hub.
        llm: used by the query and chat engines of this index; None (default) never touches `Settings.llm`.
        language: language of the texts for word search, as an ISO code; "auto" recognises it for each chunk.
        vector_store: keep the vectors in this store instead of in the index.
        transformations: make the nodes with these instead of our sentence-respecting chunks.
        chunk_size: most tokens of a chunk, in the embedding model's tokens; None fits the model's window, at most 256.
        chunk_overlap: tokens that neighbouring chunks share.
        show_progress: draw a progress bar while indexing.

    Attributes:
        last_report: the `UpdateReport` of the last change.

    Raises:
        ConfigurationError: the folder holds an index already.

    Example:
        >>> from llama_index.core import Document
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> documents = [Document(text="The fox is red.", id_="fox"), Document(text="The sea is blue.", id_="sea")]
        >>> index = CorpusIndex.from_documents(documents, embed_model=DeterministicEmbedding())
        >>> index.as_retriever(similarity_top_k=1).retrieve("red fox")[0].node.ref_doc_id
        'fox'
        >>> index.delete_ref_doc("fox")
        >>> [info.ref_doc_id for info in index.list_documents()]
        ['sea']
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        persist_dir: str | Path | None = None,
        embed_model: EmbedType | None = None,
        llm: LLMType | None = None,
        language: str = "auto",
        vector_store: BasePydanticVectorStore | None = None,
        transformations: Sequence[TransformComponent] | None = None,
        chunk_size: int | None = None,
        chunk_overlap: int = 32,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        folder = Path(persist_dir) if persist_dir is not None else None
        if folder is not None and holds_index(folder):
            raise ConfigurationError(f"The folder {folder.name!r} already holds an index. Open it with CorpusIndex.load(persist_dir), or name another folder.")
        settings = CorpusSettings(
            analyzer=TextAnalyzer(language=language).to_dict(),
            external_vectors=vector_store is not None,
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            own_transformations=transformations is not None,
        )
        corpus = Corpus.create(folder, settings, vector_store=vector_store)
        if folder is not None:
            write_signposts(folder)
        self._setup(
            corpus,
            folder=folder,
            read_only=False,
            embed_model=embed_model,
            llm=llm,
            transformations=transformations,
            show_progress=show_progress,
            callback_manager=callback_manager,
        )
        if nodes:
            self.insert_nodes(nodes)

    def _setup(
        self,
        corpus: Corpus,
        *,
        folder: Path | None,
        read_only: bool,
        embed_model: EmbedType | None,
        llm: LLMType | None,
        transformations: Sequence[TransformComponent] | None,
        show_progress: bool,
        callback_manager: CallbackManager | None,
    ) -> None:
        self._corpus, self._folder, self._read_only = corpus, folder, read_only
        self._embed_given, self._embed_model = embed_model, None
        self._llm = resolve_llm(llm) if llm is not None else None
        self._own_transformations = list(transformations) if transformations is not None else None
        self.last_report = UpdateReport()
        super().__init__(
            index_struct=IndexDict(),
            storage_context=storage_view(corpus),
            callback_manager=callback_manager,
            transformations=cast("list[TransformComponent]", [None]),  # not empty, so that Settings.transformations is not resolved
            show_progress=show_progress,
        )

    @classmethod
    def from_documents(  # type: ignore[override]
        cls,
        documents: Sequence[Document],
        storage_context: StorageContext | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        *,
        overwrite: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Build an index that holds these documents.

        Args:
            documents: the documents; their `id_` identifies them in later updates.
            storage_context: not used; the index has stores of its own (give `persist_dir` and `vector_store` instead).
            show_progress: draw a progress bar.
            callback_manager: LlamaIndex callbacks.
            transformations: make the nodes with these instead of our chunks.
            overwrite: when `persist_dir` holds an index already, make it hold exactly these documents; what is unchanged is kept.
            **kwargs: the other arguments of the constructor.

        Raises:
            ConfigurationError: `persist_dir` holds an index and `overwrite` is False, or a storage context was given.
        """
        if storage_context is not None:
            raise ConfigurationError(
                "CorpusIndex keeps its own stores and takes no storage_context. Pass persist_dir=... and, for your own vectors, vector_store=..."
            )
        refuse_unknown(kwargs, {"CorpusIndex": accepted_names(cls)})
        common: dict[str, Any] = {"show_progress": show_progress, "callback_manager": callback_manager, "transformations": transformations}
        folder = kwargs.get("persist_dir")
        if overwrite and folder is not None and holds_index(Path(folder)):
            shared = {name: value for name, value in kwargs.items() if name in ("embed_model", "llm", "vector_store")}
            index = cls.load(folder, **shared, **common)
        else:
            index = cls(**kwargs, **common)
        wanted = {document.id_ for document in documents}
        index.apply(updated=documents, deleted=[info.ref_doc_id for info in index.list_documents() if info.ref_doc_id not in wanted])
        return index

    @classmethod
    def load(
        cls,
        persist_dir: str | Path,
        *,
        embed_model: EmbedType | None = None,
        llm: LLMType | None = None,
        vector_store: BasePydanticVectorStore | None = None,
        transformations: Sequence[TransformComponent] | None = None,
        read_only: bool = False,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> Self:
        """Open the index of a folder; usable as `with CorpusIndex.load(...) as index:`.

        Args:
            persist_dir: the folder.
            embed_model: the model it was built with; None finds it again by the name stored.
            llm: for the query and chat engines; None uses none.
            vector_store: the external vector store, if it was built with one.
            transformations: the ones it was built with, if any; needed only to change it.
            read_only: refuse changes, and open folders that cannot be written.
            show_progress: draw a progress bar while updating.
            callback_manager: LlamaIndex callbacks.

        Raises:
            IndexNotFoundError: there is no index in the folder.
            IndexFormatError: it is of another format version, or damaged.
            EmbeddingMismatchError: it was built with another embedding model.
        """
        folder = Path(persist_dir)
        if not holds_index(folder):
            raise IndexNotFoundError(
                f"There is no index in the folder {str(persist_dir)!r}. Build one with CorpusIndex.from_documents(documents, persist_dir=...)."
            )
        corpus = Corpus.open(folder, read_only=read_only, vector_store=vector_store)
        try:
            index = cls.__new__(cls)
            index._setup(  # noqa: SLF001 - a second constructor
                corpus,
                folder=folder,
                read_only=read_only,
                embed_model=embed_model,
                llm=llm,
                transformations=transformations,
                show_progress=show_progress,
                callback_manager=callback_manager,
            )
            if isinstance(embed_model, BaseEmbedding):
                index.corpus.check_embedding(embedding_identity(embed_model))
        except BaseException:
            corpus.close()
            raise
        return index

    def __repr__(self) -> str:
        sizes, place = self._corpus.sizes(), "in memory" if self._folder is None else f"in {self._folder.name!r}"
        return f"CorpusIndex({sizes['documents']} documents, {sizes['nodes']} nodes, {place}, modes: {', '.join(mode.value for mode in AVAILABLE_MODES)})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; closing twice is fine, using the index afterwards is an error."""
        self._corpus.close()

    @property
    def corpus(self) -> Corpus:
        """The state behind this index."""
        return self._corpus

    def persist(self, persist_dir: str | Path) -> None:
        """Copy the index into another folder, for `load`.

        Raises:
            ConfigurationError: the folder holds an index already.
        """
        self.storage_context.persist(persist_dir=persist_dir)

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
            "dimension": settings.dimension,
            "language": self._corpus.analyzer.language,
            "external_vectors": settings.external_vectors,
            "format_version": FORMAT_VERSION,
            "modes": [mode.value for mode in AVAILABLE_MODES],
        }

    def as_retriever(  # type: ignore[override]
        self, mode: RetrievalMode | str = RetrievalMode.HYBRID, *, similarity_top_k: int = 10, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> BaseRetriever:
        """A retriever over this index.

        Args:
            mode: how to search.
            similarity_top_k: most nodes returned.
            filters: only nodes whose metadata match; applied before the cut.
            **kwargs: further arguments of the retriever of that mode (`fusion`, `weights`, ... for hybrid).

        Raises:
            ModeNotAvailableError: this version cannot run the mode.
            UnknownArgumentError: an argument that the retriever does not take.
        """
        self._corpus.refresh()
        return build_retriever(self._corpus, lambda: self.embed_model, mode, similarity_top_k=similarity_top_k, filters=filters, options=kwargs)

    def as_query_engine(  # type: ignore[override]
        self, llm: LLMType | None = None, *, retriever_mode: RetrievalMode | str = RetrievalMode.HYBRID, **kwargs: Any
    ) -> GroundedQueryEngine:
        """An engine that answers with citations: from an LLM if one is given here or to the index, else the best sentences.

        Args:
            llm: the LLM; None is the index's own, which is None unless one was given. `Settings.llm` is never used.
            retriever_mode: how to search.
            **kwargs: arguments of `as_retriever` and of `GroundedQueryEngine`; each goes where it is accepted.

        Raises:
            UnknownArgumentError: an argument that nothing accepts.
        """
        engine, retriever = self._split(kwargs, retriever_mode)
        chosen = self._chosen_llm(llm)
        embed_model = self.embed_model if checked_mode(retriever_mode) is not RetrievalMode.LEXICAL else None
        options: dict[str, Any] = {"embed_model": embed_model, "language": self._corpus.analyzer.language, **engine}
        return GroundedQueryEngine(self.as_retriever(retriever_mode, **retriever), llm=chosen, **options)

    def as_chat_engine(  # type: ignore[override]
        self, chat_mode: ChatMode = ChatMode.BEST, llm: LLMType | None = None, *, retriever_mode: RetrievalMode | str = RetrievalMode.HYBRID, **kwargs: Any
    ) -> BaseChatEngine:
        """A chat engine over this index; without an LLM it answers with cited sentences, using terms of the history.

        Args:
            chat_mode: BEST and CONDENSE_QUESTION are our cited chat; CONTEXT, CONDENSE_PLUS_CONTEXT and SIMPLE are LlamaIndex's and need an LLM.
            llm: the LLM; None is the index's own.
            retriever_mode: how to search.
            **kwargs: arguments of `as_query_engine`, or of LlamaIndex's chat engine in its modes.

        Raises:
            ConfigurationError: the mode needs an LLM and none was given.
        """
        chosen = self._chosen_llm(llm)
        if chat_mode is ChatMode.BEST or (chat_mode is ChatMode.CONDENSE_QUESTION and chosen is not None):
            engine = self.as_query_engine(chosen, retriever_mode=retriever_mode, **kwargs)
            return GroundedChatEngine(engine, llm=chosen)
        if chosen is None:
            raise ConfigurationError(
                f"The chat mode {chat_mode.value!r} needs an LLM. Pass llm=..., or use ChatMode.BEST, which answers with cited sentences without one."
            )
        return stock_chat_engine(chat_mode, chosen, lambda: self.as_retriever(retriever_mode), kwargs)

    def _split(self, kwargs: dict[str, Any], mode: RetrievalMode | str) -> tuple[dict[str, Any], dict[str, Any]]:
        engine_names = accepted_names(GroundedQueryEngine, without=("retriever", "llm"))
        retriever_names = accepted_names(retriever_class(checked_mode(mode)), without=PARTS)
        refuse_unknown(kwargs, {"the query engine": engine_names, "the retriever": retriever_names})
        return {name: value for name, value in kwargs.items() if name in engine_names}, {
            name: value for name, value in kwargs.items() if name in retriever_names
        }

    def _chosen_llm(self, llm: LLMType | None) -> LLM | None:
        chosen = resolve_llm(llm) if llm is not None else self._llm
        if chosen is None:
            report_unused_llm()
        return chosen
