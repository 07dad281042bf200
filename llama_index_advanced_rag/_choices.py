"""Arguments checked when an object is made, in one wording everywhere: one of a few names, a whole number, a positive number."""

from enum import Enum
from operator import index
from typing import Any, TypeVar

from llama_index_advanced_rag.errors import ConfigurationError

E = TypeVar("E", bound=Enum)


def parse_choice(choices: type[E], value: object, *, argument: str) -> E:
    """The member of an enum, given as the member or as its value.

    Raises:
        ConfigurationError: there is no such choice; the message lists those there are.

    Example:
        >>> from enum import Enum
        >>> class Colour(str, Enum):
        ...     RED = "red"
        >>> parse_choice(Colour, "red", argument="colour") is Colour.RED
        True
    """
    try:
        return choices(value)
    except ValueError as error:
        names = ", ".join(repr(choice.value) for choice in choices)
        raise ConfigurationError(f"{argument} is {value!r}. It must be one of {names}.") from error


def whole_number(argument: str, value: Any, *, least: int = 1) -> int:
    """The value as int, if it is a whole number (numpy's too) of at least `least`.

    Raises:
        ConfigurationError: it is not.

    Example:
        >>> whole_number("similarity_top_k", 3)
        3
    """
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ConfigurationError(f"{argument} is {value!r}. It must be a whole number of at least {least}.")
    return number


def positive_number(argument: str, value: Any) -> float:
    """The value as float, if it is a number above 0.

    Raises:
        ConfigurationError: it is not.
    """
    number = 0.0 if isinstance(value, (bool, str)) else _as_float(value)
    if not number > 0:
        raise ConfigurationError(f"{argument} is {value!r}. It must be a number above 0.")
    return number


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0
