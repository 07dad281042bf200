"""Retrieval over the entity graph: a walk from what a question names, and from what other retrievers find, to what both lead to."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.ranking.fusion import concatenate_guarded
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights
from llama_index_advanced_rag.retrievers.base import ScoredIds, TracedRetriever
from llama_index_advanced_rag.retrievers.children import named
from llama_index_advanced_rag.retrievers.errands import is_empty
from llama_index_advanced_rag.retrievers.graph_search import GraphSearch, Walked
from llama_index_advanced_rag.retrievers.graph_source import GraphWalks, graph_source_of
from llama_index_advanced_rag.retrievers.in_memory import search_nodes
from llama_index_advanced_rag.retrievers.merging import Nodes, node_source_of
from llama_index_advanced_rag.retrievers.walk_options import WalkOptions
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.trace import Evidence, current_trace


class EntityGraphRetriever(TracedRetriever):
    """Walks from what a question names to what that leads to, and so finds passages that share no word with the question.

    The walk (personalised PageRank) starts at the entities that the question names, each weighted by 1 / number of passages that name it,
    at the ends of the facts that fit it best where the graph has facts, and with the share `prior_share` at what `retriever` finds. Passages are
    ranked by how much of the walk's time is spent at them; the first `guard` of `retriever` stay in front, and what the walk does not reach follows.
    A question that names nothing known is answered by `retriever` alone, in its order. No LLM call. An empty query finds nothing.

    Scores are 1 / position; the walk's shares are in the trace, with the path by which each passage was reached.

    Args:
        retriever: finds passages: any LlamaIndex retriever, a hybrid one as a rule. One of ours is asked for `prior_top_n`, under the same filters.
        graph: an `EntityGraph`, a `PropertyGraphStore` (read once, now), a corpus or another graph source.
        nodes: where passages are read: a docstore, an index, nodes, or a node source.
        similarity_top_k: most nodes returned.
        filters: only passages whose metadata match are returned, walked through, or speak of names and facts.
        prior_share: share of the walk's starts at what `retriever` found.
        damping: share of the walk that goes on at each step.
        prior_top_n: how many passages of `retriever` count.
        guard: so many of `retriever` come first.
        top_facts: how many facts that fit the question start the walk at their ends.
        fact_weight: how much they start, beside the entities of the question, which start 1.
        second_hop: how much entities start that stand near the question's words in passages of its entities; 0 = not looked for. Costs the reading of
            at most 30 passages a question.
        edge_weights: how strongly the kinds of edges bind.
        vectors: compares facts with the question by meaning too; None = by words only.
        language: of questions, an ISO code or "auto".

    Raises:
        ConfigurationError: an option cannot work.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> texts = {"c1": "Anthropic makes Claude.", "c2": "Claude is built on the Transformer.", "c3": "Vaswani proposed the Transformer."}
        >>> retriever = EntityGraphRetriever.from_nodes([TextNode(id_=key, text=text) for key, text in texts.items()], language="en", similarity_top_k=3)
        >>> [hit.node_id for hit in retriever.retrieve("What is Anthropic's model based on?")]
        ['c1', 'c2', 'c3']

    Source: Gutierrez et al. 2025, "From RAG to Memory" (HippoRAG 2, arXiv:2502.14802), section 3: passages and phrases in one graph, seeds, personalised
    PageRank. Our deviations: no LLM anywhere (names from spans and a gazetteer of titles), entities that lead nowhere are left out, titles bind
    more, passages get a fixed share of the restarts by their rank, and a guard keeps the first hits of the retriever.
    """

    stage: ClassVar[str] = "graph"

    def __init__(
        self,
        retriever: BaseRetriever,
        graph: object,
        *,
        nodes: Nodes,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        prior_share: float = WalkOptions.prior_share,
        damping: float = WalkOptions.damping,
        prior_top_n: int = WalkOptions.prior_top_n,
        guard: int = WalkOptions.guard,
        top_facts: int = WalkOptions.top_facts,
        fact_weight: float = WalkOptions.fact_weight,
        second_hop: float = WalkOptions.second_hop,
        edge_weights: EdgeWeights | None = None,
        vectors: TextVectors | None = None,
        language: str = "auto",
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity_top_k=similarity_top_k, filters=filters, callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose
        )
        self._retriever = next(iter(named([retriever]).values()))
        self._nodes = node_source_of(nodes)
        self._options = WalkOptions(prior_share, damping, prior_top_n, guard, top_facts, fact_weight, second_hop)
        walks = GraphWalks(graph_source_of(graph, self._nodes), edge_weights or EdgeWeights())
        self._search = GraphSearch(walks, self._nodes, TextAnalyzer(language), vectors)

    @classmethod
    def from_nodes(cls, nodes: Sequence[BaseNode], *, embed_model: BaseEmbedding | None = None, language: str = "auto", **options: Any) -> Self:
        """Over nodes in memory: their names are read now, and they are searched by words, with an `embed_model` by meaning too.

        Args:
            nodes: the passages.
            embed_model: embeds passages and questions; None = words only.
            language: of the texts.
            options: further arguments of the constructor.
        """
        from llama_index_advanced_rag.retrievers.graph_of_nodes import graph_of_nodes

        passages = search_nodes(nodes, embed_model=embed_model, language=language)
        return cls(passages, graph_of_nodes(nodes, language=language), nodes=list(nodes), language=language, **options)

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers that can be tuned, see `evaluation.tuning.tune`."""
        return asdict(self._options)

    def with_parameters(self, **values: float) -> Self:
        """The same retriever with other numbers; state is shared, this object stays as it is.

        Raises:
            ConfigurationError: there is no such number, or it cannot work.
        """
        other = self.with_top_k(self.similarity_top_k)
        other._options = self._options.with_values(**values)  # noqa: SLF001 - of the same class
        return other

    def _child(self) -> BaseRetriever:
        if not isinstance(self._retriever, TracedRetriever):
            return self._retriever
        return self._retriever.with_top_k(max(self._options.prior_top_n, self.similarity_top_k)).with_filters(self.filters)

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        child = self._child()
        found = child.retrieve_ids(query_bundle) if isinstance(child, TracedRetriever) else _ids(child.retrieve(query_bundle))
        return self._walk_on(query_bundle, found)

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        child = self._child()
        found = await child.aretrieve_ids(query_bundle) if isinstance(child, TracedRetriever) else _ids(await child.aretrieve(query_bundle))
        return await in_thread(self._walk_on, query_bundle, found)

    def _walk_on(self, query_bundle: QueryBundle, found: ScoredIds) -> list[NodeWithScore]:
        """The final list, from what the retriever found."""
        given = [node_id for node_id, _ in found]
        walked = self._search.walk(query_bundle.query_str, given, self._options, self.filters)
        best = [] if walked is None else walked.best(self.similarity_top_k)
        order = concatenate_guarded(given, [node_id for node_id, _ in best], self._options.guard) if best else given
        nodes = self._nodes.get_nodes(order[: self.similarity_top_k])
        hits = [NodeWithScore(node=node, score=1.0 / rank) for rank, node in enumerate(nodes, start=1)]
        self._explain(walked, hits, given)
        return hits

    def _explain(self, walked: Walked | None, hits: Sequence[NodeWithScore], given: Sequence[str]) -> None:
        trace = current_trace()
        if trace is None:
            return
        ranks = {node_id: rank for rank, node_id in enumerate(given, start=1)}
        for rank, hit in enumerate(hits, start=1):
            why, details = ("", {}) if walked is None else walked.story(hit.node_id)
            at = f"{self._retriever_name} #{ranks[hit.node_id]}" if hit.node_id in ranks else ""
            trace.add(Evidence(hit.node_id, self.stage, rank, hit.score, "; ".join(part for part in (why, at) if part), details))

    @property
    def _retriever_name(self) -> str:
        return self._retriever.stage if isinstance(self._retriever, TracedRetriever) else type(self._retriever).__name__

    def __repr__(self) -> str:
        return f"EntityGraphRetriever({self._retriever!r}, similarity_top_k={self.similarity_top_k})"


def _ids(hits: Sequence[NodeWithScore]) -> ScoredIds:
    return [(hit.node.node_id, 0.0 if hit.score is None else hit.score) for hit in hits]
