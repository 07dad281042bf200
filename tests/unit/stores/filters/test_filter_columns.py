import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag.stores.filters.filter_columns import FilterColumns
from llama_index_advanced_rag.stores.filters.metadata_filters import metadata_matches

NAN = float("nan")
TEXTS = ["", "a", "A", "ab", "Ab", "straße", "STRASSE", "\0", "\ud800", "é"]
NUMBERS = [0, 1, 1.0, True, False, -0.0, 2, 2.5, 2**53, 2**53 + 1, float(2**53), 10**400, float("inf"), -float("inf"), NAN]
scalars = st.sampled_from([*TEXTS, *NUMBERS])
plain = st.one_of(scalars, st.none())
held = st.recursive(
    st.one_of(plain, st.lists(plain, max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(TEXTS), inner, max_size=2), st.tuples(inner)),
    max_leaves=4,
)
odd = st.one_of(st.frozensets(scalars, max_size=2), st.sets(scalars, max_size=2), st.just(complex(1, 0)), st.just(b"a"))
metadata = st.dictionaries(st.sampled_from(["k", "l"]), st.one_of(held, odd), max_size=2)
wanted = st.one_of(plain, st.lists(scalars, max_size=3), st.lists(st.lists(plain, max_size=2), max_size=2))


def make_filter(key, operator, value):
    """A filter with any value, as `model_construct` and subclasses let through."""
    return MetadataFilter.model_construct(key=key, operator=operator, value=value)


def make_filters(parts, condition):
    return MetadataFilters.model_construct(filters=parts, condition=condition)


one_filter = st.builds(make_filter, st.sampled_from(["k", "l", "none"]), st.sampled_from(list(FilterOperator)), wanted)
conditions = st.sampled_from(list(FilterCondition))
nested = st.recursive(
    st.builds(make_filters, st.lists(one_filter, max_size=2), conditions),
    lambda inner: st.builds(make_filters, st.lists(st.one_of(one_filter, inner), max_size=3), conditions),
    max_leaves=5,
)


def columns_of(rows, calls=None):
    def read(start, stop):
        if calls is not None:
            calls.append((start, stop))
        yield from ((place, dict(rows[place])) for place in range(start, min(stop, len(rows))))

    return FilterColumns(read)


def where(key, operator, value):
    return MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])


@settings(deadline=None, max_examples=400)
@given(st.lists(metadata, max_size=12), st.lists(one_filter, max_size=6))
def test_each_operator_has_the_truth_of_metadata_matches(rows, parts):
    columns = columns_of(rows)
    for part in parts:
        filters = make_filters([part], FilterCondition.AND)
        assert columns.mask(filters, len(rows)).tolist() == [metadata_matches(one, filters) for one in rows]


@settings(deadline=None, max_examples=200)
@given(st.lists(metadata, max_size=12), st.lists(st.tuples(nested, st.integers(0, 12)), max_size=4))
def test_nested_conditions_while_rows_come(rows, asked):
    columns = columns_of(rows)
    for filters, n_rows in asked:
        n_rows = min(n_rows, len(rows))
        assert columns.mask(filters, n_rows).tolist() == [metadata_matches(one, filters) for one in rows[:n_rows]]


@pytest.mark.parametrize("operator", list(FilterOperator))
@pytest.mark.parametrize("value", [1, 1.5, 2**60, NAN, "a", "", "STRASSE", [], ["a"], [1, "a"], ["a", "b"], [NAN]])
def test_all_operators_on_all_kinds_of_values(operator, value):
    kinds = [*TEXTS, *NUMBERS, None, [], ["a"], ["a", "b"], [1, "a"], [True], [None], [["a"]], [NAN], {}, {"a": 1}, {"b": ["a"]}, ("a",), (), {"a"}, set()]
    rows = [{"k": kind} for kind in kinds] + [{}]
    filters = make_filters([make_filter("k", operator, value)], FilterCondition.AND)
    assert columns_of(rows * 2).mask(filters, 2 * len(rows)).tolist() == [metadata_matches(one, filters) for one in rows] * 2


