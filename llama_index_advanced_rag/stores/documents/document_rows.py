"""The rows of documents and nodes: written so that a node holds only what its document does not, read back equal."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode, Document, MetadataMode

from llama_index_advanced_rag.stores.documents.metadata_codec import MetadataBase, node_metadata
from llama_index_advanced_rag.stores.documents.node_codec import (
    DocumentRow,
    Inherited,
    NodeRow,
    decode_document,
    decode_node,
    encode_document,
    encode_node,
    metadata_base,
)
from llama_index_advanced_rag.stores.documents.node_fields import JsonDict
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase, Row

_WHOLE_TEXT_FROM = 8  # slices of one document in one batch; below, SQLite cuts them out, which reads up to the end of each
_NODE_COLUMNS = "node_id, ref_doc_id, start_char, end_char, text, body"
UPSERT_DOCUMENT = """
INSERT INTO documents (ref_doc_id, text, metadata, body, hash) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (ref_doc_id) DO UPDATE SET text = excluded.text, metadata = excluded.metadata, body = excluded.body, hash = excluded.hash"""


class NodeKey(NamedTuple):
    """Identity and place of a node without its content; `start_char` is an offset into the document's text."""

    node_id: str
    ref_doc_id: str | None
    start_char: int | None
    embed_hash: str | None


class _Page(NamedTuple):
    nodes: list[BaseNode]
    ref_doc_id: str
    ordinal: int


