"""Several retrievers side by side, their lists fused into one."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import IndexNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag._concurrency import Outcome, arun_all, run_all
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.prompts import MULTI_QUERY, MULTI_QUERY_PROMPT
from llama_index_advanced_rag.ranking.fusion import GUARD, RRF_K, FusionMode, fuse, fuse_reciprocal_rank
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.base import TracedRetriever, own_bundle
from llama_index_advanced_rag.retrievers.children import Child, Errand, errand, make_children, named
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.multi_query import aother_queries, other_queries
from llama_index_advanced_rag.stores.node_source import DocstoreNodeSource, sort_key
from llama_index_advanced_rag.trace import Evidence, current_trace, report

CHILD_TOP_N = 100

Identity = Literal["node_id", "content"]
Retrievers = Sequence[BaseRetriever] | Mapping[str, BaseRetriever]
_Found = tuple[Errand, list[NodeWithScore]]


class HybridRetriever(TracedRetriever):
    """Asks any retrievers side by side and fuses what they find.

    A retriever that fails or is late is left out, said once in the trace and the log; the first real exception is raised
    only when all fail. Each retriever gets a query bundle of its own, so an embedding made by one never reaches another;
    one that the caller has set is passed on while at most one embedding model is among them. The same node found by two
    retrievers is one node. No LLM call, or one per query when `num_queries` > 1. An empty query finds nothing.

    Scores, higher is better: `reciprocal_rank` above 0 and at most sum of weights x queries / (rrf_k + 1); other modes 0 to 1.

    Args:
        retrievers: one or more LlamaIndex retrievers, ours or not; a mapping gives them names, else they are called
            "dense", "lexical" (ours) or by their class.
        similarity_top_k: most nodes returned.
        fusion: "reciprocal_rank", "weighted", "distribution", "percentile" or "guarded", see `ranking.fusion`.
        weights: by name or in order; None = 1 each. A retriever of weight 0 is not asked. "guarded" takes none.
        score_ranges: for "weighted": put a retriever's scores on this range (`ScoreRange`) instead of min-max within its list.
        child_top_n: nodes asked of each, one number or by name or in order; None = 100, or `similarity_top_k` if that is more.
        timeout_s: how long each may take, likewise; None = no limit.
        filters: metadata filters for all; ours apply them before their search, nodes of others are filtered afterwards.
        rrf_k: damping of "reciprocal_rank".
        guard: for "guarded": how many nodes of each list come before the lists after it.
        num_queries: how many queries are searched, the original among them; above 1 an LLM writes the others.
        llm: writes the other queries; never taken from `Settings`.
        query_gen_prompt: replaces the prompt `multi_query`; variables `num_queries` and `query_str`.
        identity: "node_id", or "content" to let nodes of equal text count as one.

    Raises:
        ConfigurationError: an option cannot work.

    Example:
        >>> from llama_index.core import VectorStoreIndex
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> nodes = [TextNode(id_="fox", text="the red fox sleeps"), TextNode(id_="sea", text="the deep sea shines")]
        >>> retriever = HybridRetriever.from_index(VectorStoreIndex(nodes, embed_model=DeterministicEmbedding()), similarity_top_k=1)
        >>> [hit.node_id for hit in retriever.retrieve("red fox")]
        ['fox']
    """

    stage: ClassVar[str] = "hybrid"

    def __init__(
        self,
        retrievers: Retrievers,
        *,
        similarity_top_k: int = 10,
        fusion: FusionMode | str = FusionMode.RECIPROCAL_RANK,
        weights: Sequence[float] | Mapping[str, float] | None = None,
        score_ranges: Sequence[ScoreRange | None] | Mapping[str, ScoreRange] | None = None,
        child_top_n: int | Sequence[int] | Mapping[str, int] | None = None,
        timeout_s: float | Sequence[float | None] | Mapping[str, float] | None = None,
        filters: MetadataFilters | None = None,
        rrf_k: int = RRF_K,
        guard: int = GUARD,
        num_queries: int = 1,
        llm: LLM | None = None,
        query_gen_prompt: BasePromptTemplate | str | None = None,
        identity: Identity = "node_id",
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity_top_k=similarity_top_k, filters=filters, callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose
        )
        self._fusion = _checked_fusion(fusion, weights, rrf_k, guard)
        self._rrf_k, self._guard = rrf_k, guard
        self._children = make_children(named(retrievers), weights=weights, score_ranges=score_ranges, child_top_n=child_top_n, timeout_s=timeout_s)
        self._num_queries = whole_number("num_queries", num_queries)
        if llm is None and num_queries > 1:
            raise ConfigurationError(f"num_queries is {num_queries!r} and there is no llm. Pass llm=... to have queries written, or num_queries=1.")
        self._llm = llm
        prompt = PromptTemplate(query_gen_prompt) if isinstance(query_gen_prompt, str) else query_gen_prompt
        self._query_gen_prompt = prompt or MULTI_QUERY_PROMPT
        if identity not in ("node_id", "content"):
            raise ConfigurationError(f"identity is {identity!r}. It must be 'node_id' or 'content'.")
        self._identity = identity

    @classmethod
    def from_index(
        cls,
        vector_index: VectorStoreIndex,
        *,
        similarity_top_k: int = 10,
        language: str = "auto",
        embed_model: BaseEmbedding | None = None,
        filters: MetadataFilters | None = None,
        **options: Any,
    ) -> Self:
        """Dense and lexical search over an existing index, whatever its vector store.

        The words of its nodes are indexed in memory now. Nodes inserted later are found by the dense part at once, and by
        the lexical part after `retriever.retrievers["lexical"].add_nodes(nodes)`.

        Args:
            vector_index: the index.
            similarity_top_k: most nodes returned.
            language: of the texts, for `LexicalRetriever`.
            embed_model: None = the model of the index.
            filters: metadata filters.
            options: further arguments of `HybridRetriever`; the retrievers are called "dense" and "lexical".

        Raises:
            NodeSourceError: the text of the nodes cannot be read from the index or its stores.
        """
        model = embed_model or getattr(vector_index, "embed_model", None) or vector_index._embed_model  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        dense = DenseRetriever(vector_index.vector_store, model, nodes=DocstoreNodeSource(vector_index.docstore))
        lexical = LexicalRetriever.from_defaults(index=vector_index, language=language)
        return cls({"dense": dense, "lexical": lexical}, similarity_top_k=similarity_top_k, filters=filters, **options)

    @property
    def retrievers(self) -> dict[str, BaseRetriever]:
        """The retrievers by name."""
        return {child.name: child.retriever for child in self._children}

    @property
    def score_range(self) -> ScoreRange:
        """The least and the most a fused score can be."""
        if self._fusion is not FusionMode.RECIPROCAL_RANK:
            return ScoreRange(0.0, 1.0)
        return ScoreRange(0.0, sum(child.weight for child in self._children) * self._num_queries / (self._rrf_k + 1))

    def _get_prompts(self) -> PromptDictType:
        return {MULTI_QUERY: self._query_gen_prompt}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._query_gen_prompt = prompts.get(MULTI_QUERY, self._query_gen_prompt)

    def _get_prompt_modules(self) -> PromptMixinType:
        return dict(self.retrievers)

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if _is_empty(query_bundle):
            return []
        others: list[str] = []
        if self._llm is not None and self._num_queries > 1:
            others = other_queries(self._llm, self._query_gen_prompt, query_bundle.query_str, self._num_queries - 1)
        errands = self._errands(query_bundle, others)
        return self._finish(errands, run_all([item.run for item in errands], timeouts_s=[item.child.timeout_s for item in errands]))

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if _is_empty(query_bundle):
            return []
        others: list[str] = []
        if self._llm is not None and self._num_queries > 1:
            others = await aother_queries(self._llm, self._query_gen_prompt, query_bundle.query_str, self._num_queries - 1)
        errands = self._errands(query_bundle, others)
        return self._finish(errands, await arun_all([item.arun for item in errands], timeouts_s=[item.child.timeout_s for item in errands]))

    def _errands(self, query_bundle: QueryBundle, others: Sequence[str]) -> list[Errand]:
        asked = [child for child in self._children if child.weight > 0]
        models = {id(child.embed_model) for child in asked if child.embed_model is not None}
        if query_bundle.embedding is not None and len(models) > 1:
            report("info", "The embedding in the query bundle is not used: the retrievers have different embedding models, and each embeds the query itself.")
        traced = current_trace() is not None
        errands: list[Errand] = []
        for number, query in enumerate([query_bundle, *others], start=1):
            for child in asked:
                bundle = QueryBundle(query) if isinstance(query, str) else _bundle_for_one(query, keep_embedding=len(models) <= 1)
                label = child.name if number == 1 else f"{child.name}[query {number}]"
                top_n = child.top_n or max(CHILD_TOP_N, self._similarity_top_k)
                errands.append(errand(child, bundle, label=label, top_n=top_n, filters=self._filters, traced=traced))
        return errands

    def _finish(self, errands: Sequence[Errand], outcomes: Sequence[Outcome[list[NodeWithScore]]]) -> list[NodeWithScore]:
        _join_traces(errands, outcomes)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if len(errors) == len(outcomes):
            raise next((error for error in errors if not isinstance(error, TimeoutError)), errors[0])
        for item, outcome in zip(errands, outcomes, strict=True):
            if outcome.error is not None:
                report("warning", f"Retriever {item.label!r} failed and was left out: {type(outcome.error).__name__}: {outcome.error}")
        return self._fused([(item, outcome.value or []) for item, outcome in zip(errands, outcomes, strict=True) if outcome.ok])

    def _fused(self, found: Sequence[_Found]) -> list[NodeWithScore]:
        first: dict[str, NodeWithScore] = {}
        lists: list[list[tuple[str, float | None]]] = []
        for _, hits in found:
            ranked: dict[str, float | None] = {}
            for hit in hits:
                key = self._key(hit)
                first.setdefault(key, hit)
                ranked.setdefault(key, None if hit.score is None else float(hit.score))
            lists.append(list(ranked.items()))
        order = {key: sort_key(hit.node) for key, hit in first.items()}
        fused = self._fuse([item.child for item, _ in found], lists, order)[: self._similarity_top_k]
        self._explain([(key, first[key], score) for key, score in fused], [(item.label, ranked) for (item, _), ranked in zip(found, lists, strict=True)])
        return [NodeWithScore(node=first[key].node, score=score) for key, score in fused]

    def _fuse(self, children: Sequence[Child], lists: Sequence[list[tuple[str, float | None]]], order: Mapping[str, str]) -> list[tuple[str, float]]:
        if self._fusion is not FusionMode.GUARDED:
            return fuse(
                self._fusion,
                lists,
                weights=[child.weight for child in children],
                ranges=[child.own_range for child in children],
                natural_ranges=[child.natural_range for child in children],
                k=self._rrf_k,
                tie_key=order.__getitem__,
            )
        by_child: dict[str, list[list[str]]] = {}
        for child, ranked in zip(children, lists, strict=True):
            by_child.setdefault(child.name, []).append([key for key, _ in ranked])
        finished = [fuse_reciprocal_rank(rankings, k=self._rrf_k, tie_key=order.__getitem__) for rankings in by_child.values()]
        return fuse(self._fusion, finished, guard=self._guard)

    def _key(self, hit: NodeWithScore) -> str:
        text = hit.node.get_content(metadata_mode=MetadataMode.NONE).strip() if self._identity == "content" else ""
        return f"text {text}" if text else hit.node.node_id

    def _explain(self, results: Sequence[tuple[str, NodeWithScore, float]], lists: Sequence[tuple[str, Sequence[tuple[str, float | None]]]]) -> None:
        trace = current_trace()
        if trace is None:
            return
        places = {label: {key: (rank, score) for rank, (key, score) in enumerate(ranked, start=1)} for label, ranked in lists}
        for rank, (key, hit, score) in enumerate(results, start=1):
            seen = {label: ranked[key] for label, ranked in places.items() if key in ranked}
            why = ", ".join(f"{label} #{place}" if value is None else f"{label} #{place} ({value:.3g})" for label, (place, value) in seen.items())
            details = {label: {"rank": place, "score": value} for label, (place, value) in seen.items()}
            trace.add(Evidence(hit.node.node_id, self.stage, rank, score, why, details))

    def __repr__(self) -> str:
        parts = ", ".join(f"{child.name}={child.retriever!r}" for child in self._children)
        return f"HybridRetriever({parts}, fusion={self._fusion.value!r}, similarity_top_k={self._similarity_top_k})"


def _checked_fusion(fusion: FusionMode | str, weights: object, rrf_k: int, guard: int) -> FusionMode:
    mode = parse_choice(FusionMode, fusion, argument="fusion")
    if mode is FusionMode.GUARDED and weights is not None:
        raise ConfigurationError(f"weights {weights!r} have no effect with fusion='guarded'. Leave them out, or set guard.")
    if rrf_k < 0 or guard < 0:
        raise ConfigurationError(f"rrf_k is {rrf_k!r} and guard is {guard!r}. Both must be at least 0.")
    return mode


def _is_empty(bundle: QueryBundle) -> bool:
    return bundle.embedding is None and not any(text.strip() for text in [bundle.query_str, *bundle.embedding_strs])


def _bundle_for_one(bundle: QueryBundle, *, keep_embedding: bool) -> QueryBundle:
    own = own_bundle(bundle)
    own.custom_embedding_strs = copy.copy(bundle.custom_embedding_strs)
    own.embedding = copy.copy(bundle.embedding) if keep_embedding else None
    return own


def _join_traces(errands: Sequence[Errand], outcomes: Sequence[Outcome[list[NodeWithScore]]]) -> None:
    trace = current_trace()
    for item, outcome in zip(errands, outcomes, strict=True):
        part = item.finished_trace(late=isinstance(outcome.error, TimeoutError))
        if trace is not None and part is not None:
            trace.children.append(part)
