"""The fields of a LlamaIndex node as JSON-like values, fast for plain ones."""

from typing import Any

from llama_index.core.schema import BaseNode, Document, MediaResource, ObjectType, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.errors import ConfigurationError

JsonDict = dict[str, Any]


def fields_of(node: BaseNode) -> JsonDict:
    """What LlamaIndex's `to_dict` gives, without id and class name; plain nodes, the usual ones, are read without its detour over pydantic."""
    if type(node) is TextNode:
        return _plain_fields(node)
    if type(node) is Document and not any((node.image_resource, node.audio_resource, node.video_resource)):
        text = node.text_resource
        if text is None or (text.data is None and text.embeddings is None and text.path is None and text.url is None):
            resource = None if text is None else {"embeddings": None, "text": text.text, "path": None, "url": None, "mimetype": text.mimetype}
            return {**_plain_fields(node), "text_resource": resource}
    return _all_fields(node)


def _plain_fields(node: BaseNode) -> JsonDict:
    fields = dict(node.__dict__)
    del fields["id_"]
    fields["relationships"] = {
        kind.value: _relation(related) if isinstance(related, RelatedNodeInfo) else [_relation(one) for one in related]
        for kind, related in node.relationships.items()
    }
    return fields


def _relation(related: RelatedNodeInfo) -> JsonDict:
    kind = related.node_type.value if isinstance(related.node_type, ObjectType) else related.node_type
    return {"node_id": related.node_id, "node_type": kind, "metadata": related.metadata, "hash": related.hash}


def _all_fields(node: BaseNode) -> JsonDict:
    try:
        data = node.to_dict()
    except ValueError as error:
        raise ConfigurationError(f"Node {node.node_id!r} cannot be stored: {error}. Remove what is not JSON from it.") from error
    for name in ("text_resource", "image_resource", "audio_resource", "video_resource"):
        resource = getattr(node, name, None)
        if isinstance(resource, MediaResource) and resource.data is not None:
            data[name]["data"] = resource.data.decode("ascii")  # base64; LlamaIndex leaves it out
    left_out = ("id_", "class_name", "text") if isinstance(node, Document) else ("id_", "class_name")
    return {name: value for name, value in data.items() if name not in left_out}
