"""The numbers of a retriever that can be tuned."""

from dataclasses import dataclass, fields, replace
from typing import Any

from typing_extensions import Self

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError


@dataclass(frozen=True)
class TunableOptions:
    """What all retrievers with a list of their own can be tuned by; a child adds its own numbers.

    Attributes:
        guard: so many hits of the other retriever come first.

    Raises:
        ConfigurationError: a value cannot work.
    """

    guard: int = 0

    def __post_init__(self) -> None:
        whole_number("guard", self.guard, least=0)

    def with_values(self, **values: Any) -> Self:
        """The same options but for these.

        Raises:
            ConfigurationError: there is no such option, or a value cannot work.
        """
        known = [field.name for field in fields(self)]
        unknown = [name for name in values if name not in known]
        if unknown:
            raise ConfigurationError(f"There are no options {unknown!r}. Those are: {', '.join(known)}.")
        return replace(self, **values)
