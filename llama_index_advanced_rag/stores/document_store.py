"""A LlamaIndex docstore over SQL tables: text stored once, nodes as slices of it, deletes in one statement."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, Document
from llama_index.core.storage.docstore.types import DEFAULT_PERSIST_PATH, RefDocInfo

from llama_index_advanced_rag.errors import ConfigurationError, NodeNotFoundError
from llama_index_advanced_rag.stores.documents.async_document_store import AsyncDocumentStore
from llama_index_advanced_rag.stores.documents.document_rows import DocumentRows, NodeKey
from llama_index_advanced_rag.stores.documents.node_writer import NewDocument, NodeWriter
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_NODES_OF = "SELECT ref_doc_id, node_id FROM nodes WHERE ref_doc_id {} ORDER BY ref_doc_id, ordinal"
_METADATA_OF = "SELECT ref_doc_id, metadata FROM documents WHERE ref_doc_id {}"


class SQLDocumentStore(AsyncDocumentStore):
    """A drop-in for `SimpleDocumentStore` that writes through to a `CorpusDatabase`.

    A document's text is stored once and its nodes are slices of it where they are; a node stores only what differs from
    its document, and comes back equal: metadata in their order, relations, templates. Nodes whose document is not here, or
    that have none, keep their own text. A batch of reads costs at most four queries for 500 ids.

    Deviations from `SimpleDocumentStore` (core 0.14): async deletes do what sync ones do; `delete_ref_doc` also removes a
    document without nodes and a hash without a document, so that a refresh inserts it again; a node that moves to another
    document leaves the old one's list; `RefDocInfo.metadata` are the document's own where it is held; subclasses of
    LlamaIndex's node classes come back as the class they inherit; binary data of media nodes is kept.

    Args:
        database: where everything is kept; closing it is the caller's affair.
        list_split: `docs` lists documents beside the nodes that were cut from them, as they came; False lists the last of the nodes only.

    Example:
        >>> from llama_index.core.node_parser import SentenceSplitter
        >>> document = Document(id_="a.txt", text="One. Two.", metadata={"title": "A"})
        >>> nodes = SentenceSplitter(chunk_size=256).get_nodes_from_documents([document])
        >>> store = SQLDocumentStore(CorpusDatabase(None))
        >>> store.put_document(document, nodes)
        >>> store.get_nodes([nodes[0].node_id]) == nodes, store.get_document("a.txt") == document
        (True, True)
    """

    def __init__(self, database: CorpusDatabase, *, list_split: bool = True) -> None:
        self._database = database
        self._list_split = list_split
        self._rows = DocumentRows(database)
        self._writer = NodeWriter(database)

    def persist(self, persist_path: str = DEFAULT_PERSIST_PATH, fs: Any = None) -> None:
        """Does nothing: every call has written through to the database. To copy it, use `CorpusDatabase.backup_to`."""

    @property
    def docs(self) -> dict[str, BaseNode]:
        """Every document and node, read into memory."""
        nodes = {node.node_id: node for node in self.iter_nodes() if self._list_split or not node.child_nodes}
        split = set[str | None]() if self._list_split else {node.ref_doc_id for node in nodes.values()}
        documents: dict[str, BaseNode] = {document.id_: document for document in self._rows.all_documents() if document.id_ not in split}
        return {**documents, **nodes}

    def add_documents(self, docs: Sequence[BaseNode], allow_update: bool = True, batch_size: int | None = None, store_text: bool = True) -> None:
        """Store documents and nodes in one transaction; of two with one id in the batch the later one stays.

        With `store_text=False` only ids, hashes and the node lists of documents are kept. `batch_size` is not needed.

        Raises:
            ConfigurationError: an id exists and `allow_update` is False, or something in a node is not JSON.
        """
        latest = {node.node_id: node for node in docs}
        nodes: list[BaseNode] = []
        with self._database.transaction():
            if not allow_update and (known := self._rows.stored_ids(list(latest))):
                raise ConfigurationError(f"node_id {min(known)!r} already exists. Set allow_update to True to overwrite.")
            for node in latest.values():
                if isinstance(node, Document) and node.ref_doc_id is None:
                    self._rows.add_document(node, store_text)
                else:
                    nodes.append(node)
            self._writer.add_nodes(nodes, store_text=store_text)

    def put_document(self, document: Document, nodes: Sequence[BaseNode], embed_hashes: Sequence[str | None] | None = None) -> None:
        """Store a document and exactly these nodes, in this order, in place of the document's earlier version.

        Embeddings on the nodes are not stored. Joins the caller's transaction.

        Raises:
            ConfigurationError: two nodes with one id, or a node id that another document has.
        """
        self._writer.put_documents([NewDocument(document, document.hash, nodes, embed_hashes if embed_hashes is not None else [None] * len(nodes))])

    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        """The document or node with this id.

        Raises:
            NodeNotFoundError: there is none, and `raise_error`.
        """
        found = self._rows.fetch([doc_id]).get(doc_id)
        if found is None and raise_error:
            raise _not_found(doc_id)
        return found

    def get_nodes(self, node_ids: Sequence[str], raise_error: bool = True) -> list[BaseNode]:
        """The nodes (or documents) with these ids, in that order.

        Raises:
            NodeNotFoundError: one is missing, and `raise_error`; otherwise it is left out.
        """
        found = self._rows.fetch(list(dict.fromkeys(node_ids)))
        missing = [node_id for node_id in node_ids if node_id not in found]
        if missing and raise_error:
            raise _not_found(missing[0])
        return [found[node_id] for node_id in node_ids if node_id in found]

    def nodes_of_rows(self, rows: Sequence[int]) -> dict[int, BaseNode]:
        """Searchable nodes by their row; rows that are gone are left out."""
        return self._rows.of_rows(rows)

    def get_node_dict(self, node_id_dict: dict[int, str]) -> dict[int, BaseNode]:
        """The nodes under the keys of a mapping from key to node id."""
        return dict(zip(node_id_dict, self.get_nodes(list(node_id_dict.values())), strict=True))

    def iter_nodes(self, batch_size: int = 500) -> Iterator[BaseNode]:
        """Every node by document id and place in the document, nodes without a document last; a batch in memory at a time."""
        return self._rows.iter_nodes(batch_size)

    def node_keys(self) -> list[NodeKey]:
        """Identity and place of every node in the order of `iter_nodes`, in one query."""
        return self._rows.node_keys()

    def document_exists(self, doc_id: str) -> bool:
        """True when a document or node with this id is stored."""
        return bool(self._rows.stored_ids([doc_id]))

    def delete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Delete a node or a document by its id; with its last node a document goes too, as in every LlamaIndex docstore.

        Raises:
            NodeNotFoundError: there is none, and `raise_error`.
        """
        stored = self.document_exists(doc_id)
        with self._database.transaction():
            rows = self._database.query("SELECT ref_doc_id FROM nodes WHERE node_id = ?", (doc_id,))
            self._database.execute("DELETE FROM nodes WHERE node_id = ?", (doc_id,))
            self._rows.forget_document(doc_id)
            if rows and rows[0][0] is not None and not self._rows.has_nodes(rows[0][0]):
                self.delete_documents([rows[0][0]])
        if not stored and raise_error:
            raise _not_found(doc_id)

    def delete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Delete a document, its nodes and its hash.

        Raises:
            NodeNotFoundError: nothing is known of this document, and `raise_error`.
        """
        if not self.delete_documents([ref_doc_id]) and raise_error:
            raise NodeNotFoundError(f"ref_doc_id {ref_doc_id!r} not found. list(docstore.get_all_ref_doc_info()) shows those that are.")

    def delete_documents(self, ref_doc_ids: Iterable[str]) -> int:
        """Delete documents with their nodes and hashes; unknown ids are ignored. How many there were."""
        with self._database.transaction():
            deleted = 0
            for ref_doc_id in ref_doc_ids:
                deleted += self._database.execute("DELETE FROM documents WHERE ref_doc_id = ?", (ref_doc_id,))
                self._database.execute("DELETE FROM nodes WHERE node_id = ?", (ref_doc_id,))
            return deleted

    def set_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """Set the hash of a document or node, whether or not it is stored here."""
        self.set_document_hashes({doc_id: doc_hash})

    def set_document_hashes(self, doc_hashes: dict[str, str]) -> None:
        """Set the hashes of documents or nodes, id to hash, in one transaction."""
        with self._database.transaction():
            for doc_id, doc_hash in doc_hashes.items():
                self._rows.set_hash(doc_id, doc_hash)

    def get_document_hash(self, doc_id: str) -> str | None:
        """The hash of a document or node; None when nothing is known of it."""
        nodes = self._database.query("SELECT hash FROM nodes WHERE node_id = ?", (doc_id,))
        if nodes:
            return nodes[0][0] or self.get_nodes([doc_id])[0].hash
        documents = self._database.query("SELECT hash FROM documents WHERE ref_doc_id = ?", (doc_id,))
        return documents[0][0] if documents else None

    def get_all_document_hashes(self) -> dict[str, str]:
        """Hash to id of everything known, documents and nodes."""
        hashes = dict(self._database.query("SELECT hash, ref_doc_id FROM documents WHERE hash IS NOT NULL ORDER BY rowid"))
        hashes.update(self._database.query("SELECT hash, node_id FROM nodes WHERE hash IS NOT NULL ORDER BY rowid"))
        without = [row[0] for row in self._database.query("SELECT node_id FROM nodes WHERE hash IS NULL ORDER BY rowid")]
        for start in range(0, len(without), 500):
            hashes.update((node.hash, node.node_id) for node in self.get_nodes(without[start : start + 500]))
        return hashes

    def get_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """Node ids and metadata of a document; None when it has no nodes."""
        return self._ref_doc_infos("= ?", (ref_doc_id,)).get(ref_doc_id)

    def get_all_ref_doc_info(self) -> dict[str, RefDocInfo]:
        """Node ids and metadata of every document that has nodes."""
        return self._ref_doc_infos("IS NOT NULL", ())

    def _ref_doc_infos(self, condition: str, parameters: tuple[str, ...]) -> dict[str, RefDocInfo]:
        with self._database.snapshot():
            nodes = self._database.query(_NODES_OF.format(condition), parameters)
            metadata = dict(self._database.query(_METADATA_OF.format(condition), parameters))
        infos: dict[str, RefDocInfo] = {}
        for ref_doc_id, node_id in nodes:
            infos.setdefault(ref_doc_id, RefDocInfo(metadata=json.loads(metadata[ref_doc_id]))).node_ids.append(node_id)
        return infos


def _not_found(doc_id: str) -> NodeNotFoundError:
    return NodeNotFoundError(f"doc_id {doc_id!r} not found: neither a document nor a node has it. Check the id, or pass raise_error=False.")
