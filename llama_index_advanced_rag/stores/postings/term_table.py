"""The distinct terms of a block of postings, as arrays: found by binary search, without a Python object for each."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_PREFIX = 8


def encode_term(term: str) -> bytes:
    """UTF-8; lone surrogates, which a broken text may hold, are terms like any other."""
    return term.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, eq=False)
class TermTable:
    """Distinct terms in the order of their UTF-8 bytes; the slot of a term is its place in that order.

    Args:
        text: the bytes of all terms, one after the other; uint8.
        offsets: term `s` is `text[offsets[s] : offsets[s + 1]]`; int64, shape (n + 1,).
        prefixes: the first eight bytes of each term as one big-endian number, ascending; uint64, shape (n,).

    Example:
        >>> table = make_term_table([b"apple", b"bear"])
        >>> table.find("bear"), table.find("bea"), table.terms()
        (1, None, [b'apple', b'bear'])
    """

    text: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    prefixes: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.prefixes)

    def __reduce__(self) -> tuple[type["TermTable"], tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint64]]]:
        return TermTable, (self.text, self.offsets, self.prefixes)  # the memory views cannot be copied

    def find(self, term: str) -> int | None:
        """Slot of a term; None when it is not in the table."""
        sought = encode_term(term)
        prefix = int.from_bytes(sought[:_PREFIX].ljust(_PREFIX, b"\0"), "big")
        # C code finds where the prefix begins; the few terms that share it are searched by their bytes
        prefixes, end = self._prefixes, len(self.prefixes)
        slot = bisect_left(prefixes, prefix)
        if slot == end or prefixes[slot] != prefix:
            return None
        if self._term(slot) == sought:
            return slot
        slot = bisect_left(range(end), sought, lo=slot, hi=bisect_left(prefixes, prefix + 1, lo=slot), key=self._term)
        return slot if slot < end and self._term(slot) == sought else None

    def terms(self) -> list[bytes]:
        """All terms, in order of their slots."""
        text, offsets = self.text.tobytes(), self.offsets.tolist()
        return [text[start:end] for start, end in pairwise(offsets)]

    @cached_property
    def _prefixes(self) -> memoryview:
        return self.prefixes.data

    @cached_property
    def _offsets(self) -> memoryview:
        return self.offsets.data

    @cached_property
    def _text(self) -> memoryview:
        return self.text.data

    def _term(self, slot: int) -> bytes:
        return bytes(self._text[self._offsets[slot] : self._offsets[slot + 1]])


def make_term_table(terms: Sequence[bytes]) -> TermTable:
    """The table of distinct terms that are in the order of their bytes."""
    lengths = np.fromiter(map(len, terms), np.int64, len(terms))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    text = np.frombuffer(b"".join(terms), dtype=np.uint8)
    return TermTable(text, offsets, _prefixes(text, offsets[:-1], lengths))


def _prefixes(text: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint64]:
    prefixes = np.zeros(len(lengths), dtype=np.uint64)
    for place in range(_PREFIX):
        long_enough = np.flatnonzero(lengths > place)
        prefixes[long_enough] |= text[starts[long_enough] + place].astype(np.uint64) << np.uint64(8 * (_PREFIX - 1 - place))
    return prefixes
