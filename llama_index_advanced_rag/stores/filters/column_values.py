"""The distinct values of one metadata key, and which of them satisfy a filter."""

import operator as compare
import threading
from collections.abc import Callable, Hashable
from typing import Any, cast

import numpy as np
from llama_index.core.vector_stores.types import FilterOperator

from llama_index_advanced_rag.stores.filters.metadata_filters import value_matches
from llama_index_advanced_rag.stores.filters.value_tables import ValueTables, is_exact, is_scalar
from llama_index_advanced_rag.stores.rows.positions import Mask

_RANGES: dict[FilterOperator, Callable[[Any, Any], Any]] = {
    FilterOperator.GT: compare.gt,
    FilterOperator.GTE: compare.ge,
    FilterOperator.LT: compare.lt,
    FilterOperator.LTE: compare.le,
}
_NEGATED = {FilterOperator.NE: FilterOperator.EQ, FilterOperator.NIN: FilterOperator.IN}
_TUPLE, _SET, _DICT = object(), object(), object()


class ColumnValues:
    """Distinct values, each with a code counted from 0 in order of arrival; values that Python holds equal share one.

    One thread adds (`code`) at a time, and any others may ask (`truth`) meanwhile. Filters cost:
    `==`, `in`, `!=`, `nin` a look-up; ranges one comparison of arrays, or a search in sorted strings; `any`, `all` and `contains`
    a look-up in lists and a substring test in each distinct string; every value of another kind is asked one by one.

    Example:
        >>> values = ColumnValues()
        >>> [values.code(value) for value in ("a", 1, 1.0, ["a", "b"])]
        [0, 1, 1, 2]
        >>> values.truth(FilterOperator.ANY, ["a"]).tolist()  # of each code, and of a missing value
        [True, False, True, False]
    """

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}
        self._values: list[Any] = []
        self._tables = ValueTables()
        self._lock = threading.Lock()

    def code(self, value: Any) -> int:
        """The code of a value that is not None, a new one for a new value."""
        key = _key(value)
        known = None if key is None else self._codes.get(key)
        if known is None:
            known = len(self._values)
            self._values.append(value)
            if key is not None:
                self._codes[key] = known
        return known

    def truth(self, operator: FilterOperator, value: Any) -> Mask:
        """Which of the values known now satisfy the filter, by code, and last whether a missing value does."""
        with self._lock:
            count = len(self._values)
            self._tables.extend(self._values, count)
            truth = np.zeros(count + 1, dtype=bool)
            truth[:count] = self._present(_NEGATED.get(operator, operator), value, count)
        if operator in _NEGATED:
            truth = ~truth
        truth[-1] = value_matches(None, operator, value)
        return truth

    def _present(self, operator: FilterOperator, value: Any, count: int) -> Mask:
        truth, one_by_one = np.zeros(count, dtype=bool), list(self._tables.odd)
        if operator is FilterOperator.EQ:
            truth[self._known([value] if _equals_itself(value) else [], count)] = True
        elif operator is FilterOperator.IN:
            truth[self._known(value if isinstance(value, list) else [value], count)] = True
        elif operator in _RANGES:
            one_by_one += self._in_range(truth, operator, value)
        elif operator is FilterOperator.ANY or operator is FilterOperator.ALL:
            truth = self._holding_each(operator, value if isinstance(value, list) else [value], count)
        elif operator is FilterOperator.CONTAINS:
            truth = self._holding(value, count)
        elif operator is FilterOperator.TEXT_MATCH or operator is FilterOperator.TEXT_MATCH_INSENSITIVE:
            self._tables.mark_texts(truth, value, fold=operator is FilterOperator.TEXT_MATCH_INSENSITIVE)
        elif operator is FilterOperator.IS_EMPTY:
            truth[self._known(["", [], ()], count)] = True
        else:
            one_by_one = list(range(count))
        truth[one_by_one] = [value_matches(self._values[code], operator, value) for code in one_by_one]
        return truth

    def _known(self, wanted: list[Any], count: int) -> list[int]:
        keys = [key for value in wanted if value is not None and (key := _key(value)) is not None]
        return [code for key in keys if (code := self._codes.get(key, count)) < count]  # another thread may be adding more

    def _in_range(self, truth: Mask, operator: FilterOperator, value: Any) -> list[int]:
        """Mark what is decided by comparing arrays; the codes of values that are to be asked one by one."""
        if isinstance(value, str):
            truth[self._tables.texts_in_range(operator, value)] = True
            return []
        if isinstance(value, int | float):
            if not is_exact(value):
                return self._tables.number_codes.tolist()
            truth[self._tables.number_codes] = _RANGES[operator](self._tables.numbers, float(value))
            return []
        return self._tables.list_codes if isinstance(value, list | tuple) else []

    def _holding_each(self, operator: FilterOperator, wanted: list[Any], count: int) -> Mask:
        masks = [self._holding(one, count) for one in wanted]
        if operator is FilterOperator.ANY:
            return np.logical_or.reduce(masks) if masks else np.zeros(count, dtype=bool)
        return np.logical_and.reduce(masks) if masks else np.ones(count, dtype=bool)

    def _holding(self, value: Any, count: int) -> Mask:
        truth = np.zeros(count, dtype=bool)
        self._tables.mark_texts(truth, value, fold=False)
        self._tables.mark_lists(truth, value)
        return truth


def _equals_itself(value: Any) -> bool:
    return bool(value == value)


def _key(value: Any) -> Hashable | None:
    """The same for two values exactly if Python holds them equal; None for a value of which that is not known."""
    if is_scalar(value):
        return value
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        parts = tuple(items) if all(map(is_scalar, items)) else tuple(_part(item) for item in items)
        return (_TUPLE, parts) if isinstance(value, tuple) else parts
    try:
        if isinstance(value, set | frozenset):
            return (_SET, frozenset(cast("set[Any]", value)))
        if isinstance(value, dict):
            return (_DICT, frozenset((name, _part(item)) for name, item in cast("dict[Any, Any]", value).items()))
    except TypeError:
        return None
    return None


def _part(value: Any) -> Hashable:
    key = _key(value)
    return object() if key is None else key
