"""Measures on an index that is built: what a question costs, alone, filtered, in a batch and beside others, and whether it is answered right."""

import asyncio
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Row
from engines_data import Question, document_id
from engines_reference import LIMIT_K, Limit
from engines_rows import THROUGHPUT, compared, taking_turns
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex

TOP_K = 10
BATCH = 64
AT_ONCE = 8
TICK_S = 0.0005


@dataclass(frozen=True)
class Bench:
    """One size: the index of ours, the limit, and questions with their terms."""

    size: int
    index: CorpusIndex
    limit: Limit
    questions: Sequence[Question]
    tokens: Sequence[list[str]]

    def retriever(self, mode: str = "hybrid", *, top_k: int = TOP_K, filters: MetadataFilters | None = None) -> Any:
        """One of ours."""
        return self.index.as_retriever(mode, similarity_top_k=top_k, filters=filters)

    def bundles(self) -> list[QueryBundle]:
        """The questions with their vectors."""
        return [question.bundle() for question in self.questions]


def against_limit(bench: Bench) -> list[Row]:
    """The ids-and-scores path and `retrieve()` of hybrid, and each side alone, in turns with the limit."""
    bundles, limit, size = bench.bundles(), bench.limit, bench.size
    hybrid, dense, lexical = bench.retriever(), bench.retriever("dense", top_k=LIMIT_K), bench.retriever("lexical", top_k=LIMIT_K)
    vectors, tokens = [item.vector for item in bench.questions], bench.tokens
    ids, nodes, both, dense_ids, product, lexical_ids, words = taking_turns(
        len(bundles),
        lambda at: hybrid.retrieve_ids(bundles[at]),
        lambda at: hybrid.retrieve(bundles[at]),
        lambda at: limit.search(vectors[at], tokens[at]),
        lambda at: dense.retrieve_ids(bundles[at]),
        lambda at: limit.dense(vectors[at]),
        lambda at: lexical.retrieve_ids(bundles[at]),
        lambda at: limit.lexical(tokens[at]),
    )
    return [
        compared(size, "hybrid ids and scores against the limit", ids, both, "ms"),
        compared(size, "hybrid retrieve() against the limit", nodes, both, "ms"),
        compared(size, "dense ids and scores against numpy", dense_ids, product, "ms"),
        compared(size, "lexical ids and scores against bm25s", lexical_ids, words, "ms"),
    ]


def against_stock(bench: Bench, stock: BaseRetriever, *, count: int) -> list[Row]:
    """`retrieve()` of both hybrids in turns."""
    bundles, ours = bench.bundles(), bench.retriever()
    fast, slow = taking_turns(count, lambda at: ours.retrieve(bundles[at]), lambda at: stock.retrieve(bundles[at]), warm_up=1)
    return [compared(bench.size, "hybrid query against stock", fast, slow, "ms")]


def filters_of(shelf: int) -> Mapping[str, MetadataFilters]:
    """Filters that one document in a hundred passes, by the name of their operator; `shelf` is 0 to 99."""
    name, low = f"shelf{shelf:02}", 100 * shelf
    boxes = [f"b{(shelf * 10 + place) % 1000:03}" for place in range(10)]
    operator = FilterOperator
    parts = {
        "==": [MetadataFilter(key="shelf", value=f"s{shelf:02}", operator=operator.EQ)],
        "in": [MetadataFilter(key="box", value=boxes, operator=operator.IN)],
        "range": [MetadataFilter(key="weight", value=low, operator=operator.GTE), MetadataFilter(key="weight", value=low + 100, operator=operator.LT)],
        "any": [MetadataFilter(key="tags", value=[name, "lost"], operator=operator.ANY)],
        "all": [MetadataFilter(key="tags", value=[f"row{shelf % 10}", f"bay{shelf // 10}"], operator=operator.ALL)],
        "contains": [MetadataFilter(key="tags", value=name, operator=operator.CONTAINS)],
        "text_match": [MetadataFilter(key="note", value=f"shelf {shelf:02}", operator=operator.TEXT_MATCH)],
    }
    return {key: MetadataFilters(filters=list(value)) for key, value in parts.items()}


