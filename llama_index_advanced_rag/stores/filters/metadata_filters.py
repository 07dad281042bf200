"""Whether metadata match LlamaIndex's `MetadataFilters`: every operator, nested conditions, no exception on mixed types."""

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters


def metadata_matches(metadata: Mapping[str, Any], filters: MetadataFilters | None) -> bool:
    """True when the metadata satisfy the filters.

    A missing key, or one whose value is None, matches `!=`, `nin` and `is_empty` and nothing else. Values of types that
    cannot be compared (`"x" > 3`) do not match and do not raise. `text_match` is a substring test on strings. `contains`
    asks whether a list holds the value or a string holds the substring; `any` and `all` ask the same of each value.
    `is_empty` is true of a missing key, None, an empty string and an empty list. `in`, `nin`, `any` and `all` read a single
    value as a list of one. Conditions nest to any depth; `not` means that none of its filters match; `None` and an empty
    list of filters restrict nothing.

    Deviation from `SimpleVectorStore` (core 0.14): it refuses nested filters, raises on mixed types, and reads a string
    given to `in`, `any` or `all` letter by letter.

    Example:
        >>> from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
        >>> filters = MetadataFilters(filters=[MetadataFilter(key="year", value=2020, operator=">=")])
        >>> metadata_matches({"year": 2023}, filters), metadata_matches({"year": "unknown"}, filters), metadata_matches({}, filters)
        (True, False, False)
    """
    if filters is None or not filters.filters:
        return True
    matches = (_matches_part(metadata, part) for part in filters.filters)
    if filters.condition == FilterCondition.OR:
        return any(matches)
    if filters.condition == FilterCondition.NOT:
        return not any(matches)
    return all(matches)


def filterable_metadata(node: BaseNode) -> dict[str, Any]:
    """The metadata of a node as filters see them: its own, and the id of its document under LlamaIndex's three usual keys.

    The keys are `ref_doc_id`, `doc_id` and `document_id`; a key of the node's own keeps its value.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> filterable_metadata(TextNode(text="a", metadata={"year": 2023}))
        {'year': 2023}
    """
    ref_doc_id = node.ref_doc_id
    if ref_doc_id is None:
        return dict(node.metadata)
    return {"ref_doc_id": ref_doc_id, "doc_id": ref_doc_id, "document_id": ref_doc_id, **node.metadata}


def _matches_part(metadata: Mapping[str, Any], part: MetadataFilter | MetadataFilters) -> bool:
    if isinstance(part, MetadataFilters):
        return metadata_matches(metadata, part)
    return value_matches(metadata.get(part.key), part.operator, part.value)


def value_matches(held: Any, operator: FilterOperator, value: Any) -> bool:
    """True when what metadata hold under a key (None = nothing) satisfies one filter; see `metadata_matches`.

    Example:
        >>> value_matches(3, FilterOperator.IN, [1, 3.0]), value_matches(None, FilterOperator.NE, 1)
        (True, True)
    """
    if held is None:
        return operator in _TRUE_OF_MISSING
    try:
        return bool(_TESTS[operator](held, value))
    except TypeError:
        return False


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]


def _text_match(held: Any, value: Any) -> bool:
    return isinstance(held, str) and isinstance(value, str) and value in held


def _text_match_insensitive(held: Any, value: Any) -> bool:
    return isinstance(held, str) and isinstance(value, str) and value.casefold() in held.casefold()


def _holds(held: Any, value: Any) -> bool:
    if isinstance(held, str):
        return isinstance(value, str) and value in held
    return isinstance(held, list | tuple | set | frozenset | dict) and value in held


def _is_empty(held: Any, _value: Any) -> bool:
    return isinstance(held, str | list | tuple | set | frozenset | dict) and len(held) == 0  # pyright: ignore[reportUnknownArgumentType]


_TRUE_OF_MISSING = frozenset({FilterOperator.NE, FilterOperator.NIN, FilterOperator.IS_EMPTY})
_TESTS: dict[FilterOperator, Callable[[Any, Any], bool]] = {
    FilterOperator.EQ: lambda held, value: held == value,
    FilterOperator.NE: lambda held, value: held != value,
    FilterOperator.GT: lambda held, value: held > value,
    FilterOperator.GTE: lambda held, value: held >= value,
    FilterOperator.LT: lambda held, value: held < value,
    FilterOperator.LTE: lambda held, value: held <= value,
    FilterOperator.IN: lambda held, value: held in _as_list(value),
    FilterOperator.NIN: lambda held, value: held not in _as_list(value),
    FilterOperator.ANY: lambda held, value: any(_holds(held, one) for one in _as_list(value)),
    FilterOperator.ALL: lambda held, value: all(_holds(held, one) for one in _as_list(value)),
    FilterOperator.TEXT_MATCH: _text_match,
    FilterOperator.TEXT_MATCH_INSENSITIVE: _text_match_insensitive,
    FilterOperator.CONTAINS: _holds,
    FilterOperator.IS_EMPTY: _is_empty,
}
