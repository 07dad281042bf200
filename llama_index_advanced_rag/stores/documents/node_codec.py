"""Documents and nodes as small rows: a node keeps only what differs from its document, and comes back equal."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, cast

from llama_index.core.bridge.pydantic import AnyUrl
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    Node,
    NodeRelationship,
    ObjectType,
    TextNode,
)

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.documents.node_fields import JsonDict, fields_of
from llama_index_advanced_rag.stores.sqlite.lossless_text import is_plain_text

_SIMPLE = (str, int, bool, type(None))

_CLASSES: dict[str, type[BaseNode]] = {kind.__name__: kind for kind in (TextNode, IndexNode, ImageNode, Node, Document, ImageDocument)}
_INHERITED = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys", "metadata_template", "metadata_separator", "text_template")
_SOURCE = str(NodeRelationship.SOURCE.value)
_NO_METADATA = "{}"


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


@dataclass(frozen=True)
class Inherited:
    """What nodes share with their document and therefore do not store.

    Attributes:
        ref_doc_id: id of the document; None for nodes without one.
        metadata: the document's metadata.
        fields: its excluded keys and templates (LlamaIndex's defaults when only its nodes are known).
        source_hash: the hash that a SOURCE relation to it carries.
        text: its text when nodes may be slices of it.
    """

    ref_doc_id: str | None = None
    metadata: JsonDict = field(default_factory=dict)
    fields: JsonDict = field(default_factory=lambda: _plain_inheritance())
    source_hash: str | None = None
    text: str | None = None
    _expected: dict[str, JsonDict] = field(default_factory=dict[str, JsonDict], repr=False, compare=False)

    @cached_property
    def metadata_text(self) -> str:
        """The document's metadata as they are stored."""
        return _ENCODER.encode(self.metadata)

    def expected(self, kind: str) -> JsonDict:
        """The fields of a node of this class that say nothing of their own."""
        if kind == "TextNode" and self.fields is _plain_inheritance():
            return _defaults(TextNode)
        known = self._expected.get(kind)
        if known is None:
            known = self._expected[kind] = {**_defaults(_CLASSES[kind]), **self.fields}
        return known

    @classmethod
    def of_nodes(cls, ref_doc_id: str, nodes: Sequence[BaseNode]) -> "Inherited":
        """Of a document of which only nodes are known: the union of their metadata."""
        union: JsonDict = {}
        for node in nodes:
            union.update(node.metadata)
        return cls(ref_doc_id, union)

    def as_row(self, node: BaseNode) -> DocumentRow:
        """The columns of the document; the node is named when they cannot be stored."""
        try:
            return DocumentRow(self.text, self.metadata_text, None)
        except (TypeError, ValueError, RecursionError) as error:
            raise _not_json(node, error) from error

    @classmethod
    def of_document(cls, document: Document, digest: str) -> "Inherited":
        """Of a document that is being written and whose hash is `digest`."""
        text = document.text_resource.text if document.text_resource is not None else None
        return cls(document.id_, document.metadata, {name: getattr(document, name) for name in _INHERITED}, digest, _sliceable(text))

    @classmethod
    def from_row(cls, ref_doc_id: str, row: DocumentRow) -> "Inherited":
        """Of a document as it is stored; leave `row.text` None to read nodes rather than write them."""
        body: JsonDict = json.loads(row.body) if row.body else {}
        fields = {name: body.get(name, _defaults(Document)[name]) for name in _INHERITED}
        return cls(ref_doc_id, json.loads(row.metadata), fields, body.get("hash"), _sliceable(row.text))


def _sliceable(text: str | None) -> str | None:
    """The text, if SQLite counts its characters as Python does."""
    return text if text is not None and is_plain_text(text) and "\0" not in text else None


def encode_document(document: Document, digest: str) -> DocumentRow:
    """The columns of a document whose hash is `digest`; `decode_document` gives back an equal one.

    Raises:
        ConfigurationError: something in it is not JSON (the message names the metadata key).
    """
    data = fields_of(document)
    resource = data.get("text_resource")
    text = resource.pop("text") if resource else None
    metadata = _dumps(data.pop("metadata"), document)
    body = {name: value for name, value in data.items() if value != _defaults(Document).get(name, ...)}
    return DocumentRow(text, metadata, _dumps({**body, "class": _known_class(document), "hash": digest}, document))


def decode_document(ref_doc_id: str, row: DocumentRow) -> Document:
    """The document that `encode_document` took apart."""
    data: JsonDict = json.loads(row.body or "{}")
    data.pop("hash", None)
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
    difference = _metadata_difference(data.pop("metadata"), inherited, node)
    relationships = {name: _short_relation(name, value, inherited, node) for name, value in data.pop("relationships").items()}
    if difference is not None:
        body["metadata"] = difference
    if relationships:
        body["relationships"] = relationships
    body.update({name: value for name, value in data.items() if value != expected.get(name, ...)})
    return NodeRow(start, end, text, _dumps(body, node))


def decode_node(node_id: str, row: NodeRow, inherited: Inherited) -> BaseNode:
    """The node that `encode_node` took apart; `row.text` must be filled in when it was a slice."""
    body: JsonDict = json.loads(row.body or "{}")
    kind = _CLASSES[body.pop("class", "TextNode")]
    relationships = body.pop("relationships", {})
    metadata = _full_metadata(body.pop("metadata", None), inherited.metadata)
    data: JsonDict = {**inherited.fields, **body, "id_": node_id, "metadata": metadata}
    data["relationships"] = {name: _full_relation(value, inherited) for name, value in relationships.items()}
    if row.text is not None:
        data.update(text=row.text, start_char_idx=row.start_char, end_char_idx=row.end_char)
    return kind.from_dict(data)


def node_metadata(body: str | None, inherited: JsonDict) -> JsonDict:
    """The metadata of a stored node, from its `body` column and the metadata of its document; not to be written into."""
    difference = json.loads(body).get("metadata") if body is not None and '"metadata"' in body else None
    if difference is None:
        return inherited
    return difference["all"] if "all" in difference else {**inherited, **difference["more"]}


def _known_class(node: BaseNode) -> str:
    if type(node) is TextNode:
        return "TextNode"
    for kind in type(node).__mro__:
        if _CLASSES.get(kind.__name__) is kind:
            return kind.__name__
    raise ConfigurationError(f"Node {node.node_id!r} is a {type(node).__name__}, expected one of {sorted(_CLASSES)} or a class that inherits one of them.")


def _is_slice(document_text: str, start: int | None, end: int | None, text: str) -> bool:
    return start is not None and end is not None and 0 <= start <= end <= len(document_text) and document_text[start:end] == text


def _metadata_difference(metadata: JsonDict, inherited: Inherited, node: BaseNode) -> JsonDict | None:
    """None when equal, {"more": ...} when the base comes first and in its order, else {"all": ...}; order is part of a node's text."""
    if _plainly_equal(metadata, inherited.metadata):
        return None
    own, base = _dumps(metadata, node), inherited.metadata_text
    if own == base:
        return None
    if base != _NO_METADATA and own.startswith(base[:-1] + ","):
        return {"more": json.loads("{" + own[len(base) :])}
    return {"all": metadata}


def _plainly_equal(one: JsonDict, other: JsonDict) -> bool:
    """True when both are the same JSON, seen without writing it; False may mean anything."""
    if len(one) != len(other):
        return False
    pairs = zip(one.items(), other.items(), strict=True)
    return all(name == same and type(value) is type(equal) and type(value) in _SIMPLE and value == equal for (name, value), (same, equal) in pairs)


def _full_metadata(difference: JsonDict | None, base: JsonDict) -> JsonDict:
    if difference is None:
        return _copy(base)
    return difference["all"] if "all" in difference else {**_copy(base), **difference["more"]}


def _short_relation(name: str, relation: Any, inherited: Inherited, node: BaseNode) -> Any:
    """A relation as [id, type, metadata difference, hash]; None for the usual SOURCE; an object with a list for several."""
    if isinstance(relation, list):
        return {"list": [_short_relation("", one, inherited, node) for one in cast(list[JsonDict], relation)]}
    short = [relation["node_id"], relation["node_type"], _metadata_difference(relation["metadata"], inherited, node), relation["hash"]]
    return None if name == _SOURCE and short == _usual_source(inherited) else short


def _usual_source(inherited: Inherited) -> list[Any]:
    return [inherited.ref_doc_id, ObjectType.DOCUMENT.value, None, inherited.source_hash]


def _full_relation(short: Any, inherited: Inherited) -> Any:
    if isinstance(short, Mapping):
        return [_full_relation(one, inherited) for one in cast(JsonDict, short)["list"]]
    node_id, node_type, difference, digest = _usual_source(inherited) if short is None else short
    return {"node_id": node_id, "node_type": node_type, "metadata": _full_metadata(difference, inherited.metadata), "hash": digest}


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in cast(JsonDict, value).items()}
    return [_copy(one) for one in cast(list[Any], value)] if isinstance(value, list) else value


def _dumps(value: Any, node: BaseNode) -> str:
    try:
        return _NO_METADATA if value == {} else _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(node, error) from error


def _not_json(node: BaseNode, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"Node {node.node_id!r} cannot be stored: {_culprit(node)} is not JSON ({error}). Use text, numbers, lists or dicts.")


def _plain(value: Any) -> str:
    if isinstance(value, AnyUrl):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


def _culprit(node: BaseNode) -> str:
    bad = next((key for key, value in node.metadata.items() if not _is_json(value)), None)
    return "one of its fields or relations" if bad is None else f"its metadata key {bad!r}"


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
