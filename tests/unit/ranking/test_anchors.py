"""From hits to an order of regions: scores stay in 0 to 1, keywords that meet count more, equal scores have one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.ranking.anchors import (
    RegionSignals,
    apply_verdict,
    coverage,
    order_passages,
    rank_regions,
    score_line,
    score_region,
    score_title,
    spread_scores,
)

SHARES = st.floats(0, 1)
SIGNALS = st.builds(RegionSignals, document=SHARES, title=SHARES, line=SHARES, together=SHARES, passage=SHARES, similarity=st.one_of(st.none(), SHARES))


def test_words_without_weight_cover_nothing():
    assert coverage(set(), [1.0]) == 0
    assert coverage({0}, [0.0, 0.0]) == 0
    assert coverage({0, 1}, [0.0, 2.0]) == 1


@given(st.lists(st.floats(0, 10), min_size=12, max_size=20), st.permutations(range(12)))
def test_what_words_cover_does_not_depend_on_their_order(weights, words):
    one, other = frozenset[int](), frozenset[int]()
    for word in words[:9]:
        one |= {word}
    for word in reversed(words[:9]):
        other |= {word}
    assert coverage(one, weights) == coverage(other, weights) == coverage(words[:9], weights)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=6), st.data())
def test_keywords_that_meet_in_a_line_count_for_at_least_their_sum(weights, data):
    words = data.draw(st.sets(st.integers(0, len(weights) - 1)))
    one, rest = set(list(words)[:1]), set(list(words)[1:])
    whole = score_line(words, weights)
    assert whole >= score_line(one, weights) + score_line(rest, weights) - 1e-9
    assert 0 <= whole <= 1


def test_a_heading_of_the_question_s_words_is_better_than_one_that_also_says_other_things():
    weights = [1.0, 1.0, 1.0]
    assert score_title({0, 1}, 2, [], weights) > score_title({0, 1}, 6, [], weights) > score_title({0}, 6, [], weights) > 0
    assert score_title(set(), 3, [], weights) == score_title(set(), 0, [], weights) == 0


def test_a_heading_above_counts_half():
    assert score_title(set(), 2, [({0}, 1)], [1.0]) == 0.5
    assert score_title({0}, 1, [({0}, 1)], [1.0]) == 1.0


@given(SIGNALS)
def test_scores_of_regions_are_shares(signals):
    assert 0 <= score_region(signals) <= 1 + 1e-9


def test_a_region_found_by_embedding_only_is_not_lost():
    assert score_region(RegionSignals(similarity=1.0)) > score_region(RegionSignals(similarity=0.0)) == 0


def test_equal_scores_are_ordered_by_document_place_and_name():
    signals = dict.fromkeys("dcba", RegionSignals(line=0.5))
    ties = {"a": ("y", 0, "a"), "b": ("x", 9, "b"), "c": ("x", 2, "c"), "d": ("x", 2, "d")}
    assert [key for key, _ in rank_regions(signals, ties)] == ["c", "d", "b", "a"]


@given(
    st.lists(st.tuples(st.text("abcdefgh", min_size=1, max_size=1), SHARES), unique_by=lambda item: item[0]),
    st.lists(st.text("abcxyz", min_size=1, max_size=1), unique=True),
)
def test_a_verdict_puts_what_it_names_first_and_loses_nothing(ranked, named):
    ranked = sorted(ranked, key=lambda item: -item[1])
    ruled = apply_verdict(ranked, named)
    assert [key for key, _ in ruled][: len(named)] == named
    assert {key for key, _ in ruled} == {key for key, _ in ranked} | set(named)
    assert len(ruled) == len({key for key, _ in ruled})
    scores = [score for _, score in ruled]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_without_a_verdict_nothing_changes():
    assert apply_verdict([("a", 0.8)], []) == [("a", 0.8)]


@given(st.lists(st.floats(0, 3), max_size=20))
def test_passages_are_ordered_best_first(anchors):
    order = order_passages(anchors)
    assert sorted(order) == list(range(len(anchors)))
    hit = [anchors[place] for place in order if anchors[place] > 0]
    assert hit == sorted(hit, reverse=True)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 5)), max_size=8))
def test_spread_scores_descend_through_all_regions(regions):
    regions = sorted(regions, key=lambda item: -item[0])
    spread = spread_scores([score for score, _ in regions], [count for _, count in regions])
    flat = [score for scores in spread for score in scores]
    assert flat == pytest.approx(sorted(flat, reverse=True))
    assert [len(scores) for scores in spread] == [count for _, count in regions]
