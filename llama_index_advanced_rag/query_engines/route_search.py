"""Sending a question along its routes, to retrievers or to engines that answer by themselves."""

from time import perf_counter

from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag._concurrency import arun_all, run_all
from llama_index_advanced_rag.query_engines.engine_answers import EngineErrand
from llama_index_advanced_rag.query_engines.route_targets import RouteTargets
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.retrievers.routed import Course, Routed
from llama_index_advanced_rag.routing.deciding import RouteDecision


class RouteSearch:
    """Decides on the routes of a question and takes them; holds no state of a question.

    Args:
        targets: where the routes lead.
        retriever: what finds the nodes of all of them.
    """

    def __init__(self, targets: RouteTargets, retriever: AdaptiveRetriever) -> None:
        self._targets, self._retriever = targets, retriever

    def run(self, query_bundle: QueryBundle) -> Routed:
        """Nodes, or the answer of an engine; a question without words is decided on, and nobody is asked.

        Raises:
            Exception: all routes failed that were asked.
        """
        started = perf_counter()
        decision = self._retriever.decider.decide(query_bundle)
        if not query_bundle.query_str:
            return Routed(decision)
        course = self._retriever.course(decision, started=started)
        for step in course:
            course.add(self._attempt(query_bundle, step, course))
        return course.outcome()

    async def arun(self, query_bundle: QueryBundle) -> Routed:
        """The async twin of `run`."""
        started = perf_counter()
        decision = await self._retriever.decider.adecide(query_bundle)
        if not query_bundle.query_str:
            return Routed(decision)
        course = self._retriever.course(decision, started=started)
        for step in course:
            course.add(await self._aattempt(query_bundle, step, course))
        return course.outcome()

    def _attempt(self, query_bundle: QueryBundle, step: RouteDecision, course: Course) -> Routed:
        engine = self._targets.alone(step.routes)
        if engine is None:
            return self._retriever.attempt(query_bundle, step, until=course.until, explain=course.is_first)
        errand = EngineErrand.to(engine, step.routes[0], query_bundle)
        return errand.routed(step, run_all([errand.run], timeouts_s=[self._retriever.limit_s(course.until)])[0])

    async def _aattempt(self, query_bundle: QueryBundle, step: RouteDecision, course: Course) -> Routed:
        engine = self._targets.alone(step.routes)
        if engine is None:
            return await self._retriever.aattempt(query_bundle, step, until=course.until, explain=course.is_first)
        errand = EngineErrand.to(engine, step.routes[0], query_bundle)
        return errand.routed(step, (await arun_all([errand.arun], timeouts_s=[self._retriever.limit_s(course.until)]))[0])
