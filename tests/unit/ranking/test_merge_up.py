"""Merging hits into their parents: shares, limits, budgets, levels and broken links."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.ranking.merge_up import ancestors, merge_up, without_cycles

TREE = {"S1": ["a", "b", "c"], "S2": ["d", "e"], "S3": ["f"], "D": ["S1", "S2", "S3"]}
PARENTS = {child: parent for parent, held in TREE.items() for child in held}
SIZES = {**dict.fromkeys("abcdef", 10), "S1": 30, "S2": 20, "S3": 10, "D": 60}


def merged(hits, **options):
    settings = {"parents": PARENTS, "children": TREE, "sizes": SIZES, **options}
    return merge_up([(node_id, float(score)) for node_id, score in hits], **settings)


def shown(hits, **options):
    return [(entry.node_id, entry.score) for entry in merged(hits, **options)]


def test_enough_children_become_their_parent_with_the_best_score_and_place():
    assert shown([("d", 0.9), ("a", 0.8), ("c", 0.3)]) == [("d", 0.9), ("S1", 0.8)]
    assert merged([("a", 0.8), ("c", 0.3)])[0].hits == ("a", "c")


def test_the_share_is_a_bound_that_is_reached():
    assert shown([("a", 2), ("b", 1)], min_share=2 / 3) == [("S1", 2.0)]
    assert shown([("a", 2), ("b", 1)], min_share=0.7) == [("a", 2.0), ("b", 1.0)]


def test_one_child_is_never_enough():
    assert shown([("f", 1)], min_share=0.0) == [("f", 1.0)]
    assert shown([("a", 1)], min_share=0.0) == [("a", 1.0)]


def test_level_by_level_to_the_top_and_an_only_child_counts_as_its_parent():
    assert shown([("a", 6), ("b", 5), ("d", 4), ("e", 3)]) == [("D", 6.0)]
    assert shown([("a", 6), ("b", 5), ("f", 4)]) == [("D", 6.0)]
    assert shown([("a", 6), ("b", 5), ("f", 4)], min_share=0.67) == [("a", 6.0), ("b", 5.0), ("f", 4.0)]


def test_a_parent_that_is_too_big_does_not_stand():
    assert shown([("a", 6), ("b", 5), ("d", 4), ("e", 3)], max_tokens=25) == [("a", 6.0), ("b", 5.0), ("S2", 4.0)]


def test_a_parent_among_the_hits_comes_once_and_absorbs_what_is_below():
    assert shown([("S1", 0.5), ("a", 0.4)]) == [("S1", 0.5)]
    assert shown([("d", 0.6), ("a", 0.5), ("S1", 0.4)], min_share=1.0) == [("d", 0.6), ("S1", 0.5)]
    assert shown([("D", 0.1), ("a", 0.9), ("e", 0.8)], min_share=1.0) == [("D", 0.9)]


def test_equal_scores_keep_the_order_of_the_hits():
    assert shown([("d", 1), ("a", 1), ("f", 1)], min_share=1.0) == [("d", 1.0), ("a", 1.0), ("f", 1.0)]


def test_an_id_that_comes_twice_counts_once():
    assert shown([("a", 1), ("a", 2)]) == [("a", 2.0)]


def test_unknown_parents_children_and_sizes_change_nothing():
    assert shown([("a", 2), ("b", 1)], parents={}) == [("a", 2.0), ("b", 1.0)]
    assert shown([("a", 2), ("b", 1)], children={}) == [("a", 2.0), ("b", 1.0)]
    assert shown([("a", 2), ("b", 1)], sizes={}) == [("a", 2.0), ("b", 1.0)]
    assert merged([]) == []


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (60, ["D"]),
        (50, ["S1", "S2"]),
        (49, ["a", "b", "S2"]),
        (25, ["a", "b"]),
        (5, ["a"]),
    ],
)
def test_a_budget_ends_the_list_and_no_merge_pushes_a_hit_out(budget, expected):
    assert [entry.node_id for entry in merged([("a", 6), ("b", 5), ("d", 4), ("e", 3)], budget=budget)] == expected


def test_a_hit_beyond_the_budget_gives_way_to_its_parts():
    assert shown([("D", 0.9), ("a", 0.8)], budget=20) == [("a", 0.8)]
    assert shown([("D", 0.9)], budget=20) == [("D", 0.9)]


def test_circles_are_cut():
    circle = {"a": "x", "b": "x", "x": "y", "y": "x", "z": "z"}
    assert without_cycles(circle) == ({"a": "x", "b": "x"}, ["x", "y", "z"])
    assert shown([("a", 2), ("b", 1), ("y", 0)], parents=circle, children={"x": ["a", "b"], "y": ["x"]}, sizes={"x": 1, "y": 1}) == [("x", 2.0), ("y", 0.0)]


def test_ten_thousand_hits_take_no_time():
    children = {f"s{number}": [f"c{number}-{part}" for part in range(4)] for number in range(2500)}
    parents = {child: parent for parent, held in children.items() for child in held}
    hits = [(child, 1.0) for held in children.values() for child in held]
    sizes = {**dict.fromkeys(parents, 10), **dict.fromkeys(children, 41)}
    for budget in (None, 1000, 200_000):
        started = time.perf_counter()
        merge_up(hits, parents=parents, children=children, sizes=sizes, budget=budget)
        assert time.perf_counter() - started < 5


@st.composite
def forests(draw):
    ids = [f"n{number}" for number in range(draw(st.integers(1, 14)))]
    parents = {node_id: draw(st.sampled_from(ids)) for node_id in ids if draw(st.booleans())}
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    hits = draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from([0.1, 0.5, 0.9])), max_size=14))
    hits.sort(key=lambda hit: -hit[1])
    sizes = {node_id: draw(st.integers(1, 20)) for node_id in ids}
    return parents, children, hits, sizes


@given(forests(), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([None, 15, 40]))
def test_whatever_the_tree(forest, min_share, budget):
    parents, children, hits, sizes = forest
    options = {"parents": parents, "children": children, "sizes": sizes, "min_share": min_share}
    result = merge_up(hits, budget=budget, **options)
    ids = [entry.node_id for entry in result]
    links, _ = without_cycles(parents)
    assert len(ids) == len(set(ids))
    assert not any(above in ids for node_id in ids for above in ancestors(node_id, links))
    assert [entry.score for entry in result] == sorted((entry.score for entry in result), reverse=True)
    if budget is None:
        assert sorted(hit for entry in result for hit in entry.hits) == sorted({node_id for node_id, _ in hits})
        return
    assert len(result) <= 1 or sum(sizes[node_id] for node_id in ids) <= budget
    alone = merge_up(hits, budget=budget, **{**options, "sizes": sizes, "children": {}})
    assert {hit for entry in alone for hit in entry.hits} <= {hit for entry in result for hit in entry.hits}
