"""BM25 of documents and sections, added up from their passages: what a store of whole documents and whole sections would give."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from llama_index_advanced_rag.ranking import unit_bm25
from llama_index_advanced_rag.ranking.unit_bm25 import UnitTree, WordMatches, score_units
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

ANALYZER = TextAnalyzer("en")
WORDS = ("fox", "hen", "whale", "tax", "sea", "revenue")
Held = list[tuple[int, str]]  # of each passage: its unit or -1, its text

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
queries = st.lists(st.sampled_from((*WORDS, "unknown")), max_size=5).map(" ".join)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[int], Held]:
    """Parents of units, each an earlier one or -1, and passages in any of them or in none."""
    parents: list[int] = []
    for place in range(draw(st.integers(1, 8))):
        parents.append(draw(st.integers(-1, place - 1)))
    held = draw(st.lists(st.tuples(st.integers(-1, len(parents) - 1), texts), max_size=14))
    return parents, held


def tree_of(parents: Sequence[int], held: Held) -> tuple[UnitTree, PostingsStore]:
    store = PostingsStore(ANALYZER)
    store.add([str(place) for place in range(len(held))], [text for _, text in held])
    return UnitTree(np.array([unit for unit, _ in held], dtype=np.int32), np.array(parents, dtype=np.int32), store.view().lengths), store


def scores_of(parents: Sequence[int], held: Held, query: str) -> NDArray[np.float64]:
    tree, store = tree_of(parents, held)
    return score_units(tree, store.view().matches(Counter(ANALYZER.query_groups(query))))


def path(parents: Sequence[int], unit: int) -> list[int]:
    above: list[int] = []
    while unit >= 0:
        above.append(unit)
        unit = parents[unit]
    return above


def scores_of_whole_texts(parents: Sequence[int], held: Held, query: str) -> NDArray[np.float64]:
    """Two stores, of documents and of sections, each holding all its passages as one text."""
    whole = ["\n".join(text for unit, text in held if place in path(parents, unit)) for place in range(len(parents))]
    scores = np.zeros(len(parents))
    for is_kind in (lambda parent: parent < 0, lambda parent: parent >= 0):
        kind = [place for place, parent in enumerate(parents) if is_kind(parent) and whole[place].strip()]
        store = PostingsStore(ANALYZER)
        store.add([str(place) for place in kind], [whole[place] for place in kind])
        scores[kind] = store.scores(Counter(ANALYZER.query_groups(query)))
    return scores


@settings(max_examples=80, deadline=None)
@given(corpora(), queries)
def test_units_score_as_their_whole_texts_would(corpus: tuple[list[int], Held], query: str) -> None:
    parents, held = corpus
    held = [*held, *((unit, "") for unit, _ in held)]  # so that all hold several passages, and all are compared in length
    assert scores_of(parents, held, query) == pytest.approx(scores_of_whole_texts(parents, held, query), abs=1e-9)


def test_a_passage_counts_for_all_that_it_stands_in() -> None:
    parents = [-1, 0, 1, -1]
    held = [(2, "fox fox"), (0, "sea"), (3, "sea")]
    tree, _ = tree_of(parents, held)
    assert tree.levels.tolist() == [0, 1, 2, 0]
    assert tree.unit_lengths.tolist() == [3, 2, 2, 1]
    assert (scores_of(parents, held, "fox") > 0).tolist() == [True, True, True, False]


def test_passages_that_are_gone_count_nowhere() -> None:
    parents, held = [-1, -1], [(0, "fox"), (1, "sea sea"), (1, "fox")]
    gone = [(unit if text != "fox" or unit == 0 else -1, text) for unit, text in held]
    assert scores_of(parents, gone, "fox sea").tolist() == scores_of(parents, [*held[:2], (-1, "")], "fox sea").tolist()
    assert scores_of(parents, gone, "fox")[1] == 0.0


def test_a_mask_counts_passages_and_changes_no_score() -> None:
    tree, _ = tree_of([-1, 0, -1], [(1, "fox"), (0, "sea"), (2, "tax"), (-1, "gone")])
    assert tree.count(None).tolist() == [2, 1, 1]
    assert tree.count(np.array([True, False, False, True])).tolist() == [1, 1, 0]
    assert tree.count(np.zeros(4, dtype=bool)).tolist() == [0, 0, 0]


def test_a_word_twice_in_the_query_counts_twice() -> None:
    parents, held = [-1, -1], [(0, "fox"), (1, "sea")]
    assert scores_of(parents, held, "fox fox") == pytest.approx(2 * scores_of(parents, held, "fox"))


def test_empty_things() -> None:
    assert scores_of([], [], "fox").tolist() == []
    assert scores_of([-1, 0], [], "fox").tolist() == [0.0, 0.0]
    assert scores_of([-1], [(0, "")], "fox").tolist() == [0.0]
    assert scores_of([-1], [(0, "fox")], "").tolist() == [0.0]
    tree = UnitTree(np.array([0], dtype=np.int32), np.array([-1], dtype=np.int32), np.array([3]))
    assert score_units(tree, [WordMatches(np.array([], dtype=np.int64), np.array([], dtype=np.int64))]).tolist() == [0.0]


def test_deep_and_wide_trees_take_no_time() -> None:
    n_units = 3000
    chain = UnitTree(np.full(10, n_units - 1, dtype=np.int32), np.arange(-1, n_units - 1, dtype=np.int32), np.full(10, 5))
    assert chain.count(None).tolist() == [10] * n_units
    n_documents = 100_000
    wide = UnitTree(np.arange(n_documents, dtype=np.int32), np.full(n_documents, -1, dtype=np.int32), np.full(n_documents, 5))
    scores = score_units(wide, [WordMatches(np.arange(0, n_documents, 2), np.ones(n_documents // 2, dtype=np.int64))])
    assert np.count_nonzero(scores) == n_documents // 2


@given(corpora(), queries, st.integers(1, 40))
@settings(max_examples=80, deadline=None)
def test_words_may_be_scored_some_at_a_time(corpus: tuple[list[int], Held], query: str, cells: int) -> None:
    parents, held = corpus
    together = scores_of(parents, held, query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_bm25, "_CELLS", cells)
        assert scores_of(parents, held, query).tobytes() == together.tobytes()


def test_notes_of_one_passage_do_not_make_reports_too_long():
    """The scores of two reports of three passages are the same beside any number of notes, but for how rare the words are."""
    words = [WordMatches(np.array([0, 1, 2, 3]), np.array([1, 2, 1, 2]))]
    reports, parents = [0, 0, 0, 1, 1, 1], [-1, -1]

    def ratio(notes: int) -> float:
        units = np.array([*reports, *range(2, 2 + notes)], dtype=np.int32)
        tree = UnitTree(units, np.array([*parents, *[-1] * notes], dtype=np.int32), np.array([50] * 6 + [3] * notes))
        scores = score_units(tree, words)
        return float(scores[0] / scores[1])

    assert ratio(1000) == pytest.approx(ratio(0))
