"""The front door: one index over documents that is searched by words and by meaning, updated in place, and kept in one folder."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.embeddings.utils import EmbedType
from llama_index.core.llms.utils import LLMType, resolve_llm
from llama_index.core.schema import BaseNode, Document, TransformComponent
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.call_arguments import accepted_names, refuse_unknown
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.extraction import SPANS, ExtractorType, resolve_extractor, stored_extractor
from llama_index_advanced_rag.hierarchy.keys import CHUNKING
from llama_index_advanced_rag.searchable import SearchableIndex
from llama_index_advanced_rag.storage_view import (
    check_new_place,
    holds_index,
    index_folder,
    read_index_struct,
    remove_index,
    storage_view,
    write_signposts,
)
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.updatable import listed
from llama_index_advanced_rag.update_report import UpdateReport
from llama_index_advanced_rag.verification import VerifyReport


class CorpusIndex(SearchableIndex):
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
        transformations: make the nodes with these instead of our `HierarchicalNodeParser`. Nodes that name children are stored and not searched.
        chunk_size: most tokens of a chunk, in the embedding model's tokens; None fits the model's window, at most 256.
        chunk_overlap: tokens that neighbouring chunks share.
        extractor: reads the names and facts of each chunk, of which the entity graph is made: "spans" (default) finds capitalised names,
            numbers, dates and identifiers without a model; or an `Extractor`; None keeps none.
        show_progress: draw a progress bar while indexing.

    Attributes:
        last_report: the `UpdateReport` of the last change.

    Raises:
        ConfigurationError: the folder holds an index already, ours or LlamaIndex's own.

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
        extractor: ExtractorType | None = SPANS,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        folder = check_new_place(persist_dir) if persist_dir is not None else None
        analyzer = TextAnalyzer(language=language)
        reads = resolve_extractor(extractor, language=analyzer.language)
        settings = CorpusSettings(
            analyzer=analyzer.to_dict(),
            external_vectors=vector_store is not None,
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
            own_transformations=transformations is not None,
            chunking=CHUNKING,
            extractor=None if reads is None else reads.identity,
        )
        corpus = Corpus.create(folder, settings, vector_store=vector_store, extractor=reads)
        if folder is not None:
            _write_signposts(folder, corpus)
        self._setup(corpus, embed_model, llm, transformations, show_progress=show_progress, callback_manager=callback_manager)
        if nodes is not None:
            with self._first_contents():
                self.insert_nodes(nodes)

    def _setup(
        self,
        corpus: Corpus,
        embed_model: EmbedType | None,
        llm: LLMType | None,
        transformations: Sequence[TransformComponent] | None,
        *,
        show_progress: bool,
        callback_manager: CallbackManager | None,
    ) -> None:
        """What building and opening share: the corpus is there, all else is kept until it is needed."""
        self._corpus, self._folder, self._read_only = corpus, corpus.database.path, corpus.database.read_only
        self._embed_given, self._embed_model = embed_model, None
        self._llm = resolve_llm(llm) if llm is not None else None
        self._own_transformations = list(transformations) if transformations is not None else None
        self._resolving = CopyableLock()
        self.last_report = UpdateReport()
        super().__init__(
            index_struct=read_index_struct(corpus.database),
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
            transformations: in place of our chunks.
            overwrite: when `persist_dir` holds an index already, make it hold exactly these documents; what is unchanged is kept.
            **kwargs: the other arguments of the constructor.

        Raises:
            ConfigurationError: `persist_dir` holds an index and `overwrite` is False, or one with another language or chunk size;
                a storage context was given; `documents` are something else.
        """
        if storage_context is not None:
            raise ConfigurationError(
                "CorpusIndex keeps its own stores and takes no storage_context. Pass persist_dir=... and, for your own vectors, vector_store=..."
            )
        refuse_unknown(kwargs, {"CorpusIndex": accepted_names(cls)})
        given = listed(documents, Document)
        common: dict[str, Any] = {"show_progress": show_progress, "callback_manager": callback_manager, "transformations": transformations}
        folder = kwargs.get("persist_dir")
        if overwrite and folder is not None and holds_index(Path(folder)):
            index = cls.load(folder, **common, **{name: kwargs[name] for name in ("embed_model", "llm", "vector_store", "extractor") if name in kwargs})
            index._replace_contents(given, kwargs)  # noqa: SLF001 - of the same class
        else:
            index = cls(**kwargs, **common)
            with index._first_contents():
                index.apply(added=given)
        return index

    @contextmanager
    def _first_contents(self) -> Generator[None, None, None]:
        """Fill a new index; if that fails before anything is in, the files made for it go again, so that it can be tried again."""
        try:
            yield
        except BaseException:
            empty = not any(self._corpus.counts().values())
            self.close()
            if empty and self._folder is not None:
                remove_index(self._folder)
            raise

    def _replace_contents(self, documents: Sequence[Document], options: Mapping[str, Any]) -> None:
        """Make an index that was opened with these options hold exactly these documents."""
        try:
            self._check_built_with(options)
            wanted = {document.id_ for document in documents}
            self.apply(updated=documents, deleted=[info.ref_doc_id for info in self.list_documents() if info.ref_doc_id not in wanted])
        except BaseException:
            self.close()
            raise

    def _check_built_with(self, options: Mapping[str, Any]) -> None:
        settings = self._corpus.settings
        stored = {"language": self._corpus.analyzer.language, "chunk_size": settings.chunk_size, "chunk_overlap": settings.chunk_overlap}
        for name, value in stored.items():
            if options.get(name, value) != value:
                raise ConfigurationError(
                    f"The index in the folder was built with {name}={value!r}, not {options[name]!r}. Leave {name} out, or name another folder."
                )
        if options.get("transformations") is not None and not settings.own_transformations:
            raise ConfigurationError("This index was built without transformations, from chunks of its own. Leave transformations out.")
        if "extractor" in options:
            if options["extractor"] is None and settings.extractor is not None:
                raise ConfigurationError(f"The index in the folder was built with the extractor {settings.extractor!r}. Leave extractor out, or pass that one.")
            stored_extractor(settings.extractor, options["extractor"])

    @classmethod
    def load(
        cls,
        persist_dir: str | Path,
        *,
        embed_model: EmbedType | None = None,
        llm: LLMType | None = None,
        vector_store: BasePydanticVectorStore | None = None,
        transformations: Sequence[TransformComponent] | None = None,
        extractor: ExtractorType | None = None,
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
            extractor: the one it was built with, if it was your own; needed only to change it.
            read_only: refuse changes, and open folders that cannot be written.
            show_progress: draw a progress bar while updating.
            callback_manager: LlamaIndex callbacks.

        Raises:
            IndexNotFoundError: there is no index in the folder.
            IndexFormatError: it is of another format version, or damaged.
            ConfigurationError: `transformations` are given for an index that was built without, or another `extractor` than the one it was built with.
            EmbeddingMismatchError: it was built with another embedding model.
        """
        corpus = Corpus.open(index_folder(persist_dir), read_only=read_only, vector_store=vector_store, extractor=extractor)
        try:
            index = cls.__new__(cls)
            index._setup(corpus, embed_model, llm, transformations, show_progress=show_progress, callback_manager=callback_manager)  # noqa: SLF001
            index._check_built_with({"transformations": transformations, **({} if extractor is None else {"extractor": extractor})})  # noqa: SLF001
            if isinstance(embed_model, BaseEmbedding):
                index.corpus.settings.check_embedding(embedding_identity(embed_model))
        except BaseException:
            corpus.close()
            raise
        return index

    @classmethod
    def repair(
        cls,
        persist_dir: str | Path,
        *,
        embed_model: EmbedType | None = None,
        vector_store: BasePydanticVectorStore | None = None,
        extractor: ExtractorType | None = None,
    ) -> VerifyReport:
        """Check and mend the index of a folder that does not open because a file is damaged; see `verify(repair=True)`.

        Args:
            persist_dir: the folder.
            embed_model: the model it was built with; None finds it again by the name stored. Used only where vectors are lost.
            vector_store: the external vector store, if it was built with one.
            extractor: the one it was built with, if it was your own; used only where records of names and facts are lost.

        Raises:
            IndexNotFoundError: there is no index in the folder.
            IndexFormatError: the database itself is damaged.
        """
        corpus = Corpus.open(index_folder(persist_dir), vector_store=vector_store, extractor=extractor, unread=True)
        try:
            index = cls.__new__(cls)
            index._setup(corpus, embed_model, None, None, show_progress=False, callback_manager=None)  # noqa: SLF001
            return index.verify(repair=True)
        finally:
            corpus.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _write_signposts(folder: Path, corpus: Corpus) -> None:
    try:
        write_signposts(folder)
    except BaseException:
        corpus.close()
        raise
