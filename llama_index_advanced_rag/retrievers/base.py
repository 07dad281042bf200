"""What our retrievers share: options by copy, a private query bundle, a trace stage, sync and async over one search, many queries at once."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import arun_all, in_search_thread, in_thread, with_progress
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.nested_prompts import update_nested_prompts
from llama_index_advanced_rag.stores.rows.row_state import RowSpace
from llama_index_advanced_rag.trace import NodeLabel, RetrievalTrace, current_trace, stage_trace

_BEGINNING = 90
_AT_ONCE = 8
ScoredIds = list[tuple[str, float]]


class TracedRetriever(BaseRetriever):
    """Base class of the retrievers of this package.

    A child implements `_find` (and `_afind` where it can await); both receive a bundle of their own and record
    `Evidence` in `current_trace()` when there is one.

    Args:
        similarity_top_k: most nodes returned, at least 1.
        filters: only nodes whose metadata match are candidates; applied before the top-k cut.
    """

    stage: ClassVar[str] = "retriever"

    def __init__(
        self,
        *,
        similarity_top_k: int,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose)
        self._similarity_top_k = whole_number("similarity_top_k", similarity_top_k)
        self._filters = checked_filters(filters)
        self._refresh: Callable[[], object] | None = None
        self._known_hits: list[NodeWithScore] | None = None

    @property
    def similarity_top_k(self) -> int:
        """Most nodes returned."""
        return self._similarity_top_k

    @property
    def filters(self) -> MetadataFilters | None:
        """Metadata filters of this retriever."""
        return self._filters

    def with_top_k(self, similarity_top_k: int) -> Self:
        """The same retriever returning at most so many nodes; state is shared, this object stays as it is."""
        other = copy.copy(self)
        other._similarity_top_k = whole_number("similarity_top_k", similarity_top_k)  # noqa: SLF001
        return other

    def with_filters(self, filters: MetadataFilters | None) -> Self:
        """The same retriever under other metadata filters (one query's, say); this object stays as it is."""
        other = copy.copy(self)
        other._filters = checked_filters(filters)  # noqa: SLF001
        return other

    def refreshed_by(self, refresh: Callable[[], object]) -> Self:
        """The same retriever that calls `refresh` before each search, to see what others have written; this object stays as it is."""
        other = copy.copy(self)
        other._refresh = refresh  # noqa: SLF001
        return other

    @property
    def row_space(self) -> RowSpace | None:
        """The rows that are searched by position, nodes being built for the final hits only; None where nodes are searched."""
        return None

    def update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Replace prompts by the names that `get_prompts` gives; the others stay.

        Raises:
            ValueError: a name speaks of a part that does not exist.
        """
        update_nested_prompts(self, prompts_dict)

    def retrieve_ids(self, query: QueryType) -> ScoredIds:
        """Node ids and scores, best first: those of `retrieve`, without building nodes where the rows of one corpus are searched.

        An `IndexNode` is named itself; what it leads to is not asked. A hit whose store reports no score has 0.0. LlamaIndex's
        retrieval events carry nodes and are not sent; the trace is written as by `retrieve`.

        Args:
            query: the question, or a bundle whose embedding is used if it has one.
        """
        bundle = as_bundle(query)
        found = None if current_trace() is not None else self._find_ids(own_bundle(bundle))
        return _scored_ids(self._retrieve(bundle)) if found is None else found

    async def aretrieve_ids(self, query: QueryType) -> ScoredIds:
        """The async twin of `retrieve_ids`."""
        bundle = as_bundle(query)
        found = None if current_trace() is not None else await self._afind_ids(own_bundle(bundle))
        return _scored_ids(await self._aretrieve(bundle)) if found is None else found

    def retrieve_batch(self, queries: Sequence[QueryType], *, show_progress: bool = False) -> list[list[NodeWithScore]]:
        """What `retrieve` gives for each query, in their order; the rows of one corpus are searched for all queries together.

        Together means: one matrix product, each term's postings read once, nodes read once. For each query the events of
        `retrieve` are sent, after the search. Other retrievers, and all while a trace listens, are asked one by one.

        Args:
            queries: questions or bundles; an embedding in a bundle is used.
            show_progress: draw a progress bar.

        Raises:
            Exception: what `retrieve` raises for one of the queries.

        Example:
            >>> from llama_index_advanced_rag import LexicalRetriever
            >>> from llama_index.core.schema import TextNode
            >>> retriever = LexicalRetriever.from_defaults(nodes=[TextNode(id_="fox", text="Red foxes"), TextNode(id_="sea", text="Deep sea")])
            >>> [[hit.node_id for hit in hits] for hits in retriever.retrieve_batch(["sea", "fox", "owl"])]
            [['sea'], ['fox'], []]
        """
        found = self._find_batch(_own_bundles(queries)) if self._together(queries) else None
        each = with_progress(enumerate(queries), total=len(queries), description="Retrieving", show_progress=show_progress)
        return [(self if found is None else self._knowing(found[place])).retrieve(query) for place, query in each]

    async def aretrieve_batch(self, queries: Sequence[QueryType], *, show_progress: bool = False) -> list[list[NodeWithScore]]:
        """The async twin of `retrieve_batch`; where the queries are asked one by one, eight are under way at a time."""
        found = await self._afind_batch(_own_bundles(queries)) if self._together(queries) else None
        width = _AT_ONCE if found is None and current_trace() is None else 1
        starts = range(0, len(queries), width)
        results: list[list[NodeWithScore]] = []
        for start in with_progress(starts, total=len(starts), description="Retrieving", show_progress=show_progress):
            asked = [
                partial((self if found is None else self._knowing(found[place])).aretrieve, queries[place])
                for place in range(start, min(start + width, len(queries)))
            ]
            results += [outcome.unwrap() for outcome in await arun_all(asked)]
        return results

    def _together(self, queries: Sequence[QueryType]) -> bool:
        if isinstance(queries, (str, QueryBundle)):
            raise ConfigurationError(f"queries is {queries!r}. Expected a list of queries. Give [query], or call retrieve(query).")
        return len(queries) > 1 and self.row_space is not None and current_trace() is None

    def _knowing(self, hits: list[NodeWithScore]) -> Self:
        """The same retriever with its answer to the next query known."""
        other = copy.copy(self)
        other._known_hits = hits  # noqa: SLF001
        return other

    @abstractmethod
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Search; best first, new `NodeWithScore` objects, plain float scores, higher is better."""

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(self._find, query_bundle)

    def _find_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        """Ids and scores without nodes; None where that cannot be."""
        return None

    async def _afind_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        return None

    def _find_batch(self, query_bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]] | None:
        """What `_find` gives for each of the queries, searched together; None where that cannot be. There is a `row_space` and no trace."""
        return None

    async def _afind_batch(self, query_bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]] | None:
        return await in_search_thread(self._find_batch, query_bundles)

    def _see_changes(self) -> None:
        if self._refresh is not None:
            self._refresh()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._known_hits is not None:
            return self._known_hits
        if self.row_space is None:  # who searches rows looks for changes himself, in the thread of the search
            self._see_changes()
        with stage_trace(self.stage, query_bundle.query_str) as trace:
            return _labelled(self._find(own_bundle(query_bundle)), trace)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._known_hits is not None:
            return self._known_hits
        if self.row_space is None and self._refresh is not None:
            await in_thread(self._refresh)
        with stage_trace(self.stage, query_bundle.query_str) as trace:
            return _labelled(await self._afind(own_bundle(query_bundle)), trace)


