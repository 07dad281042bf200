"""Writing many nodes at once: a few statements for all of them, not a few for each document."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from llama_index.core.schema import BaseNode, Document

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.documents.document_rows import UPSERT_DOCUMENT, DocumentRows
from llama_index_advanced_rag.stores.documents.node_codec import Common, DocumentRow, Inherited, encode_document, encode_node
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_COLUMNS = "node_id, ref_doc_id, ordinal, start_char, end_char, text, body, hash, embed_hash, row"
_INSERT_NODE = f"INSERT INTO nodes ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own words
_UPSERT_NODE = f"""{_INSERT_NODE}
ON CONFLICT (node_id) DO UPDATE SET
    ordinal = CASE WHEN nodes.ref_doc_id IS excluded.ref_doc_id THEN nodes.ordinal ELSE excluded.ordinal END,
    ref_doc_id = excluded.ref_doc_id, hash = excluded.hash, embed_hash = excluded.embed_hash, row = excluded.row,
    start_char = excluded.start_char, end_char = excluded.end_char, text = excluded.text, body = excluded.body"""
_KEEP_BODY = """
INSERT INTO nodes (node_id, ref_doc_id, ordinal, hash) VALUES (?, ?, ?, ?)
ON CONFLICT (node_id) DO UPDATE SET hash = excluded.hash"""

Group = tuple[str | None, list[BaseNode]]


class Found(NamedTuple):
    """How a search finds a node: the hash of the text its vector embeds, and its row."""

    embed_hash: str | None
    row: int | None


class NewDocument(NamedTuple):
    """A document, its hash, and the nodes it is cut into, with the hash of what each embeds."""

    document: Document
    digest: str
    nodes: Sequence[BaseNode]
    embed_hashes: Sequence[str | None]


NOT_SEARCHED = Found(None, None)


class NodeWriter:
    """Writes nodes and their documents; joins the caller's transaction.

    Args:
        database: where to.
    """

    def __init__(self, database: CorpusDatabase) -> None:
        self._database = database
        self._documents = DocumentRows(database)

    def put_documents(self, documents: Sequence[NewDocument], *, first_row: int | None = None) -> None:
        """Store documents and exactly these nodes, in this order, in place of their earlier versions.

        Embeddings on the nodes are not stored. Those with an embedding hash are searchable under the rows from `first_row` on; None = none.

        Raises:
            ConfigurationError: two nodes with one id, or a node id that another document has.
        """
        with self._database.transaction():
            self._database.executemany("DELETE FROM nodes WHERE ref_doc_id = ?", ((new.document.id_,) for new in documents))
            self._check_ids(documents)
            commons = [Common.of(new.document, new.nodes) for new in documents]
            rows = ((new.document.id_, *encode_document(new.document, new.digest, common), new.digest) for new, common in zip(documents, commons, strict=True))
            self._database.executemany(UPSERT_DOCUMENT, rows)
            self._database.executemany(_INSERT_NODE, _node_rows(documents, commons, first_row))

    def _check_ids(self, documents: Sequence[NewDocument]) -> None:
        owner = {node.node_id: new.document.id_ for new in documents for node in new.nodes}
        if len(owner) < sum(len(new.nodes) for new in documents):
            node_id, _ = Counter(node.node_id for new in documents for node in new.nodes).most_common(1)[0]
            raise ConfigurationError(f"Two nodes have the id {node_id!r}, one of document {owner[node_id]!r}. Give each node an id of its own.")
        taken = self._database.query_in("SELECT node_id, ref_doc_id FROM nodes WHERE node_id IN ({})", list(owner))
        if taken:
            raise ConfigurationError(
                f"The node id {taken[0][0]!r} of document {owner[taken[0][0]]!r} belongs to document {taken[0][1]!r}. Give each node an id of its own."
            )

    def add_nodes(self, nodes: Iterable[BaseNode], *, store_text: bool = True, found: Mapping[str, Found] | None = None) -> None:
        """Add nodes behind those their documents have, or replace them where they stand.

        Args:
            nodes: each id once.
            store_text: False keeps ids and hashes only.
            found: how a search finds them, by id; None = no search does, and embeddings on the nodes are stored.
        """
        groups: dict[str | None, list[BaseNode]] = {}
        for node in nodes:
            groups.setdefault(node.ref_doc_id, []).append(node)
        with self._database.transaction():
            inherited = self._inherited(groups)
            if store_text:
                self._forget_documents([node.node_id for group in groups.values() for node in group])
            places = self._next_places(groups)
            if store_text:
                self._database.executemany(_UPSERT_NODE, _upserts(groups, inherited, places, found))
            else:
                self._database.executemany(_KEEP_BODY, _hashes(groups, places))

    def _inherited(self, groups: Mapping[str | None, list[BaseNode]]) -> dict[str | None, Inherited]:
        """What the nodes inherit; a document seen for the first time is noted with the metadata of its nodes."""
        ids = [ref_doc_id for ref_doc_id in groups if ref_doc_id is not None]
        stored = self._database.query_in("SELECT ref_doc_id, text, metadata, body FROM documents WHERE ref_doc_id IN ({})", ids)
        rows: dict[str, DocumentRow] = {row[0]: DocumentRow(*row[1:]) for row in stored}
        fresh = {one: Inherited.of_nodes(one, groups[one]) for one in ids if one not in rows or (rows[one].body is None and rows[one].metadata == "{}")}
        new = ((one, *inherited.as_row(groups[one][0]), None) for one, inherited in fresh.items() if one not in rows)
        self._database.executemany(UPSERT_DOCUMENT, new)
        for one in fresh.keys() & rows.keys():
            self._documents.replace_document(one, fresh[one].as_row(groups[one][0]))
        return {None: Inherited(), **{one: Inherited.from_row(one, row) for one, row in rows.items() if one not in fresh}, **fresh}

    def _forget_documents(self, node_ids: Sequence[str]) -> None:
        """A node in place of a document of its id."""
        for (node_id,) in self._database.query_in("SELECT ref_doc_id FROM documents WHERE body IS NOT NULL AND ref_doc_id IN ({})", node_ids):
            self._documents.forget_document(node_id)

    def _next_places(self, groups: Mapping[str | None, list[BaseNode]]) -> dict[str | None, int]:
        sql = "SELECT ref_doc_id, max(ordinal) + 1 FROM nodes WHERE ref_doc_id IN ({}) GROUP BY ref_doc_id"
        places: dict[str | None, int] = dict(self._database.query_in(sql, [ref_doc_id for ref_doc_id in groups if ref_doc_id is not None]))
        if None in groups:
            places[None] = self._database.query("SELECT coalesce(max(ordinal), -1) + 1 FROM nodes WHERE ref_doc_id IS NULL")[0][0]
        return places


def _node_rows(documents: Sequence[NewDocument], commons: Sequence[Common], first_row: int | None) -> Iterable[tuple[object, ...]]:
    number = first_row
    for (document, digest, nodes, embed_hashes), common in zip(documents, commons, strict=True):
        inherited = Inherited.of_document(document, digest, common)
        for place, (node, embed_hash) in enumerate(zip(nodes, embed_hashes, strict=True)):
            row = None if embed_hash is None else number
            yield (node.node_id, document.id_, place, *encode_node(node, inherited, keep_embedding=False), None, embed_hash, row)
            number = None if number is None else number + (row is not None)


def _upserts(
    groups: Mapping[str | None, list[BaseNode]], inherited: Mapping[str | None, Inherited], places: Mapping[str | None, int], found: Mapping[str, Found] | None
) -> Iterable[tuple[object, ...]]:
    for ref_doc_id, nodes in groups.items():
        for place, node in enumerate(nodes, start=places.get(ref_doc_id, 0)):
            encoded = encode_node(node, inherited[ref_doc_id], keep_embedding=found is None)
            yield (node.node_id, ref_doc_id, place, *encoded, node.hash, *(NOT_SEARCHED if found is None else found[node.node_id]))


def _hashes(groups: Mapping[str | None, list[BaseNode]], places: Mapping[str | None, int]) -> Iterable[tuple[object, ...]]:
    for ref_doc_id, nodes in groups.items():
        for place, node in enumerate(nodes, start=places.get(ref_doc_id, 0)):
            yield (node.node_id, ref_doc_id, place, node.hash)
