"""A search of one state, and the reading of what it found: together they see one commit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from llama_index_advanced_rag.stores.rows.positions import Found, Positions, pairs
from llama_index_advanced_rag.stores.rows.row_state import RowSpace, RowState
from llama_index_advanced_rag.trace import report

S = TypeVar("S")
T = TypeVar("T")

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Seen(Generic[S, T]):
    """What a search found, the state it read, and what stands at the positions that were to be read; a row deleted since is not there."""

    state: RowState
    result: S
    at: Mapping[int, T]


def search_and_read(
    space: RowSpace,
    search: Callable[[RowState], S],
    wanted: Callable[[S], Positions],
    read: Callable[[RowState, Positions], Sequence[T | None]],
    *,
    state: RowState | None = None,
    by_ids: bool = False,
) -> Seen[S, T]:
    """Search a state and read what was found; when some of it has been deleted meanwhile, search the next state.

    The third attempt searches while nothing can change, so it finds all. A row without a node then is a fault of the index; it is
    left out, which the trace says.

    Args:
        space: gives the states.
        search: finds something in a state.
        wanted: the positions to read.
        read: what stands at positions; None for a row that is gone.
        state: where to begin; None = the state of this moment.
        by_ids: it is restricted to ids of nodes or documents, which are looked up among those of now: it counts if nothing has changed.
    """
    for _ in range(_ATTEMPTS - 1):
        seen, gone = _seen(space.state() if state is None else state, search, wanted, read)
        if by_ids:
            space.refresh()
        if not gone and not (by_ids and space.state() is not seen.state):
            return seen
        space.refresh()
        state = None
    with space.frozen():
        seen, gone = _seen(space.state(), search, wanted, read)
    if gone:
        report("warning", f"{gone} rows that were found have no node and were left out. index.verify(repair=True) mends it.")
    return seen


def scored(seen: Seen[Found, T]) -> list[tuple[T, float]]:
    """What was read of each hit, with its score, best first."""
    return [(seen.at[position], score) for position, score in pairs(seen.result) if position in seen.at]


def _seen(
    state: RowState, search: Callable[[RowState], S], wanted: Callable[[S], Positions], read: Callable[[RowState, Positions], Sequence[T | None]]
) -> tuple[Seen[S, T], int]:
    """One search, and how many of the rows it wanted are gone."""
    result = search(state)
    positions = wanted(result)
    items = read(state, positions)
    at = {position: item for position, item in zip(positions.tolist(), items, strict=True) if item is not None}
    return Seen(state, result, at), len(items) - len(at)


def read_ids(state: RowState, positions: Positions) -> list[str | None]:
    """The node ids at positions."""
    return state.names.node_ids(positions)


def positions_of(found: Found) -> Positions:
    """The positions of the hits of one search."""
    return found.positions
