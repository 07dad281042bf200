"""Retrieval over the entity graph: a walk from what a question names, and from what other retrievers find, to what both lead to."""

from collections.abc import Sequence
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode, IndexNode, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights
from llama_index_advanced_rag.retrievers.graph_search import GraphSearch, Walked
from llama_index_advanced_rag.retrievers.graph_source import graph_source_of
from llama_index_advanced_rag.retrievers.graph_views import views_of
from llama_index_advanced_rag.retrievers.guarded import GuardedRetriever
from llama_index_advanced_rag.retrievers.in_memory import search_nodes
from llama_index_advanced_rag.retrievers.merging import Nodes
from llama_index_advanced_rag.retrievers.walk_options import WalkOptions


class EntityGraphRetriever(GuardedRetriever[WalkOptions]):
    """Walks from what a question names to what that leads to, and so finds passages that share no word with the question.

    The walk (personalised PageRank) starts at the entities that the question names, each weighted by 1 / number of passages that name it,
    at the ends of the facts that fit it best where the graph has facts, and with the share `prior_share` at what `retriever` finds. Passages are
    ranked by how much of the walk's time is spent at them; the first `guard` of `retriever` stay in front, and what the walk does not reach follows.
    A question that names nothing known, or what passages all over the corpus name, is answered by `retriever`, in its order. No LLM call. An empty
    query finds nothing.

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
        specific_up_to: the walk counts in full where the question names what at most so many passages name; the more passages name all of it, the
            more the list of `retriever` counts instead. 0 = always in full.
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
        specific_up_to: int = WalkOptions.specific_up_to,
        edge_weights: EdgeWeights | None = None,
        vectors: TextVectors | None = None,
        language: str = "auto",
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            retriever,
            nodes=nodes,
            tunable=WalkOptions(
                prior_share=prior_share,
                damping=damping,
                prior_top_n=prior_top_n,
                guard=guard,
                top_facts=top_facts,
                fact_weight=fact_weight,
                second_hop=second_hop,
                specific_up_to=specific_up_to,
            ),
            similarity_top_k=similarity_top_k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        views = views_of(graph_source_of(graph, self._nodes))
        self._search = GraphSearch(views.walks(edge_weights or EdgeWeights()), views.facts(language, vectors), self._nodes)

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
    def _retriever_top_n(self) -> int:
        return self._options.prior_top_n

    def _own(self, query_bundle: QueryBundle, found: Sequence[str]) -> Walked | None:
        return self._search.walk(query_bundle.query_str, found, self._options, self.filters)
