"""On which pages of its document a node stands, and the metadata of a document that its nodes do without."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, cast

from llama_index.core.schema import BaseNode, RelatedNodeInfo

from llama_index_advanced_rag.hierarchy.keys import BOOKMARKS, PAGE_STARTS

LAYOUT_KEYS = (PAGE_STARTS, BOOKMARKS)


def page_starts_of(document: BaseNode) -> list[int]:
    """Character offsets of the pages, or the empty list when the document does not say."""
    starts = document.metadata.get(PAGE_STARTS)
    if not isinstance(starts, (list, tuple)):
        return []
    offsets = cast(Sequence[Any], starts)
    return list(offsets) if all(isinstance(start, int) for start in offsets) else []


def page_label(page_starts: Sequence[int], start: int, end: int) -> str:
    """The page of a span of text, "3", or its first and last one, "3-4"; pages count from 1.

    Example:
        >>> page_label([0, 100, 200], 120, 180), page_label([0, 100, 200], 120, 201)
        ('2', '2-3')
    """
    first, last = max(1, bisect_right(page_starts, start)), max(1, bisect_right(page_starts, end - 1))
    return str(first) if first == last else f"{first}-{last}"


def without_layout(metadata: dict[str, Any]) -> dict[str, Any]:
    """A document's metadata without the offsets of pages and bookmarks, which grow with it and say nothing of a part."""
    return {name: value for name, value in metadata.items() if name not in LAYOUT_KEYS}


def source_of(document: BaseNode) -> RelatedNodeInfo:
    """The SOURCE relation of what is cut from a document; a node that has a source passes it on."""
    if document.source_node is not None:
        return document.source_node
    source = document.as_related_node_info()
    return RelatedNodeInfo(node_id=source.node_id, node_type=source.node_type, metadata=without_layout(source.metadata), hash=source.hash)
