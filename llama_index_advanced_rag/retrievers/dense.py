"""Search by embedding over any LlamaIndex vector store, and over the rows of a corpus."""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, ObjectType, QueryBundle
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters, VectorStoreQuery, VectorStoreQueryResult

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.embeddings.async_calls import aembed_query
from llama_index_advanced_rag.errors import NodeSourceError
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.row_search import RowHit, RowRetriever, common_space
from llama_index_advanced_rag.stores.node_source import NodeSource, sort_key
from llama_index_advanced_rag.stores.rows.positions import NOTHING, Found
from llama_index_advanced_rag.stores.rows.row_state import RowSpace, RowState
from llama_index_advanced_rag.stores.vectors.any_vector_store import aquery_store, query_store, simple_store_ids
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric
from llama_index_advanced_rag.trace import Evidence, current_trace, report

_WIDEN = 10
_MOST_ASKED = 10_000
_Hit = tuple[BaseNode, float | None]


class DenseRetriever(RowRetriever):
    """Nodes whose embedding is nearest to the query's. No LLM call; one embedding of the query.

    The query is embedded with this retriever's own model, once, and the bundle that was given is not written to. An
    embedding the caller has put into the bundle is used as it is. An empty query finds nothing.

    Over the vectors of a `CorpusIndex` rows are ranked, and nodes are read for the final hits only.

    Args:
        vector_store: any LlamaIndex vector store; scores are the similarities it reports, higher is better.
        embed_model: the model the vectors of the store were made with.
        nodes: where to read the nodes of a store that keeps vectors only (`SimpleVectorStore`), and image, index and other
            non-text nodes of one that keeps text; None = the store's own nodes.
        similarity_top_k: most nodes returned.
        filters: metadata filters, applied by the store; on `SimpleVectorStore` every operator and nesting works.
        doc_ids: only nodes of these documents (`ref_doc_id`); an empty list = nothing. Also kept where the store ignores it.
        node_ids: only these nodes; an empty list = nothing.

    Raises:
        NodeSourceError: at retrieval, the store gives ids without nodes and there is no `nodes`.

    Example:
        >>> from llama_index.core import VectorStoreIndex
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.stores.node_source import DictNodeSource
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> nodes = [TextNode(id_="fox", text="red fox"), TextNode(id_="sea", text="deep sea")]
        >>> index = VectorStoreIndex(nodes, embed_model=DeterministicEmbedding())
        >>> retriever = DenseRetriever(index.vector_store, DeterministicEmbedding(), nodes=DictNodeSource(nodes))
        >>> [(hit.node_id, round(hit.score, 2)) for hit in retriever.retrieve("fox red")][0]
        ('fox', 1.0)
    """

    stage: ClassVar[str] = "dense"
    probe_awaits: ClassVar[bool] = True

    def __init__(
        self,
        vector_store: BasePydanticVectorStore,
        embed_model: BaseEmbedding,
        *,
        nodes: NodeSource | None = None,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        doc_ids: Sequence[str] | None = None,
        node_ids: Sequence[str] | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity_top_k=similarity_top_k, filters=filters, callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose
        )
        self._vector_store = vector_store
        self._embed_model = embed_model
        self._nodes = nodes
        self._space = common_space(vector_store, nodes)
        self._doc_ids = None if doc_ids is None else list(doc_ids)
        self._node_ids = None if node_ids is None else list(node_ids)

    @property
    def embed_model(self) -> BaseEmbedding:
        """The model that embeds the query."""
        return self._embed_model

    @property
    def score_range(self) -> ScoreRange | None:
        """0 to 1 for the stores known to report a cosine; None for others."""
        return ScoreRange(0.0, 1.0) if self._is_cosine else None

    @property
    def _is_cosine(self) -> bool:
        store = self._vector_store
        return isinstance(store, SimpleVectorStore) or getattr(store, "metric", None) is VectorMetric.COSINE

    @property
    def by_ids(self) -> bool:
        """True when only certain nodes or documents are searched."""
        return self._node_ids is not None or self._doc_ids is not None

    def probe(self, query_bundle: QueryBundle) -> Sequence[float] | None:
        """The embedding of the query."""
        if self._finds_nothing(query_bundle):
            return None
        if query_bundle.embedding is not None:
            return query_bundle.embedding
        return self._embed_model.get_agg_embedding_from_queries(query_bundle.embedding_strs)

    async def aprobe(self, query_bundle: QueryBundle) -> Sequence[float] | None:
        """The async twin of `probe`."""
        if self._finds_nothing(query_bundle):
            return None
        if query_bundle.embedding is not None:
            return query_bundle.embedding
        return await aembed_query(self._embed_model, query_bundle.embedding_strs)

    def probes(self, query_bundles: Sequence[QueryBundle]) -> list[Sequence[float] | None]:
        """The embeddings of several queries; equal questions are embedded once."""
        known: dict[tuple[str, ...], Sequence[float] | None] = {}
        found: list[Sequence[float] | None] = []
        for bundle in query_bundles:
            texts = tuple(bundle.embedding_strs)
            if bundle.embedding is None and texts not in known:
                known[texts] = self.probe(bundle)
            found.append(known[texts] if bundle.embedding is None else self.probe(bundle))
        return found

    def rank(self, state: RowState, probes: Sequence[Sequence[float]]) -> list[Found]:
        """The most similar rows for each embedding."""
        matrix = state.matrix
        if matrix is None:
            return [NOTHING] * len(probes)
        queries = [matrix.checked_query(probe) for probe in probes]
        mask = state.mask(self._filters, node_ids=self._node_ids, doc_ids=self._doc_ids)
        if len(queries) == 1:
            return [matrix.top(queries[0], top_k=self._similarity_top_k, names=state.names, mask=mask)]
        return matrix.top_batch(queries, top_k=self._similarity_top_k, names=state.names, mask=mask)

    def row_evidence(self, state: RowState, probe: Sequence[float], hits: Sequence[RowHit]) -> list[Evidence]:
        """The similarity of each hit."""
        return self._evidence([(hit.node, hit.score) for hit in hits])

    def _find_nodes(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        embedding = self.probe(query_bundle)
        if embedding is None:
            return []
        template, top_k = self._store_query(query_bundle, embedding), self._similarity_top_k
        while True:
            hits, n_missing = self._answer(replace(template, similarity_top_k=top_k))
            if self._enough(hits, n_missing, top_k):
                return self._ranked(hits)
            top_k *= _WIDEN

    async def _afind_nodes(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        embedding = await self.aprobe(query_bundle)
        if embedding is None:
            return []
        template, top_k = await in_thread(self._store_query, query_bundle, embedding), self._similarity_top_k
        while True:
            hits, n_missing = await self._aanswer(replace(template, similarity_top_k=top_k))
            if self._enough(hits, n_missing, top_k):
                return self._ranked(hits)
            top_k *= _WIDEN

    def _finds_nothing(self, bundle: QueryBundle) -> bool:
        no_query = bundle.embedding is None and not any(text.strip() for text in bundle.embedding_strs)
        return no_query or self._doc_ids == [] or self._node_ids == []

    def _store_query(self, bundle: QueryBundle, embedding: Sequence[float]) -> VectorStoreQuery:
        restricted = self._filters is not None or self._doc_ids is not None
        known = simple_store_ids(self._vector_store, self._doc_ids, self._filters) if restricted else None
        if known is not None and self._node_ids is not None:
            known = list(set(known).intersection(self._node_ids))
        return VectorStoreQuery(
            query_embedding=list(embedding),
            query_str=bundle.query_str,
            filters=self._filters if known is None else None,
            doc_ids=self._doc_ids if known is None else None,
            node_ids=self._node_ids if known is None else known,
        )

    def _answer(self, query: VectorStoreQuery) -> tuple[list[_Hit], int]:
        """The hits, and how many more have no node."""
        hits, missing = self._hits(query_store(self._vector_store, query))
        known: set[str] = set()
        while missing and missing != known:  # gone between the search and the reading: the store knows by now
            known, (hits, missing) = missing, self._hits(query_store(self._vector_store, query))
        return self._present(hits, missing)

    async def _aanswer(self, query: VectorStoreQuery) -> tuple[list[_Hit], int]:
        """The async twin of `_answer`."""
        hits, missing = await in_thread(self._hits, await aquery_store(self._vector_store, query))
        known: set[str] = set()
        while missing and missing != known:
            known, (hits, missing) = missing, await in_thread(self._hits, await aquery_store(self._vector_store, query))
        return self._present(hits, missing)

    @staticmethod
    def _present(hits: list[_Hit], missing: Collection[str]) -> tuple[list[_Hit], int]:
        if missing:
            report("warning", f"{len(missing)} of {len(missing) + len(hits)} vectors found have no node in the node source and were left out.")
        return hits, len(missing)

    def _hits(self, result: VectorStoreQueryResult) -> tuple[list[_Hit], set[str]]:
        """Nodes with their scores, and the ids whose nodes are missing."""
        nodes = self._result_nodes(result)
        similarities = result.similarities
        scores = [None] * len(nodes) if similarities is None else [_plain(score) for score in similarities]
        missing = {node_id for node_id, node in zip(result.ids or [], nodes, strict=False) if node is None}
        return [(node, score) for node, score in zip(nodes, scores, strict=True) if node is not None], missing

    def _result_nodes(self, result: VectorStoreQueryResult) -> list[BaseNode | None]:
        if result.nodes and isinstance(self._nodes, RowSpace):
            fetched = self._fetch([node.node_id for node in result.nodes])  # an index knows its nodes better than a store beside it
            return [fetched.get(node.node_id) for node in result.nodes]
        if result.nodes:
            fetched = self._fetch([node.node_id for node in result.nodes if not _is_text(node)])
            return [fetched.get(node.node_id, node) for node in result.nodes]
        ids = list(result.ids or [])
        if ids and self._nodes is None:
            raise NodeSourceError(
                f"{type(self._vector_store).__name__} answered {len(ids)} node ids without their nodes. DenseRetriever needs the nodes. "
                "Pass nodes=DocstoreNodeSource(index.docstore) or nodes=DictNodeSource(nodes)."
            )
        found = self._fetch(ids)
        return [found.get(node_id) for node_id in ids]

    def _fetch(self, node_ids: Sequence[str]) -> dict[str, BaseNode]:
        if self._nodes is None or not node_ids:
            return {}
        return {node.node_id: node for node in self._nodes.get_nodes(node_ids)}

    def _allows(self, node: BaseNode) -> bool:
        in_documents = self._doc_ids is None or node.ref_doc_id in self._doc_ids
        return in_documents and (self._node_ids is None or node.node_id in self._node_ids)

    def _enough(self, hits: Collection[_Hit], n_missing: int, asked: int) -> bool:
        allowed = sum(self._allows(node) for node, _ in hits)
        if allowed >= self._similarity_top_k or len(hits) + n_missing < asked:
            return True
        if allowed == len(hits) and (asked >= _MOST_ASKED or not isinstance(self._nodes, RowSpace)):
            return True  # only an index says that a vector without a node is one too many; a docstore may just be incomplete
        why = "ignores doc_ids or node_ids" if allowed < len(hits) else "holds nodes that the index does not"
        report("info", f"{type(self._vector_store).__name__} {why}; it is asked again for {asked * _WIDEN} nodes.")
        return False

    def _ranked(self, hits: Sequence[_Hit]) -> list[NodeWithScore]:
        allowed = [(node, score) for node, score in hits if self._allows(node)]
        if any(score is not None for _, score in allowed):
            allowed.sort(key=lambda hit: (-_or_lowest(hit[1]), sort_key(hit[0])))
        allowed = allowed[: self._similarity_top_k]
        trace = current_trace()
        if trace is not None:
            trace.evidence += self._evidence(allowed)
        return [NodeWithScore(node=node, score=score) for node, score in allowed]

    def _evidence(self, hits: Sequence[_Hit]) -> list[Evidence]:
        measure = "cosine" if self._is_cosine else "similarity"
        found: list[Evidence] = []
        for rank, (node, score) in enumerate(hits, start=1):
            why = f"place {rank} in {type(self._vector_store).__name__}" if score is None else f"{measure} {score:.2f}"
            found.append(Evidence(node.node_id, self.stage, rank, score, why))
        return found

    def __repr__(self) -> str:
        return f"DenseRetriever({type(self._vector_store).__name__}, {self._embed_model.model_name!r}, similarity_top_k={self._similarity_top_k})"


def _plain(score: Any) -> float:
    value = float(score)
    return 0.0 if math.isnan(value) else value


def _or_lowest(score: float | None) -> float:
    return -math.inf if score is None else score


def _is_text(node: BaseNode) -> bool:
    return node.as_related_node_info().node_type in (None, ObjectType.TEXT)
