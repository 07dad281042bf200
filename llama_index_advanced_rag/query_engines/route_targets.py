"""Where the routes of an engine lead: to retrievers, to engines, or to no documents at all."""

from collections.abc import Mapping, Sequence
from typing import cast

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.tools import QueryEngineTool

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.query_engines.engine_retriever import EngineRetriever, can_retrieve
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.routing.route import refuse_unnamed

Target = BaseQueryEngine | BaseRetriever | None


class RouteTargets:
    """The targets of routes by name.

    Args:
        targets: a retriever, whose nodes are answered from; an engine, which answers; None = no documents.

    Raises:
        ConfigurationError: there is none, or one is something else.
    """

    def __init__(self, targets: Mapping[str, Target]) -> None:
        if not isinstance(cast(object, targets), Mapping) or not targets:
            raise ConfigurationError(
                f"routes is {targets!r:.200}. It must be retrievers or query engines by name, for example {{'simple': index.as_retriever('hybrid')}}."
            )
        for name, target in targets.items():
            if target is not None and not isinstance(cast(object, target), (BaseQueryEngine, BaseRetriever)):
                raise ConfigurationError(
                    f"The route {name!r} leads to a {type(target).__name__}. It must be a LlamaIndex retriever or query engine, or None for no documents; "
                    "of an index, pass index.as_retriever() or index.as_query_engine()."
                )
        self._targets = dict(targets)

    @property
    def retrievers(self) -> dict[str, BaseRetriever | None]:
        """Each target as what finds nodes."""
        return {name: EngineRetriever(target, name) if isinstance(target, BaseQueryEngine) else target for name, target in self._targets.items()}

    @property
    def engines(self) -> list[str]:
        """The routes that lead to engines."""
        return [name for name, target in self._targets.items() if isinstance(target, BaseQueryEngine)]

    @property
    def only_answering(self) -> list[str]:
        """The routes whose engines have no nodes to give without answering."""
        return [name for name, target in self._targets.items() if isinstance(target, BaseQueryEngine) and not can_retrieve(target)]

    @property
    def prompt_modules(self) -> PromptMixinType:
        """The targets, whose prompts can be seen and changed."""
        return {name: target for name, target in self._targets.items() if target is not None}

    def alone(self, names: Sequence[str]) -> BaseQueryEngine | None:
        """The engine that answers by itself, if these routes are one and lead to such an engine: any whose answer is not made from a turn."""
        target = self._targets[names[0]] if len(names) == 1 else None
        return target if isinstance(target, BaseQueryEngine) and not _answers_turns(target) else None

    def writer_for(self, taken: Sequence[str]) -> GroundedQueryEngine | None:
        """The engine whose way of answering is that of these routes; None where they have none of their own."""
        target = self._targets[taken[0]] if len(taken) == 1 else None
        return target if isinstance(target, GroundedQueryEngine) and _answers_turns(target) else None


def _answers_turns(engine: BaseQueryEngine) -> bool:
    """Whether an engine is a `GroundedQueryEngine` that answers as one does."""
    kind = type(engine)
    return isinstance(engine, GroundedQueryEngine) and kind._query is GroundedQueryEngine._query and kind._aquery is GroundedQueryEngine._aquery  # noqa: SLF001


def targets_of_tools(tools: Sequence[QueryEngineTool]) -> tuple[dict[str, Target], dict[str, str]]:
    """Engines and descriptions by the names of tools.

    Raises:
        ConfigurationError: there is no tool, one is no query engine tool, or two have one name.
    """
    if not tools:
        raise ConfigurationError("There are no query engine tools. Give at least one.")
    strange = [type(tool).__name__ for tool in tools if not isinstance(cast(object, tool), QueryEngineTool)]
    if strange:
        raise ConfigurationError(
            f"query_engine_tools holds {', '.join(strange)}. Each must be a QueryEngineTool; give retrievers as routes={{name: retriever}}."
        )
    names = [tool.metadata.name or "" for tool in tools]
    refuse_unnamed(names)
    engines: dict[str, Target] = {name: tool.query_engine for name, tool in zip(names, tools, strict=True)}
    return engines, {name: tool.metadata.description for name, tool in zip(names, tools, strict=True)}
