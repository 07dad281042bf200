"""What vector stores of other packages differ in and do not say: clients they lack, collections that are not made yet, methods left out."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters, VectorStoreQuery, VectorStoreQueryResult

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.filters.metadata_filters import metadata_matches


def holds_nothing(store: BasePydanticVectorStore) -> bool:
    """True for a store whose collection is made at the first `add` and is not there yet; such a store (Qdrant) refuses every other call until then.

    Asks the server only while the store itself has not made or found its collection.

    Example:
        >>> from llama_index.core.vector_stores import SimpleVectorStore
        >>> holds_nothing(SimpleVectorStore())
        False
    """
    if getattr(store, "_collection_initialized", True) is not False or store.client is None:
        return False
    exists, name = getattr(store.client, "collection_exists", None), getattr(store, "collection_name", None)
    return exists is None or name is None or not exists(name)


def check_writable(store: BasePydanticVectorStore) -> None:
    """Check that the methods which are not async can work.

    Raises:
        ConfigurationError: the store has an async client only.
    """
    if getattr(store, "_client", store) is None and getattr(store, "_aclient", None) is not None:
        raise ConfigurationError(
            f"{type(store).__name__} was given an async client only, and an index writes its vectors with the methods that are not async. "
            "Give it a client that is not async as well (client=...); the async one then serves searches."
        )


def deletes_nodes(store: BasePydanticVectorStore) -> bool:
    """True when single nodes can be deleted, not only all of a document."""
    return type(store).delete_nodes is not BasePydanticVectorStore.delete_nodes


def query_store(store: BasePydanticVectorStore, query: VectorStoreQuery) -> VectorStoreQueryResult:
    """The store's answer; nothing from a store whose collection is not made yet."""
    return VectorStoreQueryResult(nodes=[], similarities=[], ids=[]) if holds_nothing(store) else store.query(query)


async def aquery_store(store: BasePydanticVectorStore, query: VectorStoreQuery) -> VectorStoreQueryResult:
    """The async twin of `query_store`; a store that cannot await is asked in a thread."""
    if _awaits(store) and not await _aholds_nothing(store):
        return await store.aquery(query)
    return await in_thread(query_store, store, query)


def _awaits(store: BasePydanticVectorStore) -> bool:
    """True when `aquery` is its own and it has the client for it, or keeps no such client."""
    aclient: Any = getattr(store, "_aclient", store)
    return type(store).aquery is not BasePydanticVectorStore.aquery and aclient is not None


async def _aholds_nothing(store: BasePydanticVectorStore) -> bool:
    unmade = getattr(store, "_collection_initialized", True) is False
    return unmade and await in_thread(holds_nothing, store)


def simple_store_ids(store: BasePydanticVectorStore, doc_ids: Sequence[str] | None, filters: MetadataFilters | None) -> list[str] | None:
    """Ids that match in a `SimpleVectorStore`, which ignores doc_ids and refuses nested filters; None for other stores."""
    if not isinstance(store, SimpleVectorStore) or (filters is not None and not store.data.metadata_dict):
        return None
    documents, metadata = store.data.text_id_to_ref_doc_id, store.data.metadata_dict
    wanted = None if doc_ids is None else set(doc_ids)
    return [
        node_id
        for node_id in list(store.data.embedding_dict)
        if (wanted is None or documents.get(node_id) in wanted) and (filters is None or metadata_matches(metadata.get(node_id, {}), filters))
    ]
