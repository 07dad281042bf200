"""A query to a vector store as a search of one state, and the state in which what it finds is still there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.rows.positions import NOTHING, Found
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.stores.vectors.vector_arguments import check_mode, checked_threshold, checked_top_k

Search = Callable[[RowState], Found]


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