def filtered(bench: Bench, *, count: int) -> list[Row]:
    """Each filter in turns with no filter; every round asks for another shelf, so that no round finds the answer of an earlier one."""
    bundles, plain = bench.bundles(), bench.retriever()
    sets = [filters_of(number * 37 % 100) for number in range(count)]
    names = list(sets[0])
    retrievers = {name: [bench.retriever(filters=filters[name]) for filters in sets] for name in names}
    for name in names:
        found = len(retrievers[name][0].retrieve(bundles[0]))
        if found != min(TOP_K, bench.size // 100):
            raise RuntimeError(f"The filter {name} lets {found} of {bench.size // 100} documents through to a list of {TOP_K}.")

    def asking(name: str) -> Callable[[int], object]:
        return lambda at: retrievers[name][at].retrieve_ids(bundles[at])

    unfiltered, *times = taking_turns(count, lambda at: plain.retrieve_ids(bundles[at]), *(asking(name) for name in names), warm_up=1)
    return [compared(bench.size, f"filtered by {name} against unfiltered", value, unfiltered, "ms") for name, value in zip(names, times, strict=True)]


def batched(bench: Bench, *, rounds: int) -> list[Row]:
    """64 questions in one call against one after the other."""
    bundles, retriever = (bench.bundles() * BATCH)[:BATCH], bench.retriever()
    together, alone = taking_turns(rounds, lambda _: retriever.retrieve_batch(bundles), lambda _: [retriever.retrieve(one) for one in bundles], warm_up=1)
    name = f"{BATCH} queries in one batch against one by one"
    return [compared(bench.size, name, 1000 * BATCH / together, 1000 * BATCH / alone, THROUGHPUT)]


async def _longest_gap(done: asyncio.Event) -> float:
    """Milliseconds of the longest time that a task which only sleeps had to wait beyond its sleep."""
    longest = 0.0
    while not done.is_set():
        started = time.perf_counter()
        await asyncio.sleep(TICK_S)
        longest = max(longest, time.perf_counter() - started - TICK_S)
    return longest * 1000


async def _concurrent(retriever: BaseRetriever, bundles: Sequence[QueryBundle], rounds: int) -> tuple[float, float, float]:
    """Median milliseconds of all at once, of one after the other by `retrieve`, and of the longest stall while all were under way."""
    together, alone, stalls = list[float](), list[float](), list[float]()
    for number in range(rounds + 1):
        started = time.perf_counter()
        for bundle in bundles:
            retriever.retrieve(bundle)
        middle = time.perf_counter()
        await asyncio.gather(*(retriever.aretrieve(bundle) for bundle in bundles))
        ended, done = time.perf_counter(), asyncio.Event()
        ticker = asyncio.create_task(_longest_gap(done))
        await asyncio.sleep(0)
        await asyncio.gather(*(retriever.aretrieve(bundle) for bundle in bundles))
        done.set()
        stall = await ticker
        if number:
            together.append((ended - middle) * 1000)
            alone.append((middle - started) * 1000)
            stalls.append(stall)
    return statistics.median(together), statistics.median(alone), statistics.median(stalls)


def concurrent(bench: Bench, *, rounds: int) -> list[Row]:
    """8 `aretrieve` at once against 8 `retrieve` in a row, and how long the event loop stood still meanwhile."""
    together, alone, stall = asyncio.run(_concurrent(bench.retriever(), bench.bundles()[:AT_ONCE], rounds))
    return [
        compared(bench.size, f"{AT_ONCE} concurrent aretrieve against one by one", together, alone, "ms"),
        compared(bench.size, "longest stall of the event loop against one query", stall, alone / AT_ONCE, "ms"),
    ]


def recalled(bench: Bench) -> list[Row]:
    """Which share of the exact best documents ours finds: by vector against numpy, by words against bm25s (whose stop words differ a little)."""
    bundles = bench.bundles()
    rows: list[Row] = []
    for name, mode, k in (
        ("recall@10 of dense against exact", "dense", 10),
        ("recall@100 of dense against exact", "dense", 100),
        ("overlap@10 of lexical with bm25s", "lexical", 10),
    ):
        retriever, shares = bench.retriever(mode, top_k=k), list[float]()
        for question, tokens, bundle in zip(bench.questions, bench.tokens, bundles, strict=True):
            rows_found = bench.limit.dense(question.vector, k) if mode == "dense" else bench.limit.lexical(tokens, k)
            found = {hit.node.ref_doc_id for hit in retriever.retrieve(bundle)}
            shares.append(len(found & {document_id(int(row)) for row in rows_found}) / k)
        rows.append(compared(bench.size, name, float(np.mean(shares)), 1.0, "share"))
    return rows