class DocumentRows:
    """Reads the tables `documents` and `nodes` of one database, and changes single documents; `NodeWriter` writes many nodes."""

    def __init__(self, database: CorpusDatabase) -> None:
        self._database = database

    def add_document(self, document: Document, store_text: bool) -> None:
        """Store a document; its nodes stay. Without `store_text` only its hash."""
        digest = document.hash
        if store_text:
            self._database.execute("DELETE FROM nodes WHERE node_id = ?", (document.id_,))
            self.replace_document(document.id_, encode_document(document, digest))
        self.set_hash(document.id_, digest)

    def document_row(self, ref_doc_id: str) -> DocumentRow | None:
        """What is stored of a document; None when nothing is."""
        rows = self._database.query("SELECT text, metadata, body FROM documents WHERE ref_doc_id = ?", (ref_doc_id,))
        return DocumentRow(*rows[0]) if rows else None

    def replace_document(self, ref_doc_id: str, row: DocumentRow) -> None:
        """Change what nodes inherit, and write them anew so that they stay what they are."""
        if self.document_row(ref_doc_id) == row:
            return
        nodes = self._decoded(
            self._database.query(f"SELECT {_NODE_COLUMNS} FROM nodes WHERE ref_doc_id = ? AND body IS NOT NULL", (ref_doc_id,))  # noqa: S608
        )
        old_hash = self._database.query("SELECT hash FROM documents WHERE ref_doc_id = ?", (ref_doc_id,))
        self._database.execute(UPSERT_DOCUMENT, (ref_doc_id, *row, old_hash[0][0] if old_hash else None))
        inherited = Inherited.from_row(ref_doc_id, row)
        self._database.executemany(
            "UPDATE nodes SET start_char = ?, end_char = ?, text = ?, body = ? WHERE node_id = ?",
            ((*encode_node(node, inherited, keep_embedding=True), node.node_id) for node in nodes),
        )

    def iter_nodes(self, batch_size: int = 500) -> Iterator[BaseNode]:
        """Every node by document id and place in the document, nodes without a document last; a batch in memory at a time."""
        place: tuple[str, int] = ("", -1)
        while page := self._page("(ref_doc_id, ordinal) > (?, ?) ORDER BY ref_doc_id, ordinal LIMIT ?", (*place, batch_size)):
            yield from page.nodes
            place = (page.ref_doc_id, page.ordinal)
        last = -1
        while page := self._page("ref_doc_id IS NULL AND ordinal > ? ORDER BY ordinal LIMIT ?", (last, batch_size)):
            yield from page.nodes
            last = page.ordinal

    def _page(self, condition: str, parameters: tuple[Any, ...]) -> "_Page | None":
        with self._database.snapshot():
            rows = self._database.query(f"SELECT {_NODE_COLUMNS}, ordinal FROM nodes WHERE body IS NOT NULL AND {condition}", parameters)  # noqa: S608 - our own words
            return _Page(self._decoded([row[:-1] for row in rows]), rows[-1][1], rows[-1][-1]) if rows else None

    def node_keys(self) -> list[NodeKey]:
        """Identity and place of every node in the order of `iter_nodes`, in one query."""
        rows = self._database.query(
            "SELECT node_id, ref_doc_id, start_char, embed_hash FROM nodes WHERE body IS NOT NULL ORDER BY ref_doc_id IS NULL, ref_doc_id, ordinal"
        )
        return [NodeKey(*row) for row in rows]

    def metadata_of_rows(self, first: int, last: int) -> list[tuple[int, JsonDict]]:
        """Row and metadata, as `filterable_metadata` gives them, of the searchable nodes from row `first` to row `last`, ascending."""
        with self._database.snapshot():
            rows = self._database.query("SELECT row, ref_doc_id, body FROM nodes WHERE row BETWEEN ? AND ? ORDER BY row", (first, last))
            sql = "SELECT ref_doc_id, metadata, body FROM documents WHERE ref_doc_id IN ({})"
            documents = {row[0]: metadata_base(*row[1:]) for row in self._database.query_in(sql, list({row[1] for row in rows if row[1] is not None}))}
        nothing = MetadataBase()
        return [(row, _filterable(ref_doc_id, documents.get(ref_doc_id, nothing), body)) for row, ref_doc_id, body in rows]

    def forget_document(self, ref_doc_id: str) -> None:
        """Remove a document and its hash; its nodes stay, with their own text."""
        row = self.document_row(ref_doc_id)
        if row is None:
            return
        if not self.has_nodes(ref_doc_id):
            self._database.execute("DELETE FROM documents WHERE ref_doc_id = ?", (ref_doc_id,))
            return
        self.replace_document(ref_doc_id, DocumentRow(None, row.metadata, None))
        self._database.execute("UPDATE documents SET hash = NULL WHERE ref_doc_id = ?", (ref_doc_id,))

    def has_nodes(self, ref_doc_id: str) -> bool:
        """True when some node, stored or known by id only, is of this document."""
        return bool(self._database.query("SELECT 1 FROM nodes WHERE ref_doc_id = ? LIMIT 1", (ref_doc_id,)))

    def set_hash(self, doc_id: str, digest: str) -> None:
        """Set the hash of a node, else of a document, stored or not."""
        if not self._database.execute("UPDATE nodes SET hash = ? WHERE node_id = ?", (digest, doc_id)):
            self._database.execute(
                "INSERT INTO documents (ref_doc_id, hash) VALUES (?, ?) ON CONFLICT (ref_doc_id) DO UPDATE SET hash = excluded.hash", (doc_id, digest)
            )

    def stored_ids(self, ids: list[str]) -> set[str]:
        """Those of the ids under which a document or node is stored."""
        rows = self._database.query_in("SELECT node_id FROM nodes WHERE body IS NOT NULL AND node_id IN ({})", ids)
        rows += self._database.query_in("SELECT ref_doc_id FROM documents WHERE body IS NOT NULL AND ref_doc_id IN ({})", ids)
        return {row[0] for row in rows}

    def all_documents(self) -> list[Document]:
        """Every stored document in the order of arrival."""
        return self._documents("1", ())

    def _documents(self, condition: str, values: Sequence[str]) -> list[Document]:
        select = f"SELECT ref_doc_id, text, metadata, body FROM documents WHERE body IS NOT NULL AND {condition}"  # noqa: S608 - our own words
        rows = self._database.query_in(select, values) if values else self._database.query(f"{select} ORDER BY rowid")
        return [decode_document(row[0], DocumentRow(*row[1:])) for row in rows]

    def fetch(self, ids: list[str]) -> dict[str, BaseNode]:
        """Nodes and documents by id; unknown ids are left out."""
        with self._database.snapshot():
            rows = self._database.query_in(f"SELECT {_NODE_COLUMNS} FROM nodes WHERE body IS NOT NULL AND node_id IN ({{}})", ids)  # noqa: S608
            found = {node.node_id: node for node in self._decoded(rows)}
            others = [one for one in ids if one not in found]
            if others:
                found.update((document.id_, document) for document in self._documents("ref_doc_id IN ({})", others))
        return found

    def of_rows(self, rows: Sequence[int]) -> dict[int, BaseNode]:
        """Searchable nodes by their row; rows that are gone are left out."""
        with self._database.snapshot():
            found = self._database.query_in(f"SELECT row, {_NODE_COLUMNS} FROM nodes WHERE row IN ({{}})", rows)  # noqa: S608 - our own words
            return dict(zip([row[0] for row in found], self._decoded([row[1:] for row in found]), strict=True))

    def texts_of_rows(self, rows: Sequence[int]) -> dict[int, str]:
        """The content of searchable nodes, without metadata, by their row; rows that are gone are left out. No node is built that keeps its text here."""
        with self._database.snapshot():
            found = self._database.query_in("SELECT row, node_id, ref_doc_id, start_char, end_char, text FROM nodes WHERE row IN ({})", rows)
            slices = self._slices([row[1:] for row in found])
            elsewhere = self.of_rows([row[0] for row in found if row[5] is None and row[1] not in slices])  # in what another kind of node holds
        texts = {row: text if text is not None else slices.get(node_id) for row, node_id, _, _, _, text in found}
        return {row: elsewhere[row].get_content(MetadataMode.NONE) if text is None else text for row, text in texts.items()}

    def sources_of_rows(self, rows: Sequence[int]) -> dict[int, tuple[str, JsonDict]]:
        """Id and metadata of the document of searchable nodes by their row; a node without one is its own. Rows that are gone are left out."""
        with self._database.snapshot():
            found = self._database.query_in("SELECT row, node_id, ref_doc_id, CASE WHEN ref_doc_id IS NULL THEN body END FROM nodes WHERE row IN ({})", rows)
            ref_doc_ids = list({row[2] for row in found if row[2] is not None})
            stored = self._database.query_in("SELECT ref_doc_id, metadata FROM documents WHERE ref_doc_id IN ({})", ref_doc_ids)
        documents = {ref_doc_id: json.loads(metadata) for ref_doc_id, metadata in stored}
        nothing = MetadataBase()
        return {
            row: (node_id, node_metadata(body, nothing)) if ref_doc_id is None else (ref_doc_id, documents.get(ref_doc_id, {}))
            for row, node_id, ref_doc_id, body in found
        }

    def _decoded(self, rows: list[Row]) -> list[BaseNode]:
        with self._database.snapshot():
            ref_doc_ids = list({row[1] for row in rows if row[1] is not None})
            documents = self._database.query_in("SELECT ref_doc_id, metadata, body FROM documents WHERE ref_doc_id IN ({})", ref_doc_ids)
            inherited: dict[str | None, Inherited] = {row[0]: Inherited.from_row(row[0], DocumentRow(None, *row[1:])) for row in documents}
            slices = self._slices(rows)
        nothing = Inherited()
        return [
            decode_node(node_id, NodeRow(start, end, slices.get(node_id) if text is None else text, body), inherited.get(ref_doc_id, nothing))
            for node_id, ref_doc_id, start, end, text, body in rows
        ]

    def _slices(self, rows: list[Row]) -> dict[str, str]:
        """The texts of the nodes that are slices: cut out by SQLite, or from the whole text where many are of one document."""
        wanted = [row for row in rows if row[4] is None and row[2] is not None and row[1] is not None]
        counts = Counter(row[1] for row in wanted)
        few = [row[0] for row in wanted if counts[row[1]] < _WHOLE_TEXT_FROM]
        cut = self._database.query_in(
            "SELECT node_id, substr(documents.text, start_char + 1, end_char - start_char) FROM nodes JOIN documents USING (ref_doc_id) WHERE node_id IN ({})",
            few,
        )
        many = [ref_doc_id for ref_doc_id, count in counts.items() if count >= _WHOLE_TEXT_FROM]
        texts: Mapping[str, str] = dict(self._database.query_in("SELECT ref_doc_id, text FROM documents WHERE ref_doc_id IN ({})", many))
        return {**dict(cut), **{row[0]: texts[row[1]][row[2] : row[3]] for row in wanted if row[1] in texts}}


def _filterable(ref_doc_id: str | None, base: MetadataBase, body: str | None) -> JsonDict:
    metadata = node_metadata(body, base)
    return metadata if ref_doc_id is None else {"ref_doc_id": ref_doc_id, "doc_id": ref_doc_id, "document_id": ref_doc_id, **metadata}
