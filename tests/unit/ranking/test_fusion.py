"""Fusion: golden values, properties, and what each mode does with weak, equal, missing and duplicate scores."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.fusion import (
    FusionMode,
    concatenate_all_guarded,
    concatenate_guarded,
    fuse,
    fuse_distribution,
    fuse_percentile,
    fuse_reciprocal_rank,
    fuse_weighted,
    fused_scores,
)
from llama_index_advanced_rag.ranking.score_scale import ScoreRange, scale_by_distribution, scale_by_percentile, scale_scores

IDS = st.sampled_from("abcdefgh")
SCORES = st.one_of(st.none(), st.floats(-1e6, 1e6))
LISTS = st.lists(st.lists(st.tuples(IDS, SCORES), max_size=8, unique_by=lambda pair: pair[0]), min_size=1, max_size=4)
MODES = list(FusionMode)
VALUE_MODES = [FusionMode.WEIGHTED, FusionMode.DISTRIBUTION, FusionMode.PERCENTILE]


def best_first(scored):
    return sorted(scored, key=lambda pair: -math.inf if pair[1] is None else pair[1], reverse=True)


class TestReciprocalRank:
    def test_golden_values(self):
        fused = fuse_reciprocal_rank([list("206413"), list("623074")])
        assert [(item, round(score, 5)) for item, score in fused[:5]] == [("2", 0.03252), ("6", 0.03227), ("0", 0.03175), ("3", 0.03102), ("4", 0.03078)]

    def test_ranks_start_at_one(self):
        assert fuse_reciprocal_rank([["a"]]) == [("a", 1 / 61)]

    def test_weights_multiply(self):
        assert fuse_reciprocal_rank([["a", "b"], ["b", "a"]], weights=[3.0, 1.0])[0] == ("a", pytest.approx(3 / 61 + 1 / 62))

    def test_k_changes_the_damping(self):
        assert fuse_reciprocal_rank([["a", "b"]], k=0) == [("a", 1.0), ("b", 0.5)]

    def test_first_of_a_duplicate_counts_and_does_not_take_a_rank(self):
        assert fuse_reciprocal_rank([["a", "a", "b"]]) == [("a", 1 / 61), ("b", 1 / 62)]

    def test_ties_follow_the_callers_key(self):
        order = {"a": "2", "b": "1"}
        assert [item for item, _ in fuse_reciprocal_rank([["a", "b"], ["b", "a"]])] == ["a", "b"]
        assert [item for item, _ in fuse_reciprocal_rank([["a", "b"], ["b", "a"]], tie_key=order.__getitem__)] == ["b", "a"]

    def test_nothing_in_nothing_out(self):
        assert fuse_reciprocal_rank([]) == []
        assert fuse_reciprocal_rank([[], []]) == []

    @given(st.permutations("abcdef"), st.permutations("abcdef"), st.integers(1, 5))
    def test_moving_up_never_lowers_the_score(self, one, two, place):
        better = [*one[: place - 1], one[place], one[place - 1], *one[place + 1 :]]
        assert dict(fuse_reciprocal_rank([better, two]))[one[place]] > dict(fuse_reciprocal_rank([one, two]))[one[place]]


class TestWeighted:
    def test_one_weak_hit_stays_weak(self):
        assert fuse_weighted([[("strong", 0.9)], [("junk", 0.01)]]) == [("strong", 0.45), ("junk", 0.005)]

    def test_a_list_of_weak_hits_stays_weak(self):
        fused = dict(fuse_weighted([[("a", 0.9), ("b", 0.5)], [("junk", 0.012), ("more junk", 0.01)]]))
        assert fused["b"] > 10 * fused["junk"]

    def test_equal_weak_values_stay_weak(self):
        fused = dict(fuse_weighted([[("strong", 0.9)], [("x", 0.02), ("y", 0.02)]]))
        assert fused["strong"] > 10 * fused["x"] == 10 * fused["y"] > 0

    def test_seven_to_three(self):
        fused = dict(fuse_weighted([[("a", 0.8), ("b", 0.4)], [("b", 12.0), ("c", 3.0)]], weights=[0.7, 0.3]))
        assert fused == {"a": pytest.approx(0.7), "b": pytest.approx(0.3), "c": 0.0}

    def test_compressed_similarities_are_not_drowned_by_another_scale(self):
        dense = [("a", 0.95), ("b", 0.94), ("c", 0.71), ("d", 0.70)]
        assert [item for item, _ in fuse_weighted([dense, [("c", 20.0), ("b", 15.0), ("a", 12.0)]], weights=[0.7, 0.3])][:2] == ["b", "a"]

    def test_only_proportions_of_weights_count(self):
        lists = [[("a", 0.8)], [("a", 4.0), ("b", 3.0)]]
        assert fuse_weighted(lists, weights=[7, 3]) == [(item, pytest.approx(score)) for item, score in fuse_weighted(lists, weights=[0.7, 0.3])]

    def test_a_known_range_is_used_as_it_is(self):
        assert fuse_weighted([[("a", 3.0), ("b", 1.0)]], ranges=[ScoreRange(0.0, 5.0)]) == [("a", 0.6), ("b", 0.2)]

    def test_scores_outside_their_range_are_clipped(self):
        assert fuse_weighted([[("a", 1.5), ("b", -0.5)]], ranges=[ScoreRange(0.0, 1.0)]) == [("a", 1.0), ("b", 0.0)]

    def test_plain_min_max_on_request(self):
        assert scale_scores([8.0, 5.0, 2.0], ScoreRange()) == [1.0, 0.5, 0.0]

    def test_negative_scores(self):
        assert scale_scores([3.0, -5.0]) == [1.0, 0.0]
        assert scale_scores([-0.3]) == [0.5]

    @pytest.mark.parametrize("scores", [[7.0], [7.0, 7.0, 7.0]])
    def test_unknown_scale_without_spread_is_undecided(self, scores):
        assert scale_scores(scores) == [0.5] * len(scores)
        assert scale_scores(scores, ScoreRange()) == [0.5] * len(scores)

    def test_none_is_lowest(self):
        assert scale_scores([0.5, None, math.nan]) == [0.5, 0.0, 0.0]

    def test_a_list_without_scores_counts_by_position(self):
        assert scale_scores([None, None]) == [0.75, 0.25]

    @pytest.mark.parametrize("bad", [[ScoreRange(1.0, 1.0)], [None, None]])
    def test_impossible_ranges(self, bad):
        with pytest.raises(ConfigurationError, match=r"range"):
            fuse_weighted([[("a", 1.0)]], ranges=bad)


class TestDistributionAndPercentile:
    def test_mean_and_three_deviations(self):
        assert scale_by_distribution([3.0, 1.0]) == [pytest.approx(0.5 + 1 / 6), pytest.approx(0.5 - 1 / 6)]

    def test_an_outlier_is_clipped(self):
        assert scale_by_distribution([1000.0, *[0.0] * 50])[0] == 1.0

    def test_no_spread_is_the_middle(self):
        assert scale_by_distribution([2.0]) == [0.5]
        assert scale_by_distribution([2.0, 2.0, None]) == [0.5, 0.5, 0.0]

    def test_percentiles_with_ties(self):
        assert scale_by_percentile([9.0, 5.0, 5.0, None]) == [0.875, 0.5, 0.5, 0.125]
        assert scale_by_percentile([0.01]) == [0.5]

    def test_without_scores(self):
        assert scale_by_distribution([None, None]) == scale_by_percentile([None, None]) == [0.75, 0.25]

    def test_fused(self):
        assert fuse_distribution([[("a", 3.0), ("b", 1.0)], [("b", 8.0)]])[0] == ("b", pytest.approx((0.5 - 1 / 6 + 0.5) / 2))
        assert fuse_percentile([[("a", 9.0), ("b", 2.0)], [("b", 8.0)]], weights=[1, 3])[0] == ("b", pytest.approx((0.25 + 3 * 0.5) / 4))


class TestGuarded:
    def test_order(self):
        assert concatenate_guarded(["h1", "h2", "h3"], ["g1", "h2", "g2"]) == ["h1", "h2", "g1", "g2", "h3"]

    def test_short_and_empty_lists(self):
        assert concatenate_guarded([], ["g"]) == ["g"]
        assert concatenate_guarded(["h"], [], guard=5) == ["h"]
        assert concatenate_guarded(["h"], ["g"], guard=0) == ["g", "h"]

    def test_negative_guard(self):
        with pytest.raises(ConfigurationError, match="guard is -1"):
            concatenate_guarded(["a"], ["b"], guard=-1)

    def test_three_lists(self):
        lists = [[(item, 1.0) for item in ids] for ids in (["a1", "a2"], ["b1", "b2"], ["c1", "a2"])]
        assert [item for item, _ in fuse("guarded", lists, guard=1)] == ["a1", "b1", "c1", "a2", "b2"]


class TestAllModes:
    @given(LISTS, st.sampled_from(MODES))
    def test_every_id_once_finite_and_best_first(self, lists, mode):
        fused = fuse(mode, [best_first(scored) for scored in lists])
        scores = [score for _, score in fused]
        assert {item for item, _ in fused} == {item for scored in lists for item, _ in scored}
        assert len(fused) == len(dict(fused))
        assert all(type(score) is float and math.isfinite(score) for score in scores)
        assert scores == sorted(scores, reverse=True)

    @given(LISTS.flatmap(lambda lists: st.tuples(st.just(lists), st.permutations(lists))), st.sampled_from([*VALUE_MODES, FusionMode.RECIPROCAL_RANK]))
    def test_order_of_the_lists_does_not_matter(self, pair, mode):
        assert fuse(mode, pair[0]) == fuse(mode, pair[1])

    @given(LISTS, LISTS, st.sampled_from([*VALUE_MODES, FusionMode.RECIPROCAL_RANK]))
    def test_weight_zero_is_absence(self, lists, ignored, mode):
        weights = [1.0] * len(lists) + [0.0] * len(ignored)
        assert fuse(mode, [*lists, *ignored], weights=weights) == fuse(mode, lists)

    @given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), st.sampled_from(VALUE_MODES))
    def test_one_list_keeps_its_order(self, scores, mode):
        values = sorted(scores, reverse=True)
        fused = dict(fuse(mode, [[(str(place), score) for place, score in enumerate(values)]]))
        kept = [fused[str(place)] for place in range(len(values))]
        assert kept == sorted(kept, reverse=True)
        assert all(0.0 <= score <= 1.0 for score in kept)

    @pytest.mark.parametrize("mode", MODES)
    def test_none_scores_do_not_crash_and_come_last(self, mode):
        fused = fuse(mode, [[("a", 0.9), ("b", 0.4), ("c", None)]])
        assert [item for item, _ in fused] == ["a", "b", "c"]

    @pytest.mark.parametrize("weights", [[1.0], [-1.0, 1.0], [0.0, 0.0], [math.nan, 1.0]])
    @pytest.mark.parametrize("mode", [*VALUE_MODES, FusionMode.RECIPROCAL_RANK])
    def test_weights_that_cannot_work(self, weights, mode):
        with pytest.raises(ConfigurationError, match="weights"):
            fuse(mode, [[("a", 1.0)], [("b", 1.0)]], weights=weights)

    def test_negative_k(self):
        with pytest.raises(ConfigurationError, match="k is -1"):
            fuse_reciprocal_rank([["a"]], k=-1)

    def test_inputs_stay(self):
        lists = [[("a", 0.9), ("b", None)], [("b", 2.0)]]
        before = [list(scored) for scored in lists]
        for mode in MODES:
            fuse(mode, lists)
        assert lists == before


class TestScoresWithoutAnOrder:
    @given(
        st.sampled_from([mode for mode in FusionMode if mode is not FusionMode.GUARDED]),
        st.lists(st.dictionaries(st.integers(0, 9), st.floats(-5, 20)), min_size=1, max_size=4),
    )
    def test_positions_fuse_as_ids_do(self, mode, found):
        lists = [sorted(scores.items(), key=lambda item: -item[1]) for scores in found]
        named = [[(f"{position:04}", score) for position, score in scored] for scored in lists]
        fused = fuse(mode, lists, tie_key=lambda position: position)
        assert [(f"{position:04}", score) for position, score in fused] == fuse(mode, named)
        assert dict(fused) == fused_scores(mode, lists)

    def test_guarded_only_orders(self):
        with pytest.raises(ConfigurationError, match="adds no scores"):
            fused_scores(FusionMode.GUARDED, [[("a", 1.0)]])
        assert concatenate_all_guarded([]) == []
