"""How to search: the retrieval modes, and the retriever each of them stands for."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag.call_arguments import accepted_names, refuse_unknown
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.errors import ConfigurationError, ModeNotAvailableError
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.ranking.fusion import FusionMode
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever, Routes
from llama_index_advanced_rag.retrievers.anchor import AnchorRetriever
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.entity_graph import EntityGraphRetriever
from llama_index_advanced_rag.retrievers.entity_vote import EntityVoteRetriever
from llama_index_advanced_rag.retrievers.graph_source import corpus_graph
from llama_index_advanced_rag.retrievers.hierarchical import HierarchicalRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.retrievers.unit_summaries import SharedSummaries, UnitSummaries
from llama_index_advanced_rag.routing.embedding import EmbeddingRouter
from llama_index_advanced_rag.routing.llm import LLMRouter
from llama_index_advanced_rag.routing.route import COMPLEX, MODERATE, NONE, SIMPLE, STRUCTURAL
from llama_index_advanced_rag.routing.router import RouteFunction, Router
from llama_index_advanced_rag.routing.rules import RuleRouter
from llama_index_advanced_rag.text.question_routes.ranking import asks_for_place


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


class SearchedIndex(NamedTuple):
    """What an index gives its retrievers.

    Attributes:
        corpus: documents, words and vectors.
        embed_model: gives the embedding model; called by the modes that embed the query.
        units: gives what scores documents and sections.
        summaries: gives the summaries of its documents and sections, the same to all retrievers.
        vectors: gives the vectors of names and facts, the same to all retrievers.
    """

    corpus: Corpus
    embed_model: Callable[[], BaseEmbedding]
    units: Callable[[], UnitScorer]
    summaries: Callable[[], SharedSummaries]
    vectors: Callable[[], TextVectors]


def _lexical(index: SearchedIndex, **options: Any) -> TracedRetriever:
    return LexicalRetriever(index.corpus.postings, index.corpus, **options)


def _dense(index: SearchedIndex, **options: Any) -> TracedRetriever:
    return DenseRetriever(index.corpus.vectors, index.embed_model(), nodes=index.corpus, **options)


def _hybrid(index: SearchedIndex, **options: Any) -> TracedRetriever:
    """Both scales are known here, so scores are fused rather than ranks, which know less."""
    options.setdefault("fusion", FusionMode.WEIGHTED)
    return HybridRetriever({"dense": _dense(index), "lexical": _lexical(index)}, **options)


def _hierarchical(
    index: SearchedIndex, *, summaries: bool | UnitSummaries | None = None, tree: bool = False, llm: LLM | None = None, **options: Any
) -> TracedRetriever:
    """`summaries` is None: there are some if a tree or an LLM was asked for."""
    _check_summaries(summaries, tree=tree)
    if summaries is True or (summaries is None and (tree or llm is not None)):
        summaries = index.summaries().written_by(llm, tree=tree)
    return HierarchicalRetriever(_hybrid(index), nodes=index.corpus, units=index.units(), summaries=summaries or None, **options)


def _check_summaries(summaries: object, *, tree: bool) -> None:
    if summaries is not None and not isinstance(summaries, (bool, UnitSummaries)):
        raise ConfigurationError(f"summaries is {summaries!r}. It must be True, False, None or UnitSummaries.")
    if tree and summaries is False:
        raise ConfigurationError("tree is True and summaries is False, so that there is nothing to cluster. Leave one of them out.")
    if tree and isinstance(summaries, UnitSummaries):
        raise ConfigurationError("tree is True, and summaries are given, which are clustered or not. Leave tree out and pass UnitSummaries(..., tree=True).")


def _anchor(index: SearchedIndex, *, embeddings: bool = True, **options: Any) -> TracedRetriever:
    dense = _dense(index) if embeddings else None
    return AnchorRetriever(_lexical(index), units=index.units(), nodes=index.corpus, dense=dense, **options)


def _graph(index: SearchedIndex, *, embeddings: bool = False, aliases: bool = False, **options: Any) -> TracedRetriever:
    """Facts are compared by meaning too where `embeddings`, names with each other where `aliases`: they are embedded then."""
    options.setdefault("language", index.corpus.analyzer.language)
    plain = corpus_graph(index.corpus)
    graph = plain.aliased(index.vectors()) if aliases else plain
    return EntityGraphRetriever(_hybrid(index), graph, nodes=index.corpus, vectors=index.vectors() if embeddings else None, **options)


def _complex(index: SearchedIndex, **options: Any) -> TracedRetriever:
    """The walk, from what documents and sections choose: dearer than from hybrid search, and as good as the better of the two by themselves."""
    language = index.corpus.analyzer.language
    return EntityGraphRetriever(_hierarchical(index), corpus_graph(index.corpus), nodes=index.corpus, language=language, **options)


def _structural(index: SearchedIndex, **options: Any) -> TracedRetriever:
    """Questions that name or ask for a place are answered by lines and headings, those for figures and the rest by documents and sections."""
    ways: Routes = {"places": _anchor(index, **options), "parts": _hierarchical(index, **options)}
    return AdaptiveRetriever(ways, router=place_or_part, default="parts", **options)


def place_or_part(question: str) -> str:
    """Which of the two ways of reading by structure a question takes."""
    return "places" if asks_for_place(question) else "parts"


def index_routes(index: SearchedIndex, **common: Any) -> dict[str, TracedRetriever | None]:
    """The five routes over one index, each for as many nodes as whoever asks it wants.

    Args:
        index: the index.
        common: arguments that all retrievers take (`callback_manager`, `object_map`).
    """
    options: dict[str, Any] = {"similarity_top_k": _AS_MANY_AS_WANTED, **common}
    return {
        NONE: None,
        SIMPLE: _hybrid(index, **options),
        MODERATE: _graph(index, **options),
        COMPLEX: _complex(index, **options),
        STRUCTURAL: _structural(index, **options),
    }


def index_router(index: SearchedIndex, router: "str | Router | RouteFunction | None", llm: LLM | None, *, max_routes: int = 1) -> Router | RouteFunction | None:
    """The router of a name, or the one given; None for the rules, which are what a retriever or an engine takes by itself.

    Raises:
        ConfigurationError: there is none of that name, or "llm" has no LLM.
    """
    if router is None or router == RuleRouter.name:
        return None
    if not isinstance(router, str):
        return router
    if router == EmbeddingRouter.name:
        return EmbeddingRouter(index.embed_model(), max_routes=max_routes)
    if router != LLMRouter.name:
        raise ConfigurationError(f"router is {router!r}. It must be 'rules', 'embedding', 'llm', a Router or a function of the question.")
    if llm is None:
        raise ConfigurationError("router is 'llm', and there is no LLM. Pass llm=..., or router='rules'.")
    return LLMRouter(llm, max_choices=max_routes)


def _auto(
    index: SearchedIndex,
    *,
    router: "str | Router | RouteFunction | None" = None,
    llm: LLM | None = None,
    routes: Routes | None = None,
    max_routes: int = 1,
    **options: Any,
) -> TracedRetriever:
    """`routes` replace or add to the five."""
    if llm is not None and router != LLMRouter.name:
        raise ConfigurationError(f"llm is given, and the router {router or RuleRouter.name!r} asks none. Pass router='llm', or leave llm out.")
    common = {name: options[name] for name in ("callback_manager", "object_map") if name in options}
    ways = {**index_routes(index, **common), **(routes or {})}
    return AdaptiveRetriever(ways, router=index_router(index, router, llm, max_routes=max_routes), max_routes=max_routes, **options)


def _vote(index: SearchedIndex, **options: Any) -> TracedRetriever:
    return EntityVoteRetriever(_hybrid(index), index.corpus, vectors=index.vectors(), units=index.units(), nodes=index.corpus, **options)


class BuiltMode(NamedTuple):
    """A mode that this version runs: the class whose options it takes, what makes the retriever, and options of this."""

    retriever: type[TracedRetriever]
    make: Callable[..., TracedRetriever]
    more_options: frozenset[str] = frozenset()


BUILT_MODES: dict[RetrievalMode, BuiltMode] = {
    RetrievalMode.AUTO: BuiltMode(AdaptiveRetriever, _auto, frozenset({"llm"})),
    RetrievalMode.LEXICAL: BuiltMode(LexicalRetriever, _lexical),
    RetrievalMode.DENSE: BuiltMode(DenseRetriever, _dense),
    RetrievalMode.HYBRID: BuiltMode(HybridRetriever, _hybrid),
    RetrievalMode.HIERARCHICAL: BuiltMode(HierarchicalRetriever, _hierarchical, frozenset({"tree", "llm"})),
    RetrievalMode.ANCHOR: BuiltMode(AnchorRetriever, _anchor, frozenset({"embeddings"})),
    RetrievalMode.GRAPH: BuiltMode(EntityGraphRetriever, _graph, frozenset({"embeddings", "aliases"})),
    RetrievalMode.VOTE: BuiltMode(EntityVoteRetriever, _vote),
}
AVAILABLE_MODES = tuple(BUILT_MODES)
_AS_MANY_AS_WANTED = 1000
_GIVEN_BY_THE_INDEX = ("retriever", "retrievers", "postings", "nodes", "units", "vector_store", "embed_model", "lexical", "dense", "graph", "vectors")


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
    if known not in BUILT_MODES:
        raise ModeNotAvailableError(f"The retrieval mode {known.value!r} is not built yet. This version runs: {available}.")
    return known


def takes_llm(mode: "RetrievalMode | str", options: Mapping[str, Any]) -> bool:
    """Whether the retriever of a mode asks an LLM under these options, and so wants the index's own where none is given."""
    known = checked_mode(mode)
    if known is RetrievalMode.HIERARCHICAL:
        summaries = options.get("summaries")
        return summaries is True or (summaries is None and bool(options.get("tree")))
    if known is RetrievalMode.AUTO:
        return options.get("router") == LLMRouter.name
    return known is RetrievalMode.ANCHOR or "num_queries" in options


