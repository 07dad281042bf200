"""The async half of a vector store whose work is done in this process: each call runs its sync twin in a worker thread."""

from abc import ABC
from collections.abc import Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters, VectorStoreQuery, VectorStoreQueryResult

from llama_index_advanced_rag._concurrency import in_thread


class AsyncVectorStore(BasePydanticVectorStore, ABC):
    """LlamaIndex's own twins run in the event loop and block it."""

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """The async twin of `add`."""
        return await in_thread(self.add, nodes, **kwargs)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """The async twin of `delete`."""
        await in_thread(self.delete, ref_doc_id, **delete_kwargs)

    async def adelete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any) -> None:
        """The async twin of `delete_nodes`."""
        await in_thread(self.delete_nodes, node_ids, filters, **delete_kwargs)

    async def aget_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The async twin of `get_nodes`."""
        return await in_thread(self.get_nodes, node_ids, filters)

    async def aclear(self) -> None:
        """The async twin of `clear`."""
        await in_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The async twin of `query`."""
        return await in_thread(self.query, query, **kwargs)
