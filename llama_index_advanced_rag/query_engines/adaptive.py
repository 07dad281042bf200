"""One engine that answers any question over a corpus, each the way that suits it."""

import copy
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.answering.direct import DirectWriter
from llama_index_advanced_rag.answering.turn import Turn, open_turn
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.nested_prompts import update_nested_prompts
from llama_index_advanced_rag.prompts import DIRECT_ANSWER, DIRECT_ANSWER_PROMPT, GROUNDED_ANSWER
from llama_index_advanced_rag.query_engines.engine_answers import told_by_engine
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.query_engines.query_event import query_event
from llama_index_advanced_rag.query_engines.responding import arespond, respond
from llama_index_advanced_rag.query_engines.route_search import RouteSearch
from llama_index_advanced_rag.query_engines.route_targets import RouteTargets, Target, targets_of_tools
from llama_index_advanced_rag.ranking.fusion import GUARD, FusionMode
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.retrievers.routed import Routed
from llama_index_advanced_rag.routing.route import ROUTER
from llama_index_advanced_rag.routing.router import RouteFunction, Router
from llama_index_advanced_rag.usage import UsageLedger, capture_usage

dispatcher = get_dispatcher(__name__)
_ALL = 1_000_000


class AdaptiveQueryEngine(BaseQueryEngine):
    """Asks a router which way a question goes, and answers it there.

    A route leads to a retriever, from whose nodes this engine answers with citations (as `GroundedQueryEngine` does); to a query engine, which answers
    itself; or to None, no documents: with an LLM it answers in one call, without one a sentence says that the question needs none. In doubt, and where
    the chosen routes fail, are late or find nothing, the default route is taken, and `metadata["route"]` and the trace say so. Where everything
    fails, the first real exception is raised. Several routes at once (`max_routes`) are searched side by side and their nodes merged to one list,
    from which one answer is written.

    LLM calls: those of the router (0 by rules or examples, 1 or 2 by an LLM), of the retrievers, and 0 or 1 for the answer. Calls that another
    engine makes by means of LlamaIndex are not counted and not limited.

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
        max_seconds: how long router and search may take, a second try on the default route included. The router is not interrupted, and writing the
            answer is not limited.
        max_llm_calls: most LLM calls of this package for a question; a call beyond is not made, and what does without it goes on.
        max_tokens: most LLM tokens, likewise.
        explain: ask the other routes too, and say what they would have found; costs their searches, and LLM calls where they make some. Engines
            that have no nodes to give without answering are left out.
        filters: metadata filters for all routes; not with routes that lead to engines.
        similarity_top_k: most nodes taken from retrievers; one that has a smaller number keeps it, and an engine all of its nodes.
        llm: writes the answer; None = quoted sentences, and `Settings.llm` is not touched.
        node_postprocessors: applied to the nodes of retriever routes, and to merged lists.
        route_postprocessors: by name, applied after these to the nodes of one route, where it is the only one taken.
        embed_model: as in `GroundedQueryEngine`.
        language: as there.
        max_context_tokens: as there.
        max_sentences: as there.
        answer_prompt: as there.
        direct_prompt: template with `query_str` for questions without documents; None = `prompts.DIRECT_ANSWER_PROMPT`.
        streaming: return a stream, where this engine writes the answer.
        callback_manager: LlamaIndex's; None = `Settings.callback_manager`.
        object_map: LlamaIndex's, for index nodes.

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
        filters: MetadataFilters | None = None,
        similarity_top_k: int = 20,
        llm: LLM | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        route_postprocessors: Mapping[str, Sequence[BaseNodePostprocessor]] | None = None,
        embed_model: BaseEmbedding | None = None,
        language: str = "auto",
        max_context_tokens: int = 3000,
        max_sentences: int = 3,
        answer_prompt: BasePromptTemplate | None = None,
        direct_prompt: BasePromptTemplate | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
    ) -> None:
        self._targets = RouteTargets(routes)
        self._refuse_filters(filters)
        self._route_postprocessors = dict(route_postprocessors or {})
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
            explain=[name for name in routes if name not in self._targets.only_answering] if explain else False,
            child_top_n=dict.fromkeys(self._targets.engines, _ALL),
            filters=filters,
            similarity_top_k=similarity_top_k,
            callback_manager=callback_manager,
            object_map=object_map,
        )
        self._search = RouteSearch(self._targets, self._retriever)
        self._refuse_unknown_routes("route_postprocessors", self._route_postprocessors)
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

    def _refuse_filters(self, filters: MetadataFilters | None) -> None:
        """What a filter may keep out must not come back through an engine, which takes none."""
        if filters is not None and self._targets.engines:
            raise ConfigurationError(
                f"filters are given, and the routes {', '.join(map(repr, self._targets.engines))} lead to query engines, which take none. "
                "Make these with filters of their own and leave filters out here, giving the other routes theirs too."
            )

    def _refuse_unknown_routes(self, argument: str, names: Collection[str]) -> None:
        known = self._retriever.decider.names
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ConfigurationError(f"{argument} names {unknown!r}. The routes are {', '.join(map(repr, known))}.")

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
        return cls(routes, descriptions={**descriptions, **(options.pop("descriptions", None) or {})}, **options)

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
        other._grounded = self._grounded.with_streaming(streaming)  # noqa: SLF001
        return other

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The nodes for a question, from the routes it takes, after the postprocessors; those that an answer would be made from."""
        with capture_usage(self._budget):
            return self._refined(query_bundle, self._retriever.search(query_bundle))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The async twin of `retrieve`."""
        with capture_usage(self._budget):
            return await self._arefined(query_bundle, await self._retriever.asearch(query_bundle))

    def synthesize(
        self, query_bundle: QueryBundle, nodes: Sequence[NodeWithScore], additional_source_nodes: Sequence[NodeWithScore] | None = None
    ) -> RESPONSE_TYPE:
        """Answer from given nodes, best first; no route is taken."""
        return self._grounded.synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self, query_bundle: QueryBundle, nodes: Sequence[NodeWithScore], additional_source_nodes: Sequence[NodeWithScore] | None = None
    ) -> RESPONSE_TYPE:
        """The async twin of `synthesize`."""
        return await self._grounded.asynthesize(query_bundle, nodes, additional_source_nodes)

    @dispatcher.span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._turn(query_bundle) as (turn, outcome):
            outcome.append(self._written(turn, self._search.run(turn.bundle)))
        return outcome[0]

    @dispatcher.span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._turn(query_bundle) as (turn, outcome):
            outcome.append(await self._awritten(turn, await self._search.arun(turn.bundle)))
        return outcome[0]

    def _written(self, turn: Turn, routed: Routed) -> RESPONSE_TYPE:
        """The answer of an engine, or one from what was found, or one without documents."""
        if routed.response is not None:
            return told_by_engine(turn, routed)
        turn.more["route"] = routed.to_dict()
        if not routed.asked:
            return respond(self._direct, turn, streaming=self._streaming)
        turn.nodes = self._refined(turn.bundle, routed)
        return self._writer_of(turn, routed).answer_turn(turn)

    async def _awritten(self, turn: Turn, routed: Routed) -> RESPONSE_TYPE:
        if routed.response is not None:
            return told_by_engine(turn, routed)
        turn.more["route"] = routed.to_dict()
        if not routed.asked:
            return await arespond(self._direct, turn, streaming=self._streaming)
        turn.nodes = await self._arefined(turn.bundle, routed)
        return await self._writer_of(turn, routed).aanswer_turn(turn)

    def _refined(self, query_bundle: QueryBundle, routed: Routed) -> list[NodeWithScore]:
        """What postprocessors make of the nodes: the route's own engine has used its own; else ours, then those of the route."""
        nodes = list(routed.hits)
        if self._targets.writer_for(routed.taken) is not None:
            return nodes
        nodes = self._grounded.refine(query_bundle, nodes)
        for postprocessor in self._postprocessors_of(routed):
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    async def _arefined(self, query_bundle: QueryBundle, routed: Routed) -> list[NodeWithScore]:
        nodes = list(routed.hits)
        if self._targets.writer_for(routed.taken) is not None:
            return nodes
        nodes = await self._grounded.arefine(query_bundle, nodes)
        for postprocessor in self._postprocessors_of(routed):
            nodes = await postprocessor.apostprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    def _postprocessors_of(self, routed: Routed) -> Sequence[BaseNodePostprocessor]:
        return self._route_postprocessors.get(routed.taken[0], ()) if len(routed.taken) == 1 else ()

    def _writer_of(self, turn: Turn, routed: Routed) -> GroundedQueryEngine:
        own = self._targets.writer_for(routed.taken)
        if own is None:
            return self._grounded
        turn.language = own.language
        return own.with_streaming(self._streaming)

    @property
    def _budget(self) -> UsageLedger:
        return UsageLedger(max_calls=self._max_llm_calls, max_tokens=self._max_tokens)

    @contextmanager
    def _turn(self, query_bundle: QueryBundle) -> Generator[tuple[Turn, list[RESPONSE_TYPE]], None, None]:
        """A question under the budget, in its trace and LlamaIndex's event; the block appends the response."""
        with (
            query_event(self.callback_manager, query_bundle) as outcome,
            capture_usage(self._budget),
            open_turn(query_bundle, language=self.language, stage="auto") as turn,
        ):
            yield turn, outcome

    def update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Replace prompts by the names that `get_prompts` gives; the others stay.

        Raises:
            ValueError: a name speaks of a part that does not exist.
        """
        update_nested_prompts(self, prompts_dict)

    def _get_prompts(self) -> PromptDictType:
        return {GROUNDED_ANSWER: self._grounded.answer_prompt, DIRECT_ANSWER: self._direct.prompt}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        unknown = sorted(name for name in prompts if name not in (GROUNDED_ANSWER, DIRECT_ANSWER) and ":" not in name)
        if unknown:
            raise ConfigurationError(f"There is no prompt {', '.join(map(repr, unknown))} here. The prompts are {', '.join(map(repr, self.get_prompts()))}.")
        if DIRECT_ANSWER in prompts:
            self._direct = replace(self._direct, prompt=prompts[DIRECT_ANSWER])
        if GROUNDED_ANSWER in prompts:
            self._grounded.update_prompts({GROUNDED_ANSWER: prompts[GROUNDED_ANSWER]})

    def _get_prompt_modules(self) -> PromptMixinType:
        return {**self._targets.prompt_modules, ROUTER: self._retriever.decider.router}

    def __repr__(self) -> str:
        written = "quoted sentences" if self._grounded.llm is None else type(self._grounded.llm).__name__
        return f"AdaptiveQueryEngine({self._retriever!r}, answers={written!r})"
