"""What retrievers over one entity graph share: walks and titled entities, made ready once."""

from typing import Protocol, runtime_checkable

from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.graph_walk import EDGE_WEIGHTS, GraphWalk, Mask
from llama_index_advanced_rag.graph.titled_entities import TitledEntities
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights

_KEPT_WALKS = 8


@runtime_checkable
class GraphSource(Protocol):
    """Gives the entity graph of this moment, and says which of its chunks a filter lets through."""

    def graph(self) -> EntityGraph:
        """The graph; the same object until something changes."""
        ...

    def allowed(self, graph: EntityGraph, filters: MetadataFilters) -> Mask:
        """(n_chunks,) the chunks of a graph whose metadata match."""
        ...

    def documents(self, graph: EntityGraph) -> list[str]:
        """The id of the document of each chunk of a graph; of a chunk without one its own."""
        ...


class GraphWalks:
    """Walks on the graph of a source, made ready once for each state and filter.

    Args:
        source: gives the graph.
        weights: how strongly the kinds of edges bind.
    """

    def __init__(self, source: GraphSource, weights: EdgeWeights = EDGE_WEIGHTS) -> None:
        self.source = source
        self._weights = weights.checked()
        self._lock = CopyableLock()
        self._graph: EntityGraph | None = None
        self._walks: dict[str, GraphWalk] = {}

    def walk(self, filters: MetadataFilters | None) -> GraphWalk:
        """The walk through what the filters let through, on the graph of this moment."""
        graph = self.source.graph()
        key = "" if filters is None or not filters.filters else filters.model_dump_json()
        with self._lock:
            if graph is not self._graph:
                self._graph, self._walks = graph, {}
            if key not in self._walks:
                while len(self._walks) >= _KEPT_WALKS:
                    del self._walks[next(iter(self._walks))]
                allowed = self.source.allowed(graph, filters) if key and filters is not None else None
                self._walks[key] = GraphWalk.of(graph, weights=self._weights, allowed=allowed)
            return self._walks[key]


class TitledViews:
    """The titled entities of a source's graph, made once for each graph.

    Args:
        source: gives the graph.
    """

    def __init__(self, source: GraphSource) -> None:
        self._source = source
        self._lock = CopyableLock()
        self._last: TitledEntities | None = None

    def current(self) -> TitledEntities:
        """Those of the graph of this moment."""
        graph = self._source.graph()
        with self._lock:
            if self._last is None or self._last.graph is not graph:
                self._last = TitledEntities.of(graph, self._source.documents(graph))
            return self._last


class GraphViews:
    """What is made of the graph of one source.

    Args:
        source: gives the graph.

    Attributes:
        titled: its titled entities.
    """

    def __init__(self, source: GraphSource) -> None:
        self._source = source
        self._lock = CopyableLock()
        self._walks: dict[EdgeWeights, GraphWalks] = {}
        self.titled = TitledViews(source)

    def walks(self, weights: EdgeWeights = EDGE_WEIGHTS) -> GraphWalks:
        """The walks under these weights."""
        with self._lock:
            if weights not in self._walks:
                self._walks[weights] = GraphWalks(self._source, weights)
            return self._walks[weights]


def views_of(source: GraphSource) -> GraphViews:
    """What is made of the graph of a source: the one that it keeps (as `views`), so that its retrievers share it, else a new one."""
    kept = getattr(source, "views", None)
    return kept if isinstance(kept, GraphViews) else GraphViews(source)
