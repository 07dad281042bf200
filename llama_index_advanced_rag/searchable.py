"""Asking an index: its retrievers, query engines and chat engines."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType, resolve_llm
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._choices import parse_choice
from llama_index_advanced_rag.call_arguments import accepted_names, refuse_unknown, share_out
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.maintained import MaintainedIndex
from llama_index_advanced_rag.modes import RetrievalMode, SearchedIndex, build_retriever, checked_mode, index_router, index_targets, mode_options, takes_llm
from llama_index_advanced_rag.postprocessors.cut_blocks import CutBlockCompletion
from llama_index_advanced_rag.postprocessors.subgraph_context import SubgraphContext
from llama_index_advanced_rag.query_engines.adaptive import AdaptiveQueryEngine
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine, report_unused_llm
from llama_index_advanced_rag.query_engines.grounded_chat import GroundedChatEngine
from llama_index_advanced_rag.query_engines.route_targets import Target
from llama_index_advanced_rag.query_engines.stock_chat import stock_chat_class, stock_chat_engine
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.retrievers.unit_summaries import SharedSummaries
from llama_index_advanced_rag.routing.route import COMPLEX
from llama_index_advanced_rag.storage_view import SUMMARY_FILE, open_summaries
from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore

ENGINE_TOP_K = 20
_ENGINE_OPTIONS = accepted_names(GroundedQueryEngine, without=("retriever", "llm"))
_ADAPTIVE_OPTIONS = accepted_names(AdaptiveQueryEngine, without=("llm",))
_CHAT_OPTIONS = accepted_names(GroundedChatEngine, without=("query_engine", "llm"))


class SearchableIndex(MaintainedIndex):
    """An index that can be asked: for nodes, for an answer, or in a conversation.

    What it returns is light and follows the index: make it once, ask it often, and each question sees what was committed
    before it, by this process or another one.
    """

    _llm: LLM | None
    _units: UnitScorer | None = None
    _summaries: SharedSummaries | None = None
    _summary_store: SQLiteKVStore | None = None
    _vectors: TextVectors | None = None

    def as_retriever(  # type: ignore[override]
        self, mode: RetrievalMode | str = RetrievalMode.HYBRID, *, similarity_top_k: int = 10, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> TracedRetriever:
        """A retriever over this index.

        Args:
            mode: how to search: "lexical" (BM25), "dense", "hybrid" (the scores of both, fused), "hierarchical" (documents and sections choose, see
                `HierarchicalRetriever`), "anchor" (lines and headings, see `AnchorRetriever`), "graph" (what the names of the question lead to, see
                `EntityGraphRetriever`), "vote" (entities vote for passages, see `EntityVoteRetriever`) or "auto" (each question by the way
                that suits it, see `AdaptiveRetriever`; `router` also by its name: "rules", "embedding" or "llm").
            similarity_top_k: most nodes returned.
            filters: only nodes whose metadata match; applied before the cut.
            **kwargs: further arguments of the retriever of that mode (`fusion`, `weights`, ... for hybrid); for "hierarchical" also
                `summaries=True` (score documents and sections by summaries too; without it there are some where `tree=True` or `llm=` is given,
                with `summaries=False` none) and `tree=True`, for "anchor" `embeddings=False`, for "graph" `embeddings=True` (facts are compared by
                meaning too) and `aliases=True` (names that may mean the same are joined), for which facts or names are embedded. What asks an
                LLM (the queries of `num_queries`, summaries, the arbiter of "anchor") asks the index's own, which is None unless one was
                given; `llm=` gives another one, or None.
                Summaries are made at the first question and shared by all retrievers of the index with the same LLM and `tree`.

        Raises:
            ModeNotAvailableError: this version cannot run the mode.
            ConfigurationError: an argument cannot work.
            UnknownArgumentError: an argument that the retriever does not take.
        """
        if takes_llm(mode, kwargs):
            kwargs.setdefault("llm", self._llm)
        if self._object_map:
            kwargs.setdefault("object_map", self._object_map)
        return build_retriever(self._searched, mode, similarity_top_k=similarity_top_k, filters=filters, options=kwargs)

    @property
    def _searched(self) -> SearchedIndex:
        return SearchedIndex(self._corpus, lambda: self.embed_model, self._scorer_of_units, self._shared_summaries, self._text_vectors)

    def _scorer_of_units(self) -> UnitScorer:
        """One for all retrievers, so that what stands in what is read once."""
        if self._units is None:
            self._units = UnitScorer.of_corpus(self._corpus)
        return self._units

    def _shared_summaries(self) -> SharedSummaries:
        """For all retrievers, so that a summary is made, and paid for, once."""
        with self._resolving:
            if self._summaries is None:
                store, language = self._store_of_summaries(), self._corpus.analyzer.language
                self._summaries = SharedSummaries(self._scorer_of_units(), self._corpus, embed_model=self.embed_model, language=language, store=store)
            return self._summaries

    def _text_vectors(self) -> TextVectors:
        """For all retrievers, so that a name is embedded once; kept in the file of the summaries, as all in it can be made again."""
        with self._resolving:
            if self._vectors is None:
                self._vectors = TextVectors(self.embed_model, self._store_of_summaries(), show_progress=self._show_progress)
            return self._vectors

    def _store_of_summaries(self) -> SQLiteKVStore | None:
        """The file beside the index in which summaries are kept; None in memory, and where there is none yet and none may be made."""
        if self._summary_store is None and self._folder is not None and (not self._read_only or (self._folder / SUMMARY_FILE).exists()):
            self._summary_store = open_summaries(self._folder, read_only=self._read_only)
        return self._summary_store

    def close(self) -> None:
        """Close the files; closing twice is fine, using the index afterwards is an error."""
        if self._summary_store is not None:
            self._summary_store.close()
        self._corpus.close()

    def as_query_engine(  # type: ignore[override]
        self, llm: LLMType | None = None, *, retriever_mode: RetrievalMode | str = RetrievalMode.HYBRID, complete_blocks: bool = True, **kwargs: Any
    ) -> GroundedQueryEngine | AdaptiveQueryEngine:
        """An engine that answers with citations: from an LLM if one is given here or to the index, else the best sentences.

        Args:
            llm: the LLM; None is the index's own, which is None unless one was given. `Settings.llm` is never used.
            retriever_mode: how to search; "auto" gives an `AdaptiveQueryEngine` over the five routes of this index, which chooses for each question.
            complete_blocks: a retrieved node that a table or list runs out of or into gets that neighbour (`CutBlockCompletion`),
                before the node postprocessors.
            **kwargs: arguments of `as_retriever` and of `GroundedQueryEngine`, for "auto" those of `AdaptiveQueryEngine`, `filters`, and `router` also
                by its name ("rules", "embedding", "llm"), `routes` added to the five or in their place; each goes where it is accepted. An engine reads
                20 nodes unless `similarity_top_k` says otherwise: what does not fit the context of an LLM is left out there.

        Raises:
            UnknownArgumentError: an argument that nothing accepts.
        """
        if checked_mode(retriever_mode) is RetrievalMode.AUTO:
            refuse_unknown(kwargs, {"the query engine": _ADAPTIVE_OPTIONS})
            return self._adaptive_engine(self._chosen_llm(llm), kwargs, complete_blocks=complete_blocks)
        engine, retriever = share_out(kwargs, {"the query engine": _ENGINE_OPTIONS, "the retriever": mode_options(retriever_mode)})
        chosen = self._chosen_llm(llm)
        if takes_llm(retriever_mode, retriever):
            retriever.setdefault("llm", chosen)
        retriever.setdefault("similarity_top_k", ENGINE_TOP_K)
        if complete_blocks:
            completion = CutBlockCompletion(self._corpus, filters=retriever.get("filters"))
            engine["node_postprocessors"] = [completion, *(engine.get("node_postprocessors") or ())]
        options: dict[str, Any] = {"language": self._corpus.analyzer.language, **engine}
        return GroundedQueryEngine(self.as_retriever(retriever_mode, **retriever), llm=chosen, **options)

    def _adaptive_engine(self, llm: LLM | None, given: Mapping[str, Any], *, complete_blocks: bool) -> AdaptiveQueryEngine:
        """With an LLM the route "complex" tells it how the names of the question are connected, beside the passages."""
        options: dict[str, Any] = {"language": self._corpus.analyzer.language, "similarity_top_k": ENGINE_TOP_K, **given}
        router, routes, filters = options.pop("router", None), options.pop("routes", None) or {}, options.get("filters")
        if self._object_map:
            options.setdefault("object_map", self._object_map)
        if complete_blocks:
            options["node_postprocessors"] = [CutBlockCompletion(self._corpus, filters=filters), *(options.get("node_postprocessors") or ())]
        if llm is not None and COMPLEX not in routes:
            told = {COMPLEX: [SubgraphContext(self._corpus, filters=filters)]}
            options["route_postprocessors"] = {**told, **(options.get("route_postprocessors") or {})}
        common = {name: options[name] for name in ("callback_manager", "object_map") if name in options}
        targets: dict[str, Target] = {**index_targets(self._searched, **common), **routes}
        chosen = index_router(self._searched, router, llm, max_routes=options.get("max_routes", 1))
        return AdaptiveQueryEngine(targets, router=chosen, llm=llm, **options)

    def as_chat_engine(  # type: ignore[override]
        self,
        chat_mode: ChatMode | str = ChatMode.BEST,
        llm: LLMType | None = None,
        *,
        retriever_mode: RetrievalMode | str = RetrievalMode.HYBRID,
        **kwargs: Any,
    ) -> BaseChatEngine:
        """A chat engine over this index; without an LLM it answers with cited sentences, using terms of the history.

        Args:
            chat_mode: BEST and CONDENSE_QUESTION are our cited chat; CONTEXT, CONDENSE_PLUS_CONTEXT and SIMPLE are LlamaIndex's and need an LLM.
            llm: the LLM; None is the index's own.
            retriever_mode: how to search.
            **kwargs: arguments of the chat engine (`memory`, `chat_history`, ...), of `as_query_engine` in our chat, and of `as_retriever`;
                each goes where it is accepted.

        Raises:
            ConfigurationError: the mode needs an LLM and none was given.
            UnknownArgumentError: an argument that nothing accepts.
        """
        wanted, chosen = parse_choice(ChatMode, chat_mode, argument="chat_mode"), self._chosen_llm(llm)
        if wanted is ChatMode.BEST or (wanted is ChatMode.CONDENSE_QUESTION and chosen is not None):
            return self._grounded_chat(chosen, retriever_mode, kwargs)
        if chosen is None:
            raise ConfigurationError(
                f"The chat mode {wanted.value!r} needs an LLM. Pass llm=..., or use ChatMode.BEST, which answers with cited sentences without one."
            )
        return self._stock_chat(wanted, chosen, retriever_mode, kwargs)

    def _grounded_chat(self, llm: LLM | None, mode: RetrievalMode | str, options: dict[str, Any]) -> GroundedChatEngine:
        own = _ADAPTIVE_OPTIONS if checked_mode(mode) is RetrievalMode.AUTO else _ENGINE_OPTIONS
        takers = {"the chat engine": _CHAT_OPTIONS, "the query engine": own | {"complete_blocks"}, "the retriever": mode_options(mode)}
        chat, engine, retriever = share_out(options, takers)
        return GroundedChatEngine(self.as_query_engine(llm, retriever_mode=mode, **{**engine, **retriever}), llm=llm, **chat)

    def _stock_chat(self, chat_mode: ChatMode, llm: LLM, mode: RetrievalMode | str, options: dict[str, Any]) -> BaseChatEngine:
        names = accepted_names(stock_chat_class(chat_mode).from_defaults, without=("retriever", "llm"))
        retriever_names = mode_options(mode) if chat_mode is not ChatMode.SIMPLE else set[str]()
        chat, retriever = share_out(options, {f"LlamaIndex's chat mode {chat_mode.value!r}": names, "the retriever": retriever_names})
        if retriever_names and takes_llm(mode, retriever):
            retriever.setdefault("llm", llm)
        return stock_chat_engine(chat_mode, llm, lambda: self.as_retriever(mode, **retriever), chat)

    def _chosen_llm(self, llm: LLMType | None) -> LLM | None:
        chosen = resolve_llm(llm) if llm is not None else self._llm
        if chosen is None:
            report_unused_llm()
        return chosen
