"""Several retrievers side by side, their lists fused into one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import Outcome, arun_all, run_all
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.prompts import MULTI_QUERY, MULTI_QUERY_PROMPT
from llama_index_advanced_rag.ranking.fusion import GUARD, RRF_K, FusionMode
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.base import ScoredIds, TracedRetriever
from llama_index_advanced_rag.retrievers.children import Child, make_children, named
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.errands import Errand, is_empty, make_errands, took_part
from llama_index_advanced_rag.retrievers.fusing import Id, ListFusion, Ranked, fuse_hits, fusion_evidence
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.multi_query import aother_queries, other_queries
from llama_index_advanced_rag.retrievers.row_hybrid import RowFusion, RowHybrid, children_space
from llama_index_advanced_rag.retrievers.row_search import finds_like, scored_nodes
from llama_index_advanced_rag.stores.node_source import DocstoreNodeSource
from llama_index_advanced_rag.stores.rows.row_state import RowSpace
from llama_index_advanced_rag.stores.rows.search_and_read import Seen, read_ids
from llama_index_advanced_rag.trace import current_trace

CHILD_TOP_N = 100

Identity = Literal["node_id", "content"]
Retrievers = Sequence[BaseRetriever] | Mapping[str, BaseRetriever]


class HybridRetriever(TracedRetriever):
    """Asks any retrievers side by side and fuses what they find.

    A retriever that fails or is late is left out, said once in the trace and the log; the first real exception is raised
    only when all fail. Each retriever gets a query bundle of its own, so an embedding made by one never reaches another;
    one that the caller has set is passed on while at most one embedding model is among them. The same node found by two
    retrievers is one node. No LLM call, or one per query when `num_queries` > 1. An empty query finds nothing.

    Dense and lexical search over one `CorpusIndex` read one state of it, fuse rows, and build nodes for the final hits only.
    LlamaIndex's retrieval events are then those of the hybrid; its parts send none, as they build no nodes.

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
        self._fusion = ListFusion.checked(fusion, weights=weights, rrf_k=rrf_k, guard=guard)
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
        if self._fusion.mode is not FusionMode.RECIPROCAL_RANK:
            return ScoreRange(0.0, 1.0)
        return ScoreRange(0.0, sum(child.weight for child in self._children) * self._num_queries / (self._fusion.rrf_k + 1))

    @property
    def row_space(self) -> RowSpace | None:
        """The rows that all retrievers search by position; None when one searches elsewhere, or texts decide what counts as one node."""
        if self._identity != "node_id" or not finds_like(type(self), HybridRetriever):
            return None
        return children_space(self._asked)

    @property
    def _asked(self) -> list[Child]:
        return [child for child in self._children if child.weight > 0]

    def _get_prompts(self) -> PromptDictType:
        return {MULTI_QUERY: self._query_gen_prompt}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._query_gen_prompt = prompts.get(MULTI_QUERY, self._query_gen_prompt)

    def _get_prompt_modules(self) -> PromptMixinType:
        return dict(self.retrievers)

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        space, errands = self._seen_space(), self._errands(query_bundle, self._others(query_bundle))
        if space is not None:
            return self._row_hits(self._rows(space).find(errands, space.nodes_at))
        return self._finish(errands, run_all([item.run for item in errands], timeouts_s=[item.child.timeout_s for item in errands]))

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        space, errands = self.row_space, self._errands(query_bundle, await self._aothers(query_bundle))
        if space is not None:
            return await self._rows(space).afind((id(self), "nodes"), errands, space.nodes_at, begin=self._seen_space, then=self._row_hits)
        return self._finish(errands, await arun_all([item.arun for item in errands], timeouts_s=[item.child.timeout_s for item in errands]))

    def _find_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        space = self._seen_space()
        if space is None or is_empty(query_bundle):
            return None if space is None else []
        return _row_ids(self._rows(space).find(self._errands(query_bundle, self._others(query_bundle)), read_ids))

    async def _afind_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        space = self.row_space
        if space is None or is_empty(query_bundle):
            return None if space is None else []
        errands = self._errands(query_bundle, await self._aothers(query_bundle))
        return await self._rows(space).afind((id(self), "ids"), errands, read_ids, begin=self._seen_space, then=_row_ids)

    def _find_batch(self, query_bundles: Sequence[QueryBundle]) -> list[list[NodeWithScore]] | None:
        space = self._seen_space()
        if space is None or self._num_queries > 1 or any(child.timeout_s is not None for child in self._asked):
            return None
        asked = {place: self._errands(bundle, ()) for place, bundle in enumerate(query_bundles) if not is_empty(bundle)}
        seen = self._rows(space).find_batch(list(asked.values()), space.nodes_at)
        found = {place: scored_nodes(one.result.fused, one.at) for place, one in zip(asked, seen, strict=True)}
        return [found.get(place, []) for place in range(len(query_bundles))]

    def _seen_space(self) -> RowSpace | None:
        """The space to search, after a look for what others have written if this retriever or one of its parts is to."""
        space = self.row_space
        if space is not None:
            self._see_changes()
            for child in self._asked:
                cast("TracedRetriever", child.retriever)._see_changes()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return space

    def _others(self, query_bundle: QueryBundle) -> list[str]:
        return other_queries(self._llm, self._query_gen_prompt, query_bundle.query_str, self._num_queries - 1)

    async def _aothers(self, query_bundle: QueryBundle) -> list[str]:
        return await aother_queries(self._llm, self._query_gen_prompt, query_bundle.query_str, self._num_queries - 1)

    def _rows(self, space: RowSpace) -> RowHybrid:
        return RowHybrid(space, self._fusion, self._similarity_top_k)

    def _errands(self, query_bundle: QueryBundle, others: Sequence[str]) -> list[Errand]:
        return make_errands(self._asked, query_bundle, others, least_top_n=max(CHILD_TOP_N, self._similarity_top_k), filters=self._filters)

    def _finish(self, errands: Sequence[Errand], outcomes: Sequence[Outcome[list[NodeWithScore]]]) -> list[NodeWithScore]:
        kept = took_part(errands, outcomes)
        found = [(item.child, item.label, outcome.value or []) for item, outcome, keep in zip(errands, outcomes, kept, strict=True) if keep]
        hits, lists = fuse_hits(self._fusion, found, self._key, self._similarity_top_k)
        self._explain([(key, hit.score or 0.0) for key, hit in hits.items()], lists, lambda key: hits[key].node.node_id)
        return list(hits.values())

    def _row_hits(self, seen: Seen[RowFusion, BaseNode]) -> list[NodeWithScore]:
        fusion = seen.result
        for item, found in zip(fusion.errands, fusion.founds, strict=True):
            item.explain(seen.state, found, seen.at)
        fused = [(position, score) for position, score in fusion.fused if position in seen.at]
        labelled = [(item.errand.label, ranked) for item, ranked in zip(fusion.errands, fusion.lists, strict=True)] if current_trace() is not None else []
        self._explain(fused, labelled, lambda position: seen.at[position].node_id)
        return [NodeWithScore(node=seen.at[position], score=score) for position, score in fused]

    def _key(self, hit: NodeWithScore) -> str:
        text = hit.node.get_content(metadata_mode=MetadataMode.NONE).strip() if self._identity == "content" else ""
        return f"text {text}" if text else hit.node.node_id

    def _explain(self, results: Sequence[tuple[Id, float]], lists: Sequence[tuple[str, Ranked[Id]]], node_id: Callable[[Id], str]) -> None:
        trace = current_trace()
        if trace is not None:
            trace.evidence += fusion_evidence(self.stage, results, lists, node_id)

    def __repr__(self) -> str:
        parts = ", ".join(f"{child.name}={child.retriever!r}" for child in self._children)
        return f"HybridRetriever({parts}, fusion={self._fusion.mode.value!r}, similarity_top_k={self._similarity_top_k})"


def _row_ids(seen: Seen[RowFusion, str]) -> ScoredIds:
    return [(seen.at[position], score) for position, score in seen.result.fused if position in seen.at]