def mode_options(mode: "RetrievalMode | str") -> set[str]:
    """Names of the arguments that the retriever of a mode takes from a user."""
    built = BUILT_MODES[checked_mode(mode)]
    return accepted_names(built.retriever, without=_GIVEN_BY_THE_INDEX) | built.more_options


def index_targets(index: SearchedIndex, **common: Any) -> dict[str, TracedRetriever | None]:
    """The five routes for an engine; each looks before a search for what other processes have written."""
    return {name: None if route is None else route.refreshed_by(index.corpus.refresh) for name, route in index_routes(index, **common).items()}


def build_retriever(
    index: SearchedIndex, mode: "RetrievalMode | str", *, similarity_top_k: int, filters: MetadataFilters | None, options: Mapping[str, Any]
) -> TracedRetriever:
    """The retriever of a mode; before each search it looks for what other processes have written.

    Raises:
        UnknownArgumentError: an option that the retriever of this mode does not take.
    """
    known = checked_mode(mode)
    refuse_unknown(options, {f"mode {known.value!r}": mode_options(known) - {"similarity_top_k", "filters"}})
    retriever = BUILT_MODES[known].make(index, similarity_top_k=similarity_top_k, filters=filters, **options)
    return retriever.refreshed_by(index.corpus.refresh)
