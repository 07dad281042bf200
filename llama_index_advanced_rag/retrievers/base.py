"""What our retrievers share: options by copy, a private query bundle, a trace stage, sync and async over one search."""

import copy
from abc import abstractmethod
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.trace import stage_trace


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
        self._similarity_top_k = checked_top_k(similarity_top_k)
        self._filters = filters

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
        other._similarity_top_k = checked_top_k(similarity_top_k)  # noqa: SLF001
        return other

    def with_filters(self, filters: MetadataFilters | None) -> Self:
        """The same retriever under other metadata filters (one query's, say); this object stays as it is."""
        other = copy.copy(self)
        other._filters = filters  # noqa: SLF001
        return other

    @abstractmethod
    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Search; best first, new `NodeWithScore` objects, plain float scores, higher is better."""

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(self._find, query_bundle)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with stage_trace(self.stage, query_bundle.query_str):
            return self._find(own_bundle(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with stage_trace(self.stage, query_bundle.query_str):
            return await self._afind(own_bundle(query_bundle))


def checked_top_k(similarity_top_k: int) -> int:
    """The value, if it is a positive whole number.

    Raises:
        ConfigurationError: it is not.
    """
    if similarity_top_k < 1:
        raise ConfigurationError(f"similarity_top_k is {similarity_top_k!r}. It must be at least 1.")
    return similarity_top_k


def own_bundle(query_bundle: QueryBundle) -> QueryBundle:
    """A copy whose fields can be set without the caller, or the next retriever, seeing it."""
    return copy.copy(query_bundle)
