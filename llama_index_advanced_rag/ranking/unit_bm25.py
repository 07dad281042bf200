"""BM25 of whole documents and sections, added up from the postings of their passages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.ranking.bm25 import K1, B, inverse_document_frequency, length_norms

_CELLS = 1 << 18  # so many numbers are computed at once


class WordMatches(NamedTuple):
    """The passages that hold one word of a query.

    Attributes:
        positions: (n,) passages, each once.
        frequencies: (n,) how often each holds the word.
        times: how often the query holds it.
    """

    positions: NDArray[np.integer[Any]]
    frequencies: NDArray[np.integer[Any]]
    times: int = 1


@dataclass(frozen=True, eq=False)
class UnitTree:
    """Documents and their sections as arrays.

    Attributes:
        unit_of: (n_passages,) the deepest unit that holds each passage; -1 for one that does not count (a deleted one).
        parents: (n_units,) the unit each one stands in, always an earlier one; -1 for documents.
        lengths: (n_passages,) terms in each passage.
    """

    unit_of: NDArray[np.int32]
    parents: NDArray[np.int32]
    lengths: NDArray[np.integer[Any]]

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """(n_units,) 0 for documents, one more for each step down."""
        levels: list[int] = []
        for parent in self.parents.tolist():
            levels.append(levels[parent] + 1 if parent >= 0 else 0)
        return np.array(levels, dtype=np.int32)

    @cached_property
    def roots(self) -> NDArray[np.int32]:
        """(n_units,) the document of each unit; of a document itself."""
        roots: list[int] = []
        for place, parent in enumerate(self.parents.tolist()):
            roots.append(roots[parent] if parent >= 0 else place)
        return np.array(roots, dtype=np.int32)

    @cached_property
    def unit_lengths(self) -> NDArray[np.float64]:
        """(n_units,) terms in all passages of each unit."""
        counted = self.unit_of >= 0
        return self.added_up(self.unit_of[counted], self.lengths[counted].astype(np.float64))

    @cached_property
    def kinds(self) -> tuple["UnitKind", "UnitKind"]:
        """Documents, and sections of all levels."""
        return UnitKind.of(self, self.parents < 0), UnitKind.of(self, self.parents >= 0)

    @cached_property
    def n_passages(self) -> NDArray[np.int64]:
        """(n_units,) passages in each unit; nobody writes into it."""
        counts = self._count(self.unit_of >= 0)
        counts.flags.writeable = False
        return counts

    def count(self, mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """(n_units,) passages in each unit; with a mask (n_passages,) only those where it is True."""
        return self.n_passages if mask is None else self._count((self.unit_of >= 0) & mask)

    def _count(self, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
        units = self.unit_of[counted]
        return self.added_up(units, np.ones(len(units))).astype(np.int64)

    @cached_property
    def _steps(self) -> list["_Step"]:
        """From the deepest level up to the documents."""
        return [_Step.of(self.parents, np.flatnonzero(self.levels == level)) for level in range(int(self.levels.max(initial=0)), 0, -1)]

    def added_up(self, units: NDArray[np.int32], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """(n_units,) sum of values over each unit and all below it."""
        return self._passed_up(np.bincount(units, weights=values, minlength=len(self.parents)).astype(np.float64))

    def frequencies(self, words: Sequence[WordMatches]) -> NDArray[np.float64]:
        """(n_words, n_units) how often each unit holds each word."""
        if not words:
            return np.zeros((0, len(self.parents)))
        units = self.unit_of[np.concatenate([word.positions for word in words])]
        of_word = np.repeat(np.arange(len(words)), [len(word.positions) for word in words])
        counted = units >= 0
        shape = (len(words), len(self.parents))
        cells = of_word[counted] * shape[1] + units[counted]
        values = np.concatenate([word.frequencies for word in words])[counted]
        return self._passed_up(np.bincount(cells, weights=values, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape))

    def _passed_up(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """(..., n_units) what stands in units directly, with what stands in all below them; written into the same array."""
        for step in self._steps:
            sums[..., step.parents] += np.add.reduceat(sums[..., step.units], step.starts, axis=-1)
        return sums


class _Step(NamedTuple):
    """The units of one level, those of one parent side by side: where each parent's begin, and the parents."""

    units: NDArray[np.intp]
    starts: NDArray[np.intp]
    parents: NDArray[np.int32]

    @classmethod
    def of(cls, parents: NDArray[np.int32], units: NDArray[np.intp]) -> "_Step":
        units = units[np.argsort(parents[units], kind="stable")]
        above, starts = np.unique(parents[units], return_index=True)
        return cls(units, starts, above)


