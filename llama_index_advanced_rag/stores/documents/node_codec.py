"""Documents and nodes as small rows: a node keeps only what differs from its document, and comes back equal."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, cast

from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    Node,
    ObjectType,
    TextNode,
)

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.documents.metadata_codec import MetadataBase, copied, dumps, not_json
from llama_index_advanced_rag.stores.documents.node_fields import JsonDict, fields_of
from llama_index_advanced_rag.stores.documents.relation_codec import full_relation, short_relation
from llama_index_advanced_rag.stores.sqlite.lossless_text import is_plain_text

_CLASSES: dict[str, type[BaseNode]] = {kind.__name__: kind for kind in (TextNode, IndexNode, ImageNode, Node, Document, ImageDocument)}
_INHERITED = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys", "metadata_template", "metadata_separator", "text_template")
_COMMON = "nodes"  # in the body of a document: what its nodes have in common beside its metadata


class DocumentRow(NamedTuple):
    """Columns of `documents`; `body` is None for a document known only by its nodes."""

    text: str | None
    metadata: str
    body: str | None


class NodeRow(NamedTuple):
    """Columns of `nodes`; `text` is None when it is the slice [start, end) of the document's text, or when there is none."""

    start_char: int | None
    end_char: int | None
    text: str | None
    body: str | None


@cache
def _defaults(kind: type[BaseNode]) -> JsonDict:
    return {name: info.get_default(call_default_factory=True) for name, info in kind.model_fields.items() if name != "id_" and not info.is_required()}  # pyright: ignore[reportUnknownArgumentType]


@cache
def _plain_inheritance() -> JsonDict:
    return {name: _defaults(TextNode)[name] for name in _INHERITED}


@dataclass(frozen=True, slots=True)
class Common:
    """What the nodes of a document have in common.

    Attributes:
        base: their metadata.
        fields: excluded keys and templates that all of them have and the document has not.
    """

    base: MetadataBase
    fields: JsonDict

    @classmethod
    def of(cls, document: Document, nodes: Sequence[BaseNode]) -> "Common":
        """Of a document that is being written with all its nodes."""
        values = {name: getattr(nodes[0], name, None) for name in _INHERITED} if nodes else {}
        same = {name: value for name, value in values.items() if value is not None and all(getattr(node, name, None) == value for node in nodes)}
        fields = {name: value for name, value in same.items() if value != getattr(document, name)}
        return cls(MetadataBase.of_nodes(document.metadata, nodes), fields)

    def to_stored(self) -> JsonDict:
        """What is kept of it in the body of the document; empty when there is nothing."""
        return {**self.base.to_stored(), **({"fields": self.fields} if self.fields else {})}


@dataclass(frozen=True)
class Inherited:
    """What nodes share with their document and therefore do not store.

    Attributes:
        ref_doc_id: id of the document; None for nodes without one.
        base: the metadata they have in common.
        fields: its excluded keys and templates (LlamaIndex's defaults when only its nodes are known).
        source_hash: the hash that a SOURCE relation to it carries.
        text: its text when nodes may be slices of it.
    """

    ref_doc_id: str | None = None
    base: MetadataBase = field(default_factory=MetadataBase)
    fields: JsonDict = field(default_factory=lambda: _plain_inheritance())
    source_hash: str | None = None
    text: str | None = None
    _expected: dict[str, JsonDict] = field(default_factory=dict[str, JsonDict], repr=False, compare=False)

    def expected(self, kind: str) -> JsonDict:
        """The fields of a node of this class that say nothing of their own."""
        if kind == "TextNode" and self.fields is _plain_inheritance():
            return _defaults(TextNode)
        known = self._expected.get(kind)
        if known is None:
            known = self._expected[kind] = {**_defaults(_CLASSES[kind]), **self.fields}
        return known

    @property
    def usual_source(self) -> list[Any]:
        """The SOURCE relation of most nodes: id, type, metadata difference, hash."""
        return [self.ref_doc_id, ObjectType.DOCUMENT.value, None, self.source_hash]

    @classmethod
    def of_nodes(cls, ref_doc_id: str, nodes: Sequence[BaseNode]) -> "Inherited":
        """Of a document of which only nodes are known: the union of their metadata."""
        union: JsonDict = {}
        for node in nodes:
            union.update(node.metadata)
        return cls(ref_doc_id, MetadataBase(union))

    def as_row(self, node: BaseNode) -> DocumentRow:
        """The columns of the document; the node is named when they cannot be stored."""
        try:
            return DocumentRow(self.text, self.base.text, None)
        except (TypeError, ValueError, RecursionError) as error:
            raise not_json(node, error) from error

    @classmethod
    def of_document(cls, document: Document, digest: str, common: Common) -> "Inherited":
        """Of a document that is being written, whose hash is `digest`."""
        text = document.text_resource.text if document.text_resource is not None else None
        fields = {**{name: getattr(document, name) for name in _INHERITED}, **common.fields}
        return cls(document.id_, common.base, fields, digest, _sliceable(text))

    @classmethod
    def from_row(cls, ref_doc_id: str, row: DocumentRow) -> "Inherited":
        """Of a document as it is stored; leave `row.text` None to read nodes rather than write them."""
        body: JsonDict = json.loads(row.body) if row.body else {}
        common: JsonDict = body.get(_COMMON, {})
        fields = {name: body.get(name, _defaults(Document)[name]) for name in _INHERITED} | common.get("fields", {})
        return cls(ref_doc_id, MetadataBase.from_stored(json.loads(row.metadata), common), fields, body.get("hash"), _sliceable(row.text))


