"""Central sentences: what is taken, in which order, and how fast."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.central_sentences import central_sentences, sentence_centrality

WORDS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=12)


def chosen(sentences, max_tokens=100, **options):
    terms = [sentence.split() for sentence in sentences]
    return central_sentences(terms, token_counts=[max(1, len(words)) for words in terms], max_tokens=max_tokens, **options)


def dense_walk(terms):
    """The same walk on the matrix of cosines itself."""
    names = sorted({term for words in terms for term in words})
    counts = np.array([[words.count(name) for name in names] for words in terms], dtype=float)
    held_by = (counts > 0).sum(axis=0)
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * np.log1p((len(terms) - held_by + 0.5) / (held_by + 0.5))
    units = weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)
    cosines = units @ units.T
    np.fill_diagonal(cosines, 0)
    starts = 1 + 3 / np.arange(1, len(terms) + 1)
    starts /= starts.sum()
    degrees = cosines.sum(axis=1)
    moves = np.array([row / degree if degree > 1e-9 else starts for row, degree in zip(cosines, degrees, strict=True)])
    current = starts
    for _ in range(500):
        current = 0.15 * starts + 0.85 * moves.T @ current
    return current / current.sum()


def test_the_walk_is_that_of_the_matrix_of_cosines():
    terms = [s.split() for s in ("the cat sat on the mat", "a cat and a dog", "dogs bark at cats", "the dog sat", "cat mat", "")]
    assert np.allclose(sentence_centrality(terms), dense_walk(terms), atol=1e-4)


def test_a_sentence_like_the_others_is_more_central_than_one_apart():
    scores = sentence_centrality([s.split() for s in ("rates rise", "whales swim deep", "banks and rates rise", "banks fear rates")])
    assert scores.argmin() == 1


def test_the_first_of_two_equal_sentences_is_taken_and_the_other_is_not():
    assert chosen(["red foxes hunt hens", "red foxes hunt hens", "red hens fear foxes", "foxes run"]) == [0, 2]


def test_near_duplicates_may_be_allowed():
    assert chosen(["red foxes hunt", "red foxes hunt", "red foxes eat"], most_similar=1.1)[:2] == [0, 1]


def test_the_budget_holds_and_a_smaller_sentence_fills_what_is_left():
    sentences = ["cats like warm milk and cats like fish", "cats like milk", "fish like water and cats"]
    assert chosen(sentences, max_tokens=2) == []
    for budget in range(3, 20):
        taken = chosen(sentences, max_tokens=budget, most_similar=1.1)
        assert sum(len(sentences[index].split()) for index in taken) <= budget


def test_a_sentence_of_weight_nothing_is_not_taken():
    assert chosen(["cats like milk", "cats like fish"], weights=[0.0, 1.0]) == [1]


def test_sentences_without_terms_are_harmless():
    assert chosen(["", "", ""]) != []
    assert chosen([]) == []
    assert sentence_centrality([]).tolist() == []


@given(WORDS)
def test_order_and_budget_and_sum(terms):
    scores = sentence_centrality(terms)
    assert (scores >= 0).all()
    assert not terms or scores.sum() == pytest.approx(1)
    taken = central_sentences(terms, token_counts=[len(words) + 1 for words in terms], max_tokens=9)
    assert taken == sorted(set(taken))
    assert sum(len(terms[index]) + 1 for index in taken) <= 9


def test_ten_thousand_sentences_take_seconds():
    rng = np.random.default_rng(1)
    terms = [[f"w{number}" for number in rng.integers(0, 3000, 20)] for _ in range(10_000)]
    started = time.process_time()
    assert len(central_sentences(terms, token_counts=[21] * len(terms), max_tokens=2000)) > 50
    assert time.process_time() - started < 10


def test_arguments_are_checked():
    with pytest.raises(ConfigurationError, match="2 sentences and 1 token counts"):
        central_sentences([["a"], ["b"]], token_counts=[1], max_tokens=3)
    with pytest.raises(ConfigurationError, match="max_tokens is 0"):
        central_sentences([["a"]], token_counts=[1], max_tokens=0)
