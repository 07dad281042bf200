"""What retrievers over one entity graph share: walks, facts and titled entities, made ready once."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, runtime_checkable

from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.fact_index import FactIndex
from llama_index_advanced_rag.graph.graph_walk import EDGE_WEIGHTS, GraphWalk, Mask
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.graph.titled_entities import TitledEntities
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

_KEPT_FILTERS = 8
_KEPT_VIEWS = 4
K = TypeVar("K")
T = TypeVar("T")


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


class _OfGraph(Generic[T]):
    """What is made of one graph for each filter: the last few, until the graph changes."""

    def __init__(self) -> None:
        self._lock = CopyableLock()
        self._graph: EntityGraph | None = None
        self._made: dict[str, T] = {}

    def __len__(self) -> int:
        return len(self._made)

    def get(self, graph: EntityGraph, filters: MetadataFilters | None, make: Callable[[], T]) -> T:
        key = "" if filters is None else filters.model_dump_json()
        with self._lock:
            if graph is not self._graph:
                self._graph, self._made = graph, {}
            return _kept(self._made, key, make, most=_KEPT_FILTERS)


class GraphMasks:
    """Which chunks of a source's graph filters let through, found once for each graph and filter.

    Args:
        source: gives the graph.
    """

    def __init__(self, source: GraphSource) -> None:
        self._source = source
        self._kept = _OfGraph[Mask]()

    def of(self, graph: EntityGraph, filters: MetadataFilters | None) -> Mask | None:
        """(n_chunks,) the chunks of the graph whose metadata match; None = all."""
        if filters is None or not filters.filters:
            return None
        return self._kept.get(graph, filters, lambda: self._source.allowed(graph, filters))


class GraphWalks:
    """Walks on the graph of a source, made ready once for each state and filter.

    Args:
        source: gives the graph.
        weights: how strongly the kinds of edges bind.
        masks: of the same source; None = of its own.
    """

    def __init__(self, source: GraphSource, weights: EdgeWeights = EDGE_WEIGHTS, *, masks: GraphMasks | None = None) -> None:
        self.source = source
        self._weights = weights.checked()
        self._masks = masks or GraphMasks(source)
        self._kept = _OfGraph[GraphWalk]()

    def walk(self, filters: MetadataFilters | None) -> GraphWalk:
        """The walk through what the filters let through, on the graph of this moment."""
        graph = self.source.graph()
        some = None if filters is None or not filters.filters else filters
        return self._kept.get(graph, some, lambda: GraphWalk.of(graph, weights=self._weights, allowed=self._masks.of(graph, some)))


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


class FactViews:
    """The facts of a graph, searchable; made once for each graph.

    Args:
        language: of facts and questions, an ISO code or "auto".
        vectors: compares them by meaning too; None = by words.
    """

    def __init__(self, language: str, vectors: TextVectors | None) -> None:
        self.analyzer = TextAnalyzer(language)
        self.vectors = vectors
        self._lock = CopyableLock()
        self._last: tuple[EntityGraph, FactIndex] | None = None

    def of(self, graph: EntityGraph) -> FactIndex:
        """Those of a graph."""
        with self._lock:
            if self._last is None or self._last[0] is not graph:
                self._last = graph, FactIndex(graph.facts, self.analyzer, self.vectors)
            return self._last[1]


class GraphViews:
    """What is made of the graph of one source.

    Args:
        source: gives the graph.

    Attributes:
        titled: its titled entities.
        masks: which of its chunks filters let through.
    """

    def __init__(self, source: GraphSource) -> None:
        self._source = source
        self._lock = CopyableLock()
        self._walks: dict[EdgeWeights, GraphWalks] = {}
        self._facts: dict[tuple[str, int], FactViews] = {}
        self.titled = TitledViews(source)
        self.masks = GraphMasks(source)

    def walks(self, weights: EdgeWeights = EDGE_WEIGHTS) -> GraphWalks:
        """The walks under these weights; those under the last few are shared."""
        with self._lock:
            return _kept(self._walks, weights, lambda: GraphWalks(self._source, weights, masks=self.masks))

    def facts(self, language: str, vectors: TextVectors | None) -> FactViews:
        """The facts, compared with questions in this language and by these vectors; the last few are shared."""
        with self._lock:
            return _kept(self._facts, (language, id(vectors)), lambda: FactViews(language, vectors))


def _kept(made: dict[K, T], key: K, make: Callable[[], T], *, most: int = _KEPT_VIEWS) -> T:
    """What is made for a key, and kept for as many keys; the first one goes."""
    if key not in made:
        new = make()
        while len(made) >= most:
            del made[next(iter(made))]
        made[key] = new
    return made[key]


def views_of(source: GraphSource) -> GraphViews:
    """What is made of the graph of a source: the one that it keeps (as `views`), so that its retrievers share it, else a new one."""
    kept = getattr(source, "views", None)
    return kept if isinstance(kept, GraphViews) else GraphViews(source)
