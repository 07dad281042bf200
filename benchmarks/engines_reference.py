"""What the engines are compared with: LlamaIndex's own components, and the limit of numpy and bm25s on prebuilt arrays."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import numpy.typing as npt
import Stemmer
from engines_data import PreparedEmbedding, Question, Vectors
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import BaseNode
from llama_index.retrievers.bm25 import BM25Retriever

from llama_index_advanced_rag.text.analyzer import TextAnalyzer

LIMIT_K = 100
_BM25_FOLDER = "bm25"


class Limit:
    """An exact dense product and a BM25 sum over arrays that are ready, the best 100 of each, nothing fused, no ids, no text.

    The words of a question are cut beforehand, once. `bm25s` keeps finished scores, so a query only adds them up.
    """

    def __init__(self, vectors: Vectors, index: "bm25s.BM25") -> None:
        self._vectors = np.array(vectors)  # in memory of its own, as fast as it gets
        self._index = index

    def search(self, vector: Vectors, tokens: list[str]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Rows of the best 100 by vector and by words, best first."""
        return self.dense(vector), self.lexical(tokens)

    def dense(self, vector: Vectors, k: int = LIMIT_K) -> npt.NDArray[np.intp]:
        """Rows of the best k by vector."""
        return _best(self._vectors @ vector, k)

    def lexical(self, tokens: list[str], k: int = LIMIT_K) -> npt.NDArray[np.intp]:
        """Rows of the best k by words; only documents with a word are sorted, since numpy is slow on many equal scores."""
        scores = self._index.get_scores(tokens)
        hits = np.flatnonzero(scores)
        return hits[_best(scores[hits], k)]


def _best(scores: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.intp]:
    top = np.argpartition(scores, -k)[-k:] if k < len(scores) else np.arange(len(scores))
    return top[np.argsort(-scores[top], kind="stable")]


def build_bm25s(corpus: Sequence[str]) -> "bm25s.BM25":
    """bm25s over the texts, with English stop words and stems: the least work that word search can be built with."""
    tokens = bm25s.tokenize(list(corpus), stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    return index


def tokens_of(questions: Sequence[Question], index: "bm25s.BM25") -> list[list[str]]:
    """The terms of each question as ours cuts them, so that both sides look up the same, if the index knows them."""
    analyzer = TextAnalyzer("en")
    return [[term for term in analyzer.query_tokens(item.text) if term in index.vocab_dict] for item in questions]


def stock_index(nodes: Sequence[BaseNode], vectors: Vectors) -> VectorStoreIndex:
    """LlamaIndex's in-memory index over nodes that carry their vectors; the nodes are given them."""
    for node, vector in zip(nodes, vectors, strict=True):
        node.embedding = vector.tolist()
    return VectorStoreIndex(nodes, embed_model=PreparedEmbedding(vectors))


def stock_words(nodes: Sequence[BaseNode]) -> BM25Retriever:
    """LlamaIndex's BM25 over the nodes, 100 results."""
    return BM25Retriever.from_defaults(nodes=list(nodes), similarity_top_k=LIMIT_K)


def stock_hybrid(index: VectorStoreIndex, words: BM25Retriever, *, top_k: int) -> QueryFusionRetriever:
    """The usual hybrid of LlamaIndex: both retrievers, reciprocal rank fusion, no other queries."""
    retrievers = [index.as_retriever(similarity_top_k=LIMIT_K), words]
    return QueryFusionRetriever(retrievers, llm=MockLLM(), mode=FUSION_MODES.RECIPROCAL_RANK, num_queries=1, similarity_top_k=top_k, use_async=False)


def persist_stock(index: VectorStoreIndex, words: BM25Retriever, folder: Path) -> None:
    """Write both in the way each of them has."""
    index.storage_context.persist(str(folder))
    words.persist(str(folder / _BM25_FOLDER))


def open_stock(folder: Path, question: Question, *, top_k: int) -> float:
    """Seconds to open what `persist_stock` wrote and to answer one question."""
    started = time.perf_counter()
    index: Any = load_index_from_storage(StorageContext.from_defaults(persist_dir=str(folder)), embed_model=PreparedEmbedding(question.vector[None]))
    words = BM25Retriever.from_persist_dir(str(folder / _BM25_FOLDER))
    found = stock_hybrid(index, words, top_k=top_k).retrieve(question.bundle())
    elapsed = time.perf_counter() - started
    if len(found) != top_k:
        raise RuntimeError(f"Stock found {len(found)} nodes, not {top_k}: {json.dumps([hit.node_id for hit in found])}.")
    return elapsed
