"""What our retrievers share: options by copy, a private query bundle, a trace stage, sync and async over one search."""

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.trace import NodeLabel, RetrievalTrace, stage_trace

_BEGINNING = 90


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

    @abstractmethod
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Search; best first, new `NodeWithScore` objects, plain float scores, higher is better."""

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(self._find, query_bundle)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._refresh is not None:
            self._refresh()
        with stage_trace(self.stage, query_bundle.query_str) as trace:
            return _labelled(self._find(own_bundle(query_bundle)), trace)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._refresh is not None:
            await in_thread(self._refresh)
        with stage_trace(self.stage, query_bundle.query_str) as trace:
            return _labelled(await self._afind(own_bundle(query_bundle)), trace)


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
