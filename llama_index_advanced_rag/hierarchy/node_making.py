"""Slices of a document to nodes: ids that are the same in every run, metadata, source and neighbours."""

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.hierarchy.keys import PAGE_LABEL
from llama_index_advanced_rag.hierarchy.pages import page_label, page_starts_of, source_of
from llama_index_advanced_rag.stores.sqlite.lossless_text import escape_text
from llama_index_advanced_rag.trace import report

Kind = Literal["document", "section", "chunk"]
_NAMESPACE = uuid.UUID("6f0b2f5c-5a0e-5d8b-9a55-6c1d2c1f7f10")


class NodeMaker:
    """Makes the nodes of one document.

    The id of a node is a uuid5 of document id, kind, path of a section, text, and the ordinal among equals of the document.

    Args:
        document: the document, or a node that is cut further: its source and its place in it are passed on.
        text: its text.
        shape: fields that all its nodes share.
        id_func: LlamaIndex's default for ids as above, or the user's own.
    """

    def __init__(self, document: BaseNode, text: str, shape: dict[str, Any], id_func: Callable[[int, BaseNode], str]) -> None:
        self._document, self._text, self._shape = document, text, shape
        self._own_id = id_func if id_func is not default_id_func else None
        self._source = source_of(document)
        self._shift: int = getattr(document, "start_char_idx", None) or 0
        self._page_starts = page_starts_of(document)
        self._seen: Counter[str] = Counter()
        self._made = 0
        self._kept: set[str] = set()

    def make(self, kind: Kind, start: int, end: int, context: dict[str, str] | None = None, *, path: str = "") -> TextNode:
        """The node of a slice of the text.

        Args:
            kind: what it is.
            start: where it begins.
            end: where it ends.
            context: metadata besides the document's, which win where both have a key.
            path: what tells sections of the same text apart.
        """
        text = self._text[start:end]
        more = dict(context or {})
        if self._page_starts and kind != "document":
            more[PAGE_LABEL] = page_label(self._page_starts, start, end)
        return TextNode(
            **{**self._shape, "metadata": self._with(more)},
            id_=self._id(kind, text, path),
            text=text,
            start_char_idx=self._shift + start,
            end_char_idx=self._shift + end,
            relationships={NodeRelationship.SOURCE: self._source},
        )

    def _with(self, more: dict[str, str]) -> dict[str, Any]:
        own: dict[str, Any] = self._shape["metadata"]
        for name in more.keys() & own.keys() - self._kept:
            self._kept.add(name)
            report_kept(self._document, name)
        return {**own, **{name: value for name, value in more.items() if name not in own}}

    def _id(self, kind: Kind, text: str, path: str) -> str:
        position = self._made
        self._made += 1
        if self._own_id is not None:
            return self._own_id(position, self._document)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        name = "\0".join([kind, *([escape_text(path)] if path else []), digest])
        self._seen[name] += 1
        return str(uuid.uuid5(_NAMESPACE, f"{escape_text(self._document.node_id)}\0{name}\0{self._seen[name]}"))


def report_kept(document: BaseNode, name: str) -> None:
    """Say that a document's own metadata win."""
    report("info", f"The metadata of {document.node_id!r} have {name!r} already: it is kept, what was found in the text is left out.")


def related(node: TextNode) -> RelatedNodeInfo:
    """A relation to a node: its id and type, not another copy of its metadata."""
    return RelatedNodeInfo(node_id=node.node_id, node_type=node.get_type())


def link_neighbours(nodes: Sequence[TextNode]) -> None:
    """Set PREVIOUS and NEXT of new nodes that stand one behind the other."""
    infos = [related(node) for node in nodes]
    for before, after, info_before, info_after in zip(nodes, nodes[1:], infos, infos[1:], strict=False):
        before.relationships[NodeRelationship.NEXT] = info_after
        after.relationships[NodeRelationship.PREVIOUS] = info_before