def metadata_base(metadata: str, body: str | None) -> MetadataBase:
    """What nodes of a document have in common, from two of its columns."""
    return MetadataBase.from_stored(json.loads(metadata), json.loads(body).get(_COMMON) if body else None)


def _sliceable(text: str | None) -> str | None:
    """The text, if SQLite counts its characters as Python does."""
    return text if text is not None and is_plain_text(text) and "\0" not in text else None


def encode_document(document: Document, digest: str, common: Common | None = None) -> DocumentRow:
    """The columns of a document whose hash is `digest`, with what its nodes have in common; `decode_document` gives back an equal one.

    Raises:
        ConfigurationError: something in it is not JSON (the message names the metadata key).
    """
    data = fields_of(document)
    resource = data.get("text_resource")
    text = resource.pop("text") if resource else None
    metadata = dumps(data.pop("metadata"), document)
    body = {name: value for name, value in data.items() if value != _defaults(Document).get(name, ...)}
    if common is not None and (stored := common.to_stored()):
        body[_COMMON] = stored
    return DocumentRow(text, metadata, dumps({**body, "class": _known_class(document), "hash": digest}, document))


def decode_document(ref_doc_id: str, row: DocumentRow) -> Document:
    """The document that `encode_document` took apart."""
    data: JsonDict = json.loads(row.body or "{}")
    data.pop("hash", None)
    data.pop(_COMMON, None)
    kind = _CLASSES[data.pop("class", "Document")]
    if data.get("text_resource") is not None:
        data["text_resource"]["text"] = row.text
    return cast(Document, kind.from_dict({**data, "id_": ref_doc_id, "metadata": json.loads(row.metadata)}))


def encode_node(node: BaseNode, inherited: Inherited, *, keep_embedding: bool) -> NodeRow:
    """The columns of a node; `decode_node` with the same inheritance gives back an equal one.

    Metadata of other types than JSON's are refused; tuples come back as lists, as they do from every LlamaIndex docstore.

    Raises:
        ConfigurationError: something in it is not JSON (the message names the metadata key).
    """
    kind = _known_class(node)
    data = fields_of(node)
    text = data.pop("text", None)
    start, end = data.pop("start_char_idx", None), data.pop("end_char_idx", None)
    if inherited.text is not None and isinstance(text, str) and _is_slice(inherited.text, start, end, text):
        text = None
    if not keep_embedding:
        data.pop("embedding")
    expected = inherited.expected(kind)
    body: JsonDict = {} if kind == "TextNode" else {"class": kind}
    difference = inherited.base.difference(data.pop("metadata"), node)
    source, related = inherited.usual_source, data.pop("relationships")
    relationships = {name: short_relation(name, value, source, inherited.base, node) for name, value in related.items()}
    if difference is not None:
        body["metadata"] = difference
    if relationships:
        body["relationships"] = relationships
    body.update({name: value for name, value in data.items() if value != expected.get(name, ...)})
    return NodeRow(start, end, text, dumps(body, node))


def decode_node(node_id: str, row: NodeRow, inherited: Inherited) -> BaseNode:
    """The node that `encode_node` took apart; `row.text` must be filled in when it was a slice."""
    body: JsonDict = json.loads(row.body or "{}")
    kind = _CLASSES[body.pop("class", "TextNode")]
    relationships = body.pop("relationships", {})
    metadata = copied(inherited.base.restored(body.pop("metadata", None)))
    data: JsonDict = {**inherited.fields, **body, "id_": node_id, "metadata": metadata}
    data["relationships"] = {name: full_relation(value, inherited.usual_source, inherited.base) for name, value in relationships.items()}
    if row.text is not None:
        data.update(text=row.text, start_char_idx=row.start_char, end_char_idx=row.end_char)
    return kind.from_dict(data)


def _known_class(node: BaseNode) -> str:
    if type(node) is TextNode:
        return "TextNode"
    for kind in type(node).__mro__:
        if _CLASSES.get(kind.__name__) is kind:
            return kind.__name__
    raise ConfigurationError(f"Node {node.node_id!r} is a {type(node).__name__}, expected one of {sorted(_CLASSES)} or a class that inherits one of them.")


def _is_slice(document_text: str, start: int | None, end: int | None, text: str) -> bool:
    return start is not None and end is not None and 0 <= start <= end <= len(document_text) and document_text[start:end] == text
