"""Changing the corpus: which documents are new, what must be embedded, what is committed, and a report of all of it.

The work is written once, as a generator that asks for embeddings; `embeddings.requests` answers it, sync or async.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter
from types import MappingProxyType

from llama_index.core.ingestion import run_transformations
from llama_index.core.schema import BaseNode, Document, MetadataMode, TransformComponent

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.corpus_writes import PreparedDocument, ReadyNodes, Vector
from llama_index_advanced_rag.embeddings.requests import EmbedAnswer, Embedding, Steps, checked
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError, VectorStoreError
from llama_index_advanced_rag.graph.extraction import read_records
from llama_index_advanced_rag.graph.extractor import Extractor
from llama_index_advanced_rag.ready_nodes import REQUEST_TEXTS, ready_nodes
from llama_index_advanced_rag.update_report import Skipped, UpdateReport

BATCH_NODES = 256
MOST_BATCH_NODES = 16384
QUICK_S = 0.5
FAILURES_IN_A_ROW = 3
SAMPLE_TEXTS = 50


@dataclass
class ChangeRun:
    """One call of `apply`: what is asked for, what has happened so far."""

    corpus: Corpus
    transformations: Callable[[], Sequence[TransformComponent]]
    window: Callable[[], EmbeddingWindow]
    report: UpdateReport = field(default_factory=UpdateReport)
    on_progress: Callable[[int, str], object] = lambda _documents, _note: None
    sample: list[str] = field(default_factory=list[str])
    overlong: int = 0
    first_error: Exception | None = None
    failures_in_a_row: int = 0
    store_failures: int = 0
    batch_nodes: int = field(default_factory=lambda: BATCH_NODES)
    stored: Mapping[str, str] = field(default_factory=dict[str, str])

    def steps(self, upserts: Sequence[Document], deleted: Sequence[str]) -> Steps:
        """The whole change; yields texts to embed, receives vectors or the exception of the attempt."""
        self._delete(deleted)
        batch: list[PreparedDocument] = []
        n_nodes = 0
        for document, digest in self._wanted(upserts):
            prepared = self._prepare(document, digest)
            if prepared is not None:
                batch.append(prepared)
                n_nodes += len(prepared.ready.nodes)
            if n_nodes >= self.batch_nodes:
                yield from self._store_timed(batch)
                batch, n_nodes = [], 0
        if batch:
            yield from self._store(batch)
        self.corpus.settle()
        if self.overlong:
            self.report.warnings.append(
                f"{self.overlong} of {self.report.embedded} chunks are longer than the {self.window().max_tokens} tokens the embedding model reads: "
                "the rest of them counts for word search only. Choose a smaller chunk_size."
            )
        if self.first_error is not None and not self.report.anything_done():
            raise self.first_error

    def _store_timed(self, batch: Sequence[PreparedDocument]) -> Steps:
        """A commit costs about as much for few nodes as for many: where embedding is quick the batches grow, where it is slow little is lost by a kill."""
        started = perf_counter()
        yield from self._store(batch)
        quick = perf_counter() - started < QUICK_S
        self.batch_nodes = min(2 * self.batch_nodes, MOST_BATCH_NODES) if quick else max(self.batch_nodes // 2, BATCH_NODES)

    def _delete(self, ref_doc_ids: Sequence[str]) -> None:
        known = self.corpus.document_hashes(ref_doc_ids)
        present = [ref_doc_id for ref_doc_id in dict.fromkeys(ref_doc_ids) if ref_doc_id in known]
        for ref_doc_id in dict.fromkeys(ref_doc_ids):
            if ref_doc_id not in known:
                self.report.skipped.append(Skipped(ref_doc_id, "not in the index, so there was nothing to delete"))
        self._delete_stored(present)

    def _delete_stored(self, ref_doc_ids: Sequence[str]) -> None:
        """Delete documents in one transaction; when an external vector store fails, each by itself."""
        try:
            if ref_doc_ids and self.store_failures < FAILURES_IN_A_ROW:
                self.corpus.write([], {}, ref_doc_ids)
        except VectorStoreError as error:
            if len(ref_doc_ids) > 1:
                for ref_doc_id in ref_doc_ids:
                    self._delete_stored([ref_doc_id])
                return
            self.store_failures += 1
            self.first_error = self.first_error or error
            self.report.skipped.append(Skipped(ref_doc_ids[0], f"could not be deleted, the stored version is kept: {_sentence(error)}"))
            return
        if self.store_failures >= FAILURES_IN_A_ROW:
            self.report.skipped += [Skipped(ref_doc_id, self._not_tried()) for ref_doc_id in ref_doc_ids]
            return
        self.store_failures = 0
        self.report.deleted.extend(ref_doc_ids)

    def _wanted(self, upserts: Sequence[Document]) -> Iterable[tuple[Document, str]]:
        """The documents whose stored version differs, with their hashes; of equal ids the last one counts."""
        last = {document.id_: document for document in upserts}
        for ref_doc_id, count in _repeated(document.id_ for document in upserts).items():
            self.report.warnings.append(f"The id {ref_doc_id!r} was given {count} times in one call; the last document counts.")
        self.stored = self.corpus.document_hashes(list(last))
        for ref_doc_id, document in last.items():
            try:
                digest = document.hash
            except Exception as error:  # noqa: BLE001 - LlamaIndex cannot hash every text and template
                self._skip(document, f"cannot be read: {_sentence(error)}", error)
                continue
            if self.stored.get(ref_doc_id) == digest:
                self.report.unchanged.append(ref_doc_id)
                self.on_progress(1, "")
            else:
                yield document, digest

    def _prepare(self, document: Document, digest: str) -> PreparedDocument | None:
        transformations = self.transformations()
        try:
            return PreparedDocument(document, digest, self._cut(document, transformations))
        except Exception as error:  # noqa: BLE001 - one bad document must not stop the others
            self._skip(document, f"could not be split into nodes: {_sentence(error)}", error)
            return None

    def _cut(self, document: Document, transformations: Sequence[TransformComponent]) -> ReadyNodes:
        copied = document.model_copy(deep=True)  # some transformations write into what they are given
        nodes = [_owned(node, document) for node in run_transformations([copied], transformations)]
        if not any(node.get_content(MetadataMode.NONE).strip() for node in nodes):
            self.report.warnings.append(f"The document {document.id_!r} has no text; it is listed in the index but cannot be found.")
            nodes = []
        return ready_nodes(self.corpus, nodes)

    def _skip(self, document: Document, reason: str, error: Exception | None = None) -> None:
        self.report.skipped.append(Skipped(document.id_, reason))
        self.first_error = self.first_error or error
        self.on_progress(1, "")

    def _store(self, batch: Sequence[PreparedDocument], known: Mapping[str, Vector] = MappingProxyType({})) -> Steps:
        """Read, embed and commit a batch; when that fails, each document by itself, without embedding again what is `known`."""
        if max(self.failures_in_a_row, self.store_failures) >= FAILURES_IN_A_ROW:
            for item in batch:
                self._skip(item.document, self._not_tried())
            return
        extractor = self.corpus.extractor
        try:
            batch = _with_records(batch, extractor)
        except Exception as error:  # noqa: BLE001 - one document that cannot be read must not stop the others
            yield from self._each_alone(batch, known, "could not be read for names and facts", error)
            return
        texts = {digest: text for item in batch for text, digest in zip(item.ready.texts, item.ready.embed_hashes, strict=True)}
        vectors = self.corpus.vectors_by_hash(texts)
        fresh = len(texts) - len(vectors)
        vectors.update((digest, known[digest]) for digest in texts if digest in known)
        error = yield from self._embed(texts, vectors)
        if error is not None:
            self.failures_in_a_row += len(batch) == 1
            yield from self._each_alone(batch, vectors, "could not be embedded", error)
            return
        self.failures_in_a_row = 0
        try:
            self._commit(batch, vectors, fresh)
            self.store_failures = 0
        except (ConfigurationError, VectorStoreError) as refused:
            self.store_failures += len(batch) == 1 and isinstance(refused, VectorStoreError)
            yield from self._each_alone(batch, vectors, "could not be stored", refused)

    def _not_tried(self) -> str:
        what, times = ("the vector store", self.store_failures) if self.store_failures >= FAILURES_IN_A_ROW else ("the embedding model", self.failures_in_a_row)
        return f"not tried: {what} failed {times} times in a row"

    def _embed(self, texts: Mapping[str, str], vectors: dict[str, Vector]) -> Embedding:
        """Add what is missing to the vectors, a bounded number of texts a call, short ones first; the error that ended it."""
        missing = sorted((digest for digest in texts if digest not in vectors), key=lambda digest: (len(texts[digest]), digest))
        for start in range(0, len(missing), REQUEST_TEXTS):
            asked = missing[start : start + REQUEST_TEXTS]
            answer = self._usable((yield [texts[digest] for digest in asked]), len(asked))
            if isinstance(answer, Exception):
                return answer
            vectors.update(zip(asked, answer, strict=True))
            self.report.embedded += len(asked)
            self._look_at([texts[digest] for digest in asked])
            self.on_progress(0, f"{start + len(asked):,} of {len(missing):,} texts embedded")
        return None

    def _usable(self, answer: EmbedAnswer, expected: int) -> EmbedAnswer:
        answer = checked(answer, expected)
        if isinstance(answer, Exception):
            return answer
        try:
            self.corpus.settings.with_dimension({len(vector) for vector in answer})
        except EmbeddingMismatchError as error:
            return error
        return answer

    def _look_at(self, texts: Sequence[str]) -> None:
        """Count what the model could not read in full, and keep a sample for the language check."""
        window = self.window()
        self.overlong += sum(window.overflows(text) for text in texts)
        self.sample.extend(texts[: max(0, SAMPLE_TEXTS - len(self.sample))])

    def _each_alone(self, batch: Sequence[PreparedDocument], known: Mapping[str, Vector], what: str, error: Exception) -> Steps:
        if len(batch) > 1:
            for item in batch:
                yield from self._store([item], known)
            return
        self._skip(batch[0].document, f"{what}, the stored version is kept: {_sentence(error)}", error)

    def _commit(self, batch: Sequence[PreparedDocument], vectors: Mapping[str, Vector], fresh: int) -> None:
        self.corpus.write(batch, vectors)
        self.report.reused += sum(len(item.ready.nodes) for item in batch) - fresh
        for item in batch:
            ref_doc_id = item.document.id_
            (self.report.updated if ref_doc_id in self.stored else self.report.added).append(ref_doc_id)
        self.on_progress(len(batch), "")


def _owned(node: BaseNode, document: Document) -> BaseNode:
    """The node, if it names its document.

    Raises:
        ConfigurationError: it does not, so that it could never be updated or deleted with the document.
    """
    if node.ref_doc_id != document.id_:
        raise ConfigurationError(
            f"A transformation made the node {node.node_id!r} whose source is {node.ref_doc_id!r}, not the document {document.id_!r}. "
            "Set NodeRelationship.SOURCE on the nodes it makes."
        )
    return node


def _with_records(batch: Sequence[PreparedDocument], extractor: Extractor | None) -> Sequence[PreparedDocument]:
    """The documents with the names and facts in their nodes, which are read all at once, as models are quicker then."""
    if extractor is None or all(len(item.ready.records) == len(item.ready.nodes) for item in batch):
        return batch
    records = iter(read_records(extractor, [node for item in batch for node in item.ready.nodes]))
    return [replace(item, ready=replace(item.ready, records=list(islice(records, len(item.ready.nodes))))) for item in batch]


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _repeated(ids: Iterable[str]) -> dict[str, int]:
    return {ref_doc_id: count for ref_doc_id, count in Counter(ids).items() if count > 1}
