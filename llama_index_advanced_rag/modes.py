"""How to search: the retrieval modes, and the retriever each of them stands for."""

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.errors import ConfigurationError, ModeNotAvailableError, UnknownArgumentError
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever


class RetrievalMode(str, Enum):
    """How `CorpusIndex` and the command line search; the same names in both.

    Example:
        >>> RetrievalMode("hybrid").value
        'hybrid'
    """

    AUTO = "auto"
    LEXICAL = "lexical"
    DENSE = "dense"
    HYBRID = "hybrid"
    HIERARCHICAL = "hierarchical"
    ANCHOR = "anchor"
    GRAPH = "graph"
    VOTE = "vote"
    COMMUNITY = "community"


PARTS = ("retrievers", "postings", "nodes", "vector_store", "embed_model")  # given by the index, not by the user
NOT_OPTIONS = (*PARTS, "similarity_top_k", "filters")
AVAILABLE_MODES = (RetrievalMode.LEXICAL, RetrievalMode.DENSE, RetrievalMode.HYBRID)


def checked_mode(mode: "RetrievalMode | str") -> RetrievalMode:
    """The mode, if this version can run it.

    Raises:
        ConfigurationError: there is no mode of that name.
        ModeNotAvailableError: the mode exists by name only.
    """
    available = ", ".join(item.value for item in AVAILABLE_MODES)
    try:
        known = RetrievalMode(mode)
    except ValueError as error:
        raise ConfigurationError(f"There is no retrieval mode {mode!r}. This version runs: {available}.") from error
    if known not in AVAILABLE_MODES:
        raise ModeNotAvailableError(f"The retrieval mode {known.value!r} is not built yet. This version runs: {available}.")
    return known


def build_retriever(
    corpus: Corpus,
    embed_model: Callable[[], BaseEmbedding],
    mode: "RetrievalMode | str",
    *,
    similarity_top_k: int,
    filters: MetadataFilters | None,
    options: Mapping[str, Any],
) -> BaseRetriever:
    """The retriever of a mode over a corpus; the embedding model is resolved only by modes that use it.

    Raises:
        UnknownArgumentError: an option that the retriever of this mode does not take.
    """
    known = checked_mode(mode)
    common: dict[str, Any] = {"similarity_top_k": similarity_top_k, "filters": filters}
    refuse_unknown(options, {f"mode {known.value!r}": accepted_names(retriever_class(known), without=NOT_OPTIONS)})
    if known is RetrievalMode.LEXICAL:
        return LexicalRetriever(corpus.postings, corpus, **common, **options)
    if known is RetrievalMode.DENSE:
        return DenseRetriever(corpus.vectors, embed_model(), nodes=corpus, **common, **options)
    children: dict[str, BaseRetriever] = {
        "dense": DenseRetriever(corpus.vectors, embed_model(), nodes=corpus, filters=filters),
        "lexical": LexicalRetriever(corpus.postings, corpus, filters=filters),
    }
    return HybridRetriever(children, **common, **options)


def retriever_class(mode: RetrievalMode) -> type[BaseRetriever]:
    """The class that runs a mode."""
    return {RetrievalMode.LEXICAL: LexicalRetriever, RetrievalMode.DENSE: DenseRetriever, RetrievalMode.HYBRID: HybridRetriever}[mode]


def accepted_names(function: Callable[..., Any], *, without: tuple[str, ...] = ()) -> set[str]:
    """Names of the parameters that can be given by keyword."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return {item.name for item in parameters if item.kind in kinds and item.name not in ("self", *without)}


def refuse_unknown(options: Mapping[str, Any], takers: Mapping[str, set[str]]) -> None:
    """Check that each option has a taker.

    Raises:
        UnknownArgumentError: one has none; the message lists what each taker accepts.
    """
    unknown = sorted(name for name in options if not any(name in names for names in takers.values()))
    if unknown:
        accepted = "; ".join(f"{taker}: {', '.join(sorted(names))}" for taker, names in takers.items())
        raise UnknownArgumentError(f"Nothing accepts the argument(s) {', '.join(map(repr, unknown))}. Accepted are, by {accepted}.")
