import itertools
from importlib.metadata import version

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.testing.stock import CHECKED_CORE_VERSION

HELD = [None, "", "red fox", "Red", "2023", 0, 3, 3.5, True, [], ["red", "blue"], [1, 2], ["3"]]
VALUES = [None, "", "red", "RED", 3, 3.5, 0, ["red"], ["red", "blue"], [1, 2], [3, 4], [3.5], []]


def one(operator, value, key="k"):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def stock(metadata, filters):
    return build_metadata_filter_fn(lambda _: metadata, filters)("id")


def test_every_operator_has_a_test():
    for operator in FilterOperator:
        assert metadata_matches({"k": "a"}, one(operator, "a")) in (True, False)


@pytest.mark.skipif(version("llama-index-core") != CHECKED_CORE_VERSION, reason=f"compared with core {CHECKED_CORE_VERSION}")
@pytest.mark.parametrize("operator", list(FilterOperator))
def test_agrees_with_stock_where_stock_is_right(operator):
    takes_list = {FilterOperator.IN, FilterOperator.NIN, FilterOperator.ANY, FilterOperator.ALL}
    compared = 0
    for held, value in itertools.product(HELD, VALUES):
        if operator in takes_list and not isinstance(value, list):
            continue
        filters = one(operator, value)
        for metadata in ({"k": held}, {"other": held}):
            ours = metadata_matches(metadata, filters)
            try:
                theirs = stock(metadata, filters)
            except TypeError:
                assert ours is False
                continue
            assert ours is theirs, (metadata, operator, value)
            compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("held", "operator", "value", "expected"),
    [
        ("abc", "in", "abc", True),
        ("a", "in", "abc", False),
        ("a", "nin", "abc", True),
        (["abc"], "any", "abc", True),
        (["a", "b"], "all", "ab", False),
        ("x", ">", 3, False),
        (5, "text_match", "5", False),
        (5, "contains", 5, False),
        ("STRASSE", "text_match_insensitive", "straße", True),
        (("a",), "contains", "a", True),
        ({"a": 1}, "any", ["a", "z"], True),
        ({"a": 1}, "==", "a", False),
        (0, "is_empty", None, False),
        ({}, "is_empty", None, True),
    ],
)
def test_deviations_and_mixed_types(held, operator, value, expected):
    assert metadata_matches({"k": held}, one(FilterOperator(operator), value)) is expected


def test_nested_conditions():
    year = MetadataFilter(key="year", value=2020, operator=FilterOperator.GTE)
    red = MetadataFilter(key="colour", value="red")
    blue = MetadataFilter(key="colour", value="blue")
    either = MetadataFilters(filters=[red, blue], condition=FilterCondition.OR)
    both = MetadataFilters(filters=[year, either])
    assert metadata_matches({"year": 2021, "colour": "blue"}, both)
    assert not metadata_matches({"year": 2021, "colour": "green"}, both)
    neither = MetadataFilters(filters=[year, MetadataFilters(filters=[either], condition=FilterCondition.NOT)])
    assert metadata_matches({"year": 2021}, neither)
    assert not metadata_matches({"year": 2021, "colour": "red"}, neither)


@pytest.mark.parametrize("condition", list(FilterCondition))
def test_no_filter_restricts_nothing(condition):
    assert metadata_matches({}, MetadataFilters(filters=[], condition=condition))
    assert metadata_matches({}, None)


def test_filterable_metadata_adds_the_document_and_copies():
    node = TextNode(text="a", metadata={"doc_id": "mine"}, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")})
    assert filterable_metadata(node) == {"ref_doc_id": "d", "doc_id": "mine", "document_id": "d"}
    assert node.metadata == {"doc_id": "mine"}
