"""Names of positions that are held in lists."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from llama_index_advanced_rag.stores.rows import Positions


class ListNames:
    """Names of the rows of arrays in memory, as `RowNames` describes them.

    Args:
        node_ids: of each position, each once.
        sort_keys: of each position, each once; None = the node ids themselves.
        ref_doc_ids: document of each position; None = no documents.
        metadata: of each position; None = empty.

    Example:
        >>> names = ListNames(["b", "a"])
        >>> names.in_order(np.array([0, 1]), 2).tolist()
        [1, 0]
    """

    def __init__(
        self,
        node_ids: Sequence[str],
        *,
        sort_keys: Sequence[str] | None = None,
        ref_doc_ids: Sequence[str | None] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._node_ids: Sequence[str] = node_ids
        self._keys: Sequence[str] = node_ids if sort_keys is None else sort_keys
        self._documents = ref_doc_ids or []
        self._metadata = metadata or []

    def node_ids(self, positions: Positions) -> list[str | None]:
        """The node id of each position."""
        rows: list[int] = positions.tolist()
        return [self._node_ids[row] for row in rows]

    def in_order(self, positions: Positions, limit: int) -> Positions:
        """The first `limit` of the positions by sort key."""
        rows: list[int] = positions.tolist()
        return np.array(sorted(rows, key=self._keys.__getitem__)[:limit], dtype=np.intp)

    def positions_of(self, node_ids: Sequence[str]) -> Positions:
        """Positions of those of the nodes that are here, ascending."""
        wanted = set(node_ids)
        return np.array([position for position, node_id in enumerate(self._node_ids) if node_id in wanted], dtype=np.intp)

    def positions_of_documents(self, ref_doc_ids: Sequence[str]) -> Positions:
        """Positions of the nodes of these documents, ascending."""
        wanted = set(ref_doc_ids)
        return np.array([position for position, ref_doc_id in enumerate(self._documents) if ref_doc_id in wanted], dtype=np.intp)

    def metadata(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Position and metadata of the rows from `start` to before `stop`."""
        for position, metadata in enumerate(self._metadata[start:stop], start=start):
            yield position, dict(metadata)
