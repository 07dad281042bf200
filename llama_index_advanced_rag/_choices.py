"""Arguments that choose one of a few names: checked when the object is made, in one wording everywhere."""

from enum import Enum
from typing import TypeVar

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
