"""Our BM25 gives the scores of bm25s, the reference, on random corpora."""

import bm25s
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

WORDS = [f"w{number}" for number in range(12)]
texts_of = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=20)


def reference(corpus: list[list[str]], query: list[str], *, k1: float, b: float) -> np.ndarray:
    index = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    index.index(corpus, show_progress=False)
    known = [term for term in query if term in index.vocab_dict]
    return index.get_scores(known) if known else np.zeros(len(corpus))


@given(texts_of, st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.sampled_from([1.2, 1.5]), st.sampled_from([0.4, 0.75]))
@settings(max_examples=100, deadline=None)
def test_scores_equal_those_of_bm25s_lucene(corpus, query, k1, b):
    assume(any(corpus))
    store = PostingsStore(TextAnalyzer("none", token_pattern=r"\S+"), k1=k1, b=b)
    ids = [str(number) for number in range(len(corpus))]
    store.add(ids, [" ".join(words) for words in corpus])
    # bm25s' "lucene" leaves out the constant factor k1 + 1
    expected = {node_id: score * (k1 + 1) for node_id, score in zip(ids, reference(corpus, query, k1=k1, b=b), strict=True) if score > 0}
    assert dict(store.search(" ".join(query), top_k=100)) == pytest.approx(expected, abs=1e-5)


def test_ranking_equals_that_of_the_stock_retriever_on_the_same_terms():
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever

    texts = ["The dogs run in the park", "A dog runs", "Cats sleep on the sofa all day", "The park is closed", "Running shoes for dogs and cats"]
    nodes = [TextNode(id_=str(number), text=text) for number, text in enumerate(texts)]
    stop_words = frozenset(bm25s.stopwords.STOPWORDS_EN)
    ours = LexicalRetriever.from_defaults(nodes=nodes, analyzer=TextAnalyzer("en", stop_words=stop_words, token_pattern=r"(?u)\b\w\w+\b"))
    stock = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=5)
    for query in ("running dogs", "cats in the park", "sofa shoes"):
        expected = {hit.node_id: hit.score for hit in stock.retrieve(query) if hit.score}
        found = {hit.node_id: hit.score for hit in ours.retrieve(query)}
        assert set(found) == set(expected)
        ratios = [found[node_id] / expected[node_id] for node_id in found]
        assert ratios == pytest.approx([2.5] * len(ratios), rel=1e-4)
