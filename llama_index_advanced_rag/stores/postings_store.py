"""BM25 over texts that come and go: scores are always those of an index built afresh."""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.bm25 import K1, B, inverse_document_frequency, term_contributions
from llama_index_advanced_rag.stores._postings_file import read_postings, write_postings
from llama_index_advanced_rag.stores._postings_segment import Counts, Segment, build_segment, merge_segments
from llama_index_advanced_rag.text.analyzer import TextAnalyzer


@dataclass(frozen=True)
class _State:
    """What a search reads: swapped as a whole by writers, so that a reader needs no lock."""

    segments: tuple[Segment, ...] = ()
    n_texts: int = 0
    n_terms: int = 0


class PostingsStore:
    """Inverted index with raw term frequencies; N, n(t) and the average length are those of the moment of the search.

    Texts are added in segments, small segments are merged into larger ones (so there are about log2(N) of them), a delete marks rows
    and counts are taken over what is left. Any number of threads may search while one writes.

    The terms that one query word may have (`TextAnalyzer.query_groups`) count as one term, as in Lucene's SynonymQuery: their
    frequencies are added and n(t) is the number of texts that hold any of them.

    Args:
        analyzer: cuts texts and queries into terms.
        k1: how late repetition saturates, >= 0.
        b: how much a long text is discounted, 0 to 1.

    Raises:
        ConfigurationError: `k1` or `b` out of range.

    Source: see `ranking.bm25`.

    Example:
        >>> store = PostingsStore(TextAnalyzer("en"))
        >>> store.add(["a", "b", "c"], ["Red foxes run", "Blue whales swim", "Grey wolves run"])
        >>> [(node_id, round(score, 3)) for node_id, score in store.search("running fox", top_k=2)]
        [('a', 1.451), ('c', 0.47)]
        >>> store.delete(["a"])
        >>> store.search("running fox", top_k=2)[0][0]
        'c'
    """

    def __init__(self, analyzer: TextAnalyzer, *, k1: float = K1, b: float = B) -> None:
        if not k1 >= 0 or not 0 <= b <= 1:
            raise ConfigurationError(f"k1 is {k1!r} and b is {b!r}. Expected k1 >= 0 and b from 0 to 1.")
        self.analyzer = analyzer
        self.k1 = k1
        self.b = b
        self._state = _State()
        self._writing = CopyableLock()

    def __len__(self) -> int:
        return self._state.n_texts

    def __contains__(self, node_id: object) -> bool:
        return isinstance(node_id, str) and any(segment.live_row(node_id) is not None for segment in self._state.segments)

    def node_ids(self, *, sort_key_prefix: str = "") -> list[str]:
        """The ids held, in the order of their sort keys; with a prefix those whose sort key begins with it."""
        held = [
            (key, node_id)
            for segment in self._state.segments
            for key, node_id, alive in zip(segment.sort_keys, segment.node_ids, segment.alive, strict=True)
            if alive and key.startswith(sort_key_prefix)
        ]
        return [node_id for _, node_id in sorted(held)]

    def term_counts(self, text: str) -> dict[str, int]:
        """How often a text holds each term, by this store's analyzer."""
        return dict(Counter(self.analyzer.tokens(text)))

    def add(self, node_ids: Sequence[str], texts: Sequence[str], *, sort_keys: Sequence[str] | None = None) -> None:
        """Analyse and hold texts; a known id is replaced, of two equal ids in one call the later text stays.

        Args:
            node_ids: one id for each text.
            texts: what is searched; an empty text is held and never found.
            sort_keys: order among equal scores; the ids themselves when None.

        Raises:
            ConfigurationError: the sequences differ in length.
        """
        _check_lengths(node_ids, texts, sort_keys)
        self.add_term_counts(node_ids, [self.term_counts(text) for text in texts], sort_keys=sort_keys)

    def add_term_counts(
        self, node_ids: Sequence[str], counts: Sequence[Mapping[str, int]], *, sort_keys: Sequence[str] | None = None, replacing: Iterable[str] = ()
    ) -> None:
        """As `add`, from counts that `term_counts` gave earlier; the ids of `replacing` go in the same step, so that no search falls in between.

        Raises:
            ConfigurationError: the sequences differ in length, or a count is below 1.
        """
        _check_lengths(node_ids, counts, sort_keys)
        last = {node_id: position for position, node_id in enumerate(node_ids)}
        keys = node_ids if sort_keys is None else sort_keys
        new = build_segment(list(last), [keys[position] for position in last.values()], [_positive(counts[position]) for position in last.values()])
        with self._writing:
            rest = _deleted(self._state.segments, {*last, *replacing})
            self._swap(_appended(rest, new) if last else rest)

    def delete(self, node_ids: Iterable[str]) -> None:
        """Let go of texts; unknown ids are ignored."""
        gone = dict.fromkeys(node_ids)
        with self._writing:
            self._swap(_deleted(self._state.segments, gone))

    def search(self, query: str, *, top_k: int, candidates: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The best texts with their BM25 scores, best first, equal scores by sort key.

        Args:
            query: any text; without a known term the result is empty.
            top_k: most results, at least 1.
            candidates: ids to choose from, before the cut; None for all. N, n(t) and lengths are those of all texts.

        Returns:
            Pairs of id and score > 0; fewer than `top_k` when fewer match.

        Raises:
            ConfigurationError: `top_k` below 1.
        """
        top_k, state = whole_number("top_k", top_k), self._state
        scores = self._scores(state, Counter(self.analyzer.query_groups(query)))
        if candidates is not None:
            chosen = frozenset(candidates)
            scores = [_restricted(segment, values, chosen) for segment, values in zip(state.segments, scores, strict=True)]
        return _best(state.segments, scores, top_k)

    def explain(self, query: str, node_id: str) -> dict[str, float]:
        """What each word of the query adds to the score of one text, by the first of its terms that the text holds, highest first; empty for an unknown id."""
        state = self._state
        home = next((segment for segment in state.segments if segment.live_row(node_id) is not None), None)
        if home is None:
            return {}
        row, shares = home.row_of[node_id], dict[str, float]()
        for group, times in Counter(self.analyzer.query_groups(query)).items():
            rows, frequencies = home.postings_of_any(group)
            at = np.flatnonzero(rows == row)
            if len(at):
                idf = inverse_document_frequency(state.n_texts, sum(len(segment.postings_of_any(group)[0]) for segment in state.segments))
                term = next(term for term in group if row in home.postings(term)[0])
                shares[term] = shares.get(term, 0.0) + times * float(self._contributions(state, idf, frequencies[at], home.lengths[[row]])[0])
        return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))

    def save(self, path: str | Path) -> None:
        """Write everything that decides the scores into one file, replacing it at once or not at all.

        Raises:
            StorageError: the file cannot be written.
        """
        segments = self._state.segments
        merged = merge_segments(segments) if segments else build_segment([], [], [])
        write_postings(Path(path), merged, {"analyzer": self.analyzer.to_dict(), "k1": self.k1, "b": self.b})

    @classmethod
    def load(cls, path: str | Path) -> "PostingsStore":
        """The store that `save` wrote.

        Raises:
            IndexNotFoundError: no such file.
            IndexFormatError: no postings file, a damaged one, or one of another format.
        """
        segment, settings = read_postings(Path(path))
        store = cls(TextAnalyzer.from_dict(settings["analyzer"]), k1=settings["k1"], b=settings["b"])
        store._swap([segment] if len(segment) else [])
        return store

    def _swap(self, segments: Sequence[Segment]) -> None:
        self._state = _State(tuple(segments), sum(segment.n_alive for segment in segments), sum(segment.n_terms for segment in segments))

    def _scores(self, state: _State, groups: Mapping[tuple[str, ...], int]) -> list[NDArray[np.float64]]:
        scores = [np.zeros(len(segment)) for segment in state.segments]
        for group, times in groups.items():
            found = [segment.postings_of_any(group) for segment in state.segments]
            idf = inverse_document_frequency(state.n_texts, sum(len(rows) for rows, _ in found))
            for segment, values, (rows, frequencies) in zip(state.segments, scores, found, strict=True):
                if len(rows):
                    values[rows] += times * self._contributions(state, idf, frequencies, segment.lengths[rows])
        return scores

    def _contributions(self, state: _State, idf: float, frequencies: Counts, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        return term_contributions(frequencies, lengths, idf=idf, average_length=state.n_terms / state.n_texts, k1=self.k1, b=self.b)


def _check_lengths(node_ids: Sequence[str], values: Sequence[object], sort_keys: Sequence[str] | None) -> None:
    n_keys = len(node_ids) if sort_keys is None else len(sort_keys)
    if not len(node_ids) == len(values) == n_keys:
        raise ConfigurationError(f"There are {len(node_ids)} node ids, {len(values)} texts and {n_keys} sort keys. Expected one of each for every text.")


def _positive(counts: Mapping[str, int]) -> Mapping[str, int]:
    if counts and min(counts.values()) < 1:
        raise ConfigurationError(f"A term count is {min(counts.values())!r}. Expected counts of at least 1. Leave out terms that a text does not hold.")
    return counts


def _deleted(segments: Sequence[Segment], node_ids: Collection[str]) -> list[Segment]:
    """The segments without these texts; one that is more than half dead is rewritten."""
    rest = [segment.without(node_ids) for segment in segments]
    return [merge_segments([segment]) if segment.n_alive * 2 < len(segment) else segment for segment in rest if segment.n_alive]


def _appended(segments: list[Segment], new: Segment) -> list[Segment]:
    """The segments and a new one, merged with its elders until each is twice as large as the next."""
    together = [new]
    size = len(new)
    while segments and len(segments[-1]) < 2 * size:
        size += len(segments[-1])
        together.insert(0, segments.pop())
    return [*segments, merge_segments(together) if len(together) > 1 else new]


def _restricted(segment: Segment, scores: NDArray[np.float64], chosen: frozenset[str]) -> NDArray[np.float64]:
    allowed = np.zeros(len(scores), dtype=bool)
    allowed[[segment.row_of[node_id] for node_id in chosen if node_id in segment.row_of]] = True
    return np.where(allowed, scores, 0.0)


def _best(segments: Sequence[Segment], scores: Sequence[NDArray[np.float64]], top_k: int) -> list[tuple[str, float]]:
    hits = [np.flatnonzero(values) for values in scores]
    flat = np.concatenate([values[rows] for values, rows in zip(scores, hits, strict=True)]) if hits else np.zeros(0)
    if not len(flat):
        return []
    owner = np.repeat(np.arange(len(hits)), [len(rows) for rows in hits])
    row = np.concatenate(hits)
    cut = float(np.partition(flat, -top_k)[-top_k]) if len(flat) > top_k else 0.0

    def named(positions: NDArray[np.intp]) -> list[tuple[float, str, str]]:
        places = zip(flat[positions].tolist(), owner[positions].tolist(), row[positions].tolist(), strict=True)
        return [(-score, segments[at].sort_keys[place], segments[at].node_ids[place]) for score, at, place in places]

    above = named(np.flatnonzero(flat > cut))
    best = sorted(above) + heapq.nsmallest(top_k - len(above), named(np.flatnonzero(flat == cut)))
    return [(node_id, -negative) for negative, _, node_id in best]
