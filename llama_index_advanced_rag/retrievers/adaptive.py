"""One retriever that sends each question the way that suits it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._choices import positive_number
from llama_index_advanced_rag._concurrency import Outcome, arun_all, in_thread, run_all
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.fusion import GUARD, RRF_K, FusionMode
from llama_index_advanced_rag.retrievers.base import TracedRetriever, as_bundle
from llama_index_advanced_rag.retrievers.children import Child, make_children, named
from llama_index_advanced_rag.retrievers.errands import Errand, is_empty, join_traces, make_errands
from llama_index_advanced_rag.retrievers.fusing import ListFusion, fuse_hits, fusion_evidence
from llama_index_advanced_rag.retrievers.routed import Course, Routed, failure
from llama_index_advanced_rag.routing.deciding import RouteDecider, RouteDecision
from llama_index_advanced_rag.routing.defaults import described, usual_default, usual_router
from llama_index_advanced_rag.routing.route import ROUTER
from llama_index_advanced_rag.routing.router import RouteFunction, Router
from llama_index_advanced_rag.trace import current_trace, report

Routes = Mapping[str, BaseRetriever | None]
_Found = list[NodeWithScore]
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
        max_seconds: how long all of it may take, a second try on the default route included; the time of the router counts, it is not interrupted.
        explain: ask the other routes too, or those of these names, for the trace; costs their searches, and LLM calls where they make some.
        child_top_n: nodes asked of each route, one number or by name or in order; None = its own number, at most `similarity_top_k`.
        similarity_top_k: most nodes returned, but for a route whose `child_top_n` is more.
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
        explain: bool | Collection[str] = False,
        child_top_n: int | Sequence[int] | Mapping[str, int] | None = None,
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
        if ROUTER in routes:
            raise ConfigurationError(f"A route is called {ROUTER!r}, as the router itself is in timings and prompts. Give it another name.")
        retrieving = {name: retriever for name, retriever in routes.items() if retriever is not None}
        children = make_children(named(retrieving), weights=None, score_ranges=None, child_top_n=child_top_n, timeout_s=timeout_s) if retrieving else []
        self._children: dict[str, Child] = {child.name: child for child in children}
        self._decider = RouteDecider(
            usual_router(router, routes, default=default),
            described(routes, descriptions=descriptions, examples=examples),
            default=usual_default(default, list(routes), retrieving=retrieving),
            max_routes=max_routes,
            sure_of={name: SURE_OF_NO_DOCUMENTS for name in routes if name not in retrieving},
        )
        self._fusion = ListFusion.checked(fusion, weights=None, rrf_k=RRF_K, guard=guard)
        self._timeout_s = None if timeout_s is None else positive_number("timeout_s", timeout_s)
        self._max_seconds = None if max_seconds is None else positive_number("max_seconds", max_seconds)
        self._explained = [name for name in retrieving if (explain if isinstance(explain, bool) else name in explain)]

    @property
    def retrievers(self) -> dict[str, BaseRetriever]:
        """The retrievers of the routes that retrieve, by name."""
        return {child.name: child.retriever for child in self._children.values()}

    @property
    def decider(self) -> RouteDecider:
        """What comes to the decision."""
        return self._decider

    def course(self, decision: RouteDecision, *, started: float) -> Course:
        """The tries for a question that was asked at `started`, by `time.perf_counter`."""
        until = None if self._max_seconds is None else started + self._max_seconds
        return Course(decision, self._decider.default if self._decider.default in self._children else None, until)

    def limit_s(self, until: float | None) -> float | None:
        """How many seconds a route may take now: its own limit, or what is left of all, whichever is less; None = no limit."""
        left = None if until is None else max(0.0, until - perf_counter())
        return min((limit for limit in (self._timeout_s, left) if limit is not None), default=None)

    def search(self, query: QueryType) -> Routed:
        """What is found for a question, with the decision, what it took, and with `explain` what the other routes would have found.

        Raises:
            Exception: all routes that were asked failed.
        """
        started, query_bundle = perf_counter(), as_bundle(query)
        self._see_changes()
        course = self.course(self._decider.decide(query_bundle), started=started)
        for step in course:
            course.add(self.attempt(query_bundle, step, until=course.until, explain=course.is_first))
        return course.outcome()

    async def asearch(self, query: QueryType) -> Routed:
        """The async twin of `search`."""
        started, query_bundle = perf_counter(), as_bundle(query)
        await in_thread(self._see_changes)
        course = self.course(await self._decider.adecide(query_bundle), started=started)
        for step in course:
            course.add(await self.aattempt(query_bundle, step, until=course.until, explain=course.is_first))
        return course.outcome()

    def attempt(self, query_bundle: QueryBundle, decision: RouteDecision, *, until: float | None = None, explain: bool = True) -> Routed:
        """What comes of the routes of a decision, failures included; no other route stands in.

        Args:
            query_bundle: the question.
            decision: the routes.
            until: when the time is up, by `time.perf_counter`; None = no limit.
            explain: ask those beside too that are asked for the trace.
        """
        errands = self._errands(query_bundle, decision, explain=explain)
        outcomes = run_all([item.run for item in errands], timeouts_s=[self.limit_s(until)] * len(errands))
        routed = self._routed(decision, errands, outcomes)
        return replace(routed, hits=self._handle_recursive_retrieval(query_bundle, list(routed.hits))) if self.object_map else routed

    async def aattempt(self, query_bundle: QueryBundle, decision: RouteDecision, *, until: float | None = None, explain: bool = True) -> Routed:
        """The async twin of `attempt`."""
        errands = self._errands(query_bundle, decision, explain=explain)
        outcomes = await arun_all([item.arun for item in errands], timeouts_s=[self.limit_s(until)] * len(errands))
        routed = self._routed(decision, errands, outcomes)
        return replace(routed, hits=await self._ahandle_recursive_retrieval(query_bundle, list(routed.hits))) if self.object_map else routed

    def _find(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [] if is_empty(query_bundle) else list(self.search(query_bundle).hits)

    async def _afind(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [] if is_empty(query_bundle) else list((await self.asearch(query_bundle)).hits)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {**self.retrievers, ROUTER: self._decider.router}

    def _errands(self, query_bundle: QueryBundle, decision: RouteDecision, *, explain: bool) -> list[Errand]:
        """Who is asked: the routes decided on, and those that are asked for the trace only; these have no part in how the others are asked."""
        chosen = [name for name in decision.routes if name in self._children]
        beside = [name for name in self._explained if name not in chosen] if explain else []
        return [errand for names in (chosen, beside) for errand in self._errands_to(query_bundle, names)]

    def _errands_to(self, query_bundle: QueryBundle, names: Sequence[str]) -> list[Errand]:
        children = [
            replace(child, top_n=child.top_n or _own_top_k(child.retriever, self._similarity_top_k)) for child in map(self._children.__getitem__, names)
        ]
        return make_errands(children, query_bundle, (), least_top_n=self._similarity_top_k, filters=self._filters)

    def _routed(self, decision: RouteDecision, errands: Sequence[Errand], outcomes: Sequence[Outcome[_Found]]) -> Routed:
        """All that came of the routes, the failures reported."""
        join_traces(errands, outcomes)
        chosen = tuple(item.label for item in errands if item.label in decision.routes)
        _shorten_others([item.label for item in errands if item.label not in chosen])
        dropped: dict[str, str] = {}
        for item, outcome in zip(errands, outcomes, strict=True):
            if outcome.error is not None:
                dropped[item.label] = failure(outcome.error)
                report("warning", f"The route {item.label!r} was dropped: {dropped[item.label]}")
            elif item.label in chosen and not outcome.value:
                dropped[item.label] = "it found nothing"
        answers = {item.label: outcome for item, outcome in zip(errands, outcomes, strict=True)}
        found = [(item, outcome.value) for item, outcome in zip(errands, outcomes, strict=True) if item.label in chosen and outcome.value]
        return Routed(
            decision,
            taken=tuple(item.label for item, _ in found) or decision.routes,
            hits=self._merged(found),
            asked=chosen,
            dropped=dropped,
            elapsed_ms={name: outcome.elapsed_ms for name, outcome in answers.items()},
            others={name: [hit.node.node_id for hit in outcome.value or []] for name, outcome in answers.items() if outcome.ok and name not in chosen},
            failed={name: outcome.error for name, outcome in answers.items() if outcome.error is not None and name in chosen},
        )

    def _merged(self, found: Sequence[tuple[Errand, _Found]]) -> list[NodeWithScore]:
        """One list from those that were found; a single one stays as it is."""
        if len(found) == 1:
            [(item, hits)] = found
            own = [NodeWithScore(node=hit.node, score=hit.score) for hit in hits]
            lists = [(item.label, [(hit.node.node_id, hit.score) for hit in own])]
        else:
            named_lists = [(item.child, item.label, hits) for item, hits in found]
            fused, lists = fuse_hits(self._fusion, named_lists, lambda hit: hit.node.node_id, self._similarity_top_k)
            own = list(fused.values())
        trace = current_trace()
        if trace is not None:
            trace.evidence += fusion_evidence(self.stage, [(hit.node.node_id, hit.score) for hit in own], lists, str)
        return own

    def __repr__(self) -> str:
        routes = ", ".join(f"{name}={self._children[name].retriever!r}" if name in self._children else name for name in self._decider.names)
        return f"AdaptiveRetriever({routes}, router={self._decider.router.name!r}, default={self._decider.default!r})"


def _shorten_others(names: Collection[str]) -> None:
    """Of the routes that were asked for the trace only, keep what they would have found, and not how."""
    trace = current_trace()
    for part in [] if trace is None else [child for child in trace.children if child.stage in names]:
        part.stage, part.children = f"{part.stage}, not taken", []
        part.evidence = [replace(item, stage=part.stage) for item in part.evidence]


def _own_top_k(retriever: BaseRetriever, most: int) -> int:
    """How many nodes a retriever is asked for: its own number, at most so many."""
    own = getattr(retriever, "similarity_top_k", None)
    return min(own, most) if isinstance(own, int) and own > 0 else most
