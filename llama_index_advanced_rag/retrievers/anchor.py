"""Search as a reader does: keywords first, then the table of contents, then embeddings, and one look over all of it at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import Outcome, in_thread
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.prompts import ANCHOR_ARBITER, ANCHOR_ARBITER_PROMPT
from llama_index_advanced_rag.ranking.anchors import apply_verdict, spread_scores
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.anchors.arbiter import Arbiter, Chosen
from llama_index_advanced_rag.retrievers.anchors.candidates import Candidate, Passage, gather_candidates, read_passages
from llama_index_advanced_rag.retrievers.anchors.detecting import arun_detectors, run_detectors
from llama_index_advanced_rag.retrievers.anchors.lines import Keywords
from llama_index_advanced_rag.retrievers.anchors.outline import NumberedOutline, number_outline, read_outline
from llama_index_advanced_rag.retrievers.anchors.read_nodes import ReadHit
from llama_index_advanced_rag.retrievers.anchors.reading import Reading, RegionReader
from llama_index_advanced_rag.retrievers.anchors.scope import Scope, open_scope
from llama_index_advanced_rag.retrievers.anchors.sources import dense_over_index, index_nodes
from llama_index_advanced_rag.retrievers.anchors.token_counts import count_tokens
from llama_index_advanced_rag.retrievers.base import TracedRetriever, own_bundle
from llama_index_advanced_rag.retrievers.children import Child
from llama_index_advanced_rag.retrievers.errands import Errand, both, errand, is_empty, took_part
from llama_index_advanced_rag.retrievers.in_memory import dense_over
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.stores.node_source import DictNodeSource, NodeSource
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.trace import Evidence, NodeLabel, current_trace

CHILD_TOP_N = 100


@dataclass(frozen=True)
class _Case:
    """What was found for one question, before and for the arbiter."""

    scope: Scope
    keywords: Keywords
    passages: list[Passage]
    ranked: list[Candidate]
    outline: NumberedOutline | None


class AnchorRetriever(TracedRetriever):
    r"""Finds the lines and headings that hold the question's words, gathers them by section, and gives the sections.

    1. The documents that the question is about are chosen by their words and titles; their scores count further on.
    2. Detectors, side by side: keywords on lines (of the best passages by words), keywords in headings, and embeddings (optional;
       the embedded text of a passage begins with its heading, which so is searched with it).
    3. Hits are gathered by section, where there is none by page, else by passage, and scored (`ranking.anchors.score_region`).
    4. With an LLM: one call sees the outline of these documents and the candidates with their hits and names the parts that
       answer, with reasons. It finds "Termination" for "What happens if we leave early?", also where no word is shared. One more
       call when its answer cannot be read; if that fails too, or the LLM does, the scores rank and the trace says so.
    5. The hit says where, the section is what is read: a section of at most `max_unit_tokens` tokens is given whole, of a longer
       one the passages with the best hits, as many tokens together.

    Without an LLM 0 calls, with one 1 or 2 a query. An empty query finds nothing. A detector that fails is left out and
    reported; when all fail, the first error is raised. Passages of a `CorpusIndex` that were read lately (4,096 at most) are kept for the
    next questions, as long as they are what is stored; the retrievers then send no retrieval events.

    Scores are above 0 and at most 1, higher is better: those of the region for its first node, less for further ones; of parts that the
    arbiter named from 1 down to above 0.5, of others at most 0.5.

    Args:
        lexical: finds passages by words; any retriever, best a `LexicalRetriever`.
        units: scores documents and sections.
        nodes: where sections and passages are read from.
        dense: finds passages by embedding; None = embeddings are not asked.
        llm: the arbiter; never taken from `Settings`.
        similarity_top_k: most nodes returned.
        filters: metadata filters: every node given matches, and nothing else is shown to the LLM.
        max_unit_tokens: most tokens of one section given, in LlamaIndex's global tokenizer.
        candidates: most candidates the arbiter sees, and most parts it may name.
        arbiter_prompt: replaces the prompt `anchor_arbiter`, see `prompts`.

    Raises:
        ConfigurationError: an option cannot work.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> nodes = [
        ...     TextNode(id_="t", text="Termination\nNotice is three months.", metadata={"section_path": "Termination"}),
        ...     TextNode(id_="p", text="Payment\nInvoices are due in 30 days.", metadata={"section_path": "Payment"}),
        ... ]
        >>> retriever = AnchorRetriever.from_defaults(nodes=nodes, language="en")
        >>> [(hit.node_id, hit.score > 0.5) for hit in retriever.retrieve("When are invoices due?")]
        [('p', True)]
    """

    stage: ClassVar[str] = "anchor"

    def __init__(
        self,
        lexical: BaseRetriever,
        *,
        units: UnitScorer,
        nodes: NodeSource,
        dense: BaseRetriever | None = None,
        llm: LLM | None = None,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        max_unit_tokens: int = 512,
        candidates: int = 12,
        arbiter_prompt: BasePromptTemplate | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity_top_k=similarity_top_k, filters=filters, callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose
        )
        self._children = {name: Child(name, part, 1.0, None, None) for name, part in (("lexical", lexical), ("dense", dense)) if part is not None}
        self._units = units
        self._nodes = nodes
        self._llm = llm
        self._max_unit_tokens = whole_number("max_unit_tokens", max_unit_tokens)
        self._most_candidates = whole_number("candidates", candidates)
        self._arbiter_prompt = arbiter_prompt or ANCHOR_ARBITER_PROMPT

    @classmethod
    def from_defaults(
        cls,
        *,
        nodes: Sequence[BaseNode] | None = None,
        index: BaseIndex[Any] | None = None,
        embed_model: BaseEmbedding | None = None,
        llm: LLM | None = None,
        language: str = "auto",
        **options: Any,
    ) -> Self:
        """Over somebody's own nodes, in memory.

        Args:
            nodes: nodes of all levels (documents, sections, passages), as `HierarchicalNodeParser` gives them, or flat ones.
            index: an existing index in place of `nodes`; sections are taken from its docstore.
            embed_model: searches passages by embedding too: those in the vector store of `index`, which must be of this model;
                `nodes` are embedded now. None = embeddings are not asked.
            llm: the arbiter.
            language: of the texts and the questions, see `TextAnalyzer`.
            options: further arguments of the constructor.

        Raises:
            ConfigurationError: not exactly one of `nodes` and `index`.
            NodeSourceError: the index cannot give its nodes.
        """
        if (nodes is None) == (index is None):
            raise ConfigurationError("AnchorRetriever.from_defaults() needs the nodes once. Pass exactly one of nodes= and index=.")
        held = list(nodes or []) if index is None else index_nodes(index)
        leaves = [node for node in held if not node.child_nodes]
        dense = None
        if embed_model is not None:
            dense = dense_over(leaves, embed_model) if index is None else dense_over_index(index, held, embed_model)
        lexical = LexicalRetriever.from_defaults(nodes=leaves, language=language)
        return cls(lexical, units=UnitScorer.of_nodes(held, language=language), nodes=DictNodeSource(held), dense=dense, llm=llm, **options)

    @property
    def retrievers(self) -> dict[str, BaseRetriever]:
        """The retrievers that find passages: "lexical" and, where embeddings are asked, "dense"."""
        return {name: child.retriever for name, child in self._children.items()}

    @property
    def score_range(self) -> ScoreRange:
        """The least and the most a score can be."""
        return ScoreRange(0.0, 1.0)

    def _get_prompts(self) -> PromptDictType:
        return {ANCHOR_ARBITER: self._arbiter_prompt}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._arbiter_prompt = prompts.get(ANCHOR_ARBITER, self._arbiter_prompt)

    def _get_prompt_modules(self) -> PromptMixinType:
        return dict(self.retrievers)

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        scope, keywords, errands = self._begin(query_bundle)
        case = self._gather(scope, keywords, errands, run_detectors(errands))
        arbiter = self._arbiter
        chosen = arbiter.choose(query_bundle.query_str, case.outline) if arbiter is not None and case.outline is not None else []
        return self._finish(case, chosen)

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if is_empty(query_bundle):
            return []
        scope, keywords, errands = await in_thread(self._begin, query_bundle)
        outcomes = await arun_detectors(errands)
        case = await in_thread(self._gather, scope, keywords, errands, outcomes)
        arbiter = self._arbiter
        chosen = await arbiter.achoose(query_bundle.query_str, case.outline) if arbiter is not None and case.outline is not None else []
        return await in_thread(self._finish, case, chosen)

    @property
    def _arbiter(self) -> Arbiter | None:
        return None if self._llm is None else Arbiter(self._llm, self._arbiter_prompt, self._most_candidates)

    def _begin(self, query_bundle: QueryBundle) -> tuple[Scope, Keywords, list[Errand]]:
        """The documents, the keywords, and what the retrievers are asked."""
        scope = open_scope(self._units.scores(query_bundle.query_str, filters=self._filters))
        lexical = self._children["lexical"].retriever
        keywords = Keywords.of(query_bundle.query_str, lexical, TextAnalyzer())
        inside = scope.document_filters if isinstance(lexical, TracedRetriever) else None
        traced, top_n = current_trace() is not None, max(CHILD_TOP_N, self._similarity_top_k)
        asked = {"lexical": both(self._filters, inside), "dense": self._filters}
        return (
            scope,
            keywords,
            [errand(child, own_bundle(query_bundle), label=name, top_n=top_n, filters=asked[name], traced=traced) for name, child in self._children.items()],
        )

    def _gather(self, scope: Scope, keywords: Keywords, errands: Sequence[Errand], outcomes: Sequence[Outcome[list[ReadHit]]]) -> _Case:
        """The candidates, and the outline when there is an arbiter."""
        kept = took_part(errands, outcomes)
        hits = {item.label: outcome.value or [] for item, outcome, keep in zip(errands, outcomes, kept, strict=True) if keep}
        passages = read_passages(keywords, hits.get("lexical", []), hits.get("dense"))
        ranked = gather_candidates(passages, scope.titles, scope.table, keywords, documents=scope.documents, embedded="dense" in hits)
        return _Case(scope, keywords, passages, ranked, self._outline(scope, ranked[: self._most_candidates]))

    def _outline(self, scope: Scope, candidates: Sequence[Candidate]) -> NumberedOutline | None:
        arbiter = self._arbiter
        if arbiter is None:
            return None
        documents = list(dict.fromkeys([*(one.region.ref_doc_id for one in candidates), *scope.outline_documents]))
        entries = read_outline(scope.table, documents, self._nodes, self._filters)
        return number_outline(entries, candidates, documents, limit=arbiter.most_entries) if entries or candidates else None

    def _finish(self, case: _Case, chosen: Chosen) -> list[NodeWithScore]:
        ranked = _ruled(case.ranked, chosen)
        reader = RegionReader(
            self._nodes,
            case.scope.table,
            case.passages,
            filters=self._filters,
            max_tokens=self._max_unit_tokens,
            count_tokens=count_tokens,
        )
        readings = reader.read(ranked, self._similarity_top_k)
        last = next((place for place, one in enumerate(ranked) if readings and one is readings[-1].candidate), len(ranked))
        floor = ranked[last + 1].score if last + 1 < len(ranked) else 0.0
        scores = spread_scores([one.candidate.score for one in readings], [len(one.nodes) for one in readings], floor=floor)
        self._explain(case, ranked, readings, scores)
        return [NodeWithScore(node=node, score=score) for one, own in zip(readings, scores, strict=True) for node, score in zip(one.nodes, own, strict=True)]

    def _explain(self, case: _Case, ranked: Sequence[Candidate], readings: Sequence[Reading], scores: Sequence[Sequence[float]]) -> None:
        trace = current_trace()
        if trace is None:
            return
        weighed = trace.child("candidates")
        for rank, one in enumerate(ranked[: max(self._most_candidates, len(readings))], start=1):
            weighed.labels[one.known_by] = NodeLabel(one.region.name)
            weighed.add(Evidence(one.known_by, "candidates", rank, one.score, one.why(), one.details(case.keywords)))
        rank = 0
        for reading, own in zip(readings, scores, strict=True):
            details: Mapping[str, Any] = {**reading.candidate.details(case.keywords), "whole": reading.whole}
            for node, score in zip(reading.nodes, own, strict=True):
                rank += 1
                trace.add(Evidence(node.node_id, self.stage, rank, score, reading.candidate.why(), details))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={part!r}" for name, part in self.retrievers.items())
        return f"AnchorRetriever({parts}, llm={self._llm is not None}, similarity_top_k={self._similarity_top_k})"


def _ruled(ranked: Sequence[Candidate], chosen: Chosen) -> list[Candidate]:
    """The candidates in the order of the arbiter, with what it named beside them."""
    if not chosen:
        return list(ranked)
    known = {one.region.key: one for one in [*(entry for entry, _ in chosen), *ranked]}
    reasons = {entry.region.key: reason for entry, reason in chosen}
    ruled = apply_verdict([(one.region.key, one.score) for one in ranked], list(reasons))
    return [replace(known[key], score=score, reason=reasons.get(key)) for key, score in ruled]
