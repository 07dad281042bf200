"""Search in a tree: one list of all levels, from the top down, and under allowed units only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.tree_search import collapsed, pruned, top_down, units_below

TREE = {"top": ["left", "right"], "left": ["a", "b"], "right": ["c", "d"]}
SCORES = st.fixed_dictionaries({name: st.floats(0, 1) for name in ("top", "left", "right", "a", "b", "c", "d", "e")})


def test_without_clusters_the_list_is_that_of_the_units():
    assert collapsed({"a": 0.2, "b": 0.9, "c": 0.0}, {}, top_k=5) == [("b", 0.9), ("a", 0.2)]


def test_a_cluster_that_does_better_than_its_units_lends_its_score_in_proportion():
    found = collapsed({"left": 0.8, "a": 0.4, "b": 0.1, "c": 0.5}, TREE, top_k=5)
    assert found == [("a", 0.8), ("c", 0.5), ("b", 0.2)]


def test_a_cluster_that_does_worse_changes_nothing():
    assert collapsed({"left": 0.3, "a": 0.4, "b": 0.1}, TREE, top_k=5) == [("a", 0.4), ("b", 0.1)]


def test_units_without_a_score_are_found_through_their_cluster():
    assert collapsed({"left": 0.6}, TREE, top_k=5) == [("a", 0.6), ("b", 0.6)]


def test_top_down_opens_the_best_clusters_only():
    scores = {"left": 0.9, "right": 0.3, "a": 0.2, "b": 0.4, "c": 1.0}
    assert top_down(scores, TREE, roots=["top"], top_k=5, beam=1) == [("b", 0.4), ("a", 0.2)]
    assert top_down(scores, TREE, roots=["top"], top_k=2, beam=2) == [("c", 1.0), ("b", 0.4)]


def test_units_among_the_roots_are_results():
    assert top_down({"e": 0.5, "left": 0.1, "a": 0.7}, TREE, roots=["left", "e"], top_k=5) == [("a", 0.7), ("e", 0.5)]


@given(SCORES, st.integers(1, 8), st.integers(1, 3))
def test_results_are_distinct_units_in_order_and_in_range(scores, top_k, beam):
    for found in (collapsed(scores, TREE, top_k=top_k), top_down(scores, TREE, roots=["top", "e"], top_k=top_k, beam=beam)):
        values = [score for _, score in found]
        assert values == sorted(values, reverse=True)
        assert all(0 < value <= 1 for value in values)
        assert len({unit for unit, _ in found}) == len(found) <= top_k
        assert {unit for unit, _ in found} <= set("abcde")


@given(SCORES)
def test_a_wide_beam_finds_what_the_units_score(scores):
    flat = {unit: score for unit, score in scores.items() if unit in "abcd"}
    assert top_down(scores, TREE, roots=["top"], top_k=9, beam=9) == collapsed(flat, {}, top_k=9)


def test_a_circle_among_clusters_ends():
    circle = {"x": ["y", "a"], "y": ["x", "b"]}
    assert units_below("x", circle) == ["b", "a"]
    assert top_down({"a": 0.5, "b": 0.4}, circle, roots=["x"], top_k=5) == [("a", 0.5), ("b", 0.4)]


def test_pruned_keeps_the_way_to_what_is_allowed():
    assert pruned(TREE, {"c", "e"}) == {"top": ["right"], "right": ["c"]}
    assert pruned(TREE, set()) == {}


def test_equal_scores_are_ordered_by_the_key_given():
    assert collapsed({"a": 0.5, "b": 0.5}, {}, top_k=2, tie_key={"a": 2, "b": 1}.__getitem__) == [("b", 0.5), ("a", 0.5)]


def test_arguments_are_checked():
    with pytest.raises(ConfigurationError, match="top_k is 0"):
        collapsed({"a": 1.0}, {}, top_k=0)
    with pytest.raises(ConfigurationError, match="beam is 0"):
        top_down({"a": 1.0}, {}, roots=["a"], top_k=1, beam=0)
