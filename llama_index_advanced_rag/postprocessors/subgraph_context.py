"""Put in front of retrieved passages what the knowledge graph knows of the entities of the question, and of how they are connected."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import CopyableLock, in_thread
from llama_index_advanced_rag.embeddings.window import default_window
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.connections import Connections
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.fact_index import FactIndex
from llama_index_advanced_rag.graph.fold_arrays import GraphFacts
from llama_index_advanced_rag.graph.records import Relation
from llama_index_advanced_rag.graph.subgraph import MAX_FACTS, MAX_HOPS, SubGraph, subgraph
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.retrievers.graph_source import GraphSource, ReadyGraph, graph_source_of
from llama_index_advanced_rag.retrievers.merging import Nodes, node_source_of
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.text.languages import AUTO, detect_language
from llama_index_advanced_rag.trace import Evidence, stage_trace

KIND = "subgraph"
"""The metadata `kind` of the node that is put in front."""

_TITLES = {"en": "What the knowledge graph says", "fr": "Ce que dit le graphe de connaissances"}
_NAMESPACE = uuid5(NAMESPACE_URL, "llama-index-advanced-rag/subgraph")
_NOT_SHOWN = ["kind", "chunks"]
_SHOWN = 50
_NO_PLACES = np.zeros(0, dtype=np.int64)


class SubgraphContext(BaseNodePostprocessor):
    """Adds one node in front of the retrieved ones: the facts around the entities that the question names, and how these are connected.

    Its text is sentences, a line each, the nearest and best fitting facts first. Its metadata have `kind` "subgraph", and in `chunks` the node ids of
    the passages that say what stands in it, for whoever wants to check it: the node itself is made of the graph and stands in no document. It is for
    an LLM to read; a `GroundedQueryEngine` without one quotes passages only. Its id follows from its text, its score is that of the best node. Where
    the question names no entity, or nothing is known of those it names, there is no such node. Retrieved nodes keep place and score, in new
    `NodeWithScore` objects. 0 LLM calls.

    Args:
        graph: an `EntityGraph`, a `PropertyGraphStore` (read once, now), a corpus or another graph source.
        nodes: the nodes of the graph's chunks, which `filters` ask; not needed with a corpus or without filters.
        max_tokens: most tokens of the text, in LlamaIndex's global tokenizer.
        max_hops: how far from the entities of the question, 1 to 3.
        max_facts: most facts.
        vectors: compares facts with the question by meaning too; None = by words only.
        language: of the text, "en" or "fr", others are told in English; "auto" = that of the question.
        filters: only what passages say that match these is told: what a retriever may not find must not slip in here.
        callback_manager: kept for LlamaIndex; no event is emitted.

    Raises:
        ConfigurationError: an argument cannot work.

    Example:
        >>> triples = {"c1": [("Anthropic", "created", "Claude")], "c2": [("Claude", "uses", "Transformer")]}
        >>> context = SubgraphContext(EntityGraph.from_triples(triples))
        >>> hit = NodeWithScore(node=TextNode(id_="n", text="Models are large."), score=0.5)
        >>> for found in context.postprocess_nodes([hit], query_str="What does the model of Anthropic use?"):
        ...     print(found.text, found.metadata)
        Facts:
        - Anthropic created Claude.
        - Claude uses Transformer. {'kind': 'subgraph', 'title': 'What the knowledge graph says', 'chunks': ['c1', 'c2']}
        Models are large. {}
    """

    stage: ClassVar[str] = "subgraph"

    max_tokens: int = Field(default=400, description="Most tokens of the text.")
    max_hops: int = Field(default=MAX_HOPS, description="Most steps from an entity of the question.")
    max_facts: int = Field(default=MAX_FACTS, description="Most facts.")
    language: str = Field(default=AUTO, description="ISO code of the language, or auto.")

    _source: GraphSource = PrivateAttr()
    _filters: MetadataFilters | None = PrivateAttr()
    _vectors: TextVectors | None = PrivateAttr()
    _analyzer: TextAnalyzer = PrivateAttr()
    _count_tokens: Callable[[str], int] = PrivateAttr()
    _lock: CopyableLock = PrivateAttr(default_factory=CopyableLock)
    _ready: Connections | None = PrivateAttr(default=None)

    def __init__(
        self,
        graph: object,
        *,
        nodes: Nodes | None = None,
        max_tokens: int = 400,
        max_hops: int = MAX_HOPS,
        max_facts: int = MAX_FACTS,
        vectors: TextVectors | None = None,
        language: str = AUTO,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if whole_number("max_hops", max_hops) > MAX_HOPS:
            raise ConfigurationError(f"max_hops is {max_hops!r}. It must be from 1 to {MAX_HOPS}: further off, hardly anything has to do with the question.")
        fields: dict[str, Any] = {
            "max_tokens": whole_number("max_tokens", max_tokens),
            "max_hops": whole_number("max_hops", max_hops),
            "max_facts": whole_number("max_facts", max_facts, least=0),
            "language": language,
        }
        super().__init__(**fields, callback_manager=callback_manager or CallbackManager())
        self._analyzer = TextAnalyzer(language)
        self._source = graph_source_of(graph, DictNodeSource() if nodes is None else node_source_of(nodes))
        self._filters = filters if filters is not None and filters.filters else None
        if self._filters is not None and nodes is None and isinstance(self._source, ReadyGraph):
            raise ConfigurationError(f"filters are {filters!r:.200}, but nodes is None. Filters ask the metadata of the graph's chunks. Pass nodes=... too.")
        self._vectors = vectors
        self._count_tokens = default_window().count_tokens

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "SubgraphContext"

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        query = query_bundle.query_str if query_bundle is not None else ""
        with stage_trace(self.stage, query or None) as trace:
            result = [NodeWithScore(node=hit.node, score=_plain(hit.score)) for hit in nodes]
            found, told = self._told(query) if nodes and query.strip() else (SubGraph(), None)
            if told is not None and all(hit.node_id != told.node_id for hit in nodes):
                scores = [hit.score for hit in result if hit.score is not None]
                result.insert(0, NodeWithScore(node=told, score=max(scores, default=None)))
            if trace is not None:
                trace.evidence += _evidence(result, told, found)
        return result

    async def _apostprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        return await in_thread(self._postprocess_nodes, nodes, query_bundle)

    def _told(self, query: str) -> tuple[SubGraph, TextNode | None]:
        """What the graph knows, and the same as a node; None where there is nothing to say."""
        graph = self._source.graph()
        seeds = graph.link(query)
        if not seeds:
            return SubGraph(), None
        relevance = self._relevance(query)
        found = subgraph(self._connections(graph), seeds, max_hops=self.max_hops, max_facts=self.max_facts, relevance=relevance)
        language = (detect_language(query) or "en") if self.language == AUTO else self.language
        text = found.text(language, self.max_tokens, count_tokens=self._count_tokens)
        return found, _node(text, language, found.chunks_behind(text, language)) if text else None

    def _connections(self, graph: EntityGraph) -> Connections:
        with self._lock:
            if self._ready is None or self._ready.graph is not graph:
                allowed = None if self._filters is None else self._source.allowed(graph, self._filters)
                self._ready = Connections.of(graph, allowed=allowed)
            return self._ready

    def _relevance(self, query: str) -> Callable[[Sequence[Relation]], Sequence[float]]:
        def scores(facts: Sequence[Relation]) -> Sequence[float]:
            vector = None if self._vectors is None else self._vectors.query_vector(query)
            index = FactIndex(GraphFacts(_NO_PLACES, _NO_PLACES, _NO_PLACES, facts), self._analyzer, self._vectors)
            return index.scores(query, vector).tolist()

        return scores

    def __repr__(self) -> str:
        return f"SubgraphContext(max_tokens={self.max_tokens}, max_hops={self.max_hops}, max_facts={self.max_facts})"


def tells_of_the_graph(node: BaseNode) -> bool:
    """Whether a node was put in front by `SubgraphContext`: it stands in no document."""
    return node.metadata.get("kind") == KIND and node.ref_doc_id is None


def _node(text: str, language: str, chunks: Sequence[str]) -> TextNode:
    metadata = {"kind": KIND, "title": _TITLES.get(language, _TITLES["en"]), "chunks": list(chunks)}
    return TextNode(
        id_=str(uuid5(_NAMESPACE, text)), text=text, metadata=metadata, excluded_llm_metadata_keys=_NOT_SHOWN, excluded_embed_metadata_keys=_NOT_SHOWN
    )


def _plain(score: float | None) -> float | None:
    return None if score is None else float(score)


def _evidence(result: Sequence[NodeWithScore], told: TextNode | None, found: SubGraph) -> list[Evidence]:
    listed = [Evidence(hit.node_id, SubgraphContext.stage, place, hit.score, "retrieved") for place, hit in enumerate(result, start=1)]
    if told is not None and result[0].node_id == told.node_id:
        why = f"tells of {len(found.paths)} connections and {len(found.facts)} facts around {found.entities[0]}"
        details = {"entities": list(found.entities[:_SHOWN]), "chunks": told.metadata["chunks"]}
        listed[0] = Evidence(told.node_id, SubgraphContext.stage, 1, result[0].score, why, details)
    return listed
