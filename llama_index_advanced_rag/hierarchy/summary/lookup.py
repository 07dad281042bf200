"""Scores of summaries for a question: words and meaning together, over all of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from llama_index_advanced_rag.errors import EmbeddingMismatchError
from llama_index_advanced_rag.hierarchy.summary.growth import Vector
from llama_index_advanced_rag.hierarchy.summary.node import SummaryNode
from llama_index_advanced_rag.ranking.fusion import FusionMode, fused_scores
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

_DIGITS = 6  # what float32 carries: equal vectors get equal cosines wherever they stand
_FROM_ZERO = ScoreRange(0.0, None)


class SummaryLookup:
    """A word index over titles and summaries, and their vectors, in memory.

    Args:
        analyzer: cuts summaries and questions into terms.
        dense_weight: share of the meaning in a score, 0 to 1; the rest is that of the words.

    Example:
        >>> lookup = SummaryLookup(TextAnalyzer("en"), dense_weight=0.5)
        >>> fox, hen = SummaryNode("fox", "Foxes", 0, "They hunt.", ""), SummaryNode("hen", "Hens", 0, "They sleep.", "")
        >>> lookup.add([(fox, np.array([1.0, 0.0], np.float32)), (hen, np.array([0.6, 0.8], np.float32))])
        >>> {node_id: round(score, 2) for node_id, score in lookup.scores("a fox", [1.0, 0.0]).items()}
        {'fox': 1.0, 'hen': 0.3}
    """

    def __init__(self, analyzer: TextAnalyzer, *, dense_weight: float) -> None:
        self._postings = PostingsStore(analyzer)
        self._vectors = _Vectors()
        self._weights = [dense_weight, 1.0 - dense_weight]

    def add(self, nodes: Sequence[tuple[SummaryNode, Vector]]) -> None:
        """Hold summaries; a known id is replaced.

        Raises:
            EmbeddingMismatchError: the vectors have not all the same length.
        """
        if nodes:
            vectors = self._vectors.changed({node.node_id: vector for node, vector in nodes}, ())
            self._postings.add([node.node_id for node, _ in nodes], [node.embedded_text for node, _ in nodes])
            self._vectors = vectors

    def delete(self, node_ids: Iterable[str]) -> None:
        """Let go of summaries; unknown ids are ignored."""
        gone = set(node_ids)
        if gone:
            self._postings.delete(gone)
            self._vectors = self._vectors.changed({}, gone)

    def scores(self, query: str, vector: Sequence[float]) -> dict[str, float]:
        """The score of each summary that has something in common with the question, in (0, 1].

        The best cosine and the best BM25 score are each 1, none at all is 0, and the weighted mean of both is the score.

        Raises:
            EmbeddingMismatchError: the vector has another length than those of the summaries.
        """
        words = self._postings.search(query, top_k=max(1, len(self._postings)))
        return fused_scores(FusionMode.WEIGHTED, [self._vectors.cosines(vector), words], weights=self._weights, ranges=[_FROM_ZERO, _FROM_ZERO])


@dataclass(frozen=True)
class _Vectors:
    """Vectors of length 1, a row each: few enough for one product, and never changed."""

    names: tuple[str, ...] = ()
    rows: Vector = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))

    def changed(self, fresh: Mapping[str, Vector], gone: Collection[str]) -> "_Vectors":
        held = {name: row for name, row in zip(self.names, self.rows, strict=True) if name not in gone}
        held.update((name, vector / np.float32(np.linalg.norm(vector) or 1.0)) for name, vector in fresh.items())
        lengths = sorted({len(row) for row in held.values()})
        if len(lengths) > 1:
            raise EmbeddingMismatchError(
                f"The embedding model gave vectors of {lengths[0]} and of {lengths[-1]} numbers. Expected one length. Check the model."
            )
        return _Vectors(tuple(held), np.array(list(held.values()), dtype=np.float32)) if held else _Vectors()

    def cosines(self, vector: Sequence[float]) -> list[tuple[str, float]]:
        """Names with cosines above 0."""
        query = np.asarray(vector, dtype=np.float32)
        if not self.names:
            return []
        if query.shape != self.rows.shape[1:]:
            raise EmbeddingMismatchError(
                f"The question has a vector of {query.size} numbers, the summaries have {self.rows.shape[1]}. Use the model of the summaries."
            )
        products = np.round((self.rows @ (query / np.float32(np.linalg.norm(query) or 1.0))).astype(np.float64), _DIGITS)
        return [(name, score) for name, score in zip(self.names, products.tolist(), strict=True) if score > 0.0]
