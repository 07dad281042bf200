"""A query to a vector store as a search of one state, and the state in which what it finds is still there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.row_state import RowSpace, RowState
from llama_index_advanced_rag.stores.rows import NOTHING, Found
from llama_index_advanced_rag.stores.vector_arguments import check_mode, checked_threshold, checked_top_k

Search = Callable[[RowState], Found]
T = TypeVar("T")
_ATTEMPTS = 2


def checked_search(query: VectorStoreQuery, node_ids: Sequence[str] | None, options: Mapping[str, Any]) -> Search:
    """The query as a function of the state.

    Args:
        query: its own `node_ids` do not count.
        node_ids: only these nodes; None = all.
        options: `mmr_threshold` in it goes before that of the query.

    Raises:
        ConfigurationError: a mode other than `default` and `mmr`, no query embedding, or `mmr_threshold` outside [0, 1].
    """
    check_mode(query.mode)
    if query.query_embedding is None:
        raise ConfigurationError("The query has no embedding, and this store searches by vector only. Set query_embedding.")
    embedding, top_k, diverse = query.query_embedding, checked_top_k(query.similarity_top_k), query.mode == VectorStoreQueryMode.MMR
    relevance = checked_threshold(options.get("mmr_threshold", query.mmr_threshold)) if diverse else 1.0

    def search(state: RowState) -> Found:
        matrix = state.matrix
        if matrix is None:
            return NOTHING
        vector = matrix.checked_query(embedding)
        mask = state.mask(query.filters, node_ids=node_ids, doc_ids=query.doc_ids)
        if diverse:
            return matrix.diverse(vector, top_k=top_k, names=state.names, relevance=relevance, mask=mask)
        return matrix.top(vector, top_k=top_k, names=state.names, mask=mask)

    return search


def search_and_read(space: RowSpace, search: Search, read: Callable[[RowState, Found], Sequence[T | None]], *, by_ids: bool) -> tuple[Found, list[T]]:
    """What a search finds in one state, and what is read of it; where some has been deleted meanwhile, in a newer state.

    The third attempt searches while nothing can change, so what it finds is there.

    Args:
        space: gives the states.
        search: finds something in a state.
        read: what belongs to each hit; None for one that is gone.
        by_ids: it is restricted to ids of nodes or documents, which are looked up among those of now: it counts if nothing has changed.
    """
    for _ in range(_ATTEMPTS):
        space.refresh()
        state = space.state()
        found = search(state)
        items = read(state, found)
        present = [item for item in items if item is not None]
        if by_ids:
            space.refresh()
        if len(present) == len(items) and (not by_ids or space.state() is state):
            return found, present
    with space.frozen():
        state = space.state()
        found = search(state)
        return found, [item for item in read(state, found) if item is not None]


def read_ids(state: RowState, found: Found) -> list[str | None]:
    """The node id of each hit."""
    return state.names.node_ids(found.positions)
