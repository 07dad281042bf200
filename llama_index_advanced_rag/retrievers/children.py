"""The retrievers inside a retriever: their names and their options."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from llama_index.core.base.base_retriever import BaseRetriever

from llama_index_advanced_rag._choices import positive_number, whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.fusion import checked_weights
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.base import TracedRetriever

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Child:
    """One retriever and how it takes part.

    Attributes:
        weight: at least 0.
        top_n: how many nodes it is asked for; None = its parent's choice.
        timeout_s: how long it may take; None = as long as it needs.
        own_range: the range its scores are put on, if the user says so; else min-max.
    """

    name: str
    retriever: BaseRetriever
    weight: float
    top_n: int | None
    timeout_s: float | None
    own_range: ScoreRange | None = None

    @property
    def natural_range(self) -> ScoreRange | None:
        """What its scores can be, as it says itself; None = not known."""
        known = getattr(self.retriever, "score_range", None)
        return known if isinstance(known, ScoreRange) else None

    @property
    def embed_model(self) -> object | None:
        """The embedding model the child searches with, where it shows one."""
        return getattr(self.retriever, "_embed_model", None)


def named(retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever]) -> dict[str, BaseRetriever]:
    """Retrievers by name, in order; without names: "dense", "lexical" and so on for ours, the class name for others, #2 for the second.

    Raises:
        ConfigurationError: there is none, one is not a retriever, or a name cannot be used.
    """
    if isinstance(retrievers, Mapping):
        by_name = dict(retrievers)
    else:
        by_name = dict[str, BaseRetriever]()
        for retriever in retrievers:
            name = retriever.stage if isinstance(retriever, TracedRetriever) else type(retriever).__name__
            same = sum(other.split("#")[0] == name for other in by_name)
            by_name[f"{name}#{same + 1}" if same else name] = retriever
    if not by_name:
        raise ConfigurationError("There are no retrievers. Give at least one.")
    for name, retriever in by_name.items():
        if not name or ":" in name:
            raise ConfigurationError(f"The retriever name {name!r} cannot be used. Names are not empty and hold no colon.")
        if not isinstance(cast(object, retriever), BaseRetriever):
            raise ConfigurationError(
                f"{name!r} is a {type(retriever).__name__}. Each part must be a LlamaIndex retriever; of an index, pass index.as_retriever()."
            )
    return by_name


def make_children(by_name: Mapping[str, BaseRetriever], *, weights: Any, score_ranges: Any, child_top_n: Any, timeout_s: Any) -> list[Child]:
    """The children with their options, each given as `per_child` reads it; None = weight 1, the rest as `Child` says.

    Raises:
        ConfigurationError: an option cannot work.
    """
    names = list(by_name)
    options = zip(
        checked_weights(per_child("weights", weights, names, 1.0, lambda _, value: value), len(names)),
        per_child("child_top_n", child_top_n, names, None, whole_number),
        per_child("timeout_s", timeout_s, names, None, positive_number),
        per_child("score_ranges", score_ranges, names, None, _score_range),
        strict=True,
    )
    return [Child(name, retriever, *values) for (name, retriever), values in zip(by_name.items(), options, strict=True)]


def per_child(option: str, value: Any, names: Sequence[str], default: T, check: Callable[[str, Any], T]) -> list[T]:
    """One value of an option for each child, from one for all, a sequence in their order, or a mapping by name.

    Names a mapping leaves out have the default, and so has None.

    Raises:
        ConfigurationError: a name is unknown, the sequence has another length, or a value cannot be used.
    """
    if isinstance(value, Mapping):
        by_name = cast("Mapping[str, Any]", value)
        unknown = [name for name in by_name if name not in names]
        if unknown:
            raise ConfigurationError(f"{option} names {unknown!r}. The retrievers are {list(names)!r}.")
        values = [by_name.get(name) for name in names]
    elif isinstance(value, Sequence):
        values = list(cast("Sequence[Any]", value))
    else:
        values = [value] * len(names)
    if len(values) != len(names):
        raise ConfigurationError(f"{option} has {len(values)} values {values!r} for {len(names)} retrievers. Give one for each, or a mapping by name.")
    return [default if item is None else check(option, item) for item in values]


def _score_range(option: str, value: Any) -> ScoreRange:
    if not isinstance(value, ScoreRange):
        raise ConfigurationError(f"{option} holds {value!r}. Each must be a ScoreRange(low, high).")
    return value
