"""Entities told apart by the document that speaks of them: the gross margin of one filing is not that of another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.graph_walk import fact_counts

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TitledEntities:
    """Each entity once for each document that names it.

    Attributes:
        graph: what they are of.
        entities: (n,) the entity.
        documents: (n,) the document, as its place in `document_ids`.
        document_ids: the documents.
        naming: (n, n_chunks) which chunks name it: those of its document only.
    """

    graph: EntityGraph
    entities: Ids
    documents: Ids
    document_ids: list[str]
    naming: "csr_array"

    @classmethod
    def of(cls, graph: EntityGraph, documents: Sequence[str]) -> "TitledEntities":
        """The titled entities of a graph.

        Args:
            graph: the graph.
            documents: the id of the document of each chunk.
        """
        from scipy.sparse import csr_array

        ids, of_chunk = np.unique(np.array(documents, dtype=object), return_inverse=True) if documents else (np.array([], dtype=object), np.zeros(0, dtype=int))
        mentions: Any = graph.mentions.tocoo()
        pairs = mentions.col.astype(np.int64) * max(1, len(ids)) + of_chunk.ravel()[mentions.row]
        distinct, rows = np.unique(pairs, return_inverse=True)
        naming = csr_array((np.ones(len(pairs)), (rows.ravel(), mentions.row)), shape=(len(distinct), graph.n_chunks))
        return cls(graph, distinct // max(1, len(ids)), distinct % max(1, len(ids)), [str(one) for one in ids], naming)

    @cached_property
    def texts(self) -> list[str]:
        """What is embedded of each: "name - title of the document", or the name where the document has none."""
        titles = self._titles()
        named = zip(self.entities.tolist(), self.documents.tolist(), strict=True)
        return [_titled(self.graph.names[entity], titles[document]) for entity, document in named]

    @cached_property
    def relations(self) -> "csr_array":
        """(n, n) which are related by a fact or an alias, within a document."""
        from scipy.sparse import csr_array

        related: Any = (fact_counts(self.graph) + self.graph.aliases).tocoo()
        rows_of: dict[int, dict[int, int]] = {}  # of each entity by document
        for row, (entity, document) in enumerate(zip(self.entities.tolist(), self.documents.tolist(), strict=True)):
            rows_of.setdefault(entity, {})[document] = row
        ends: list[tuple[int, int]] = []
        for one, other in zip(related.row.tolist(), related.col.tolist(), strict=True):
            ours, theirs = rows_of.get(one, {}), rows_of.get(other, {})
            fewer = min(ours, theirs, key=len)  # an entity of all documents may be related to one of each
            ends += [(ours[document], theirs[document]) for document in fewer if document in ours and document in theirs]
        rows, columns = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        return csr_array((np.ones(len(ends)), (rows, columns)), shape=(len(self.entities), len(self.entities)))

    def _titles(self) -> list[str]:
        """The title of each document: that of its first chunk which has one."""
        titles = [""] * len(self.document_ids)
        naming: Any = self.naming.tocoo()
        chunks, places = np.unique(naming.col, return_index=True)
        for document, chunk in zip(self.documents[naming.row[places]].tolist(), chunks.tolist(), strict=True):
            if not titles[document] and self.graph.titles[chunk] >= 0:
                titles[document] = self.graph.names[int(self.graph.titles[chunk])]
        return titles


def _titled(name: str, title: str) -> str:
    return name if not title or title == name else f"{name} - {title}"
