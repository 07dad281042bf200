"""Distinct metadata values sorted by kind, as arrays and tables that answer for all of them at once."""

import operator as compare
from array import array
from bisect import bisect_left, bisect_right
from itertools import repeat
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import FilterOperator
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.rows.positions import Mask

_EXACT = 2**53  # whole numbers up to here are float64 as they are
_SCALARS = frozenset({str, int, float, bool, type(None)})


def is_scalar(value: Any) -> bool:
    """True of text, numbers, bool and None."""
    return type(value) in _SCALARS


def is_exact(number: float) -> bool:
    """True of a number that float64 holds exactly."""
    return isinstance(number, float) or -_EXACT <= number <= _EXACT


class ValueTables:
    """Values by code: numbers, texts, lists of scalars, and the odd rest.

    Attributes:
        numbers: float64 values of the numbers.
        number_codes: their codes.
        list_codes: codes of lists and tuples of scalars.
        odd: codes of all other values.
    """

    def __init__(self) -> None:
        self.numbers: NDArray[np.float64] = np.empty(0)
        self.number_codes: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self.list_codes: list[int] = []
        self.odd: list[int] = []
        self._done = 0
        self._texts: list[str] = []
        self._text_codes: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._folded: list[str] = []
        self._sorted: tuple[list[str], NDArray[np.intp]] = [], np.empty(0, dtype=np.intp)
        self._codes_of_element: dict[Any, array[int]] = {}

    def extend(self, values: list[Any], count: int) -> None:
        """Take in the values up to that code."""
        if self._done == count:
            return
        numbers: list[tuple[float, int]] = []
        text_codes: list[int] = []
        for code in range(self._done, count):
            value = values[code]
            if type(value) is str:
                self._texts.append(value)
                text_codes.append(code)
            elif type(value) in _SCALARS and is_exact(value):
                numbers.append((float(value), code))
            elif type(value) in (list, tuple) and all(map(is_scalar, value)):
                self._add_list(value, code)
            else:
                self.odd.append(code)
        self.numbers = np.concatenate([self.numbers, [number for number, _ in numbers]])
        self.number_codes = np.concatenate([self.number_codes, np.array([code for _, code in numbers], dtype=np.intp)])
        self._text_codes = np.concatenate([self._text_codes, np.array(text_codes, dtype=np.intp)])
        self._done = count

    def _add_list(self, value: Any, code: int) -> None:
        self.list_codes.append(code)
        for element in value:
            self._codes_of_element.setdefault(element, array("i")).append(code)

    def mark_lists(self, truth: Mask, element: Any) -> None:
        """Mark the lists that hold the element."""
        if is_scalar(element) and element in self._codes_of_element:
            truth[self._codes_of_element[element].tolist()] = True

    def mark_texts(self, truth: Mask, part: Any, *, fold: bool) -> None:
        """Mark the texts that hold the part, without regard to case when `fold`; nothing when it is no text."""
        if not isinstance(part, str) or not self._texts:
            return
        if fold:
            self._folded += [text.casefold() for text in self._texts[len(self._folded) :]]
        texts, part = (self._folded, part.casefold()) if fold else (self._texts, part)
        truth[self._text_codes] = np.fromiter(map(compare.contains, texts, repeat(part)), dtype=bool, count=len(texts))

    def texts_in_range(self, operator: FilterOperator, value: str) -> NDArray[np.intp]:
        """Codes of the texts on one side of a text, in Python's order of strings."""
        if len(self._sorted[0]) < len(self._texts):
            order = sorted(range(len(self._texts)), key=self._texts.__getitem__)
            self._sorted = [self._texts[place] for place in order], self._text_codes[order]
        texts, codes = self._sorted
        if operator is FilterOperator.GT:
            return codes[bisect_right(texts, value) :]
        if operator is FilterOperator.GTE:
            return codes[bisect_left(texts, value) :]
        return codes[: (bisect_left if operator is FilterOperator.LT else bisect_right)(texts, value)]