@dataclass(frozen=True, eq=False)
class UnitKind:
    """Units that are compared with each other.

    Attributes:
        places: (n,) the units.
        n_living: those that hold a term.
        average_length: terms in each of these that holds several passages, in each where none does; 1.0 where there is none. Beside thousands of notes
            of one passage, all reports would count as far too long, and what they say often would count alone.
    """

    places: NDArray[np.intp]
    n_living: int
    average_length: float

    @classmethod
    def of(cls, tree: UnitTree, mask: NDArray[np.bool_]) -> "UnitKind":
        """The units of a tree where the mask (n_units,) is True."""
        places = np.flatnonzero(mask)
        lengths, living = tree.unit_lengths[places], tree.unit_lengths[places] > 0
        several = living & (tree.n_passages[places] > 1)
        compared = lengths[several if several.any() else living]
        return cls(places, int(np.count_nonzero(living)), float(compared.mean()) if len(compared) else 1.0)


def score_units(tree: UnitTree, words: Sequence[WordMatches], *, k1: float = K1, b: float = B) -> NDArray[np.float64]:
    """(n_units,) BM25 score of each unit as if it were one text, >= 0, higher is better; 0.0 where no word of the query stands.

    Documents are compared with documents, and sections of all levels with each other: each kind has its own number of texts,
    n(t) and average length (of those that hold several passages, see `UnitKind`). A unit is the sum of its passages, so what passages repeat
    (overlap, the title in front of each) counts as often.

    Args:
        tree: the units.
        words: the words of the query.
        k1: how late repetition saturates.
        b: how much a long unit is discounted.

    Source: see `ranking.bm25`. Ours is that the frequencies of a unit are added up at search time, so that no index of the larger units is stored.

    Example:
        >>> tree = UnitTree(unit_of=np.array([0, 0, 1]), parents=np.array([-1, -1]), lengths=np.array([4, 4, 4]))
        >>> score_units(tree, [WordMatches(np.array([0, 1]), np.array([1, 2]))]).round(3).tolist()
        [1.155, 0.0]
    """
    norms = np.ones(len(tree.parents))
    for kind in tree.kinds:
        norms[kind.places] = length_norms(tree.unit_lengths[kind.places], average_length=kind.average_length, k1=k1, b=b)
    scores = np.zeros(len(tree.parents))
    step = max(1, _CELLS // max(1, len(tree.parents)))
    for start in range(0, len(words), step):
        for shares in _shares(tree, words[start : start + step], norms, k1):
            scores += shares
    return scores


def _shares(tree: UnitTree, words: Sequence[WordMatches], norms: NDArray[np.float64], k1: float) -> NDArray[np.float64]:
    """(n_words, n_units) what each word adds to the score of each unit: `term_contributions` for all of them at once."""
    frequencies = tree.frequencies(words)
    held = frequencies > 0
    factors = np.zeros_like(frequencies)
    for kind in tree.kinds:
        counts = np.count_nonzero(held[:, kind.places], axis=1).tolist()
        idfs = [inverse_document_frequency(kind.n_living, count) if count else 0.0 for count in counts]
        factors[:, kind.places] = np.array([word.times * idf * (k1 + 1) for word, idf in zip(words, idfs, strict=True)])[:, None]
    factors *= frequencies
    return np.divide(factors, frequencies + norms, out=np.zeros_like(frequencies), where=held)
