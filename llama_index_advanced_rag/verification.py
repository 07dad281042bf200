"""Whether what an index stores is sound, and making it so."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.corpus_writes import encode_records
from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError
from llama_index_advanced_rag.graph.extraction import read_records
from llama_index_advanced_rag.stores.rows.row_checks import file_problems, reclaim, row_problems
from llama_index_advanced_rag.stores.rows.row_rebuild import rebuild
from llama_index_advanced_rag.stores.vectors.any_vector_store import holds_nothing
from llama_index_advanced_rag.stores.vectors.external_vectors import ExternalVectors, Pending

_BATCH = 500
_ATTEMPTS = 5
T = TypeVar("T")
Embed = Callable[[Sequence[BaseNode]], NDArray[Any]]


@dataclass
class VerifyReport:
    """What was checked and what came of it.

    Attributes:
        problems: what is wrong, a sentence each; with `repair=True` what was wrong.
        repaired: what was done about it.
        unchecked: what could not be looked at, and why.
    """

    problems: list[str] = field(default_factory=list[str])
    repaired: list[str] = field(default_factory=list[str])
    unchecked: list[str] = field(default_factory=list[str])

    @property
    def ok(self) -> bool:
        """True when nothing was wrong."""
        return not self.problems

    def __str__(self) -> str:
        lines = [*(f"wrong: {line}" for line in self.problems), *(f"repaired: {line}" for line in self.repaired)]
        return "\n".join([*lines, *(f"not checked: {line}" for line in self.unchecked)]) or "The index is sound."


def check_folder(folder: Path) -> VerifyReport:
    """Check an index that may be too damaged to be opened; nothing is changed.

    Raises:
        IndexNotFoundError: there is none.
        IndexFormatError: the database cannot even be opened.
        ConfigurationError: its vectors are in an external vector store, which is needed too.
    """
    corpus = Corpus.open(folder, read_only=True, unread=True)
    try:
        return verify(corpus)
    finally:
        corpus.close()


def verify(corpus: Corpus, *, repair: bool = False, embed: Embed | None = None) -> VerifyReport:
    """Check files, rows, nodes, records and an external vector store against each other; see `CorpusIndex.verify`.

    Args:
        corpus: what is checked.
        repair: mend it.
        embed: makes the vectors that are lost; needed to repair.
    """
    report = VerifyReport()
    with corpus.database.alone():
        report.problems += _database_problems(corpus)
        if report.problems:  # what it says of files and rows cannot be relied on
            report.unchecked.append("The other files cannot be judged by a damaged 'corpus.sqlite'. Restore a copy of the folder, or build it anew.")
            return report
        report.problems += _file_problems(corpus) or _row_problems(corpus)
        if repair and report.problems and embed is not None:
            rebuild_rows(corpus, report, embed)
        _verify_records(corpus, report, repair=repair)
    if corpus.external is not None:
        _verify_external(corpus, corpus.external, report, repair=repair)
    return report


def _database_problems(corpus: Corpus) -> list[str]:
    try:
        return [f"The file 'corpus.sqlite' is damaged: {problem}." for problem in corpus.database.integrity_problems()]
    except IndexFormatError as error:
        return [str(error)]


def _file_problems(corpus: Corpus) -> list[str]:
    """As of one commit: another process may replace files while they are read."""
    found: list[str] = []
    for _ in range(_ATTEMPTS):
        version = corpus.database.data_version()
        with corpus.database.snapshot():
            found = file_problems(corpus.rows)
        if not found or corpus.database.data_version() == version:
            break
    return found


def _row_problems(corpus: Corpus) -> list[str]:
    with corpus.frozen():
        return row_problems(corpus.rows)


def rebuild_rows(corpus: Corpus, report: VerifyReport, embed: Embed) -> None:
    """Write the array files anew from the stored nodes and documents."""

    def counts(node: BaseNode) -> dict[str, int]:
        return corpus.postings.term_counts(node.get_content(metadata_mode=MetadataMode.EMBED))

    with corpus.database.alone():
        with corpus.database.transaction():
            made = rebuild(corpus.rows, corpus.documents, count=counts, embed=embed)
        corpus.refresh()
        with corpus.database.transaction():
            reclaim(corpus.rows)
    report.repaired.append(f"The postings were written anew from the stored text, {made} vectors were made again, all others were kept.")


def _verify_records(corpus: Corpus, report: VerifyReport, *, repair: bool) -> None:
    """Whether each searchable node has a record that can be read, where any are kept; joins the caller's hold on the database."""
    with corpus.database.snapshot():
        table, kept = corpus.records.rows, corpus.settings.extractor is not None
        missing, strange, damaged = table.rows_without_record() if kept else [], table.rows_without_node(), list(corpus.records.damaged())
    for rows, what in ((missing, "have no record of names and facts"), (damaged, "have a record of names and facts that is damaged")):
        report.problems += [f"{len(rows)} searchable nodes {what}: that of row {rows[0]}, for one."] if rows else []
    report.problems += [f"{len(strange)} records of names and facts are of no node, that of row {strange[0]} for one."] if strange else []
    if repair and (missing or strange or damaged):
        remake_records(corpus, report, sorted({*missing, *damaged}), strange)


