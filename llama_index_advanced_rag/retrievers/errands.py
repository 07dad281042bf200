"""How the retrievers inside a retriever are asked: each its own way, none changed, none seeing what another was given."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from llama_index_advanced_rag._concurrency import Outcome, in_thread, never_awaits
from llama_index_advanced_rag.retrievers.base import TracedRetriever, own_bundle
from llama_index_advanced_rag.retrievers.children import Child
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.trace import Evidence, RetrievalTrace, current_trace, report, use_trace


@dataclass(frozen=True, slots=True)
class Errand:
    """One child asked one query. Its trace is its own and joined to the parent's afterwards, so that a late thread cannot touch it."""

    child: Child
    retriever: BaseRetriever
    bundle: QueryBundle
    label: str
    top_n: int
    filters: MetadataFilters | None
    trace: RetrievalTrace | None

    def run(self) -> list[NodeWithScore]:
        """Ask, in this thread."""
        with use_trace(self.trace):
            return self._wanted(self.retriever.retrieve(self.bundle))

    async def arun(self) -> list[NodeWithScore]:
        """Ask; a retriever whose search blocks the event loop is asked in a thread, so that the others go on."""
        with use_trace(self.trace):
            if never_awaits(type(self.retriever)._aretrieve):  # noqa: SLF001
                found = await in_thread(self.retriever.retrieve, self.bundle)
            else:
                found = await self.retriever.aretrieve(self.bundle)
            return self._wanted(found)

    def _wanted(self, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        kept = [hit for hit in found if metadata_matches(filterable_metadata(hit.node), self.filters)]
        if len(kept) < len(found):
            report("info", f"{len(found) - len(kept)} of {len(found)} nodes of {self.label!r} do not match the filters; they were left out after its search.")
        if _is_stock_bm25(self.retriever):
            kept = [hit for hit in kept if hit.score is None or hit.score > 0]
        self._explain(kept[: self.top_n])
        return kept[: self.top_n]

    def _explain(self, hits: Sequence[NodeWithScore]) -> None:
        if self.trace is None or isinstance(self.retriever, TracedRetriever):
            return
        name = type(self.retriever).__name__
        for rank, hit in enumerate(hits, start=1):
            why = f"place {rank} of {name}" if hit.score is None else f"{name} score {hit.score:.3g}"
            self.trace.add(Evidence(hit.node.node_id, self.label, rank, None if hit.score is None else float(hit.score), why))

    def finished_trace(self, *, late: bool) -> RetrievalTrace | None:
        """The trace to show for it; one of our retrievers speaks for itself, a late one has an empty trace (it may still write)."""
        if self.trace is None or late:
            return None if self.trace is None else RetrievalTrace(self.label, self.trace.query)
        if len(self.trace.children) == 1 and not self.trace.evidence and not self.trace.notes:
            inner = self.trace.children[0]
            inner.stage = self.label
            return inner
        return self.trace


def errand(child: Child, bundle: QueryBundle, *, label: str, top_n: int, filters: MetadataFilters | None, traced: bool) -> Errand:
    """Prepare to ask a child for `top_n` nodes under filters; the user's object stays as it is.

    A retriever of this package takes top-n and filters before its search. Any other one is copied to be given
    `similarity_top_k`, where it has one, and its nodes are filtered after the search.
    """
    trace = RetrievalTrace(label, bundle.query_str) if traced else None
    own = child.retriever
    if isinstance(own, TracedRetriever):
        return Errand(child, own.with_top_k(top_n).with_filters(both(own.filters, filters)), bundle, label, top_n, None, trace)
    return Errand(child, _with_top_k(own, top_n), bundle, label, top_n, filters, trace)


def both(one: MetadataFilters | None, two: MetadataFilters | None) -> MetadataFilters | None:
    """Filters that hold where both hold; nested only where a flat list cannot say it."""
    given = [filters for filters in (one, two) if filters is not None and filters.filters]
    if len(given) < 2 or one == two:
        return given[0] if given else None
    if all(filters.condition in (None, FilterCondition.AND) for filters in given):
        return MetadataFilters(filters=[part for filters in given for part in filters.filters], condition=FilterCondition.AND)
    return MetadataFilters(filters=list(given), condition=FilterCondition.AND)


def make_errands(
    children: Sequence[Child], query_bundle: QueryBundle, others: Sequence[str], *, least_top_n: int, filters: MetadataFilters | None
) -> list[Errand]:
    """One errand for each query and child: the query given and other wordings of it.

    Args:
        children: who is asked.
        query_bundle: the query; its embedding is passed on while at most one embedding model is among the children.
        others: other wordings.
        least_top_n: nodes asked of a child without a number of its own.
        filters: metadata filters for all.
    """
    models = {id(child.embed_model) for child in children if child.embed_model is not None}
    if query_bundle.embedding is not None and len(models) > 1:
        report("info", "The embedding in the query bundle is not used: the retrievers have different embedding models, and each embeds the query itself.")
    traced = current_trace() is not None
    errands: list[Errand] = []
    for number, query in enumerate([query_bundle, *others], start=1):
        for child in children:
            bundle = QueryBundle(query) if isinstance(query, str) else _bundle_for_one(query, keep_embedding=len(models) <= 1)
            label = child.name if number == 1 else f"{child.name}[query {number}]"
            errands.append(errand(child, bundle, label=label, top_n=child.top_n or least_top_n, filters=filters, traced=traced))
    return errands


def took_part(errands: Sequence[Errand], outcomes: Sequence[Outcome[Any]]) -> list[bool]:
    """Which errands have answered; the others are reported, and all traces are joined to the current one.

    Raises:
        Exception: when none has answered, the first exception that is no timeout, else the first timeout.
    """
    join_traces(errands, outcomes)
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if len(errors) == len(outcomes):
        raise first_real_error(errors)
    for item, outcome in zip(errands, outcomes, strict=True):
        if outcome.error is not None:
            report("warning", f"Retriever {item.label!r} failed and was left out: {type(outcome.error).__name__}: {outcome.error}")
    return [outcome.ok for outcome in outcomes]


def first_real_error(errors: Sequence[BaseException]) -> BaseException:
    """The first that is no timeout, else the first timeout."""
    return next((error for error in errors if not isinstance(error, TimeoutError)), errors[0])


def is_empty(bundle: QueryBundle) -> bool:
    """True when a query has neither words nor an embedding."""
    return bundle.embedding is None and not any(text.strip() for text in [bundle.query_str, *bundle.embedding_strs])


def _bundle_for_one(bundle: QueryBundle, *, keep_embedding: bool) -> QueryBundle:
    own = own_bundle(bundle)
    own.custom_embedding_strs = copy.copy(bundle.custom_embedding_strs)
    own.embedding = copy.copy(bundle.embedding) if keep_embedding else None
    return own


def join_traces(errands: Sequence[Errand], outcomes: Sequence[Outcome[Any]]) -> None:
    """Make the traces of the errands parts of the current one, in their order."""
    trace = current_trace()
    for item, outcome in zip(errands, outcomes, strict=True):
        part = item.finished_trace(late=isinstance(outcome.error, TimeoutError))
        if trace is not None and part is not None:
            trace.children.append(part)


def _with_top_k(retriever: BaseRetriever, top_n: int) -> BaseRetriever:
    has = getattr(retriever, "similarity_top_k", None)
    wanted = min(top_n, _indexed(retriever) or top_n)
    if not isinstance(has, int) or has == wanted:
        return retriever
    other = copy.copy(retriever)
    try:
        other.similarity_top_k = wanted  # type: ignore[attr-defined]
    except AttributeError:
        report("info", f"{type(retriever).__name__} does not let its similarity_top_k be set; it is asked for its own {has}.")
        return retriever
    return other


def _is_stock_bm25(retriever: BaseRetriever) -> bool:
    return any(base.__module__ == "llama_index.retrievers.bm25.base" for base in type(retriever).__mro__)


def _indexed(retriever: BaseRetriever) -> int | None:
    """How many nodes a stock BM25Retriever holds: it raises when asked for more."""
    if not _is_stock_bm25(retriever):
        return None
    return int(getattr(retriever, "bm25").scores["num_docs"])  # noqa: B009 - not an attribute of BaseRetriever
