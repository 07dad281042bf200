"""One engine that answers any question over a corpus, each the way that suits it."""

import copy
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import QueryEngineTool
from typing_extensions import Self

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import Outcome, arun_all, run_all
from llama_index_advanced_rag.answering.direct import DirectWriter
from llama_index_advanced_rag.answering.turn import Turn, open_turn
from llama_index_advanced_rag.prompts import DIRECT_ANSWER, DIRECT_ANSWER_PROMPT, GROUNDED_ANSWER
from llama_index_advanced_rag.query_engines.engine_answers import after_engine, failure, told_by_engine
from llama_index_advanced_rag.query_engines.engine_retriever import aquery
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.query_engines.query_event import query_event
from llama_index_advanced_rag.query_engines.responding import arespond, respond
from llama_index_advanced_rag.query_engines.route_targets import RouteTargets, Target, targets_of_tools
from llama_index_advanced_rag.ranking.fusion import GUARD, FusionMode
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.retrievers.routed import Routed
from llama_index_advanced_rag.routing.deciding import RouteDecision
from llama_index_advanced_rag.routing.router import RouteFunction, Router
from llama_index_advanced_rag.trace import report
from llama_index_advanced_rag.usage import UsageLedger, capture_usage

dispatcher = get_dispatcher(__name__)


