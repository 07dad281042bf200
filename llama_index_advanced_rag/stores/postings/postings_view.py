"""BM25 over one immutable state of the postings: exact scores, and the best texts without scoring every text exactly."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.ranking.bm25 import K1, B, inverse_document_frequency, length_norms, term_contributions
from llama_index_advanced_rag.ranking.unit_bm25 import WordMatches
from llama_index_advanced_rag.stores.postings.postings_segment import Counts, Rows, Segment
from llama_index_advanced_rag.stores.rows.positions import NOTHING, Found, Mask, Positions, RowNames, best_first

Group = tuple[str, ...]
_LOOKUP = 16  # looking one text up in a list of postings costs about as much as reading so many postings
_SCAN = 64  # picking one score out of all costs about as much as comparing so many, which are next to each other


class _Word(NamedTuple):
    """One word of a query: the texts that hold any of its terms, ascending, and how often each holds them together."""

    positions: Rows
    frequencies: Counts
    idf: float
    times: int = 1
    rough: NDArray[np.floating[Any]] | None = None  # what it adds to each text if it stands once in the query, where that is already known


@dataclass(frozen=True, eq=False)
class PostingsView:
    """What a search reads; made anew for each state and never changed.

    Scores are sums of float64 in the order of the query's words, each from numbers of one text and of the whole, so they are the same to
    the last bit however the postings are cut into segments. The best are sought in float32 first; whatever could be among
    them is then scored in float64, and only that decides.

    Args:
        segments: blocks of postings that cover the positions, ascending.
        lengths: terms in each text, by position; uint32, shape (n_rows,).
        alive: False where the text is deleted; None = all are alive.
        n_texts: texts that are alive.
        n_terms: sum of their lengths.
        k1: how late repetition saturates, >= 0.
        b: how much a long text is discounted, 0 to 1.
    """

    segments: tuple[Segment, ...]
    lengths: NDArray[np.uint32]
    alive: Mask | None
    n_texts: int
    n_terms: int
    k1: float = K1
    b: float = B

    def scores(self, groups: Mapping[Group, int]) -> NDArray[np.float64]:
        """The score of every position; 0.0 where the text is deleted or holds no term of the query; shape (n_rows,).

        Args:
            groups: for each word of the query the terms that it may have, which count as one term, and how often the query holds it.
        """
        return self._all_scores(self._words(groups))

    def top(self, groups: Mapping[Group, int], *, top_k: int, names: RowNames, mask: Mask | None = None) -> Found:
        """The best texts among those of the mask, by scores above 0 that are those of all texts; fewer than `top_k` when fewer match.

        Args:
            groups: as for `scores`.
            top_k: most texts returned, at least 1.
            names: decides among equal scores.
            mask: True where a text may be returned, shape (n_rows,); None = anywhere.
        """
        return self._best(self._words(groups), top_k, names, mask)

    def top_batch(self, queries: Sequence[Mapping[Group, int]], *, top_k: int, names: RowNames, mask: Mask | None = None) -> list[Found]:
        """`top` for several queries; what they have in common is fetched once."""
        uses = Counter(group for groups in queries for group in groups)
        fetched = {group: self._with_rough(word) if uses[group] > 1 else word for group in uses if (word := self._word(group)) is not None}
        return [self._best(self._words(groups, fetched), top_k, names, mask) for groups in queries]

    def matches(self, groups: Mapping[Group, int]) -> list[WordMatches]:
        """For each word of the query that a living text holds: the texts that hold it, deleted ones included, and how often."""
        return [WordMatches(word.positions, word.frequencies, word.times) for word in self._words(groups)]

    def explain(self, groups: Mapping[Group, int], position: int) -> dict[str, float]:
        """What each word of the query adds to the score of one text, by the first of its terms that the text holds, highest first."""
        return self.explain_each(groups, np.array([position]))[0]

    def explain_each(self, groups: Mapping[Group, int], positions: Positions) -> list[dict[str, float]]:
        """`explain` for several texts; what they have in common is fetched once."""
        order = np.argsort(positions)
        ascending, shares = positions[order], [dict[str, float]() for _ in positions]
        for group, times in groups.items():
            for word in self._words({group: times}):
                values = self._contributions(word, ascending).tolist()
                for place, term, share in zip(order.tolist(), self._first_terms(group, ascending), values, strict=True):
                    if share:
                        shares[place][term] = shares[place].get(term, 0.0) + share
        return [dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))) for found in shares]

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """`length_norms` by position; infinite where the text is deleted, so that it scores 0."""
        average = self.n_terms / self.n_texts if self.n_terms else 1.0
        norms = length_norms(self.lengths, average_length=average, k1=self.k1, b=self.b)
        if self.alive is not None:
            norms[~self.alive] = np.inf
        return norms

    @cached_property
    def _rough_norms(self) -> NDArray[np.floating[Any]]:
        # a float32 has 24 bits: what is added to a far greater k1 would vanish
        return self.norms.astype(np.float32) if self.k1 < 1e4 else self.norms

    @cached_property
    def _dead(self) -> Positions:
        return np.empty(0, dtype=np.intp) if self.alive is None else np.flatnonzero(~self.alive)

    @cached_property
    def _living_counts(self) -> dict[Group, int]:
        """Living texts that hold a word, of the words asked for so far."""
        return {}

    def _words(self, groups: Mapping[Group, int], fetched: Mapping[Group, _Word] | None = None) -> list[_Word]:
        """The words of the query that a living text holds, in the order of the query."""
        find = self._word if fetched is None else fetched.get
        return [word._replace(times=times) for group, times in groups.items() if (word := find(group)) is not None]

    def _with_rough(self, word: _Word) -> _Word:
        return word._replace(rough=self._rough_shares(word))

    def _word(self, group: Group) -> _Word | None:
        found = [postings for segment in self.segments if (postings := _postings_of_any(segment, group)) is not None]
        if not found:
            return None
        positions, frequencies = found[0] if len(found) == 1 else (np.concatenate([rows for rows, _ in found]), np.concatenate([counts for _, counts in found]))
        if group not in self._living_counts:
            self._living_counts[group] = len(positions) - self._count_dead(positions)
        living = self._living_counts[group]
        return _Word(positions, frequencies, inverse_document_frequency(self.n_texts, living)) if living else None

    def _count_dead(self, positions: Rows) -> int:
        if self.alive is None or not len(self._dead):
            return 0
        if len(self._dead) * _LOOKUP < len(positions):
            return int(np.count_nonzero(_lookup(positions, self._dead)[1]))
        return len(positions) - int(np.count_nonzero(self.alive.take(positions)))

    def _best(self, words: Sequence[_Word], top_k: int, names: RowNames, mask: Mask | None) -> Found:
        if not words:
            return NOTHING
        candidates = self._candidates(words, top_k, mask)
        scores = self._scores_at(words, candidates)
        hits = np.flatnonzero(scores)
        return best_first(candidates[hits], scores[hits], top_k, names)

    def _candidates(self, words: Sequence[_Word], top_k: int, mask: Mask | None) -> Positions:
        """Positions, ascending, with all that can be among the best."""
        n_allowed = len(self.lengths) if mask is None else int(np.count_nonzero(mask))
        if mask is not None and n_allowed * len(words) * _LOOKUP < sum(len(word.positions) for word in words):
            return np.flatnonzero(mask)
        margin = (len(words) + 8) * 2.0**-22  # several times the relative error that sums of float32 may have
        if len(words) == 1:
            positions, rough = words[0].positions.astype(np.intp), self._rough_shares(words[0])
        else:
            every = self._rough_scores(words)
            positions = np.flatnonzero(mask) if mask is not None and n_allowed * _SCAN < len(every) else self._worth_a_look(words, every, top_k, mask, margin)
            rough = every[positions]
        held = np.flatnonzero(rough if mask is None else (rough > 0) & mask[positions])
        positions, rough = positions[held], rough[held]
        return positions[_leading(rough, top_k, margin)]

    def _worth_a_look(self, words: Sequence[_Word], every: NDArray[np.floating[Any]], top_k: int, mask: Mask | None, margin: float) -> Positions:
        least = self._least(words, every, top_k, mask) * (1 - margin)
        return np.flatnonzero(every >= least if least > 0 else every)

    def _least(self, words: Sequence[_Word], rough: NDArray[np.floating[Any]], top_k: int, mask: Mask | None) -> float:
        """A rough score that `top_k` texts reach, by the texts of one word: those below it need not be looked at; 0 when no word has so many."""
        for word in sorted(words, key=lambda word: len(word.positions)):
            positions = word.positions[:: _step(len(word.positions), top_k)]
            if mask is not None:
                positions = positions[mask[positions]]
            if len(positions) >= top_k:
                return _reached_by(rough.take(positions), top_k)
        return 0.0

    def _rough_scores(self, words: Sequence[_Word]) -> NDArray[np.floating[Any]]:
        """Scores of all positions, in float32 and without the factor k1 + 1 that all have."""
        norms = self._rough_norms
        rough = np.zeros(len(norms), dtype=norms.dtype)
        for word in words:
            shares = self._rough_shares(word) if word.rough is None else word.rough * norms.dtype.type(word.times)
            np.add.at(rough, word.positions, shares)  # adds without a copy of what was there, as += makes one
        return rough

    def _rough_shares(self, word: _Word) -> NDArray[np.floating[Any]]:
        norms = self._rough_norms
        counts = word.frequencies.astype(norms.dtype)
        shares = norms.take(word.positions)
        shares += counts
        np.divide(counts, shares, out=shares)
        shares *= norms.dtype.type(word.idf * word.times)
        return shares

    def _all_scores(self, words: Sequence[_Word]) -> NDArray[np.float64]:
        scores = np.zeros(len(self.lengths))
        for word in words:
            scores[word.positions] += self._shares(word, word.frequencies, word.positions)
        return scores

    def _scores_at(self, words: Sequence[_Word], positions: Positions) -> NDArray[np.float64]:
        """Scores of some positions, which ascend."""
        scores = np.zeros(len(positions))
        for word in words:
            scores += self._contributions(word, positions)
        return scores

    def _contributions(self, word: _Word, positions: Positions) -> NDArray[np.float64]:
        at, frequencies = _frequencies_at(word, positions, len(self.lengths))
        result = np.zeros(len(positions))
        result[at] = self._shares(word, frequencies, positions[at])
        return result

    def _shares(self, word: _Word, frequencies: Counts, positions: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        return term_contributions(frequencies, self.norms[positions], idf=word.idf, times=word.times, k1=self.k1)

    def _first_terms(self, group: Group, positions: Positions) -> list[str]:
        """For each of the texts the first of the terms that it holds; the last one where it holds none of the others."""
        first = np.full(len(positions), len(group) - 1)
        for number in reversed(range(len(group) - 1)):
            for postings in (segment.postings(group[number]) for segment in self.segments):
                if postings is not None:
                    first[_lookup(postings[0], positions)[1]] = number
        return [group[number] for number in first.tolist()]


def _reached_by(values: NDArray[np.floating[Any]], count: int) -> float:
    """The greatest value that so many reach."""
    return float(np.partition(values, -count)[-count])


def _step(length: int, top_k: int) -> int:
    """Every how many-th value to look at for a first idea of the best."""
    return max(1, length // (64 * top_k))


def _leading(values: NDArray[np.floating[Any]], top_k: int, margin: float) -> Positions:
    """Places of those that can be among the best when each may be wrong by the margin, ascending."""
    step = _step(len(values), top_k)
    # what so many of a part reach, as many of the whole reach
    places = np.flatnonzero(values >= _reached_by(values[::step], top_k) * (1 - margin)) if step > 1 else np.arange(len(values))
    return places[values[places] >= _reached_by(values[places], top_k) * (1 - margin)] if len(places) > top_k else places


def _frequencies_at(word: _Word, positions: Positions, n_rows: int) -> tuple[Positions, Counts]:
    """Which of the positions hold the word, as places in `positions`, and how often each does."""
    if min(len(positions), len(word.positions)) * _LOOKUP < n_rows:
        if len(positions) < len(word.positions):
            places, held = _lookup(word.positions, positions)
            return np.flatnonzero(held), word.frequencies[places[held]]
        places, held = _lookup(positions, word.positions)
        return places[held], word.frequencies[held]
    every = np.zeros(n_rows, dtype=word.frequencies.dtype)
    every[word.positions] = word.frequencies
    frequencies = every[positions]
    at = np.flatnonzero(frequencies)
    return at, frequencies[at]


def _lookup(sorted_positions: NDArray[Any], wanted: NDArray[Any]) -> tuple[Positions, Mask]:
    """Where each of the wanted positions is in a sorted list, and whether it is there at all."""
    # searchsorted copies the list when the types differ
    places = np.searchsorted(sorted_positions, wanted.astype(sorted_positions.dtype))
    places[places == len(sorted_positions)] = 0
    return places, sorted_positions[places] == wanted


def _postings_of_any(segment: Segment, group: Group) -> tuple[Rows, Counts] | None:
    """Postings of terms that stand for the same word: the texts that hold any, and how often they hold them together."""
    found = [postings for term in group if (postings := segment.postings(term)) is not None]
    if len(found) < 2:
        return found[0] if found else None
    rows, places = np.unique(np.concatenate([rows for rows, _ in found]), return_inverse=True)
    together = np.bincount(places, weights=np.concatenate([frequencies for _, frequencies in found]))
    return rows, together.astype(np.uint32)
