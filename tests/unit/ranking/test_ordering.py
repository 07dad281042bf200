"""The order in which a reader meets the passages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.ranking.ordering import order_by_document, order_lost_in_the_middle

GOLDEN = {
    0: [],
    1: [1],
    2: [1, 2],
    3: [1, 3, 2],
    4: [1, 3, 4, 2],
    5: [1, 3, 5, 4, 2],
    6: [1, 3, 5, 6, 4, 2],
    7: [1, 3, 5, 7, 6, 4, 2],
    8: [1, 3, 5, 7, 8, 6, 4, 2],
    9: [1, 3, 5, 7, 9, 8, 6, 4, 2],
}


@pytest.mark.parametrize(("count", "expected"), GOLDEN.items())
def test_best_first_second_best_last_and_so_on_inwards(count: int, expected: list[int]):
    assert [rank + 1 for rank in order_lost_in_the_middle(count)] == expected


@given(st.integers(0, 300), st.booleans())
def test_it_is_a_permutation_with_the_best_at_the_asked_end(count: int, best_first: bool):
    order = order_lost_in_the_middle(count, best_first=best_first)
    assert sorted(order) == list(range(count))
    if count:
        assert order[0 if best_first else -1] == 0
    if count > 1:
        assert order[-1 if best_first else 0] == 1


@given(st.integers(1, 100))
def test_ranks_grow_from_both_ends_to_the_middle(count: int):
    order = order_lost_in_the_middle(count)
    worst = order.index(count - 1)
    assert order[: worst + 1] == sorted(order[: worst + 1])
    assert order[worst:] == sorted(order[worst:], reverse=True)


def test_documents_stand_in_the_order_of_their_best_item_and_text_in_its_own():
    assert order_by_document([("b", 900), ("a", 10), ("b", 100), ("a", 0)]) == [2, 0, 3, 1]


def test_items_without_an_offset_follow_and_equal_places_keep_their_order():
    assert order_by_document([("a", None), ("a", 7), ("a", 7), ("a", None)]) == [1, 2, 0, 3]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 50))))
def test_document_order_is_a_permutation_with_each_document_in_one_piece(places: list[tuple[str, int | None]]):
    order = order_by_document(places)
    assert sorted(order) == list(range(len(places)))
    runs = [places[index][0] for position, index in enumerate(order) if position == 0 or places[index][0] != places[order[position - 1]][0]]
    assert runs == list(dict.fromkeys(document for document, _ in places))
    starts = [(places[index][0], places[index][1]) for index in order if places[index][1] is not None]
    assert all(one[0] != two[0] or one[1] <= two[1] for one, two in pairwise(starts))
