"""The rows behind search: term counts of each node, and one vector for each distinct text."""

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from llama_index_advanced_rag.stores.database import CorpusDatabase

Vector = npt.NDArray[np.float32]

_MARKS = """
SELECT node_id, embed_hash, coalesce(nodes.hash, documents.hash) FROM nodes LEFT JOIN documents USING (ref_doc_id)
WHERE embed_hash IS NOT NULL ORDER BY ref_doc_id IS NULL, ref_doc_id, ordinal"""
_DELETE_UNUSED = "DELETE FROM vectors WHERE embed_hash = ? AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.embed_hash = vectors.embed_hash)"


class SearchRows:
    """Reads and writes the tables `postings` and `vectors`, and the column of `nodes` that joins them; joins the caller's transaction.

    Vectors are float32 arrays of shape (dimension,), kept under the hash of the text they embed, so that nodes of equal text
    share one.
    """

    def __init__(self, database: CorpusDatabase) -> None:
        self._database = database

    def marks(self) -> dict[str, int]:
        """A number for each searchable node, by document and place in it; another one when its text or metadata are others."""
        return {node_id: mark(embed_hash, digest) for node_id, embed_hash, digest in self._database.query(_MARKS)}

    def term_counts(self, node_ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """How often each node holds each term."""
        rows = self._database.query_in("SELECT node_id, counts FROM postings WHERE node_id IN ({})", node_ids)
        return {node_id: json.loads(counts) for node_id, counts in rows}

    def vectors_of_nodes(self, node_ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors by node id."""
        sql = "SELECT n.node_id, v.vector FROM nodes n JOIN vectors v ON v.embed_hash = n.embed_hash WHERE n.node_id IN ({})"
        return {node_id: _decoded(blob) for node_id, blob in self._database.query_in(sql, node_ids)}

    def vectors(self, embed_hashes: Iterable[str]) -> dict[str, Vector]:
        """Those of the vectors that are stored, by hash of their text."""
        rows = self._database.query_in("SELECT embed_hash, vector FROM vectors WHERE embed_hash IN ({})", sorted(set(embed_hashes)))
        return {embed_hash: _decoded(blob) for embed_hash, blob in rows}

    def hashes_of_documents(self, ref_doc_ids: Sequence[str]) -> list[str]:
        """Hashes of the texts that the nodes of these documents embed."""
        return self._hashes("ref_doc_id", ref_doc_ids)

    def hashes_of_nodes(self, node_ids: Sequence[str]) -> list[str]:
        """Hashes of the texts that these nodes embed."""
        return self._hashes("node_id", node_ids)

    def _hashes(self, column: str, values: Sequence[str]) -> list[str]:
        sql = f"SELECT DISTINCT embed_hash FROM nodes WHERE embed_hash IS NOT NULL AND {column} IN ({{}})"  # noqa: S608 - our own words
        return [row[0] for row in self._database.query_in(sql, values)]

    def put_vectors(self, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by hash of their text; known ones stay."""
        rows = ((digest, np.ascontiguousarray(vector, dtype="<f4").tobytes()) for digest, vector in vectors.items())
        self._database.executemany("INSERT OR IGNORE INTO vectors (embed_hash, vector) VALUES (?, ?)", rows)

    def put_term_counts(self, node_ids: Sequence[str], counts: Sequence[Mapping[str, int]]) -> None:
        """Store the term counts of nodes, in place of earlier ones."""
        rows = ((node_id, json.dumps(count)) for node_id, count in zip(node_ids, counts, strict=True))
        self._database.executemany("INSERT OR REPLACE INTO postings (node_id, counts) VALUES (?, ?)", rows)

    def set_hashes(self, node_ids: Sequence[str], embed_hashes: Sequence[str]) -> None:
        """Say which vectors nodes have."""
        self._database.executemany("UPDATE nodes SET embed_hash = ? WHERE node_id = ?", zip(embed_hashes, node_ids, strict=True))

    def forget_unused(self, embed_hashes: Iterable[str]) -> None:
        """Delete those of the vectors that no node refers to any more."""
        self._database.executemany(_DELETE_UNUSED, ((digest,) for digest in embed_hashes))


def mark(embed_hash: str, digest: str | None) -> int:
    """What `SearchRows.marks` gives for a node of this text and this hash of its own, else of its document; for this process only."""
    return hash((embed_hash, digest))


def _decoded(blob: bytes) -> Vector:
    return np.frombuffer(blob, dtype="<f4")
