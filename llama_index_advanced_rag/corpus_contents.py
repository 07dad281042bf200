"""What a corpus holds, read: its state, and nodes, documents, vectors and records by id or by row."""

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index_advanced_rag.corpus_settings import CorpusSettings
from llama_index_advanced_rag.corpus_writes import Vector
from llama_index_advanced_rag.graph.records import ExtractionRecord
from llama_index_advanced_rag.graph.stored_records import StoredRecords
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.rows.positions import Positions
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_snapshot import frozen
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.sqlite.sqlite_file import damage_reported


class CorpusContents:
    """The reading half of a `Corpus`, which sets the attributes.

    Attributes:
        database: the tables.
        documents: the document store (a LlamaIndex `BaseDocumentStore`).
        rows: the searchable rows.
        records: what the nodes of rows say of names and facts.
        settings: what the stored state was made with.
    """

    database: CorpusDatabase
    documents: SQLDocumentStore
    rows: RowFiles
    records: StoredRecords
    settings: CorpusSettings

    def refresh(self) -> bool:
        """Make what another process has committed since the state; True when there was something. Without a commit this costs microseconds."""
        with self.database.alone():
            changed = self.rows.refresh()
            if changed:
                self.settings = CorpusSettings.read(self.database)
            return changed

    def state(self) -> RowState:
        """What a search sees."""
        return self.rows.state()

    @contextmanager
    def frozen(self) -> Generator[None, None, None]:
        """A block that begins with the newest state and in which nothing changes: what is found there has its node."""
        with frozen(self.database, self.refresh):
            yield

    def nodes_at(self, state: RowState, positions: Positions) -> list[BaseNode | None]:
        """The node of each position; None for one that has been deleted since."""
        rows = state.row_ids[positions].tolist()
        found = self.documents.nodes_of_rows(rows)
        return [found.get(row) for row in rows]

    def records_of_rows(self, rows: Sequence[int]) -> dict[int, ExtractionRecord]:
        """What the nodes of rows say of names and facts; rows without a record are left out.

        Raises:
            IndexFormatError: a record is damaged; the message names the row.
        """
        return self.records.of_rows(rows)

    def texts_of_rows(self, rows: Sequence[int]) -> dict[int, str]:
        """The content of the nodes of rows, without metadata; rows that are gone are left out."""
        return self.records.texts_of_rows(rows)

    def titles_of_rows(self, rows: Sequence[int]) -> dict[int, str]:
        """What the document of each row is called; rows that are gone are left out."""
        return self.records.titles_of_rows(rows)

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """Nodes in the order asked; ids that are gone are left out, and then the state becomes the newest, so that whoever searches again finds it."""
        nodes = self.documents.get_nodes(list(node_ids), raise_error=False)
        if len(nodes) < len(node_ids):
            self.refresh()
        return nodes

    def document_hashes(self, ref_doc_ids: Sequence[str]) -> dict[str, str]:
        """Hashes of those of the documents that are stored."""
        return dict(self.database.query_in("SELECT ref_doc_id, hash FROM documents WHERE ref_doc_id IN ({})", ref_doc_ids))

    def describe_documents(self) -> list[tuple[str, str | None, dict[str, Any], int]]:
        """Id, hash, metadata and number of searched nodes of each document, by id."""
        sql = (
            "SELECT d.ref_doc_id, d.hash, d.metadata, count(n.embed_hash) FROM documents d "
            "LEFT JOIN nodes n ON n.ref_doc_id = d.ref_doc_id GROUP BY d.ref_doc_id ORDER BY d.ref_doc_id"
        )
        with damage_reported():
            return [(ref_doc_id, digest, json.loads(metadata), count) for ref_doc_id, digest, metadata, count in self.database.query(sql)]

    def vectors_by_hash(self, embed_hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors already stored for these content hashes."""
        return self.rows.vectors_of_hashes(embed_hashes)

    def nodes_of_documents(self, ref_doc_ids: Sequence[str]) -> list[BaseNode]:
        """The searchable nodes of documents, in the order of their rows."""
        rows = self.database.query_in("SELECT row FROM nodes WHERE row IS NOT NULL AND ref_doc_id IN ({})", ref_doc_ids)
        return list(self.documents.nodes_of_rows(sorted(row[0] for row in rows)).values())

    def vectors_of_nodes(self, node_ids: Sequence[str]) -> NDArray[Any]:
        """(n, dimension) vectors of searchable nodes, as they are stored."""
        rows = self.rows.table.rows_of_nodes(node_ids)
        return self.rows.vectors()[np.searchsorted(self.state().row_ids, [rows[node_id] for node_id in node_ids])]

    def counts(self) -> dict[str, int]:
        """Numbers of documents, of nodes that are searched, and of those that were split into them (documents and sections)."""
        documents = self.database.query("SELECT count(*) FROM documents")[0][0]
        nodes, searched = self.database.query("SELECT count(*), count(embed_hash) FROM nodes")[0]
        return {"documents": int(documents), "nodes": int(searched), "outline_nodes": int(nodes - searched)}

    def sizes(self) -> dict[str, int]:
        """Numbers of documents, nodes and searchable rows, and bytes. Reads all text.

        `record_bytes` are documents and nodes with their text, `graph_bytes` the records of names and facts beside them in the same file.
        """
        text = self.database.query("SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM documents")
        graph = self.records.rows.n_bytes()
        return {**self.counts(), "text_bytes": int(text[0][0]), "record_bytes": self.database.size() - graph, "graph_bytes": graph, **self.rows.sizes()}
