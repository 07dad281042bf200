"""BM25 over texts that come and go: scores are always those of an index built afresh."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.bm25 import K1, B
from llama_index_advanced_rag.stores.postings.memory_names import MemoryNames
from llama_index_advanced_rag.stores.postings.postings_file import StoredPostings, read_postings, write_postings
from llama_index_advanced_rag.stores.postings.postings_segment import Segment, append_segment, build_segment, merge_segments, remapped
from llama_index_advanced_rag.stores.postings.postings_view import Group, PostingsView
from llama_index_advanced_rag.stores.rows.positions import Mask, Positions, RowNames, alive_after
from llama_index_advanced_rag.stores.segment_files import ArrayFile
from llama_index_advanced_rag.text.analyzer import TextAnalyzer


@dataclass(frozen=True, eq=False)
class _State:
    """What a search reads: swapped as a whole by writers, so that a reader needs no lock."""

    names: MemoryNames
    view: PostingsView


class PostingsStore:
    """Inverted index with raw term frequencies; N, n(t) and the average length are those of the moment of the search.

    Texts are added in segments, small segments are merged into larger ones (so there are about log2(N) of them), a delete marks
    positions and counts are taken over what is left; when more than half is deleted the rest is numbered anew. Any number of
    threads may search while one writes.

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
        self._lengths = ArrayFile(None, np.uint32)
        self._state = _State(MemoryNames(), self._new_view((), 0, None))
        self._writing = CopyableLock()

    def __len__(self) -> int:
        return self._view()[0].n_texts

    def __contains__(self, node_id: object) -> bool:
        return isinstance(node_id, str) and len(self._view()[1].positions_of([node_id])) > 0

    def node_ids(self, *, sort_key_prefix: str = "") -> list[str]:
        """The ids held, in the order of their sort keys; with a prefix those whose sort key begins with it."""
        names = self._state.names
        living = names.living()
        held = sorted(
            (key, node_id)
            for key, node_id in zip(names.sort_keys(living), names.node_ids(living), strict=True)
            if node_id is not None and key.startswith(sort_key_prefix)
        )
        return [node_id for _, node_id in held]

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
        last = {node_id: place for place, node_id in enumerate(node_ids)}
        keys = node_ids if sort_keys is None else sort_keys
        new = [_positive(counts[place]) for place in last.values()]
        with self._writing:
            names = self._state.names
            gone = names.positions_of([*last, *replacing])
            first = names.n_rows
            segments = append_segment(self._state.view.segments, build_segment(first, new), names.alive) if new else self._state.view.segments
            self._lengths.append(np.array([sum(terms.values()) for terms in new], dtype=np.uint32), at=first)
            alive = alive_after(names.alive, first + len(new), gone)
            names = names.extended(list(last), [keys[place] for place in last.values()], alive)
            self._swap(names, segments)

    def delete(self, node_ids: Iterable[str]) -> None:
        """Let go of texts; unknown ids are ignored."""
        with self._writing:
            names = self._state.names
            gone = names.positions_of(list(node_ids))
            if len(gone):
                self._swap(names.without(alive_after(names.alive, names.n_rows, gone)), self._state.view.segments)

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
        top_k = whole_number("top_k", top_k)
        view, names = self._view()
        mask: Mask | None = None
        if candidates is not None:
            mask = np.zeros(len(view.lengths), dtype=bool)
            mask[names.positions_of(list(candidates))] = True
        found = view.top(Counter(self.analyzer.query_groups(query)), top_k=top_k, names=names, mask=mask)
        named = zip(names.node_ids(found.positions), found.scores.tolist(), strict=True)
        return [(node_id, score) for node_id, score in named if node_id is not None]

    def scores(self, groups: Mapping[Group, int]) -> NDArray[np.float64]:
        """(n_positions,) scores of all texts, in the order in which they came as long as none has been deleted or replaced; 0.0 without a word of the query."""
        return self._view()[0].scores(groups)

    def explain(self, query: str, node_id: str) -> dict[str, float]:
        """What each word of the query adds to the score of one text, by the first of its terms that the text holds, highest first; empty for an unknown id."""
        view, names = self._view()
        positions = names.positions_of([node_id])
        return view.explain(Counter(self.analyzer.query_groups(query)), int(positions[0])) if len(positions) else {}

    def save(self, path: str | Path) -> None:
        """Write everything that decides the scores into one file, replacing it at once or not at all.

        Raises:
            StorageError: the file cannot be written.
        """
        state = self._state
        settings = {"analyzer": self.analyzer.to_dict(), "k1": self.k1, "b": self.b}
        living = state.names.living()
        node_ids = [node_id for node_id in state.names.node_ids(living) if node_id is not None]
        segment = _renumbered(state, living)
        write_postings(Path(path), StoredPostings(node_ids, state.names.sort_keys(living), state.view.lengths[living], segment, settings))

    @classmethod
    def load(cls, path: str | Path) -> "PostingsStore":
        """The store that `save` wrote.

        Raises:
            IndexNotFoundError: no such file.
            IndexFormatError: no postings file, a damaged one, or one of another format.
        """
        stored = read_postings(Path(path))
        settings = stored.settings
        store = cls(TextAnalyzer.from_dict(settings["analyzer"]), k1=settings["k1"], b=settings["b"])
        store._lengths.append(stored.lengths, at=0)
        store._swap(MemoryNames().extended(stored.node_ids, stored.sort_keys), (stored.segment,) if stored.node_ids else ())
        return store

    def view(self) -> PostingsView:
        """What a search reads, of this moment."""
        return self._view()[0]

    def _view(self) -> tuple[PostingsView, RowNames]:
        """What a search reads, of one state."""
        state = self._state
        return state.view, state.names

    def _new_view(self, segments: tuple[Segment, ...], n_rows: int, alive: Mask | None) -> PostingsView:
        lengths = self._lengths.view(n_rows)
        living = lengths if alive is None else lengths[alive]
        return PostingsView(segments, lengths, alive, len(living), int(living.sum(dtype=np.int64)), self.k1, self.b)

    def _swap(self, names: MemoryNames, segments: tuple[Segment, ...]) -> None:
        state = _State(names, self._new_view(segments, names.n_rows, names.alive))
        self._state = state if state.view.n_texts * 2 >= names.n_rows else self._compacted(state)

    def _compacted(self, state: _State) -> _State:
        living = state.names.living()
        node_ids = [node_id for node_id in state.names.node_ids(living) if node_id is not None]
        self._lengths = ArrayFile(None, np.uint32)
        self._lengths.append(state.view.lengths[living], at=0)
        names = MemoryNames().extended(node_ids, state.names.sort_keys(living))
        return _State(names, self._new_view((_renumbered(state, living),) if node_ids else (), len(node_ids), None))


def _check_lengths(node_ids: Sequence[str], values: Sequence[object], sort_keys: Sequence[str] | None) -> None:
    n_keys = len(node_ids) if sort_keys is None else len(sort_keys)
    if not len(node_ids) == len(values) == n_keys:
        raise ConfigurationError(f"There are {len(node_ids)} node ids, {len(values)} texts and {n_keys} sort keys. Expected one of each for every text.")


def _positive(counts: Mapping[str, int]) -> Mapping[str, int]:
    if counts and min(counts.values()) < 1:
        raise ConfigurationError(f"A term count is {min(counts.values())!r}. Expected counts of at least 1. Leave out terms that a text does not hold.")
    return counts


def _renumbered(state: _State, living: Positions) -> Segment:
    """One segment of the living texts at positions 0, 1, 2, ..."""
    if not state.view.segments:
        return build_segment(0, [])
    new_positions = np.full(state.names.n_rows, -1, dtype=np.int64)
    new_positions[living] = np.arange(len(living))
    return remapped(merge_segments(state.view.segments, state.view.alive), new_positions)
