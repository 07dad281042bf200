"""Scores of summaries for a question: words and meaning together, over all of them."""

from collections.abc import Iterable, Sequence

from llama_index.core.schema import TextNode

from llama_index_advanced_rag.hierarchy.summary_growth import Vector
from llama_index_advanced_rag.hierarchy.summary_node import SummaryNode
from llama_index_advanced_rag.ranking.fusion import FusionMode, fused_scores
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

_FROM_ZERO = ScoreRange(0.0, None)


class SummaryLookup:
    """A word index and a vector index over titles and summaries.

    Args:
        analyzer: cuts summaries and questions into terms.
        dense_weight: share of the meaning in a score, 0 to 1; the rest is that of the words.

    Example:
        >>> import numpy as np
        >>> lookup = SummaryLookup(TextAnalyzer("en"), dense_weight=0.5)
        >>> fox, hen = SummaryNode("fox", "Foxes", 0, "They hunt.", ""), SummaryNode("hen", "Hens", 0, "They sleep.", "")
        >>> lookup.add([(fox, np.array([1.0, 0.0], np.float32)), (hen, np.array([0.6, 0.8], np.float32))])
        >>> {node_id: round(score, 2) for node_id, score in lookup.scores("a fox", [1.0, 0.0]).items()}
        {'fox': 1.0, 'hen': 0.3}
    """

    def __init__(self, analyzer: TextAnalyzer, *, dense_weight: float) -> None:
        self._postings = PostingsStore(analyzer)
        self._vectors = FlatVectorStore(keep_nodes=False)
        self._weights = [dense_weight, 1.0 - dense_weight]

    def add(self, nodes: Sequence[tuple[SummaryNode, Vector]]) -> None:
        """Hold summaries; a known id is replaced."""
        if nodes:
            self._postings.add([node.node_id for node, _ in nodes], [node.embedded_text for node, _ in nodes])
            self._vectors.add([TextNode(id_=node.node_id, text="", embedding=vector.tolist()) for node, vector in nodes])

    def delete(self, node_ids: Iterable[str]) -> None:
        """Let go of summaries; unknown ids are ignored."""
        gone = list(node_ids)
        if gone:
            self._postings.delete(gone)
            self._vectors.delete_nodes(gone)

    def scores(self, query: str, vector: Sequence[float]) -> dict[str, float]:
        """The score of each summary that has something in common with the question, in (0, 1].

        The best cosine and the best BM25 score are each 1, none at all is 0, and the weighted mean of both is the score.
        """
        count = max(1, len(self._postings))
        words = self._postings.search(query, top_k=count)
        meaning = [(node_id, score) for node_id, score in self._vectors.search(vector, count) if score > 0.0]
        return fused_scores(FusionMode.WEIGHTED, [meaning, words], weights=self._weights, ranges=[_FROM_ZERO, _FROM_ZERO])
