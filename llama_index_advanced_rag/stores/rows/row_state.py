"""One state of a corpus as a search sees it: vectors, postings and metadata under one numbering, from one commit."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.filters.filter_columns import FilterColumns
from llama_index_advanced_rag.stores.postings.postings_view import PostingsView
from llama_index_advanced_rag.stores.rows.positions import Mask, Positions, RowNames
from llama_index_advanced_rag.stores.vectors.vector_matrix import MatrixView


@dataclass(frozen=True)
class RowState:
    """Immutable; writers put another one in its place, so that a search needs no lock and both halves of a hybrid agree.

    Attributes:
        generation: of the numbering; a compaction starts another one.
        row_ids: (n_rows,) the number under which each row is stored, ascending; never used again for another row.
        alive: (n_rows,) False where a row has been deleted; None when none has.
        names: what the positions are called.
        columns: metadata by position, for filters.
        postings: the words.
        load_matrix: gives the vectors when they are first needed, see `matrix`.
    """

    generation: int
    row_ids: NDArray[np.int64]
    alive: Mask | None
    names: RowNames
    columns: FilterColumns
    postings: PostingsView
    load_matrix: Callable[[], MatrixView | None]

    @cached_property
    def matrix(self) -> MatrixView | None:
        """The vectors; None when there are none, or they are in an external vector store.

        Raises:
            IndexFormatError: the file of the vectors is damaged.
        """
        return self.load_matrix()

    @property
    def known_matrix(self) -> MatrixView | None:
        """The vectors, if they have been needed already."""
        return self.__dict__.get("matrix")

    @property
    def n_rows(self) -> int:
        """Number of positions, those of deleted rows included."""
        return len(self.row_ids)

    @property
    def n_alive(self) -> int:
        """Number of rows that are not deleted."""
        return self.n_rows if self.alive is None else int(np.count_nonzero(self.alive))

    def mask(self, filters: MetadataFilters | None, *, node_ids: Sequence[str] | None = None, doc_ids: Sequence[str] | None = None) -> Mask | None:
        """The positions that satisfy all that is given, as (n_rows,) bool; None when nothing is given, `[]` selects nothing."""
        masks = [self.columns.mask(filters, self.n_rows)] if filters is not None and filters.filters else []
        masks += [self._only(self.names.positions_of(node_ids))] if node_ids is not None else []
        masks += [self._only(self.names.positions_of_documents(doc_ids))] if doc_ids is not None else []
        return np.logical_and.reduce(masks) if masks else None

    def _only(self, positions: Positions) -> Mask:
        mask = np.zeros(self.n_rows, dtype=bool)
        mask[positions] = True
        return mask


@runtime_checkable
class RowSpace(Protocol):
    """Whoever holds the rows: gives the state of the moment, and the nodes behind its positions."""

    def state(self) -> RowState:
        """The state of this moment."""
        ...

    def refresh(self) -> bool:
        """Take over what others have committed; True when there was something."""
        ...

    def frozen(self) -> AbstractContextManager[object]:
        """A block that begins with the newest state and in which nothing changes: what is found there has its node."""
        ...

    def nodes_at(self, state: RowState, positions: Positions) -> list[BaseNode | None]:
        """The node of each position; None for one that has been deleted since: refresh and search again."""
        ...

    def get_nodes(self, node_ids: Sequence[str]) -> list[BaseNode]:
        """The nodes with these ids, in that order; unknown ids are left out."""
        ...
