"""Which facts a question is about, by their words and, with an embedding model, by their meaning."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.fold_arrays import GraphFacts
from llama_index_advanced_rag.graph.templates import readable_predicate
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

TOP_FACTS = 5
_MOST_CHARS = 1000


class FactIndex:
    """The facts of one graph, searchable.

    Args:
        facts: the facts.
        analyzer: cuts facts and questions into terms.
        vectors: embeds facts; None = words only.
    """

    def __init__(self, facts: GraphFacts, analyzer: TextAnalyzer, vectors: TextVectors | None = None) -> None:
        self._facts = facts
        self._analyzer = analyzer
        self._vectors = vectors

    @cached_property
    def texts(self) -> list[str]:
        """Each fact in its own words: subject, predicate, object."""
        return [f"{fact.subject} {readable_predicate(fact.predicate)} {fact.object}"[:_MOST_CHARS] for fact in self._facts.relations]

    @cached_property
    def _store(self) -> PostingsStore:
        store = PostingsStore(self._analyzer)
        store.add([str(place) for place in range(len(self.texts))], self.texts)
        return store

    def scores(self, query: str, query_vector: Sequence[float] | None = None) -> NDArray[np.float64]:
        """(n_facts,) how well each fits a question, 0 to 1, higher is better: the mean of BM25 as a share of its best and the cosine.

        Args:
            query: the question.
            query_vector: its embedding; None = words only.
        """
        if not self.texts:
            return np.zeros(0)
        words = self._store.scores(Counter(self._analyzer.query_groups(query)))
        words = words / max(float(words.max()), np.finfo(float).tiny)
        if self._vectors is None or query_vector is None:
            return words
        return (words + np.clip(self._vectors.similarities(self.texts, query_vector), 0.0, 1.0)) / 2