def test_none_and_an_empty_filter_restrict_nothing():
    columns = columns_of([{}, {}])
    for filters in (None, MetadataFilters(filters=[]), MetadataFilters(filters=[], condition=FilterCondition.NOT)):
        assert columns.mask(filters, 2).tolist() == [True, True]
    assert columns.mask(where("k", "==", 1), 0).tolist() == []


def test_metadata_are_read_once_for_all_new_keys_and_continued():
    rows, calls = [{"a": place, "b": place % 2} for place in range(10)], []
    columns = columns_of(rows, calls)
    both = MetadataFilters(filters=[where("a", ">", 3), where("b", "==", 1)])
    assert columns.mask(both, 6).tolist() == [False] * 5 + [True]
    columns.mask(where("a", "<", 2), 6)
    columns.mask(where("a", "<", 2), 4)
    assert calls == [(0, 6)]
    columns.mask(where("a", "<", 2), 10)
    assert columns.mask(both, 10).tolist() == [place > 3 and place % 2 == 1 for place in range(10)]
    assert calls == [(0, 6), (6, 10), (6, 10)]


def test_rows_that_are_gone_are_left_to_the_search():
    columns = FilterColumns(lambda start, stop: iter([(1, {"k": 1}), (2, {"k": 2}), (3, {})]))
    for operator, mask in (("!=", [True, False, True, True, True]), ("==", [True, True, False, False, True]), ("<", [True, False, False, False, True])):
        assert columns.mask(where("k", operator, 1), 5).tolist() == mask
    refused = MetadataFilters(filters=[where("k", "!=", 1), where("k", "==", 1)], condition=FilterCondition.NOT)
    assert columns.mask(refused, 5).tolist() == [True, False, False, False, True]
    assert FilterColumns(lambda start, stop: iter(())).mask(where("k", "!=", 1), 2).tolist() == [True, True]


def test_a_failed_reading_is_repeated():
    rows, broken = [{"k": 1}, {"k": 2}], [True]

    def read(start, stop):
        yield 0, rows[0]
        if broken:
            raise OSError(broken.pop())
        yield 1, rows[1]

    columns = FilterColumns(read)
    with pytest.raises(OSError, match="True"):
        columns.mask(where("k", ">", 1), 2)
    assert columns.mask(where("k", ">", 1), 2).tolist() == [False, True]


def test_threads_share_the_columns_while_they_grow():
    values = random.Random(0).choices([*range(50), *"abcdefgh", ["a", "b"], ["c"]], k=4000)
    rows = [{"k": value} for value in values]
    columns, wrong = columns_of(rows), []

    def work(seed):
        rng = random.Random(seed)
        for _ in range(30):
            n_rows = rng.randrange(len(rows))
            operator, value = rng.choice([("==", 7), (">", 20), ("any", ["a", "c"]), ("text_match", "b"), ("nin", ["a", "f"]), (">=", "c")])
            filters = where("k", operator, value)
            if columns.mask(filters, n_rows).tolist() != [metadata_matches(one, filters) for one in rows[:n_rows]]:
                wrong.append((filters, n_rows))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_thread_that_holds_what_reading_needs_meets_one_that_reads():
    rows, database, inside = [{"k": place % 3} for place in range(30_000)], threading.RLock(), threading.Event()

    def read(start, stop):
        inside.set()
        with database:
            yield from ((place, rows[place]) for place in range(start, stop))

    columns, found = FilterColumns(read), []
    reader = threading.Thread(target=lambda: found.append(columns.mask(where("k", "==", 1), 30_000).sum()))
    with database:
        reader.start()
        inside.wait()
        found.append(columns.mask(where("k", "==", 1), 30_000).sum())
    reader.join()
    assert found == [10_000, 10_000]
