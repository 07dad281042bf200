"""Which documents are looked into, and how much each of them counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from llama_index_advanced_rag.ranking import coarse_to_fine
from llama_index_advanced_rag.ranking.coarse_to_fine import ChosenDocuments, choose_documents, weighted_mean

some_scores = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.5, 7.0]), max_size=30)


def choose(scores: list[float], sizes: list[int] | int = 1, **options: int) -> ChosenDocuments:
    held = [sizes] * len(scores) if isinstance(sizes, int) else sizes
    return choose_documents(np.array(scores, dtype=np.float64), np.array(held, dtype=np.int64), **options)


def test_so_many_documents_best_first() -> None:
    assert choose([1.0, 4.0, 0.0, 3.0, 2.0], 100, min_documents=2, min_passages=1).places.tolist() == [1, 3]


def test_more_documents_until_they_hold_enough_passages() -> None:
    scores = [5.0, 4.0, 3.0, 2.0, 1.0]
    assert choose(scores, 10, min_documents=1, min_passages=30).places.tolist() == [0, 1, 2]
    assert choose(scores, 10, min_documents=1, min_passages=31).places.tolist() == [0, 1, 2, 3]
    assert choose(scores, [50, 1, 1, 1, 1], min_documents=1, min_passages=30).places.tolist() == [0]
    assert choose(scores, 10, min_documents=1, min_passages=1000).places.tolist() == [0, 1, 2, 3, 4]


def test_a_share_says_how_far_above_the_rest() -> None:
    choice = choose([6.0, 4.0, 2.0, 1.0], 10, min_documents=2, min_passages=1)
    assert choice.shares.tolist() == [1.0, 0.5], "the best that was left out is the floor"
    assert choose([6.0, 3.0], 10, min_documents=2, min_passages=1).shares.tolist() == [1.0, 0.5], "nothing was left out: the floor is 0"
    assert choose([2.0, 2.0, 2.0], 10, min_documents=2, min_passages=1).shares.tolist() == [1.0, 1.0], "as good as what was left out"


def test_equal_ones_in_their_order() -> None:
    assert choose([1.0, 2.0, 2.0, 2.0], 10, min_documents=2, min_passages=1).places.tolist() == [1, 2]


def test_without_a_word_nothing_is_chosen() -> None:
    for scores in ([], [0.0, 0.0]):
        choice = choose(scores, 10)
        assert (choice.places.tolist(), choice.shares.tolist()) == ([], [])


@given(some_scores, st.integers(1, 8), st.integers(1, 40), st.integers(0, 5))
def test_what_is_chosen(scores: list[float], min_documents: int, min_passages: int, size: int) -> None:
    choice = choose(scores, size, min_documents=min_documents, min_passages=min_passages)
    places, found = choice.places.tolist(), [place for place, score in enumerate(scores) if score > 0]
    left = [scores[place] for place in found if place not in places]
    assert len(places) >= min(min_documents, len(found))
    assert size * len(places) >= min(min_passages, size * len(found))
    assert places == sorted(places, key=lambda place: (-scores[place], place))
    assert max(left, default=0.0) <= min((scores[place] for place in places), default=np.inf)
    assert all(0.0 <= share <= 1.0 for share in choice.shares)
    assert choice.shares.tolist() == sorted(choice.shares, reverse=True)


@given(some_scores, st.integers(1, 8), st.integers(1, 40), st.lists(st.integers(0, 9), min_size=30, max_size=30))
def test_many_documents_are_chosen_as_few_are(scores: list[float], min_documents: int, min_passages: int, sizes: list[int]) -> None:
    options = {"min_documents": min_documents, "min_passages": min_passages}
    wanted = choose(scores, sizes[: len(scores)], **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coarse_to_fine, "_PRESORTED", 2)
        found = choose(scores, sizes[: len(scores)], **options)
    assert found.places.tolist() == wanted.places.tolist()
    assert found.shares.tolist() == wanted.shares.tolist()


def test_a_million_documents_take_no_time() -> None:
    scores: NDArray[np.float64] = np.random.default_rng(0).random(1_000_000)
    choice = choose_documents(scores, np.full(1_000_000, 3))
    assert choice.places.tolist() == np.argsort(-scores)[: len(choice.places)].tolist()
    assert len(choice.places) == 67


def test_weighted_mean_of_nothing_and_of_one() -> None:
    weights = np.array([1.0, 0.5, 0.5])
    assert weighted_mean(np.empty((0, 3)), weights).tolist() == []
    assert weighted_mean(np.array([[1.0, 1.0, 1.0]]), weights).tolist() == [1.0]
