"""Retrieval that knows where a passage stands: documents and sections choose, passages inside them answer."""

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.coarse_to_fine import MIN_DOCUMENTS, MIN_PASSAGES
from llama_index_advanced_rag.retrievers.base import ScoredIds, TracedRetriever
from llama_index_advanced_rag.retrievers.children import named
from llama_index_advanced_rag.retrievers.errands import is_empty
from llama_index_advanced_rag.retrievers.in_memory import search_nodes
from llama_index_advanced_rag.retrievers.merging import Nodes, ParentMerger, node_source_of
from llama_index_advanced_rag.retrievers.placing import Chosen, Placing
from llama_index_advanced_rag.retrievers.row_placing import RowPlacing
from llama_index_advanced_rag.retrievers.row_search import finds_like
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.retrievers.unit_summaries import UnitSummaries
from llama_index_advanced_rag.trace import current_trace

CANDIDATES = 200
MIN_SHARE = 0.5


class HierarchyStrategy(str, Enum):
    """How structure is used, see `HierarchicalRetriever`."""

    TOP_DOWN = "top_down"
    MERGE_UP = "merge_up"
    COLLAPSED = "collapsed"


class HierarchicalRetriever(TracedRetriever):
    """Uses that passages stand in sections, and sections in documents.

    - `top_down`, from coarse to fine: the question chooses documents (at least five, and as many as it takes to hold 200 passages; where fewer of several
      passages share a word with it, passages are sought everywhere); passages are
      sought in these, and the score of a passage is the weighted mean of its own (of the retriever), its document's and its best section's. A
      passage seldom says what it is about as well as its document does: whose accounts, of which quarter.
    - `merge_up`: passages are found as the retriever finds them; where enough parts of a section are among them the section takes their place.
    - `collapsed`: passages and summaries of documents and sections compete in one list; a summary is returned as a node with the id of what it sums
      up, so nothing is merged here.

    Documents and sections are scored by the words they hold and by their titles, from the postings of their passages. With `summaries`
    their summaries count as much, by words and meaning. No LLM call; with summaries that an LLM writes, theirs: at the first question one for
    each document and section (and cluster), after a change one for what is new.
    An empty query finds nothing.

    Over one `CorpusIndex` `top_down` puts rows in order, and builds nodes for the final list only; LlamaIndex's retrieval events are then its own, and
    the retriever sends none.

    Scores are 0 to 1 in `top_down` and `collapsed`, those of the retriever in `merge_up`; higher is better.

    Args:
        retriever: finds passages: any LlamaIndex retriever. One of ours is asked for `candidates` in the chosen documents; of another one what it
            finds is put in a new order.
        nodes: where sections are read: a docstore, an index, nodes of all levels, or a node source.
        units: scores documents and sections; None makes it from `nodes`, which then must be a list of nodes.
        strategy: "top_down", "merge_up" or "collapsed".
        similarity_top_k: most nodes returned; in `merge_up` most passages that are merged.
        filters: only passages whose metadata match; applied before the cut, to sections too.
        summaries: summaries of the units; needed for "collapsed".
        document_weight: how much the document counts beside the passage, which counts 1.
        section_weight: how much the section counts.
        min_documents: documents looked into, at least.
        min_passages: passages in them, at least.
        candidates: passages put in order.
        min_share: share of a section's parts that must be found for the section to take their place; None = 0.5 in `merge_up`, no merging in
            `top_down`. Not for `collapsed`.
        max_tokens: when merging, most tokens of all nodes returned, in LlamaIndex's tokenizer, one node at least; None = no limit.
        max_section_tokens: most tokens of a section that takes the place of its parts; None = `max_tokens`.

    Raises:
        ConfigurationError: an option cannot work, or not with this strategy.

    Example:
        >>> from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
        >>> def passage(node_id, text, document):
        ...     return TextNode(id_=node_id, text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)})
        >>> nodes = [passage("a1", "Sales rose.", "fox.txt"), passage("a2", "The fox company.", "fox.txt"), passage("b1", "Sales rose.", "hen.txt")]
        >>> [hit.node_id for hit in HierarchicalRetriever.from_nodes(nodes, similarity_top_k=3).retrieve("fox sales")]
        ['a2', 'a1', 'b1']

    Source: search over summaries of several levels as in RAPTOR (Sarthi et al. 2024, arXiv:2401.18059); evidence of the document beside that of the
    passage as in Callan 1994, "Passage-level evidence in document retrieval", here for ranking passages. Merging: LlamaIndex's AutoMergingRetriever, with
    a budget, several levels and the best child's score.
    """

    stage: ClassVar[str] = "hierarchical"

    def __init__(
        self,
        retriever: BaseRetriever,
        *,
        nodes: Nodes,
        units: UnitScorer | None = None,
        strategy: HierarchyStrategy | str = HierarchyStrategy.TOP_DOWN,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        summaries: UnitSummaries | None = None,
        document_weight: float = 0.5,
        section_weight: float = 0.5,
        min_documents: int = MIN_DOCUMENTS,
        min_passages: int = MIN_PASSAGES,
        candidates: int = CANDIDATES,
        min_share: float | None = None,
        max_tokens: int | None = None,
        max_section_tokens: int | None = None,
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
        self._strategy = parse_choice(HierarchyStrategy, strategy, argument="strategy")
        self._units = units or _units_of(nodes, self._strategy)
        self._summaries = summaries
        if self._strategy is HierarchyStrategy.COLLAPSED:
            _check_collapsed(summaries, min_share)
        self._placing = Placing.checked(document_weight=document_weight, section_weight=section_weight)
        self._min_documents = whole_number("min_documents", min_documents)
        self._min_passages = whole_number("min_passages", min_passages)
        self._candidates = whole_number("candidates", candidates)
        share = MIN_SHARE if min_share is None else min_share
        self._merges = min_share is not None or self._strategy is HierarchyStrategy.MERGE_UP
        self._merger = partial(ParentMerger, self._nodes, min_share=share, max_tokens=max_section_tokens or max_tokens, budget=max_tokens)
        self._merger()  # says now what cannot work

    @classmethod
    def from_nodes(cls, nodes: Sequence[BaseNode], *, embed_model: BaseEmbedding | None = None, language: str = "auto", **options: Any) -> Self:
        """Over nodes in memory, of all levels as `HierarchicalNodeParser` or LlamaIndex's own gives them, or flat ones.

        Passages are found by their words, with an `embed_model` by their meaning too (they are embedded now).

        Args:
            nodes: the nodes.
            embed_model: embeds passages and questions; None = words only.
            language: of the texts, see `TextAnalyzer`.
            options: further arguments of the constructor.
        """
        passages = search_nodes([node for node in nodes if not node.child_nodes], embed_model=embed_model, language=language)
        return cls(passages, nodes=list(nodes), units=UnitScorer.of_nodes(nodes, language=language), **options)

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        chosen = self._chosen_with_summaries(query_bundle)
        child, by_rows = self._asked(chosen)
        hits = None if by_rows is None else by_rows.hits(by_rows.retriever.retrieve_ids(query_bundle))
        return self._arranged(chosen, child.retrieve(query_bundle)) if hits is None else self._merged(hits)

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        chosen = await self._achosen_with_summaries(query_bundle)
        child, by_rows = await in_thread(self._asked, chosen)  # the documents are chosen here
        hits = None if by_rows is None else await in_thread(by_rows.hits, await by_rows.retriever.aretrieve_ids(query_bundle))
        return await in_thread(self._arranged, chosen, await child.aretrieve(query_bundle)) if hits is None else await in_thread(self._merged, hits)

    def _find_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        if is_empty(query_bundle) or self._merges or not self._may_place_rows:
            return None
        self._see_changes()
        by_rows = self._asked(self._chosen_with_summaries(query_bundle))[1]
        return None if by_rows is None else by_rows.ids(by_rows.retriever.retrieve_ids(query_bundle))

    async def _afind_ids(self, query_bundle: QueryBundle) -> ScoredIds | None:
        if is_empty(query_bundle) or self._merges or not self._may_place_rows:
            return None
        await in_thread(self._see_changes)
        by_rows = (await in_thread(self._asked, await self._achosen_with_summaries(query_bundle)))[1]
        return None if by_rows is None else await in_thread(by_rows.ids, await by_rows.retriever.aretrieve_ids(query_bundle))

    @property
    def _may_place_rows(self) -> bool:
        """Whether passages may be put in order before they are read; a trace tells of each that was found, so that they are read first."""
        row_space = self._retriever.row_space if isinstance(self._retriever, TracedRetriever) else None
        top_down = self._strategy is HierarchyStrategy.TOP_DOWN and finds_like(type(self), HierarchicalRetriever)
        return row_space is not None and top_down and current_trace() is None

    def _asked(self, chosen: Chosen) -> tuple[BaseRetriever, RowPlacing | None]:
        """The retriever, and what puts in order the rows that it finds, where that can be."""
        child = self._child(chosen)
        return child, RowPlacing.over(child, chosen, self._placing, self._similarity_top_k) if self._may_place_rows else None

    def _chosen_with_summaries(self, query_bundle: QueryBundle) -> Chosen:
        chosen = self._chosen(query_bundle.query_str)
        return chosen if self._summaries is None else chosen.with_summaries(self._summaries.scores(query_bundle))

    async def _achosen_with_summaries(self, query_bundle: QueryBundle) -> Chosen:
        chosen = await in_thread(self._chosen, query_bundle.query_str)
        return chosen if self._summaries is None else chosen.with_summaries(await self._summaries.ascores(query_bundle))

    def _chosen(self, query: str) -> Chosen:
        """The documents worth looking into; all of them where passages are found first."""
        if self._units is None:
            return Chosen()
        return Chosen(self._units.scores(query, filters=self._filters), min_documents=self._min_documents, min_passages=self._min_passages)

    def _child(self, chosen: Chosen) -> BaseRetriever:
        """The retriever, asked for what this question needs."""
        if not isinstance(self._retriever, TracedRetriever):
            return self._retriever
        if self._strategy is HierarchyStrategy.TOP_DOWN:
            wanted = max(self._candidates, self._similarity_top_k)
            return self._retriever.with_top_k(wanted).with_filters(chosen.within(self._filters))
        return self._retriever.with_top_k(self._similarity_top_k).with_filters(self._filters)

    def _arranged(self, chosen: Chosen, hits: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """The final list: in order, with sections in place of their parts, within the budget."""
        trace = current_trace()
        if self._strategy is HierarchyStrategy.MERGE_UP:
            placed = self._placing.as_found(hits, self._filters)
        elif self._strategy is HierarchyStrategy.TOP_DOWN:
            placed = self._placing.in_place(chosen, hits, self._filters, self._retriever)
        else:
            summaries = [] if self._summaries is None else self._summaries.nodes(chosen.summaries)
            placed = self._placing.beside(chosen, hits, summaries, self._filters, self._retriever)
        kept = placed[: self._similarity_top_k]
        if trace is not None:
            trace.evidence += self._placing.evidence(self.stage, chosen, kept)
        return self._merged(kept)

    def _merged(self, kept: list[NodeWithScore]) -> list[NodeWithScore]:
        return self._merger(filters=self._filters).merge(kept) if self._merges else kept

    def __repr__(self) -> str:
        return f"HierarchicalRetriever({self._strategy.value}, {self._retriever!r}, similarity_top_k={self._similarity_top_k})"


def _check_collapsed(summaries: UnitSummaries | None, min_share: float | None) -> None:
    if summaries is None:
        raise ConfigurationError("strategy is 'collapsed' and there are no summaries. Pass summaries=UnitSummaries(...), or summaries=True to as_retriever.")
    if min_share is not None:
        raise ConfigurationError(
            f"min_share is {min_share!r} and strategy is 'collapsed', where the summary of a section stands in its place and nothing is merged. "
            "Leave min_share out, or pass strategy='top_down' or 'merge_up'."
        )


def _units_of(nodes: Nodes, strategy: HierarchyStrategy) -> UnitScorer | None:
    if isinstance(nodes, Sequence):
        return UnitScorer.of_nodes(nodes)
    if strategy is HierarchyStrategy.TOP_DOWN:
        raise ConfigurationError(
            f"nodes is a {type(nodes).__name__}, from which documents and sections cannot be listed. "
            "Pass units=UnitScorer.of_nodes(nodes_of_all_levels), or strategy='merge_up', which needs none."
        )
    return None
