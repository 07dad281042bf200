"""Where a retriever gets its nodes from: memory, a docstore, or somebody's existing index."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, Document
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag.errors import NodeSourceError


@runtime_checkable
class NodeSource(Protocol):
    """Anything that hands out nodes by id."""

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """The nodes with these ids, in that order; unknown ids are left out."""
        ...


class DictNodeSource:
    """Nodes held in memory; what is handed out is a copy, for postprocessors and users that write into the nodes they get.

    Args:
        nodes: the nodes; of two with the same id the later one stays.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> source = DictNodeSource([TextNode(id_="a", text="one"), TextNode(id_="b", text="two")])
        >>> [node.node_id for node in source.get_nodes(["b", "unknown", "a"])]
        ['b', 'a']
    """

    def __init__(self, nodes: Iterable[BaseNode] = ()) -> None:
        self._nodes = {node.node_id: node for node in nodes}

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._nodes

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """The nodes with these ids, in that order; unknown ids are left out."""
        return [own_copy(node) for node in map(self._nodes.get, node_ids) if node is not None]

    def add(self, nodes: Iterable[BaseNode]) -> None:
        """Hold more nodes; a node with a known id replaces the old one."""
        self._nodes.update({node.node_id: node for node in nodes})

    def delete(self, node_ids: Iterable[str]) -> None:
        """Let go of nodes; unknown ids are ignored."""
        for node_id in node_ids:
            self._nodes.pop(node_id, None)


class DocstoreNodeSource:
    """Nodes read from a LlamaIndex docstore when they are needed, none kept in memory."""

    def __init__(self, docstore: BaseDocumentStore) -> None:
        self._docstore = docstore

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """The nodes with these ids, in that order; unknown ids are left out."""
        return self._docstore.get_nodes(list(node_ids), raise_error=False)


def own_copy(node: BaseNode) -> BaseNode:
    """A copy that shares no mutable field of everyday use, without the embedding."""
    return node.model_copy(update={"embedding": None, "metadata": copy.deepcopy(node.metadata), "relationships": dict(node.relationships)})


def sort_key(node: BaseNode) -> str:
    """The order among equal scores: by document, then by position in it, then by node id.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> sort_key(TextNode(id_="n", text="x", start_char_idx=7)).split(chr(0))
        ['', '000000000007', 'n']
    """
    start: int = getattr(node, "start_char_idx", None) or 0
    return f"{node.ref_doc_id or ''}\0{start:012d}\0{node.node_id}"


def read_docstore_nodes(docstore: BaseDocumentStore) -> list[BaseNode]:
    """The nodes of a docstore in `sort_key` order, without the documents that were split into other nodes of it."""
    nodes = list(docstore.docs.values())
    split = {node.ref_doc_id for node in nodes if node.ref_doc_id not in (None, node.node_id)}
    return sorted((node for node in nodes if not (isinstance(node, Document) and node.node_id in split)), key=sort_key)


def read_index_nodes(vector_index: BaseIndex[Any]) -> list[BaseNode]:
    """The nodes that an existing index retrieves, wherever they are kept, in `sort_key` order.

    They are read from the docstore where the index lists them there, else from the vector store, else from the whole
    docstore. An index without any node gives an empty list.

    Raises:
        NodeSourceError: the index holds vectors whose text is in neither store; the message names the ways out.
    """
    listed = _listed_nodes(vector_index)
    store = getattr(vector_index, "vector_store", None)
    if not isinstance(store, BasePydanticVectorStore):
        return sorted(listed, key=sort_key) if listed else read_docstore_nodes(vector_index.docstore)
    if not store.stores_text:
        nodes = listed or read_docstore_nodes(vector_index.docstore)
        if not nodes and _seems_filled(vector_index, store):
            raise _unreadable(store, "it keeps vectors without text, and the docstore is empty")
        return sorted(nodes, key=sort_key)
    known = {node.node_id for node in listed}
    return sorted(listed + [node for node in _stored_nodes(vector_index, store) if node.node_id not in known], key=sort_key)


def _listed_nodes(index: BaseIndex[Any]) -> list[BaseNode]:
    listed = cast("dict[str, str]", getattr(index.index_struct, "nodes_dict", None) or {})
    return index.docstore.get_nodes(list(dict.fromkeys(listed.values())), raise_error=False)


def _seems_filled(index: BaseIndex[Any], store: BasePydanticVectorStore) -> bool:
    listed = getattr(index.index_struct, "nodes_dict", None)
    vectors = getattr(getattr(store, "data", None), "embedding_dict", None)
    return bool(listed or vectors)


def _stored_nodes(index: BaseIndex[Any], store: BasePydanticVectorStore) -> list[BaseNode]:
    try:
        return list(store.get_nodes(None))
    except (NotImplementedError, TypeError, ValueError) as error:
        nodes = read_docstore_nodes(index.docstore)
        if nodes:
            return nodes
        raise _unreadable(store, f"its get_nodes() answered {type(error).__name__}: {error}") from error


def _unreadable(store: BasePydanticVectorStore, reason: str) -> NodeSourceError:
    return NodeSourceError(
        f"The text of the nodes cannot be read from {type(store).__name__}: {reason}. Lexical search needs the nodes themselves. "
        "Pass them with nodes=... or docstore=..., or build the index with VectorStoreIndex(..., store_nodes_override=True) so that the docstore keeps them."
    )
