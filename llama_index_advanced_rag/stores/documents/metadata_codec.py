"""Metadata of nodes as what they differ in from their document, and long values that several nodes of a document share stored once."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from llama_index.core.bridge.pydantic import AnyUrl
from llama_index.core.schema import BaseNode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.documents.node_fields import JsonDict

NO_METADATA = "{}"
_SIMPLE = (str, int, bool, type(None))
_WORTH_SHARING = 12  # characters: below, the number in its place saves nothing


@dataclass(frozen=True)
class MetadataBase:
    """What the metadata of the nodes of one document have in common.

    Attributes:
        metadata: the document's metadata that its nodes have too.
        shared: values that several nodes have; a node stores the number.
        without: keys of the document's metadata that its nodes do not have.
    """

    metadata: JsonDict = field(default_factory=dict)
    shared: Sequence[str] = ()
    without: Sequence[str] = ()

    @classmethod
    def of_nodes(cls, metadata: JsonDict, nodes: Sequence[BaseNode]) -> "MetadataBase":
        """Of a document's metadata and all its nodes.

        Example:
            >>> from llama_index.core.schema import TextNode
            >>> nodes = [TextNode(text="a", metadata={"title": "T", "section_path": "Costs > Leases"}) for _ in range(2)]
            >>> MetadataBase.of_nodes({"title": "T", "page_starts": [0]}, nodes)
            MetadataBase(metadata={'title': 'T'}, shared=['Costs > Leases'], without=['page_starts'])
        """
        without = [key for key in metadata if nodes and not any(key in node.metadata for node in nodes)]
        base = {key: value for key, value in metadata.items() if key not in without}
        values = Counter(value for node in nodes for key, value in node.metadata.items() if type(value) is str and base.get(key) != value)
        return cls(base, [value for value, count in values.items() if count > 1 and len(value) >= _WORTH_SHARING], without)

    @classmethod
    def from_stored(cls, metadata: JsonDict, stored: Mapping[str, Sequence[str]] | None) -> "MetadataBase":
        """The base of a document as it is stored."""
        if not stored:
            return cls(metadata)
        without = stored.get("without", ())
        return cls({key: value for key, value in metadata.items() if key not in without}, stored.get("shared", ()), without)

    def to_stored(self) -> dict[str, list[str]]:
        """What is kept of it beside the document's metadata; empty when there is nothing."""
        return {name: list(values) for name, values in (("without", self.without), ("shared", self.shared)) if values}

    @cached_property
    def text(self) -> str:
        """The common metadata as they are stored."""
        return ENCODER.encode(self.metadata)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {value: number for number, value in enumerate(self.shared)}

    def difference(self, metadata: JsonDict, node: BaseNode) -> JsonDict | None:
        """None when equal, {"more": ..., "refs": ...} when the base comes first and in its order, else {"all": ...}; order is part of a node's text.

        Raises:
            ConfigurationError: something in it is not JSON.
        """
        if _plainly_equal(metadata, self.metadata):
            return None
        own, base = dumps(metadata, node), self.text
        if own == base:
            return None
        if base == NO_METADATA:
            return self._more(metadata)
        return self._more(json.loads("{" + own[len(base) :])) if own.startswith(base[:-1] + ",") else {"all": metadata}

    def _more(self, more: JsonDict) -> JsonDict:
        refs = {key: self._numbers[value] for key, value in more.items() if type(value) is str and value in self._numbers}
        return {"more": {key: None if key in refs else value for key, value in more.items()}, "refs": refs} if refs else {"more": more}

    def restored(self, difference: JsonDict | None) -> JsonDict:
        """The metadata that `difference` took apart; not to be written into."""
        if difference is None:
            return self.metadata
        if "all" in difference:
            return difference["all"]
        refs = {key: self.shared[number] for key, number in difference.get("refs", {}).items()}
        return {**self.metadata, **difference["more"], **refs}


def node_metadata(body: str | None, base: MetadataBase) -> JsonDict:
    """The metadata of a stored node, from its `body` column and what it has in common with its document; not to be written into."""
    return base.restored(json.loads(body).get("metadata") if body is not None and '"metadata"' in body else None)


def copied(value: Any) -> Any:
    """A JSON value that shares nothing with this one."""
    if isinstance(value, dict):
        return {key: copied(one) for key, one in cast(JsonDict, value).items()}
    return [copied(one) for one in cast(list[Any], value)] if isinstance(value, list) else value


def dumps(value: Any, node: BaseNode) -> str:
    """The value as JSON.

    Raises:
        ConfigurationError: it is not JSON; the message names the node and the metadata key.
    """
    try:
        return NO_METADATA if value == {} else ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise not_json(node, error) from error


def not_json(node: BaseNode, error: Exception) -> ConfigurationError:
    """The error of a node that cannot be stored."""
    return ConfigurationError(f"Node {node.node_id!r} cannot be stored: {_culprit(node)} is not JSON ({error}). Use text, numbers, lists or dicts.")


def _plainly_equal(one: JsonDict, other: JsonDict) -> bool:
    """True when both are the same JSON, seen without writing it; False may mean anything."""
    if len(one) != len(other):
        return False
    pairs = zip(one.items(), other.items(), strict=True)
    return all(name == same and type(value) is type(equal) and type(value) in _SIMPLE and value == equal for (name, value), (same, equal) in pairs)


def _plain(value: Any) -> str:
    if isinstance(value, AnyUrl):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


def _culprit(node: BaseNode) -> str:
    bad = next((key for key, value in node.metadata.items() if not _is_json(value)), None)
    return "one of its fields or relations" if bad is None else f"its metadata key {bad!r}"


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
