"""BM25 of whole documents and sections, added up from the postings of their passages."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.ranking.bm25 import K1, B, inverse_document_frequency, length_norms, term_contributions


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
    def unit_lengths(self) -> NDArray[np.float64]:
        """(n_units,) terms in all passages of each unit."""
        counted = self.unit_of >= 0
        return self.added_up(self.unit_of[counted], self.lengths[counted].astype(np.float64))

    def count(self, mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """(n_units,) passages in each unit; with a mask (n_passages,) only those where it is True."""
        counted = self.unit_of >= 0 if mask is None else (self.unit_of >= 0) & mask
        units = self.unit_of[counted]
        return self.added_up(units, np.ones(len(units))).astype(np.int64)

    @cached_property
    def _steps(self) -> list[NDArray[np.intp]]:
        """The units of each level, deepest first, documents left out."""
        return [np.flatnonzero(self.levels == level) for level in range(int(self.levels.max(initial=0)), 0, -1)]

    def added_up(self, units: NDArray[np.int32], values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """(n_units,) sum of values over each unit and all below it."""
        sums = np.bincount(units, weights=values, minlength=len(self.parents)).astype(np.float64)
        for level in self._steps:
            np.add.at(sums, self.parents[level], sums[level])
        return sums


def score_units(tree: UnitTree, words: Sequence[WordMatches], *, k1: float = K1, b: float = B) -> NDArray[np.float64]:
    """(n_units,) BM25 score of each unit as if it were one text, >= 0, higher is better; 0.0 where no word of the query stands.

    Documents are compared with documents, and sections of all levels with each other: each kind has its own number of texts,
    n(t) and average length. A unit is the sum of its passages, so what passages repeat (overlap, the title in front of each) counts as often.

    Args:
        tree: the units.
        words: the words of the query.
        k1: how late repetition saturates.
        b: how much a long unit is discounted.

    Source: see `ranking.bm25`. Ours is that the frequencies of a unit are added up at search time, so that no index of the larger units is stored.

    Example:
        >>> tree = UnitTree(unit_of=np.array([0, 0, 1]), parents=np.array([-1, -1]), lengths=np.array([4, 4, 4]))
        >>> score_units(tree, [WordMatches(np.array([0, 1]), np.array([1, 2]))]).round(3).tolist()
        [1.066, 0.0]
    """
    scores = np.zeros(len(tree.parents))
    kinds = [np.flatnonzero(tree.parents < 0), np.flatnonzero(tree.parents >= 0)]
    norms = np.ones(len(tree.parents))
    for kind in kinds:
        living = np.count_nonzero(tree.unit_lengths[kind])
        average = float(tree.unit_lengths[kind].sum()) / living if living else 1.0
        norms[kind] = length_norms(tree.unit_lengths[kind], average_length=average or 1.0, k1=k1, b=b)
    for word in words:
        units = tree.unit_of[word.positions]
        counted = units >= 0
        frequencies = tree.added_up(units[counted], word.frequencies[counted].astype(np.float64))
        for kind in kinds:
            held = kind[frequencies[kind] > 0]
            if len(held):
                idf = inverse_document_frequency(int(np.count_nonzero(tree.unit_lengths[kind])), len(held))
                scores[held] += term_contributions(frequencies[held], norms[held], idf=idf, times=word.times, k1=k1)
    return scores
