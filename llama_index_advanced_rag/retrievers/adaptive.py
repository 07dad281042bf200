"""One retriever that sends each question the way that suits it."""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._choices import positive_number
from llama_index_advanced_rag._concurrency import Outcome, arun_all, run_all
from llama_index_advanced_rag.ranking.fusion import GUARD, RRF_K, FusionMode
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.retrievers.children import Child, make_children, named
from llama_index_advanced_rag.retrievers.errands import Errand, first_real_error, is_empty, join_traces, make_errands
from llama_index_advanced_rag.retrievers.fusing import ListFusion, fuse_hits, fusion_evidence
from llama_index_advanced_rag.retrievers.routed import Routed
from llama_index_advanced_rag.routing.deciding import RouteDecider, RouteDecision
from llama_index_advanced_rag.routing.router import RouteFunction, Router
from llama_index_advanced_rag.routing.usual import described, usual_default, usual_router
from llama_index_advanced_rag.trace import current_trace, report

Routes = Mapping[str, BaseRetriever | None]
_Found = list[NodeWithScore]
_Job = tuple[list[Errand], list[float | None]]
_Asked = tuple[Errand, Outcome[_Found]]
_Steps = Generator[_Job, list[Outcome[_Found]], Routed]


_REASON_CHARS = 300
SURE_OF_NO_DOCUMENTS = 0.6
"""Least score of a router with scores for a route without documents: to refuse to look is worse than to look in vain."""


