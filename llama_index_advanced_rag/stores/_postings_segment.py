"""One immutable block of postings: which texts hold a term, and how often. Blocks are merged, never changed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Counts = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Segment:
    """Raw term frequencies by term, in compressed columns, and the texts they belong to.

    The texts of term `t` are `rows[indptr[s] : indptr[s + 1]]` with `s = slots[t]`; a row that is not alive is deleted.
    """

    node_ids: list[str]
    sort_keys: list[str]
    lengths: NDArray[np.int64]
    alive: NDArray[np.bool_]
    slots: dict[str, int]
    indptr: NDArray[np.int64]
    rows: Rows
    frequencies: Counts

    def __len__(self) -> int:
        return len(self.node_ids)

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each node id, dead ones too."""
        return {node_id: row for row, node_id in enumerate(self.node_ids)}

    @cached_property
    def n_alive(self) -> int:
        """Texts that are not deleted."""
        return int(self.alive.sum())

    @cached_property
    def n_terms(self) -> int:
        """Sum of the lengths of the texts that are not deleted."""
        return int(self.lengths[self.alive].sum())

    def live_row(self, node_id: str) -> int | None:
        """Row of a node that is not deleted."""
        row = self.row_of.get(node_id)
        return row if row is not None and self.alive[row] else None

    def postings(self, term: str) -> tuple[Rows, Counts]:
        """Rows of the living texts that hold the term, ascending, and how often each does."""
        slot = self.slots.get(term)
        if slot is None:
            return self.rows[:0], self.frequencies[:0]
        found = slice(int(self.indptr[slot]), int(self.indptr[slot + 1]))
        rows, frequencies = self.rows[found], self.frequencies[found]
        if self.n_alive == len(self):
            return rows, frequencies
        living = self.alive[rows]
        return rows[living], frequencies[living]

    def postings_of_any(self, terms: Sequence[str]) -> tuple[Rows, Counts]:
        """As `postings` for terms that stand for the same word: the texts that hold any, and how often they hold them together."""
        found = [postings for postings in map(self.postings, terms) if len(postings[0])]
        if len(found) < 2:
            return found[0] if found else self.postings("")
        rows, places = np.unique(np.concatenate([rows for rows, _ in found]), return_inverse=True)
        together = np.bincount(places, weights=np.concatenate([frequencies for _, frequencies in found]))
        return rows, together.astype(np.uint32)

    def without(self, node_ids: Iterable[str]) -> "Segment":
        """The segment with these texts deleted; itself when it holds none of them."""
        dead = [row for row in map(self.live_row, node_ids) if row is not None]
        if not dead:
            return self
        alive = self.alive.copy()
        alive[dead] = False
        other = replace(self, alive=alive)
        other.__dict__["row_of"] = self.row_of  # unchanged by deletion, and slow to rebuild for each one
        return other


def build_segment(node_ids: Sequence[str], sort_keys: Sequence[str], counts: Sequence[Mapping[str, int]]) -> Segment:
    """A segment of new texts, from how often each holds each term."""
    slots: dict[str, int] = {}
    entry_slots: list[int] = []
    frequencies: list[int] = []
    for terms in counts:
        entry_slots += [slots.setdefault(term, len(slots)) for term in terms]
        frequencies += terms.values()
    rows = np.repeat(np.arange(len(counts), dtype=np.int32), [len(terms) for terms in counts])
    lengths = np.array([sum(terms.values()) for terms in counts], dtype=np.int64)
    return _columns(node_ids, sort_keys, lengths, slots, np.array(entry_slots, dtype=np.int64), rows, np.array(frequencies, dtype=np.int64))


def merge_segments(segments: Sequence[Segment]) -> Segment:
    """One segment of the living texts of several, in order; terms that nothing holds any more are gone."""
    slots: dict[str, int] = {}
    entry_slots: list[NDArray[np.int64]] = []
    rows: list[NDArray[np.int64]] = []
    frequencies: list[Counts] = []
    offset = 0
    for segment in segments:
        kept = segment.alive[segment.rows]
        old_slots = np.repeat(np.arange(len(segment.slots)), np.diff(segment.indptr))[kept]
        used = np.zeros(len(segment.slots), dtype=bool)
        used[old_slots] = True
        new_slots = np.array([slots.setdefault(term, len(slots)) if used[slot] else -1 for term, slot in segment.slots.items()], dtype=np.int64)
        entry_slots.append(new_slots[old_slots])
        rows.append((np.cumsum(segment.alive) - 1)[segment.rows[kept]] + offset)
        frequencies.append(segment.frequencies[kept])
        offset += segment.n_alive
    living = [(node_id, key) for segment in segments for node_id, key, alive in zip(segment.node_ids, segment.sort_keys, segment.alive, strict=True) if alive]
    lengths = np.concatenate([segment.lengths[segment.alive] for segment in segments])
    entries = np.concatenate(entry_slots), np.concatenate(rows).astype(np.int32), np.concatenate(frequencies)
    return _columns([node_id for node_id, _ in living], [key for _, key in living], lengths, slots, *entries)


def _columns(
    node_ids: Sequence[str],
    sort_keys: Sequence[str],
    lengths: NDArray[np.int64],
    slots: dict[str, int],
    entry_slots: NDArray[np.int64],
    rows: Rows,
    frequencies: NDArray[np.integer],
) -> Segment:
    order = np.argsort(entry_slots, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(entry_slots, minlength=len(slots))))).astype(np.int64)
    narrow = np.min_scalar_type(int(frequencies.max(initial=0)))
    alive = np.ones(len(node_ids), dtype=bool)
    return Segment(list(node_ids), list(sort_keys), lengths, alive, slots, indptr, rows[order], frequencies[order].astype(narrow))
