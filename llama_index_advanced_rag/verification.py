"""Whether what an index stores is sound, and making it so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.stores.external_vectors import Pending
from llama_index_advanced_rag.stores.row_checks import file_problems, reclaim, row_problems
from llama_index_advanced_rag.stores.row_rebuild import rebuild

_BATCH = 500
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


def verify(corpus: Corpus, *, repair: bool = False, embed: Embed) -> VerifyReport:
    """Check files, rows, nodes and an external vector store against each other; see `CorpusIndex.verify`."""
    report = VerifyReport()
    with corpus.database.alone():
        report.problems += corpus.database.integrity_problems()
        damaged = file_problems(corpus.rows)
        if not damaged:
            corpus.refresh()
        report.problems += damaged or row_problems(corpus.rows)
        if repair and report.problems:
            rebuild_rows(corpus, report, embed)
    if corpus.external is not None:
        _verify_external(corpus, report, repair=repair)
    return report


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


def _verify_external(corpus: Corpus, report: VerifyReport, *, repair: bool) -> None:
    external = corpus.external
    assert external is not None  # noqa: S101 - the caller has looked
    pending = external.pending()
    if pending:
        report.problems.append(f"A change of {len(pending)} documents or nodes was cut off between this index and {type(external.store).__name__}.")
    missing = _missing(corpus, external.store, report)
    if missing:
        report.problems.append(f"{type(external.store).__name__} lacks {len(missing)} nodes of this index, {missing[0]!r} for one.")
    if repair and (pending or missing):
        n_nodes = _mend(corpus, pending, missing)
        report.repaired.append(f"{n_nodes} nodes were written to {type(external.store).__name__} again, from vectors kept here.")


def _missing(corpus: Corpus, store: BasePydanticVectorStore, report: VerifyReport) -> list[str]:
    """Ids of our nodes that the store does not have, where it can be asked."""
    ids = corpus.rows.table.node_ids()
    missing: list[str] = []
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        try:
            held = {node.node_id for node in store.get_nodes(node_ids=batch)}
        except NotImplementedError:
            report.unchecked.append(f"{type(store).__name__} cannot say which nodes it holds; only changes that were cut off are known.")
            return []
        missing += [node_id for node_id in batch if node_id not in held]
    return missing


def _mend(corpus: Corpus, pending: Sequence[Pending], missing: Sequence[str]) -> int:
    """Write again, in the external store, what may differ; how many nodes."""
    external = corpus.external
    assert external is not None  # noqa: S101 - the caller has looked
    documents = [ref_doc_id for ref_doc_id, _ in pending if ref_doc_id]
    loose = [node_id for _, node_id in pending if node_id]
    if loose:
        external.store.delete_nodes(loose)
    written = corpus.nodes_of_documents(documents)
    known = {node.node_id for node in written}
    written += [node for node in corpus.get_nodes(list(dict.fromkeys([*loose, *missing]))) if node.node_id not in known]
    external.replace(documents, written, corpus.vectors_of_nodes([node.node_id for node in written]))
    with corpus.database.transaction():
        external.done(ref_doc_ids=documents, node_ids=loose)
    return len(written)