class AdaptiveRetriever(TracedRetriever):
    """Asks a router which way a question goes, and searches there; the same decision as in `AdaptiveQueryEngine`.

    A router that does not know, fails or names nothing that exists leaves the question to the default route, and the trace says so. So does a
    route that fails, is late or finds nothing, where no other chosen route has found something. When all fail, the first real exception is raised.
    LLM calls: those of the router (none by rules and by examples) and of the routes. An empty query finds nothing.

    Scores, higher is better, are those of the route; where several are taken, those of the fusion ("guarded": 1 / position).

    Args:
        routes: retrievers by name; None = nothing is retrieved on this route. It is taken from a router with scores only when it is sure (0.6).
        router: a `Router` or a function of the question; None = `RuleRouter`, which knows the names "none", "simple", "moderate", "complex", "structural".
        default: the route in doubt; None = "moderate" or "simple" if there, else the first that retrieves.
        descriptions: by name, what a route is for, in a sentence; read by routers that use an LLM or embeddings.
        examples: by name, questions for it; read by `EmbeddingRouter`.
        max_routes: most routes taken for one question, side by side.
        fusion: how their lists become one, as in `HybridRetriever`.
        guard: for "guarded": so many of each list come before the lists after it.
        timeout_s: how long each route may take; None = no limit. A late one is dropped.
        max_seconds: how long all of it may take, a second try on the default route included.
        explain: ask the other routes too, for the trace; costs their searches.
        similarity_top_k: most nodes returned.
        filters: metadata filters for all routes.

    Raises:
        ConfigurationError: an option cannot work.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
        >>> def over(name: str) -> LexicalRetriever:
        ...     return LexicalRetriever.from_defaults(nodes=[TextNode(id_=name, text="Contracts end after a year.")], language="en")
        >>> retriever = AdaptiveRetriever(
        ...     {"laws": over("law"), "contracts": over("contract")},
        ...     router=lambda question: "contracts" if "contract" in question else None,
        ...     default="laws",
        ... )
        >>> [hit.node_id for question in ("When do contracts end?", "When does a year end?") for hit in retriever.retrieve(question)]
        ['contract', 'law']

    Source: Jeong et al. 2024, "Adaptive-RAG" (arXiv:2403.14403), section 3.2: none, one step or several, by how hard the question is. Our deviations:
    rules or examples instead of a trained classifier, a route for the structure of documents, a default in doubt, several routes at once.
    """

    stage: ClassVar[str] = "auto"

    def __init__(
        self,
        routes: Routes,
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
        explain: bool = False,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity_top_k=similarity_top_k, filters=filters, callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose
        )
        retrieving = {name: retriever for name, retriever in routes.items() if retriever is not None}
        children = make_children(named(retrieving), weights=None, score_ranges=None, child_top_n=None, timeout_s=timeout_s) if retrieving else []
        self._children: dict[str, Child] = {child.name: child for child in children}
        self._decider = RouteDecider(
            usual_router(router, routes),
            described(routes, descriptions=descriptions, examples=examples),
            default=usual_default(default, list(routes), retrieving=retrieving),
            max_routes=max_routes,
            sure_of={name: SURE_OF_NO_DOCUMENTS for name in routes if name not in retrieving},
        )
        self._fusion = ListFusion.checked(fusion, weights=None, rrf_k=RRF_K, guard=guard)
        self._timeout_s = None if timeout_s is None else positive_number("timeout_s", timeout_s)
        self._max_seconds = None if max_seconds is None else positive_number("max_seconds", max_seconds)
        self._explain = explain

    @property
    def retrievers(self) -> dict[str, BaseRetriever]:
        """The retrievers of the routes that retrieve, by name."""
        return {child.name: child.retriever for child in self._children.values()}

    @property
    def decider(self) -> RouteDecider:
        """What comes to the decision."""
        return self._decider

    @property
    def limit_s(self) -> float | None:
        """How long a route may take when it is asked at once; None = no limit."""
        return min((limit for limit in (self._timeout_s, self._max_seconds) if limit is not None), default=None)

    def search(self, query_bundle: QueryBundle, decision: RouteDecision | None = None) -> Routed:
        """What is found for a question, with the decision and what it took.

        Args:
            query_bundle: the question; only read.
            decision: the routes to take; None = the router says.

        Raises:
            Exception: all routes that were asked failed.
        """
        steps = self._steps(query_bundle, decision or self._decider.decide(query_bundle))
        errands, limits = next(steps)
        while True:
            outcomes = run_all([item.run for item in errands], timeouts_s=limits)
            try:
                errands, limits = steps.send(outcomes)
            except StopIteration as end:
                return end.value

    async def asearch(self, query_bundle: QueryBundle, decision: RouteDecision | None = None) -> Routed:
        """The async twin of `search`."""
        steps = self._steps(query_bundle, decision or await self._decider.adecide(query_bundle))
        errands, limits = next(steps)
        while True:
            outcomes = await arun_all([item.arun for item in errands], timeouts_s=limits)
            try:
                errands, limits = steps.send(outcomes)
            except StopIteration as end:
                return end.value

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [] if is_empty(query_bundle) else self.search(query_bundle).hits

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [] if is_empty(query_bundle) else (await self.asearch(query_bundle)).hits

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"router": self._decider.router, **self.retrievers}

    def _steps(self, query_bundle: QueryBundle, decision: RouteDecision) -> _Steps:
        """Yields who is asked next and for how long, is sent what came of it, and returns the whole."""
        started, default = perf_counter(), self._decider.default
        _tell(decision)
        chosen = [name for name in decision.routes if name in self._children]
        beside = [name for name in self._children if name not in chosen] if self._explain else []
        asked = yield from self._ask(query_bundle, [*chosen, *beside], started)
        if chosen and default in self._children and default not in chosen and not any(asked[name][1].value for name in chosen):
            report("info", f"The default route {default!r} stands in, because nothing came of {', '.join(map(repr, chosen))}.")
            chosen.append(default)
            if default not in asked:
                asked |= yield from self._ask(query_bundle, [default], started)
        return self._routed(decision, chosen, asked)

    def _ask(self, query_bundle: QueryBundle, names: Sequence[str], started: float) -> Generator[_Job, list[Outcome[_Found]], dict[str, _Asked]]:
        children = [self._children[name] for name in names]
        errands = make_errands(children, query_bundle, (), least_top_n=self._similarity_top_k, filters=self._filters)
        outcomes = yield errands, self._limits(errands, started)
        join_traces(errands, outcomes)
        return {item.label: (item, outcome) for item, outcome in zip(errands, outcomes, strict=True)}

    def _limits(self, errands: Sequence[Errand], started: float) -> list[float | None]:
        """Seconds for each: its own limit, or what is left of all, whichever is less."""
        left = None if self._max_seconds is None else max(0.0, self._max_seconds - (perf_counter() - started))
        return [min((limit for limit in (item.child.timeout_s, left) if limit is not None), default=None) for item in errands]

    def _routed(self, decision: RouteDecision, chosen: Sequence[str], asked: Mapping[str, _Asked]) -> Routed:
        """All that came of the routes, the failures reported.

        Raises:
            Exception: all chosen routes failed.
        """
        routed = Routed(decision, elapsed_ms={name: outcome.elapsed_ms for name, (_, outcome) in asked.items()})
        errors = [asked[name][1].error for name in chosen]
        if errors and None not in errors:
            raise first_real_error([error for error in errors if error is not None])
        for name, (_, outcome) in asked.items():
            if outcome.error is not None:
                routed.dropped[name] = f"{type(outcome.error).__name__}: {outcome.error}"[:_REASON_CHARS]
                report("warning", f"The route {name!r} was dropped: {routed.dropped[name]}")
            elif name not in chosen:
                routed.others[name] = [hit.node.node_id for hit in outcome.value or []]
            elif not outcome.value:
                routed.dropped[name] = "it found nothing"
        _shorten_others([name for name in asked if name not in chosen])
        found = [(item, outcome.value) for item, outcome in (asked[name] for name in chosen) if outcome.value]
        routed.taken = tuple(item.label for item, _ in found) or decision.routes
        self._merge(routed, found)
        return routed

    def _merge(self, routed: Routed, found: Sequence[tuple[Errand, _Found]]) -> None:
        """One list from those that were found; a single one stays as it is."""
        lists: list[tuple[str, list[tuple[str, float | None]]]]
        if len(found) == 1:
            routed.hits = [NodeWithScore(node=hit.node, score=hit.score) for hit in found[0][1]]
            lists = [(found[0][0].label, [(hit.node.node_id, hit.score) for hit in routed.hits])]
        else:
            fused, lists = fuse_hits(
                self._fusion, [(item.child, item.label, hits) for item, hits in found], lambda hit: hit.node.node_id, self._similarity_top_k
            )
            routed.hits = list(fused.values())
        trace = current_trace()
        if trace is not None:
            scored = [(hit.node.node_id, hit.score) for hit in routed.hits]
            trace.evidence += fusion_evidence(self.stage, scored, lists, str)

    def __repr__(self) -> str:
        routes = ", ".join(f"{name}={self._children[name].retriever!r}" if name in self._children else name for name in self._decider.names)
        return f"AdaptiveRetriever({routes}, router={self._decider.router.name!r}, default={self._decider.default!r})"


def _shorten_others(names: Collection[str]) -> None:
    """Of the routes that were asked for the trace only, keep what they would have found, and not how."""
    trace = current_trace()
    for part in [] if trace is None else [child for child in trace.children if child.stage in names]:
        part.stage, part.children = f"{part.stage}, not taken", []
        part.evidence = [replace(item, stage=part.stage) for item in part.evidence]


def _tell(decision: RouteDecision) -> None:
    trace = current_trace()
    if trace is not None:
        trace.note("info", f"route {', '.join(decision.routes)}, by {decision.router}: {decision.reason}")
