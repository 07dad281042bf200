"""Positions: how the texts and vectors of one state are numbered, and what a search over them gives back.

A position is a row of every array of a state: its vector, its length in terms, its metadata. Positions are handed out in order of
arrival and never used twice before a compaction, which starts a new numbering. Node ids are looked up for the hits only.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]


class Found(NamedTuple):
    """Hits, best first: `positions` (k,) and their `scores` (k,) as float64; equal scores in the order of the rows' sort keys."""

    positions: Positions
    scores: NDArray[np.float64]


NOTHING = Found(np.empty(0, dtype=np.intp), np.empty(0))


class RowNames(Protocol):
    """What the positions of one state are called, and their order among equal scores."""

    def node_ids(self, positions: Positions) -> list[str | None]:
        """The node id of each position; None for a row that has been deleted since."""
        ...

    def in_order(self, positions: Positions, limit: int) -> Positions:
        """The first `limit` of the positions by sort key (document, place in it, node id), in that order."""
        ...

    def positions_of(self, node_ids: Sequence[str]) -> Positions:
        """Positions of those of the nodes that are in this state, ascending."""
        ...

    def positions_of_documents(self, ref_doc_ids: Sequence[str]) -> Positions:
        """Positions of the nodes of these documents, ascending."""
        ...

    def metadata(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Position and metadata (as `filterable_metadata` gives them) of the rows from `start` to before `stop`; deleted rows may be missing."""
        ...


def alive_after(alive: Mask | None, n_rows: int, gone: Positions) -> Mask | None:
    """Which of `n_rows` rows live when more came than `alive` knows, and some have gone; None = all.

    Example:
        >>> alive_after(np.array([True, False]), 3, np.array([0])).tolist()
        [False, False, True]
    """
    if alive is None and not len(gone):
        return None
    living = np.ones(n_rows, dtype=bool)
    if alive is not None:
        living[: len(alive)] = alive
    living[gone] = False
    return living


def pairs(found: Found) -> list[tuple[int, float]]:
    """Positions and scores, best first."""
    return list(zip(found.positions.tolist(), found.scores.tolist(), strict=True))


def best_first(positions: Positions, scores: NDArray[np.floating[Any]], top_k: int, names: RowNames) -> Found:
    """The `top_k` best of the hits in the order of `Found`; sort keys are asked for only where scores are equal.

    Args:
        positions: (n,) hits, each once.
        scores: (n,) their scores.
        top_k: most hits returned, at least 1.
        names: decides among equal scores.
    """
    if not len(positions):
        return NOTHING
    cut = float(np.partition(scores, -top_k)[-top_k]) if len(scores) > top_k else -np.inf
    above = np.flatnonzero(scores > cut)
    chosen = positions[above], scores[above].astype(np.float64)
    order = np.argsort(-chosen[1], kind="stable")
    ordered = _untied(chosen[0][order], chosen[1][order], names)
    tied = names.in_order(positions[scores == cut], top_k - len(above)) if cut > -np.inf else positions[:0]
    return Found(np.concatenate([ordered, tied]), np.concatenate([chosen[1][order], np.full(len(tied), cut)]))


def _untied(positions: Positions, scores: NDArray[np.float64], names: RowNames) -> Positions:
    """Positions that are sorted by falling score, with each run of equal scores put in order; names are asked once for all runs."""
    same = scores[1:] == scores[:-1]
    if not same.any():
        return positions
    places = np.flatnonzero(np.append(False, same) | np.append(same, False))
    tied = positions[places]
    ordered = names.in_order(tied, len(tied))
    by_position = np.argsort(ordered)
    ranks = by_position[np.searchsorted(ordered, tied, sorter=by_position)]
    result = positions.copy()
    result[places] = tied[np.lexsort((ranks, -scores[places]))]
    return result
