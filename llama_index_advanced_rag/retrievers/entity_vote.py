"""Retrieval by vote: the entities that fit a question best vote for the passages that name them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import IndexNode, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.graph.titled_entities import TitledEntities
from llama_index_advanced_rag.ranking.entity_vote import select_voters, vote, with_neighbours
from llama_index_advanced_rag.retrievers.graph_source import graph_source_of
from llama_index_advanced_rag.retrievers.graph_views import views_of
from llama_index_advanced_rag.retrievers.guarded import GuardedRetriever
from llama_index_advanced_rag.retrievers.merging import Nodes
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.retrievers.vote_options import VoteOptions

_SHOWN = 8
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class Votes:
    """The outcome of one vote.

    Attributes:
        entities: what votes.
        voters: rows of `entities`, best first.
        scores: how well each fits the question.
        chunks: (n_chunks,) what the votes make of each chunk.
    """

    entities: TitledEntities
    voters: NDArray[np.int64]
    scores: NDArray[np.float64]
    chunks: NDArray[np.float64]

    def best(self, top_k: int) -> list[tuple[str, float]]:
        """Node ids and scores, best first; chunks without a vote are left out."""
        values: NDArray[np.float64] = np.where(self.entities.graph.is_passage, self.chunks, 0.0).round(_DIGITS)
        ids = self.entities.graph.chunk_ids
        return [(ids[place], float(values[place])) for place in select_voters(values, top_k).tolist()]

    def story(self, node_id: str) -> tuple[str, dict[str, Any]]:
        """Which entities voted for a chunk."""
        place = self.entities.graph.place_of_chunk.get(node_id)
        if place is None or self.chunks[place] <= 0:
            return "", {}
        naming: Any = self.entities.naming
        voted = [row for row in self.voters.tolist() if place in naming.indices[naming.indptr[row] : naming.indptr[row + 1]]]
        texts = [self.entities.texts[row] for row in voted]
        shown = ", ".join(texts[:_SHOWN]) + (", …" if len(texts) > _SHOWN else "")
        return f"{len(texts)} of {len(self.voters)} votes: {shown}", {"vote": float(self.chunks[place]), "entities": texts}


class EntityVoteRetriever(GuardedRetriever[VoteOptions]):
    """The entities that fit a question best vote for the passages that name them.

    An entity is told apart by the document that speaks of it, and compared with the question as "name - title of the document". The best `top_n` are
    selected, those related to them by facts vote with `neighbour_decay` of their score, and a passage scores
    `share_weight x share of the selected it names + (1 - share_weight) x their mean score`. The first `guard` of `retriever` stay in front, and
    what nobody votes for, passages without a name say, follows as `retriever` has it. No LLM call.

    Names are embedded at the first question, and after changes those that are new: about as many texts as an index has names, which takes as long
    as embedding the passages did. A question is embedded once, beside what `retriever` does. An empty query finds nothing.

    Scores are 1 / position; those of the vote (0 to 1) are in the trace, with the entities that voted.

    Args:
        retriever: finds passages besides: any LlamaIndex retriever, a hybrid one as a rule.
        graph: an `EntityGraph`, a `PropertyGraphStore` (read once, now), a corpus or another graph source.
        vectors: embeds names and questions, and keeps the vectors of names.
        nodes: where passages are read: a docstore, an index, nodes, or a node source.
        units: weighs documents by their words and titles; None = all alike.
        similarity_top_k: most nodes returned.
        filters: only passages whose metadata match are returned or take part.
        top_n: entities selected; 30 to 40 were best where it was measured, fewer than 10 or more than 50 worse.
        document_weight: how much of an entity's score depends on how well its document fits, 0 to 1; needs `units`.
        share_weight: how much the number of votes counts against how well the voters fit, 0 to 1.
        neighbour_decay: what a related entity votes with; 0 = it does not vote.
        guard: so many of `retriever` come first.

    Raises:
        ConfigurationError: an option cannot work.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.graph.entity_graph import EntityGraph
        >>> from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> nodes = [TextNode(id_="a", text="Acme sells anvils."), TextNode(id_="b", text="Beta sells boats.")]
        >>> graph = EntityGraph.from_triples({"a": [("Acme", "sells", "anvils")], "b": [("Beta", "sells", "boats")]})
        >>> retriever = EntityVoteRetriever(
        ...     LexicalRetriever.from_defaults(nodes=nodes), graph, vectors=TextVectors(DeterministicEmbedding()), nodes=nodes, guard=0, top_n=2
        ... )
        >>> retriever.retrieve("What are the boats of Beta?")[0].node_id
        'b'

    Source: KG-RAG of the Vector Institute (github.com/VectorInstitute/kg-rag), entity-based retrieval. Our deviations: entities are titled and weighed by
    their documents, neighbours vote, passages without entities are reached through `retriever`, and no LLM extracts the entities.
    """

    stage: ClassVar[str] = "vote"

    def __init__(
        self,
        retriever: BaseRetriever,
        graph: object,
        *,
        vectors: TextVectors,
        nodes: Nodes,
        units: UnitScorer | None = None,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        top_n: int = VoteOptions.top_n,
        document_weight: float = VoteOptions.document_weight,
        share_weight: float = VoteOptions.share_weight,
        neighbour_decay: float = VoteOptions.neighbour_decay,
        guard: int = VoteOptions.guard,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            retriever,
            nodes=nodes,
            tunable=VoteOptions(top_n=top_n, document_weight=document_weight, share_weight=share_weight, neighbour_decay=neighbour_decay, guard=guard),
            similarity_top_k=similarity_top_k,
            filters=filters,
            callback_manager=callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        self._vectors = vectors
        self._units = units
        self._views = views_of(graph_source_of(graph, self._nodes))

    @property
    def _retriever_top_n(self) -> int:
        return self.similarity_top_k

    def _own(self, query_bundle: QueryBundle, found: Sequence[str]) -> Votes | None:
        titled = self._views.titled.current()
        if not titled.texts:
            return None
        vector = query_bundle.embedding or self._vectors.query_vector(query_bundle.query_str)
        scores = np.clip(self._vectors.similarities(titled.texts, vector), 0.0, 1.0) * self._document_factors(titled, query_bundle.query_str)
        allowed = self._views.masks.of(titled.graph, self.filters)
        naming: Any = titled.naming
        if allowed is not None:
            scores = np.where(naming @ allowed.astype(np.float64) > 0, scores, 0.0)
        voters = select_voters(scores, self._options.top_n)
        everybody, theirs = with_neighbours(voters, scores[voters], titled.relations, self._options.neighbour_decay)
        chunks = vote(naming, everybody, theirs, n_votes=len(voters), share_weight=self._options.share_weight)
        return Votes(titled, everybody, theirs, chunks if allowed is None else np.where(allowed, chunks, 0.0))

    def _document_factors(self, titled: TitledEntities, query: str) -> NDArray[np.float64]:
        """For each entity `1 - w + w x share of its document`, the best document having the share 1."""
        if self._units is None or not self._options.document_weight:
            return np.ones(len(titled.documents))
        shares = self._units.scores(query, filters=self.filters).choose_documents()
        best = max(shares.values(), default=0.0) or 1.0
        of_document = np.array([shares.get(document, 0.0) / best for document in titled.document_ids])
        return 1 - self._options.document_weight + self._options.document_weight * of_document[titled.documents]