class AdaptiveQueryEngine(BaseQueryEngine):
    """Asks a router which way a question goes, and answers it there.

    A route leads to a retriever, from whose nodes this engine answers with citations (as `GroundedQueryEngine` does); to a query engine, which answers
    itself; or to None, no documents: with an LLM it answers in one call, without one a sentence says that the question needs none. In doubt, and where
    the chosen routes fail, are late or find nothing, the default route is taken, and `metadata["route"]` and the trace say so. Where everything
    fails, the first real exception is raised. Several routes at once (`max_routes`) are searched side by side and their nodes merged to one list,
    from which one answer is written.

    LLM calls: those of the router (0 by rules or examples, 1 or 2 by an LLM), of the retrievers, and 0 or 1 for the answer; those of another engine
    are its own, are not counted and not limited.

    The response is that of `GroundedQueryEngine`, with `metadata["route"]`, JSON-serialisable: `routes` (decided), `router`, `reason`, `in_doubt`,
    `scores`, `taken` (in the end), `dropped` (and why), `elapsed_ms`, `others` (with `explain`). The answer of another engine keeps its metadata, and gets
    `route`, `usage` and `trace`.

    Args:
        routes: retrievers, query engines and None by name. A `GroundedQueryEngine` keeps its postprocessors and its way of answering.
        router: a `Router` or a function of the question; None = `RuleRouter`, which knows "none", "simple", "moderate", "complex", "structural".
        default: the route in doubt; None = "moderate" or "simple" if there, else the first that retrieves.
        descriptions: by name, what a route is for, in a sentence; read by routers that use an LLM or embeddings.
        examples: by name, questions for it; read by `EmbeddingRouter`.
        max_routes: most routes taken for one question, side by side.
        fusion: how their lists become one, as in `HybridRetriever`.
        guard: for "guarded": so many nodes of each list come before the lists after it.
        timeout_s: how long each route may take; None = no limit.
        max_seconds: how long the search may take, a second try on the default route included; writing the answer is not limited.
        max_llm_calls: most LLM calls of this package for a question; a call beyond is not made, and what does without it goes on.
        max_tokens: most LLM tokens, likewise.
        explain: ask the other routes too, and say what they would have found; costs their searches.
        similarity_top_k: most nodes taken from the routes.
        llm: writes the answer; None = quoted sentences, and `Settings.llm` is not touched.
        node_postprocessors: applied to the nodes of retriever routes, and to merged lists.
        embed_model: as in `GroundedQueryEngine`.
        language: as there.
        max_context_tokens: as there.
        max_sentences: as there.
        answer_prompt: as there.
        direct_prompt: template with `query_str` for questions without documents; None = `prompts.DIRECT_ANSWER_PROMPT`.
        streaming: return a stream, where this engine writes the answer.
        callback_manager: LlamaIndex's; None = `Settings.callback_manager`.

    Raises:
        ConfigurationError: an argument cannot work.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
        >>> foxes = LexicalRetriever.from_defaults(nodes=[TextNode(id_="n1", text="Foxes eat mice. Cats sleep all day.")], language="en")
        >>> engine = AdaptiveQueryEngine({"none": None, "simple": foxes}, language="en")
        >>> response = engine.query("What do foxes eat?")
        >>> str(response), response.metadata["route"]["taken"]
        ('Foxes eat mice. [1]', ['simple'])
        >>> engine.query("Good morning!").metadata["route"]["taken"]
        ['none']

    Source: Jeong et al. 2024, "Adaptive-RAG" (arXiv:2403.14403), section 3.2. Our deviations: see `AdaptiveRetriever`.
    """

    def __init__(
        self,
        routes: Mapping[str, Target],
        *,
        router: Router | RouteFunction | None = None,
        default: str | None = None,
        descriptions: Mapping[str, str] | None = None,
        examples: Mapping[str, Sequence[str]] | None = None,
        max_routes: int = 1,
        fusion: FusionMode | str = FusionMode.GUARDED,
        guard: int = GUARD,
        timeout_s: float | None = None,
        max_seconds: float | None = None,
        max_llm_calls: int | None = None,
        max_tokens: int | None = None,
        explain: bool = False,
        similarity_top_k: int = 20,
        llm: LLM | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        embed_model: BaseEmbedding | None = None,
        language: str = "auto",
        max_context_tokens: int = 3000,
        max_sentences: int = 3,
        answer_prompt: BasePromptTemplate | None = None,
        direct_prompt: BasePromptTemplate | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._targets = RouteTargets(routes)
        self._retriever = AdaptiveRetriever(
            self._targets.retrievers,
            router=router,
            default=default,
            descriptions=descriptions,
            examples=examples,
            max_routes=max_routes,
            fusion=fusion,
            guard=guard,
            timeout_s=timeout_s,
            max_seconds=max_seconds,
            explain=explain,
            similarity_top_k=similarity_top_k,
            callback_manager=callback_manager,
        )
        self._grounded = GroundedQueryEngine(
            self._retriever,
            llm=llm,
            node_postprocessors=node_postprocessors,
            embed_model=embed_model,
            language=language,
            max_context_tokens=max_context_tokens,
            max_sentences=max_sentences,
            answer_prompt=answer_prompt,
            streaming=streaming,
            callback_manager=callback_manager,
        )
        super().__init__(callback_manager=self._grounded.callback_manager)
        self._direct = DirectWriter(llm, None, direct_prompt or DIRECT_ANSWER_PROMPT, language=language)
        self._max_llm_calls = None if max_llm_calls is None else whole_number("max_llm_calls", max_llm_calls, least=0)
        self._max_tokens = None if max_tokens is None else whole_number("max_tokens", max_tokens)
        self._streaming = streaming

    @classmethod
    def from_tools(cls, query_engine_tools: Sequence[QueryEngineTool], **options: Any) -> Self:
        """An engine over the tools that LlamaIndex's `RouterQueryEngine` takes: their names are the routes, their descriptions are read by routers.

        Args:
            query_engine_tools: tools, each with a name of its own.
            options: further arguments of the constructor.

        Raises:
            ConfigurationError: there is no tool, or two have one name.
        """
        routes, descriptions = targets_of_tools(query_engine_tools)
        return cls(routes, descriptions={**descriptions, **options.pop("descriptions", {})}, **options)

    @property
    def retriever(self) -> AdaptiveRetriever:
        """What finds the nodes of all routes."""
        return self._retriever

    @property
    def language(self) -> str:
        """ISO code, "auto" or "none"."""
        return self._grounded.language

    def with_streaming(self, streaming: bool) -> Self:
        """The same engine with or without streaming; this object stays as it is."""
        other = copy.copy(self)
        other._streaming = streaming  # noqa: SLF001
        return other

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The nodes for a question, from the routes it takes, after the postprocessors."""
        return self._grounded.retrieve(query_bundle)

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The async twin of `retrieve`."""
        return await self._grounded.aretrieve(query_bundle)

    def synthesize(
        self, query_bundle: QueryBundle, nodes: Sequence[NodeWithScore], additional_source_nodes: Sequence[NodeWithScore] | None = None
    ) -> RESPONSE_TYPE:
        """Answer from given nodes, best first; no route is taken."""
        return self._grounded.with_streaming(self._streaming).synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self, query_bundle: QueryBundle, nodes: Sequence[NodeWithScore], additional_source_nodes: Sequence[NodeWithScore] | None = None
    ) -> RESPONSE_TYPE:
        """The async twin of `synthesize`."""
        return await self._grounded.with_streaming(self._streaming).asynthesize(query_bundle, nodes, additional_source_nodes)

    @dispatcher.span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._turn(query_bundle) as (turn, outcome):
            outcome.append(self._answer(turn))
        return outcome[0]

    @dispatcher.span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._turn(query_bundle) as (turn, outcome):
            outcome.append(await self._aanswer(turn))
        return outcome[0]

    def _answer(self, turn: Turn) -> RESPONSE_TYPE:
        if not turn.question:
            return respond(self._direct, turn, streaming=self._streaming)
        decision = self._retriever.decider.decide(turn.bundle)
        engine = self._targets.alone(decision.routes)
        if engine is None:
            return self._written(turn, self._retriever.search(turn.bundle, decision))
        answer = run_all([partial(engine.query, turn.bundle)], timeouts_s=[self._retriever.limit_s])[0]
        if answer.value is not None:
            return told_by_engine(turn, decision, answer.value, answer.elapsed_ms)
        routed = self._retriever.search(turn.bundle, self._stand_in(decision, answer))
        return self._written(turn, after_engine(decision, answer, routed))

    async def _aanswer(self, turn: Turn) -> RESPONSE_TYPE:
        if not turn.question:
            return await arespond(self._direct, turn, streaming=self._streaming)
        decision = await self._retriever.decider.adecide(turn.bundle)
        engine = self._targets.alone(decision.routes)
        if engine is None:
            return await self._awritten(turn, await self._retriever.asearch(turn.bundle, decision))
        answer = (await arun_all([partial(aquery, engine, turn.bundle)], timeouts_s=[self._retriever.limit_s]))[0]
        if answer.value is not None:
            return told_by_engine(turn, decision, answer.value, answer.elapsed_ms)
        routed = await self._retriever.asearch(turn.bundle, self._stand_in(decision, answer))
        return await self._awritten(turn, after_engine(decision, answer, routed))

    def _written(self, turn: Turn, routed: Routed) -> RESPONSE_TYPE:
        """The answer from what was found, or without documents."""
        turn.more["route"] = routed.to_dict()
        if self._targets.without_documents(routed.taken):
            return respond(self._direct, turn, streaming=self._streaming)
        own = self._targets.writer_for(routed.taken)
        turn.nodes = routed.hits if own is not None else self._grounded.refine(turn.bundle, routed.hits)
        return (own or self._grounded).with_streaming(self._streaming).answer_turn(turn)

    async def _awritten(self, turn: Turn, routed: Routed) -> RESPONSE_TYPE:
        turn.more["route"] = routed.to_dict()
        if self._targets.without_documents(routed.taken):
            return await arespond(self._direct, turn, streaming=self._streaming)
        own = self._targets.writer_for(routed.taken)
        turn.nodes = routed.hits if own is not None else await self._grounded.arefine(turn.bundle, routed.hits)
        return await (own or self._grounded).with_streaming(self._streaming).aanswer_turn(turn)

    def _stand_in(self, decision: RouteDecision, answer: Outcome[RESPONSE_TYPE]) -> RouteDecision:
        """The default route for an engine that failed or was late.

        Raises:
            Exception: that of the engine, where it is the default route itself, or the default looks into no documents.
        """
        default = self._retriever.decider.default
        if answer.error is not None and (default in decision.routes or default not in self._retriever.retrievers):
            raise answer.error
        report("warning", f"The route {decision.routes[0]!r} was dropped, and the default route {default!r} stands in: {failure(answer)}")
        return replace(decision, routes=(default,))

    @contextmanager
    def _turn(self, query_bundle: QueryBundle) -> Generator[tuple[Turn, list[RESPONSE_TYPE]], None, None]:
        """A question under the budget, in its trace and LlamaIndex's event; the block appends the response."""
        budget = UsageLedger(max_calls=self._max_llm_calls, max_tokens=self._max_tokens)
        with (
            query_event(self.callback_manager, query_bundle) as outcome,
            capture_usage(budget),
            open_turn(query_bundle, language=self.language, stage="auto") as turn,
        ):
            yield turn, outcome

    def _get_prompts(self) -> PromptDictType:
        return {GROUNDED_ANSWER: self._grounded.answer_prompt, DIRECT_ANSWER: self._direct.prompt}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        if DIRECT_ANSWER in prompts:
            self._direct = replace(self._direct, prompt=prompts[DIRECT_ANSWER])
        if GROUNDED_ANSWER in prompts:
            self._grounded.update_prompts({GROUNDED_ANSWER: prompts[GROUNDED_ANSWER]})

    def _get_prompt_modules(self) -> PromptMixinType:
        return {**self._targets.prompt_modules, "router": self._retriever.decider.router}

    def __repr__(self) -> str:
        return f"AdaptiveQueryEngine({self._retriever!r}, llm={self._grounded.llm!r:.80})"
