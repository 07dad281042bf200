"""The retrievers inside a retriever: their names, their options, and how each is asked without being changed."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from llama_index_advanced_rag._choices import positive_number, whole_number
from llama_index_advanced_rag._concurrency import in_thread, never_awaits
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.fusion import checked_weights
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.stores.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.trace import Evidence, RetrievalTrace, report, use_trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Child:
    """One retriever and how it takes part.

    Attributes:
        weight: at least 0.
        top_n: how many nodes it is asked for; None = its parent's choice.
        timeout_s: how long it may take; None = as long as it needs.
        own_range: the range its scores are put on, if the user says so; else min-max.
    """

    name: str
    retriever: BaseRetriever
    weight: float
    top_n: int | None
    timeout_s: float | None
    own_range: ScoreRange | None = None

    @property
    def natural_range(self) -> ScoreRange | None:
        """What its scores can be, as it says itself; None = not known."""
        known = getattr(self.retriever, "score_range", None)
        return known if isinstance(known, ScoreRange) else None

    @property
    def embed_model(self) -> object | None:
        """The embedding model the child searches with, where it shows one."""
        return getattr(self.retriever, "_embed_model", None)


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


def named(retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever]) -> dict[str, BaseRetriever]:
    """Retrievers by name, in order; without names: "dense", "lexical" and so on for ours, the class name for others, #2 for the second.

    Raises:
        ConfigurationError: there is none, one is not a retriever, or a name cannot be used.
    """
    if isinstance(retrievers, Mapping):
        by_name = dict(retrievers)
    else:
        by_name = dict[str, BaseRetriever]()
        for retriever in retrievers:
            name = retriever.stage if isinstance(retriever, TracedRetriever) else type(retriever).__name__
            same = sum(other.split("#")[0] == name for other in by_name)
            by_name[f"{name}#{same + 1}" if same else name] = retriever
    if not by_name:
        raise ConfigurationError("There are no retrievers. Give at least one.")
    for name, retriever in by_name.items():
        if not name or ":" in name:
            raise ConfigurationError(f"The retriever name {name!r} cannot be used. Names are not empty and hold no colon.")
        if not isinstance(cast(object, retriever), BaseRetriever):
            raise ConfigurationError(
                f"{name!r} is a {type(retriever).__name__}. Each part must be a LlamaIndex retriever; of an index, pass index.as_retriever()."
            )
    return by_name


def make_children(by_name: Mapping[str, BaseRetriever], *, weights: Any, score_ranges: Any, child_top_n: Any, timeout_s: Any) -> list[Child]:
    """The children with their options, each given as `per_child` reads it; None = weight 1, the rest as `Child` says.

    Raises:
        ConfigurationError: an option cannot work.
    """
    names = list(by_name)
    options = zip(
        checked_weights(per_child("weights", weights, names, 1.0, lambda _, value: value), len(names)),
        per_child("child_top_n", child_top_n, names, None, whole_number),
        per_child("timeout_s", timeout_s, names, None, positive_number),
        per_child("score_ranges", score_ranges, names, None, _score_range),
        strict=True,
    )
    return [Child(name, retriever, *values) for (name, retriever), values in zip(by_name.items(), options, strict=True)]


def per_child(option: str, value: Any, names: Sequence[str], default: T, check: Callable[[str, Any], T]) -> list[T]:
    """One value of an option for each child, from one for all, a sequence in their order, or a mapping by name.

    Names a mapping leaves out have the default, and so has None.

    Raises:
        ConfigurationError: a name is unknown, the sequence has another length, or a value cannot be used.
    """
    if isinstance(value, Mapping):
        by_name = cast("Mapping[str, Any]", value)
        unknown = [name for name in by_name if name not in names]
        if unknown:
            raise ConfigurationError(f"{option} names {unknown!r}. The retrievers are {list(names)!r}.")
        values = [by_name.get(name) for name in names]
    elif isinstance(value, Sequence):
        values = list(cast("Sequence[Any]", value))
    else:
        values = [value] * len(names)
    if len(values) != len(names):
        raise ConfigurationError(f"{option} has {len(values)} values {values!r} for {len(names)} retrievers. Give one for each, or a mapping by name.")
    return [default if item is None else check(option, item) for item in values]


def _score_range(option: str, value: Any) -> ScoreRange:
    if not isinstance(value, ScoreRange):
        raise ConfigurationError(f"{option} holds {value!r}. Each must be a ScoreRange(low, high).")
    return value


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