def remake_records(corpus: Corpus, report: VerifyReport, rows: Sequence[int], strange: Sequence[int]) -> None:
    """Read the names and facts of the nodes of rows again, if what read them is known, and delete records that are of no node."""
    try:
        extractor = corpus.extractor
    except ConfigurationError as error:
        report.unchecked.append(f"The records of names and facts cannot be made again: {error}")
        return
    made = 0
    for batch in _batches(rows):
        nodes = corpus.documents.nodes_of_rows(batch)
        records = read_records(extractor, list(nodes.values())) if extractor is not None else []
        with corpus.database.transaction():
            corpus.records.rows.remove(batch)
            corpus.records.rows.put(list(nodes) if records else [], encode_records(records, list(nodes.values())))
        made += len(records)
    with corpus.database.transaction():
        corpus.records.rows.remove(strange)
    report.repaired.append(f"{made} records of names and facts were made again from the stored text.")


def _verify_external(corpus: Corpus, external: ExternalVectors, report: VerifyReport, *, repair: bool) -> None:
    name, pending = type(external.store).__name__, external.pending()
    if pending:
        report.problems.append(f"A change of {len(pending)} documents or nodes was cut off between this index and {name}.")
    missing = _missing(corpus, external.store, report)
    if missing:
        report.problems.append(f"{name} lacks {len(missing)} nodes of this index, {missing[0]!r} for one.")
    if repair and (pending or missing):
        mended = _mend(corpus, external, pending)
        n_filled = _fill(corpus, external, [node_id for node_id in missing if node_id not in mended])
        report.repaired.append(f"{len(mended) + n_filled} nodes were written to {name} again, from vectors kept here.")


def _missing(corpus: Corpus, store: BasePydanticVectorStore, report: VerifyReport) -> list[str]:
    """Ids of our nodes that the store does not have, where it can be asked."""
    ids, name = corpus.rows.table.node_ids(), type(store).__name__
    missing: list[str] = []
    for batch in _batches(ids):
        try:
            held = set[str]() if holds_nothing(store) else {node.node_id for node in store.get_nodes(node_ids=list(batch))}
        except NotImplementedError:
            report.unchecked.append(f"{name} cannot say which nodes it holds; only changes that were cut off are known.")
            return []
        except Exception as error:  # noqa: BLE001 - whatever keeps it from answering is what is wrong with it
            report.problems.append(f"{name} could not be asked for its nodes: {type(error).__name__}: {' '.join(str(error).split())}")
            return []
        missing += [node_id for node_id in batch if node_id not in held]
    return missing


def _mend(corpus: Corpus, external: ExternalVectors, pending: Sequence[Pending]) -> set[str]:
    """Write again what a change that was cut off may have left different; the ids of the nodes."""
    mended: set[str] = set()
    for batch in _batches(pending):
        ref_doc_ids, node_ids = [ref_doc_id for ref_doc_id, _ in batch if ref_doc_id], [node_id for _, node_id in batch if node_id]
        with external.announced(ref_doc_ids, node_ids) as change, corpus.rows.change(), change:
            found = [*corpus.nodes_of_documents(ref_doc_ids), *corpus.get_nodes(node_ids)]
            nodes = {node.node_id: node for node in found if not node.child_nodes}
            change.replace(list(nodes.values()), corpus.vectors_of_nodes(list(nodes)))
        mended.update(nodes)
    return mended


def _fill(corpus: Corpus, external: ExternalVectors, missing: Sequence[str]) -> int:
    """Write the nodes that are missing in the external store; how many."""
    n_nodes = 0
    for batch in _batches(missing):
        with external.announced([], batch) as change, corpus.rows.change(), change:
            nodes = corpus.get_nodes(batch)
            change.add(nodes, corpus.vectors_of_nodes([node.node_id for node in nodes]))
        n_nodes += len(nodes)
    return n_nodes


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
