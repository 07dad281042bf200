"""Changing an index: LlamaIndex's insert, update, delete and refresh, all of them over one `apply`."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.embeddings.utils import EmbedType
from llama_index.core.schema import BaseNode, Document, IndexNode, TransformComponent

from llama_index_advanced_rag._concurrency import CopyableLock, in_thread, one_ahead
from llama_index_advanced_rag.embeddings.default import language_mismatch_warning, resolve_embed_model
from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.embeddings.requests import adrive, drive
from llama_index_advanced_rag.embeddings.window import embedding_window
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.indexing import BATCH_NODES, MOST_BATCH_NODES, ChangeRun
from llama_index_advanced_rag.ready_nodes import embed_nodes, ready_nodes, with_records
from llama_index_advanced_rag.stored_index import StoredIndex
from llama_index_advanced_rag.trace import report
from llama_index_advanced_rag.update_report import UpdateReport

N = TypeVar("N", bound=BaseNode)


class UpdatableIndex(StoredIndex):
    """A stored index whose changes are transactions with one report.

    Attributes:
        last_report: the `UpdateReport` of the last change.
    """

    last_report: UpdateReport
    _embed_given: EmbedType | None
    _embed_model: BaseEmbedding | None
    _resolving: CopyableLock
    _own_transformations: list[TransformComponent] | None

    @property
    def embed_model(self) -> BaseEmbedding:
        """The embedding model, resolved at first use.

        Raises:
            EmbeddingMismatchError: the index was built with another one.
            EmbeddingUnavailableError: none could be loaded.
        """
        with self._resolving:  # two threads must not load it twice
            if self._embed_model is None:
                model = resolve_embed_model(self._embed_given if self._embed_given is not None else self._corpus.settings.embedding_name)
                self._corpus.settings.check_embedding(embedding_identity(model))
                self._embed_model = model
            return self._embed_model

    def _writing_model(self) -> BaseEmbedding:
        identity = embedding_identity(self.embed_model)
        given = self._embed_given if isinstance(self._embed_given, str) else None
        self._corpus.bind_embedding(identity, name=given or ("packaged" if identity.startswith("packaged:") else None))
        return self.embed_model

    @property
    def _transformations(self) -> list[TransformComponent]:
        """What makes the nodes: the user's transformations, or our chunk parser sized for the embedding model."""
        settings = self._corpus.settings
        if self._own_transformations is None:
            if settings.own_transformations:
                raise ConfigurationError(
                    "This index was built with transformations of your own. Pass the same ones to CorpusIndex.load(..., transformations=[...]) to change it."
                )
            settings.check_chunking()
            parser = HierarchicalNodeParser.for_model(self.embed_model, chunk_size=settings.chunk_size, chunk_overlap=settings.chunk_overlap)
            self._own_transformations = [parser]
        return self._own_transformations

    @_transformations.setter
    def _transformations(self, value: object) -> None:
        """The base class sets its default here; ours depends on the embedding model and is made at first use."""

    def apply(self, *, added: Sequence[Document] = (), updated: Sequence[Document] = (), deleted: Sequence[str] = ()) -> UpdateReport:
        """Bring documents in, replace them, and remove others; the one method behind all changes.

        A document whose id is known replaces the stored version, whether it is called added or updated; one whose content
        is the stored one is left alone. Each batch is one transaction: a failure leaves whole documents, old or new.

        Args:
            added: documents to bring in.
            updated: documents to replace (or bring in).
            deleted: ids of documents to remove.

        Returns:
            What happened to each document; also `last_report`. Documents that could not be split or embedded are skipped
            with the reason and their stored version stays.

        Raises:
            ReadOnlyIndexError: the index was opened read-only.
            StorageError: the disk refused; batches committed before stay.
            Exception: if nothing at all could be done, the first error as it was.
        """
        upserts, gone, run = listed([*added, *updated], Document), checked_ids(deleted), self._start()
        with _progress(len(upserts), show=self._show_progress) as run.on_progress:
            drive(run.steps(upserts, gone), self._writing_model, show_progress=self._show_progress)
        return self._finish(run)

    async def aapply(self, *, added: Sequence[Document] = (), updated: Sequence[Document] = (), deleted: Sequence[str] = ()) -> UpdateReport:
        """The async twin of `apply`: embedding is awaited, everything else runs in a thread."""
        upserts, gone, run = listed([*added, *updated], Document), checked_ids(deleted), await in_thread(self._start)
        with _progress(len(upserts), show=self._show_progress) as run.on_progress:
            await adrive(run.steps(upserts, gone), self._writing_model)
        return await in_thread(self._finish, run)

    def _start(self) -> ChangeRun:
        self._refuse_read_only()
        self._corpus.refresh()
        run = ChangeRun(self._corpus, lambda: self._transformations, lambda: embedding_window(self.embed_model))
        self.last_report = run.report
        return run

    def _finish(self, run: ChangeRun) -> UpdateReport:
        mismatch = language_mismatch_warning(self.embed_model, run.sample) if run.sample else None
        run.report.warnings.extend([mismatch] if mismatch else [])
        for warning in run.report.warnings:
            report("warning", warning)
        return run.report

    def insert(self, document: Document, **_: Any) -> None:
        """Bring in one document; a stored one of the same id is replaced."""
        self.apply(added=[document])

    async def ainsert(self, document: Document, **_: Any) -> None:
        """The async twin of `insert`."""
        await self.aapply(added=[document])

    def update_ref_doc(self, document: Document, **_: Any) -> None:
        """Replace a document; if it cannot be embedded the stored version stays and the error is raised."""
        self.apply(updated=[document])

    async def aupdate_ref_doc(self, document: Document, **_: Any) -> None:
        """The async twin of `update_ref_doc`."""
        await self.aapply(updated=[document])

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = True, **_: Any) -> None:
        """Remove a document with its text, hash, nodes, postings and vectors; an unknown id is reported, not an error.

        `delete_from_docstore` is accepted for compatibility: everything is always removed, so that a later refresh
        inserts the document again.
        """
        self.apply(deleted=[ref_doc_id])

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = True, **_: Any) -> None:
        """The async twin of `delete_ref_doc`."""
        await self.aapply(deleted=[ref_doc_id])

    def refresh_ref_docs(self, documents: Sequence[Document], **_: Any) -> list[bool]:
        """Bring in what is new and replace what has changed; True for each document that was written."""
        return _written(documents, self.apply(updated=documents))

    async def arefresh_ref_docs(self, documents: Sequence[Document], **_: Any) -> list[bool]:
        """The async twin of `refresh_ref_docs`."""
        return _written(documents, await self.aapply(updated=documents))

    def insert_nodes(self, nodes: Sequence[BaseNode], *, use_embeddings: bool = False, **_: Any) -> None:
        """Bring in ready nodes; stored nodes of the same ids are replaced, of two with one id the later one stays.

        Nodes that name a source (`ref_doc_id`) are removed by `delete_ref_doc` of it. They are written 256 at a time (16,384 with
        `use_embeddings`), each time in one transaction: what was written before an error stays.

        Args:
            nodes: the nodes.
            use_embeddings: take the embeddings that nodes carry (from an `IngestionPipeline`, perhaps on many machines) as made by
                this index's embedding model, of the text that `get_content(MetadataMode.EMBED)` gives; nodes without one are
                embedded, and a text that is stored already keeps its vector. False: all are embedded here, since which model
                made an embedding cannot be seen.

        Raises:
            ConfigurationError: a `Document` is among them, which is to be cut into nodes first, an embedding is zero or not finite,
                or the extractor of this index was not passed.
            EmbeddingMismatchError: embeddings of another length than the stored ones, or another model than theirs.
            ReadOnlyIndexError: the index was opened read-only.
        """
        self._refuse_read_only()
        nodes = listed(nodes, BaseNode)
        whole = next((node for node in nodes if isinstance(node, Document)), None)
        if whole is not None:
            raise ConfigurationError(
                f"The document {whole.id_!r} was given as a node. Give documents to CorpusIndex.from_documents(documents) or insert(document), which cut them."
            )
        last = {node.node_id: self._without_object(node) for node in nodes}
        kept = list(last.values())
        size = MOST_BATCH_NODES if use_embeddings else BATCH_NODES  # what a kill loses is little work, or little embedding
        batches = (kept[start : start + size] for start in range(0, len(kept), size))
        extractor = self._corpus.extractor
        for ready in one_ahead(with_records(ready_nodes(self._corpus, batch), extractor) for batch in batches):
            self._corpus.write_nodes(ready, embed_nodes(self._corpus, self._writing_model(), ready, use_embeddings=use_embeddings))
        self._corpus.settle()

    def _without_object(self, node: BaseNode) -> BaseNode:
        """The node as it can be stored; what an `IndexNode` leads to is kept here, for this process, and asked when the node is found."""
        if not isinstance(node, IndexNode) or node.obj is None or isinstance(node.obj, BaseNode):
            return node
        self._object_map[node.index_id] = node.obj
        return node.model_copy(update={"obj": None})

    async def ainsert_nodes(self, nodes: Sequence[BaseNode], *, use_embeddings: bool = False, **_: Any) -> None:
        """The async twin of `insert_nodes`; runs in a thread."""
        await in_thread(self.insert_nodes, nodes, use_embeddings=use_embeddings)

    def _build_index_from_nodes(self, nodes: Sequence[BaseNode], **build_kwargs: Any) -> IndexDict:
        """The struct stays empty: the corpus knows its nodes."""
        return IndexDict()

    def _insert(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        self.insert_nodes(nodes, **insert_kwargs)

    def _delete_node(self, node_id: str, **delete_kwargs: Any) -> None:
        self.delete_nodes([node_id])

    def delete_nodes(self, node_ids: list[str], delete_from_docstore: bool = True, **_: Any) -> None:
        """Remove single nodes everywhere; their document stays listed."""
        self._refuse_read_only()
        self._corpus.delete_nodes(checked_ids(node_ids))

    async def adelete_nodes(self, node_ids: list[str], delete_from_docstore: bool = True, **_: Any) -> None:
        """The async twin of `delete_nodes`; runs in a thread."""
        await in_thread(self.delete_nodes, node_ids)


def listed(nodes: Iterable[N], kind: type[BaseNode]) -> list[N]:
    """Documents or nodes as a list.

    Raises:
        ConfigurationError: one of them is something else, or a single one was given instead of a list.
    """
    one = isinstance(nodes, (str, BaseNode))  # a node can be iterated too: its fields would come
    given = list(nodes)
    if one or not all(isinstance(cast(object, item), BaseNode) for item in given):
        wrong = nodes if one else next(item for item in given if not isinstance(cast(object, item), BaseNode))
        raise ConfigurationError(f"{type(wrong).__name__} {str(wrong)[:80]!r} was given where a list of {kind.__name__} objects is expected.")
    return given


def checked_ids(ids: Iterable[str]) -> list[str]:
    """The ids as a list.

    Raises:
        ConfigurationError: a single string was given, which would be taken for a list of letters.
    """
    if isinstance(ids, str):
        raise ConfigurationError(f"The id {ids!r} was given as a list of ids. Give a list: [{ids!r}].")
    return list(ids)


def _written(documents: Sequence[Document], done: UpdateReport) -> list[bool]:
    written = {*done.added, *done.updated}
    return [document.id_ in written for document in documents]


@contextmanager
def _progress(total: int, *, show: bool) -> Generator[Callable[[int, str], object], None, None]:
    if not show or not total:
        yield lambda _documents, _note: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="Indexing documents") as bar:

        def show_progress(documents: int, note: str) -> None:
            bar.set_postfix_str(note, refresh=not documents)
            bar.update(documents)

        yield show_progress
