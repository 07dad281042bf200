"""One immutable block of postings: which texts hold a term, and how often. Blocks are merged, never changed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.postings.segment_merging import tail_to_merge
from llama_index_advanced_rag.stores.postings.term_table import TermTable, encode_term, make_term_table
from llama_index_advanced_rag.stores.rows.positions import Mask

Rows = NDArray[np.int32]
Counts = NDArray[np.unsignedinteger[Any]]
_LOW_BITS = (1 << 32) - 1


@dataclass(frozen=True, eq=False)
class Segment:
    """Raw term frequencies by term, for the texts at the positions from `start` to before `stop`; arrays only, so that it can be memory-mapped.

    The texts that hold the term of slot `s` are `positions[indptr[s] : indptr[s + 1]]`, ascending; `frequencies` says how often each does.
    What else is known of a text (its length, whether it is deleted) belongs to the state, not to its segments.

    Args:
        start: first position covered.
        stop: end of the positions covered.
        terms: the distinct terms.
        indptr: int64, shape (terms + 1,).
        positions: int32, shape (postings,).
        frequencies: the narrowest unsigned type that holds them; shape (postings,).
    """

    start: int
    stop: int
    terms: TermTable
    indptr: NDArray[np.int64]
    positions: Rows
    frequencies: Counts

    def __len__(self) -> int:
        return self.stop - self.start

    def postings(self, term: str) -> tuple[Rows, Counts] | None:
        """Positions of the texts that hold the term, ascending, deleted ones too, and how often each does; None when there are none."""
        slot = self.terms.find(term)
        if slot is None:
            return None
        found = slice(int(self.indptr[slot]), int(self.indptr[slot + 1]))
        return self.positions[found], self.frequencies[found]


def build_segment(first_position: int, counts: Sequence[Mapping[str, int]]) -> Segment:
    """The postings of texts, given by how often each holds its terms (at least 1), at positions from the first on."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)  # each new term gets the next number
    n_postings = sum(map(len, counts))
    arrival = np.fromiter(map(numbers.__getitem__, chain.from_iterable(counts)), np.int64, n_postings)
    frequencies = np.fromiter(chain.from_iterable(terms.values() for terms in counts), np.int64, n_postings)
    encoded = [encode_term(term) for term in numbers]
    ordered = sorted(range(len(encoded)), key=encoded.__getitem__)
    slot_of = np.empty(len(ordered), dtype=np.int64)
    slot_of[ordered] = np.arange(len(ordered))
    slots = slot_of[arrival]
    order = np.sort(slots << 32 | np.arange(n_postings)) & _LOW_BITS  # sorts numbers, which is faster than a stable argsort
    positions = np.repeat(np.arange(first_position, first_position + len(counts), dtype=np.int32), np.fromiter(map(len, counts), np.int64, len(counts)))
    table = make_term_table([encoded[number] for number in ordered])
    indptr = _cumulated(np.bincount(slots, minlength=len(table)))
    return Segment(first_position, first_position + len(counts), table, indptr, positions[order], _narrow(frequencies[order]))


def append_segment(segments: Sequence[Segment], new: Segment, alive: Mask | None = None) -> tuple[Segment, ...]:
    """The segments and a new one behind them, merged with its elders where there are many of its size (`tail_to_merge`).

    Args:
        segments: in ascending order.
        new: the next one.
        alive: as for `merge_segments`; positions beyond its end are alive.
    """
    first = len(segments) - tail_to_merge([*map(len, segments), len(new)])
    if first == len(segments):
        return (*segments, new)
    if alive is not None and len(alive) < new.stop:
        alive = np.concatenate((alive, np.ones(new.stop - len(alive), dtype=bool)))
    return (*segments[:first], merge_segments([*segments[first:], new], alive))


