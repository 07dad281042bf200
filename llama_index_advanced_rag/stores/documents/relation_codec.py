"""Relations of nodes in few characters: most lead to a node of the same kind and say no more than its id."""

import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any, cast

from llama_index.core.schema import BaseNode, NodeRelationship, ObjectType

from llama_index_advanced_rag.stores.documents.metadata_codec import MetadataBase, copied
from llama_index_advanced_rag.stores.documents.node_fields import JsonDict

PARENT = str(NodeRelationship.PARENT.value)
_SOURCE = str(NodeRelationship.SOURCE.value)
_TEXT = ObjectType.TEXT.value
_PACKED = "="
_UUID_LENGTH = 36


def pack_id(node_id: str) -> str:
    """A node id in fewer characters: a UUID in base 64 behind a sign, any other as it is.

    Example:
        >>> pack_id("c8944a2b-a9ba-505d-a1a9-69a720967813"), pack_id("node-1")
        ('=yJRKK6m6UF2hqWmnIJZ4Ew', 'node-1')
    """
    if len(node_id) != _UUID_LENGTH:
        return node_id
    try:
        parsed = uuid.UUID(node_id)
    except ValueError:
        return node_id
    return _PACKED + urlsafe_b64encode(parsed.bytes).decode("ascii").rstrip("=") if str(parsed) == node_id else node_id


def unpack_id(packed: str) -> str:
    """The node id that was packed.

    Example:
        >>> unpack_id("=yJRKK6m6UF2hqWmnIJZ4Ew"), unpack_id("node-1")
        ('c8944a2b-a9ba-505d-a1a9-69a720967813', 'node-1')
    """
    return str(uuid.UUID(bytes=urlsafe_b64decode(packed[1:] + "=="))) if packed.startswith(_PACKED) else packed


def short_relation(name: str, relation: Any, usual_source: Sequence[Any], base: MetadataBase, node: BaseNode) -> Any:
    """A relation as None for the usual SOURCE, the packed id for a plain one, else [id, type, metadata difference, hash]; an object with a list for several."""
    if isinstance(relation, list):
        return {"list": [short_relation("", one, usual_source, base, node) for one in cast(list[JsonDict], relation)]}
    node_id: str = relation["node_id"]
    if relation["node_type"] == _TEXT and not relation["metadata"] and relation["hash"] is None and not node_id.startswith(_PACKED):
        return pack_id(node_id)
    short = [node_id, relation["node_type"], base.difference(relation["metadata"], node), relation["hash"]]
    return None if name == _SOURCE and short == list(usual_source) else short


def full_relation(short: Any, usual_source: Sequence[Any], base: MetadataBase) -> Any:
    """The relation that `short_relation` took apart."""
    if isinstance(short, str):
        return {"node_id": unpack_id(short), "node_type": _TEXT, "metadata": {}, "hash": None}
    if isinstance(short, Mapping):
        return [full_relation(one, usual_source, base) for one in cast(JsonDict, short)["list"]]
    node_id, node_type, difference, digest = usual_source if short is None else short
    return {"node_id": node_id, "node_type": node_type, "metadata": copied(base.restored(difference)), "hash": digest}


def related_id(short: str | None) -> str | None:
    """The id of a related node as SQLite takes it out of a stored body; None when there is none."""
    return None if short is None else unpack_id(short)
