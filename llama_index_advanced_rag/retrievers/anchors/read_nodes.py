"""Passages as they were read, with what of them depends on no question; those of a corpus that were read lately are kept."""

import copy
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import BaseNode, RelatedNodeInfo, RelatedNodeType, TextNode

from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.hierarchy.units import UnitTable, document_of
from llama_index_advanced_rag.retrievers.anchors.lines import page_of
from llama_index_advanced_rag.retrievers.anchors.regions import Region, region_of
from llama_index_advanced_rag.stores.rows.positions import Positions
from llama_index_advanced_rag.stores.rows.row_state import RowState

_KEPT = 4096
_KEPT_CHARS = 10_000
_NAME = "anchor passages"
_PLAIN = (str, int, float, type(None))


@dataclass(slots=True)
class ReadNode:
    """A node and what is often asked about it.

    Attributes:
        node: the node; nobody writes into it.
        document: the id of its document.
        page: label of its pages.
        is_split: it was cut into others, which are passages in its place.
        is_shared: other questions read the same object.
    """

    node: BaseNode
    document: str
    page: str | None
    is_split: bool
    is_shared: bool = False
    _placed: tuple[UnitTable, Region, tuple[int, ...]] | None = None

    @classmethod
    def of(cls, node: BaseNode, *, is_shared: bool = False) -> "ReadNode":
        """What a node says."""
        return cls(node, document_of(node), page_of(node), bool(node.child_nodes), is_shared)

    def region(self, table: UnitTable) -> Region:
        """See `region_of`."""
        return self._in(table)[1]

    def places(self, table: UnitTable) -> tuple[int, ...]:
        """The units that it stands in, the deepest first."""
        return self._in(table)[2]

    def given(self) -> BaseNode:
        """The node for somebody who may write into it."""
        return _own(self.node) if self.is_shared else self.node

    def _in(self, table: UnitTable) -> tuple[UnitTable, Region, tuple[int, ...]]:
        placed = self._placed
        if placed is None or placed[0] is not table:
            inner = table.index_of(self.node)
            placed = self._placed = (table, region_of(self.node, table), () if inner is None else tuple(table.ancestors(inner)))
        return placed


ReadHit = tuple[ReadNode, float | None]


class ReadPassages:
    """The passages of a corpus that were read last, by their rows.

    A row is never given to another node, and its node never changes (what has changed has another row), so that what is kept is never out of date.
    Whether a row is still there is asked each time. Any number of threads may ask.

    Args:
        corpus: where they are read.
        most: so many are kept, those asked for last; of very long ones none.
    """

    def __init__(self, corpus: Corpus, *, most: int = _KEPT) -> None:
        self._corpus = corpus
        self._most = most
        self._kept: OrderedDict[int, ReadNode] = OrderedDict()
        self._lock = CopyableLock()

    @classmethod
    def of_corpus(cls, corpus: Corpus) -> "ReadPassages":
        """One for all retrievers over a corpus."""
        return corpus.shared.setdefault(_NAME, cls(corpus))

    def __len__(self) -> int:
        return len(self._kept)

    def at(self, state: RowState, positions: Positions) -> list[ReadNode | None]:
        """The node of each position; None for one that has been deleted since."""
        rows, node_ids = state.row_ids[positions].tolist(), state.names.node_ids(positions)
        found = self._known(rows, node_ids)
        missing = [place for place, (node_id, known) in enumerate(zip(node_ids, found, strict=True)) if node_id is not None and known is None]
        if missing:
            for place, node in zip(missing, self._corpus.nodes_at(state, positions[missing]), strict=True):
                found[place] = None if node is None else self._keep(rows[place], node)
        return found

    def _known(self, rows: Sequence[int], node_ids: Sequence[str | None]) -> list[ReadNode | None]:
        with self._lock:
            found = [self._kept.get(row) for row in rows]
            for row, known in zip(rows, found, strict=True):
                if known is not None:
                    self._kept.move_to_end(row)
        return [None if known is None or known.node.node_id != node_id else known for known, node_id in zip(found, node_ids, strict=True)]

    def _keep(self, row: int, node: BaseNode) -> ReadNode:
        if type(node) is not TextNode or len(node.text) > _KEPT_CHARS:
            return ReadNode.of(node)
        read = ReadNode.of(node, is_shared=True)
        with self._lock:
            self._kept[row] = read
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return read


def _own(node: BaseNode) -> BaseNode:
    """A copy that shares nothing that can be written into."""
    own: dict[str, Any] = {
        "embedding": None,
        "metadata": _own_values(node.metadata),
        "excluded_embed_metadata_keys": list(node.excluded_embed_metadata_keys),
        "excluded_llm_metadata_keys": list(node.excluded_llm_metadata_keys),
        "relationships": {relation: _own_relation(related) for relation, related in node.relationships.items()},
    }
    return node.model_copy(update=own)


def _own_relation(related: RelatedNodeType) -> RelatedNodeType:
    if isinstance(related, list):
        return [_own_info(one) for one in related]
    return _own_info(related)


def _own_info(related: RelatedNodeInfo) -> RelatedNodeInfo:
    return related.model_copy(update={"metadata": _own_values(related.metadata)})


def _own_values(metadata: dict[str, Any]) -> dict[str, Any]:
    return {key: value if isinstance(value, _PLAIN) else copy.deepcopy(value) for key, value in metadata.items()}