def merge_segments(segments: Sequence[Segment], alive: Mask | None = None) -> Segment:
    """One segment of the living texts of several, whose ranges of positions ascend and do not overlap; terms that nothing holds any more are gone.

    Args:
        segments: at least one.
        alive: by position, at least as far as the segments go; None = all.
    """
    kept = [_living(segment, alive) for segment in segments]
    tables = [segment.terms.terms() for segment in kept]
    distinct = sorted(set(chain.from_iterable(tables)))
    slot_of = {term: slot for slot, term in enumerate(distinct)}
    slots = [np.fromiter(map(slot_of.__getitem__, terms), np.int64, len(terms)) for terms in tables]
    sizes = np.zeros(len(distinct), dtype=np.int64)
    for segment, own in zip(kept, slots, strict=True):
        sizes[own] += np.diff(segment.indptr)
    indptr = _cumulated(sizes)
    positions = np.empty(int(indptr[-1]), dtype=np.int32)
    frequencies = np.empty(len(positions), dtype=np.result_type(np.uint8, *(segment.frequencies for segment in kept)))
    free = indptr[:-1].copy()
    for segment, own in zip(kept, slots, strict=True):
        held = np.diff(segment.indptr)
        places = np.arange(len(segment.positions)) + np.repeat(free[own] - segment.indptr[:-1], held)
        positions[places], frequencies[places] = segment.positions, segment.frequencies
        free[own] += held
    return Segment(segments[0].start, segments[-1].stop, make_term_table(distinct), indptr, positions, frequencies)


def remapped(segment: Segment, new_positions: NDArray[np.integer[Any]]) -> Segment:
    """The segment in another numbering.

    Args:
        segment: in the old numbering.
        new_positions: new position by old position; -1 = the text is gone. The order may differ.
    """
    covered = new_positions[segment.start : segment.stop]
    covered = covered[covered >= 0]
    start, stop = (int(covered.min()), int(covered.max()) + 1) if len(covered) else (0, 0)
    slots = _slots(segment)
    positions = new_positions[segment.positions].astype(np.int64)
    kept = np.flatnonzero(positions >= 0)
    if not np.all(covered[1:] > covered[:-1]):
        kept = kept[np.argsort(slots[kept] << 32 | positions[kept])]
    return _subset(segment, start, stop, slots[kept], positions[kept].astype(np.int32), segment.frequencies[kept])


def segment_arrays(segment: Segment) -> list[NDArray[Any]]:
    """The seven arrays that `segment_from_arrays` makes the segment from."""
    table = segment.terms
    covered = np.array([segment.start, segment.stop], dtype=np.int64)
    return [covered, table.text, table.offsets, table.prefixes, segment.indptr, segment.positions, segment.frequencies]


def segment_from_arrays(arrays: Sequence[NDArray[Any]]) -> Segment:
    """The segment over arrays that `segment_arrays` gave; they may be memory-mapped and are not copied."""
    covered, text, offsets, prefixes, indptr, positions, frequencies = arrays
    return Segment(int(covered[0]), int(covered[1]), TermTable(text, offsets, prefixes), indptr, positions, frequencies)


def _living(segment: Segment, alive: Mask | None) -> Segment:
    if alive is None or bool(alive[segment.start : segment.stop].all()):
        return segment
    kept = np.flatnonzero(alive[segment.positions])
    return _subset(segment, segment.start, segment.stop, _slots(segment)[kept], segment.positions[kept], segment.frequencies[kept])


def _subset(segment: Segment, start: int, stop: int, slots: NDArray[np.int64], positions: Rows, frequencies: Counts) -> Segment:
    """A segment of postings that are sorted by slot, without the terms that have none."""
    sizes = np.bincount(slots, minlength=len(segment.terms))
    table = segment.terms
    if not sizes.all():
        table = make_term_table([term for term, size in zip(table.terms(), sizes.tolist(), strict=True) if size])
    return Segment(start, stop, table, _cumulated(sizes[sizes > 0]), positions, frequencies)


def _slots(segment: Segment) -> NDArray[np.int64]:
    """The slot of each posting."""
    return np.repeat(np.arange(len(segment.terms)), np.diff(segment.indptr))


def _cumulated(sizes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _narrow(frequencies: NDArray[np.int64]) -> Counts:
    return frequencies.astype(np.min_scalar_type(int(frequencies.max(initial=0))))