def as_bundle(query: QueryType) -> QueryBundle:
    """The question as a bundle."""
    return QueryBundle(query) if isinstance(query, str) else query


def _own_bundles(queries: Sequence[QueryType]) -> list[QueryBundle]:
    return [own_bundle(as_bundle(query)) for query in queries]


def _scored_ids(hits: Sequence[NodeWithScore]) -> ScoredIds:
    return [(hit.node.node_id, 0.0 if hit.score is None else hit.score) for hit in hits]


def _labelled(hits: list[NodeWithScore], trace: RetrievalTrace | None) -> list[NodeWithScore]:
    if trace is not None:
        trace.labels.update({hit.node.node_id: node_label(hit.node) for hit in hits})
    return hits


def node_label(node: BaseNode) -> NodeLabel:
    """What a person calls a node: title (else file or document id) and page, and its first words.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> node_label(TextNode(text="The red fox.", metadata={"title": "Foxes", "page_label": "3"}))
        NodeLabel(title='Foxes, page 3', beginning='The red fox.')
    """
    metadata = node.metadata
    title = str(metadata.get("title") or metadata.get("file_name") or node.ref_doc_id or node.node_id)
    page = f", page {metadata['page_label']}" if metadata.get("page_label") else ""
    words = " ".join(node.get_content(metadata_mode=MetadataMode.NONE)[: 2 * _BEGINNING].split())
    return NodeLabel(title + page, words if len(words) <= _BEGINNING else f"{words[:_BEGINNING].rsplit(' ', 1)[0]} …")


def checked_filters(filters: MetadataFilters | None) -> MetadataFilters | None:
    """The filters, if they are LlamaIndex's.

    Raises:
        ConfigurationError: they are something else, a dictionary say.
    """
    if filters is not None and not isinstance(filters, MetadataFilters):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"filters is {filters!r}. It must be MetadataFilters or None, for example MetadataFilters(filters=[MetadataFilter(key='year', value=2023)])."
        )
    return filters


def own_bundle(query_bundle: QueryBundle) -> QueryBundle:
    """A copy whose fields can be set without the caller, or the next retriever, seeing it."""
    return copy.copy(query_bundle)
