"""The contract of a component as functions: give one a factory, and the first broken clause is named.

They check components of this package and of anybody else, need no pytest and no network, and make no LLM call: while they
run, `Settings.llm` is an LLM that raises.
"""

import asyncio
from collections.abc import Callable, Sequence

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._concurrency import run_coroutine
from llama_index_advanced_rag.retrievers.base import TracedRetriever
from llama_index_advanced_rag.testing.clauses import (
    ContractError,
    answer_of,
    empty_query_answered,
    events_paired,
    inside_loop,
    metadata_serialisable,
    no_llm_called,
    ranking,
    same,
    suspending,
    trace_present,
    well_formed,
)
from llama_index_advanced_rag.testing.doubles import RendezvousEmbedding
from llama_index_advanced_rag.testing.observing import count_events, forbidden_settings_llm, snapshot
from llama_index_advanced_rag.trace import capture_trace

ENOUGH = 1000


def check_retriever_contract(
    make_retriever: Callable[..., BaseRetriever],
    *,
    queries: Sequence[str],
    filters: MetadataFilters | None = None,
    nodes: Sequence[BaseNode] = (),
    make_empty: Callable[[], BaseRetriever] | None = None,
    make_with_embedding: Callable[[BaseEmbedding], BaseRetriever] | None = None,
    reload: Callable[[BaseRetriever], BaseRetriever] | None = None,
    traced: bool = True,
) -> None:
    """Check a retriever against the clauses of the contract.

    Args:
        make_retriever: makes a retriever over one corpus; called with `similarity_top_k=` and, when `filters` are given,
            also with `filters=`.
        queries: questions of which at least one finds two nodes or more.
        filters: metadata filters that some but not all of the nodes found match.
        nodes: the nodes the retriever was built from; checked for changes.
        make_empty: makes the retriever over an empty corpus.
        make_with_embedding: makes the retriever with this embedding model, to prove that concurrent calls overlap;
            None for a retriever that embeds nothing.
        reload: persists a retriever and returns the one loaded back.
        traced: the component writes `Evidence` for each node it returns.

    A retriever of this package is also asked for ids and in batches; the results are those of `retrieve`.

    Raises:
        ContractError: a clause is broken.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> class First(BaseRetriever):
        ...     def __init__(self, similarity_top_k: int = 2) -> None:
        ...         self.k = similarity_top_k
        ...         super().__init__()
        ...     def _retrieve(self, query_bundle):
        ...         return [NodeWithScore(node=TextNode(text="a", id_="a"), score=1.0)][: self.k]
        >>> check_retriever_contract(First, queries=["a"], traced=False)
        Traceback (most recent call last):
        llama_index_advanced_rag.testing.clauses.ContractError: First breaks the clause 'async suspends': ...
    """
    before = snapshot(nodes)
    with forbidden_settings_llm() as prompts:
        retriever = make_retriever(similarity_top_k=ENOUGH)
        found = max(_check_one_query(make_retriever, retriever, query, traced=traced) for query in queries)
        if found < 2:
            raise ContractError(retriever, "something to check", f"no query found more than {found} node(s); choose queries that find two or more")
        _check_ids_and_batches(retriever, queries)
        if filters is not None:
            _check_filters(make_retriever, queries, filters)
            _check_ids_and_batches(make_retriever(similarity_top_k=2, filters=filters), queries)
        empty_query_answered(retriever, lambda: well_formed(retriever, retriever.retrieve("")))
        if make_empty is not None and make_empty().retrieve(queries[0]):
            raise ContractError(retriever, "empty corpus", "nodes came from an empty corpus")
        if make_with_embedding is not None:
            _check_overlap(make_with_embedding, queries[0])
        if reload is not None:
            loaded = reload(retriever)
            for query in queries:
                same(retriever, "persist and reload", ranking(retriever.retrieve(query)), ranking(loaded.retrieve(query)))
        no_llm_called(retriever, prompts)
    same(retriever, "inputs unchanged", before, snapshot(nodes))


def check_postprocessor_contract(
    make: Callable[[], BaseNodePostprocessor],
    nodes: Sequence[NodeWithScore],
    query: str,
    *,
    by_score: bool = True,
    reranks: bool = False,
    traced: bool = True,
) -> None:
    """Check a node postprocessor against the clauses of the contract.

    Args:
        make: makes the postprocessor.
        nodes: scored nodes to process, two or more.
        query: the question they were found for.
        by_score: the result is ordered by score, best first; False for one that orders otherwise.
        reranks: it gives new scores: it emits rerank events, and its async call leaves the event loop free.
        traced: the component writes `Evidence` for each node it returns.

    Raises:
        ContractError: a clause is broken.
    """
    given, before, bundle = list(nodes), snapshot(nodes), QueryBundle(query)
    with forbidden_settings_llm() as prompts:
        processor = make()
        with count_events() as counts, capture_trace() as trace:
            result = processor.postprocess_nodes(list(given), bundle)
        well_formed(processor, result, by_score=by_score)
        events_paired(processor, counts, "ReRankStartEvent", "ReRankEndEvent", required=reranks)
        trace_present(processor, trace, result, traced=traced)
        if {id(item) for item in result} & {id(item) for item in given}:
            raise ContractError(processor, "new scored nodes", "an input NodeWithScore was returned; return a new one for each")
        again = run_coroutine(suspending(processor, lambda: processor.apostprocess_nodes(list(given), bundle), required=reranks))
        same(processor, "sync equals async", ranking(result), ranking(again))
        same(processor, "deterministic", ranking(result), ranking(make().postprocess_nodes(list(given), query_str=query)))
        inside = run_coroutine(inside_loop(processor, lambda: processor.postprocess_nodes(list(given), bundle)))
        same(processor, "works in a running event loop", ranking(result), ranking(inside))
        if processor.postprocess_nodes([], bundle):
            raise ContractError(processor, "no nodes", "nodes came from an empty list")
        empty_query_answered(processor, lambda: well_formed(processor, processor.postprocess_nodes(list(given), QueryBundle("")), by_score=by_score))
        no_llm_called(processor, prompts)
    same(processor, "inputs unchanged", (before, QueryBundle(query)), (snapshot(given), bundle))


def check_query_engine_contract(make: Callable[[], BaseQueryEngine], query: str, *, traced: bool = True, uses_settings_llm: bool = False) -> None:
    """Check a query engine against the clauses of the contract.

    Args:
        make: makes the engine, without an LLM or with one of its own.
        query: a question that finds something.
        traced: `response.metadata["trace"]` holds the trace.
        uses_settings_llm: leave the clause out that `Settings.llm` is not called (stock engines).

    Raises:
        ContractError: a clause is broken.
    """
    with forbidden_settings_llm() as prompts:
        engine, bundle = make(), QueryBundle(query)
        with count_events() as counts, capture_trace() as trace:
            response = engine.query(bundle)
        same(engine, "inputs unchanged", QueryBundle(query), bundle)
        events_paired(engine, counts, "QueryStartEvent", "QueryEndEvent", required=True)
        events_paired(engine, counts, "RetrievalStartEvent", "RetrievalEndEvent", required=False)
        well_formed(engine, response.source_nodes, by_score=False, scored=False)
        metadata_serialisable(engine, response, traced=traced)
        if traced and not list(trace.walk())[1:]:
            raise ContractError(engine, "trace", "nothing was written under capture_trace")
        again = run_coroutine(suspending(engine, lambda: engine.aquery(query), required=True))
        same(engine, "sync equals async", answer_of(response), answer_of(again))
        same(engine, "deterministic", answer_of(response), answer_of(make().query(query)))
        same(engine, "works in a running event loop", answer_of(response), answer_of(run_coroutine(inside_loop(engine, lambda: engine.query(query)))))
        empty_query_answered(engine, lambda: str(engine.query("")))
        if not uses_settings_llm:
            no_llm_called(engine, prompts)


def _check_one_query(make: Callable[..., BaseRetriever], retriever: BaseRetriever, query: str, *, traced: bool) -> int:
    bundle = QueryBundle(query)
    with count_events() as counts, capture_trace(query) as trace:
        result = retriever.retrieve(bundle)
    first, values = ranking(result), snapshot(result)
    same(retriever, "inputs unchanged", QueryBundle(query), bundle)
    well_formed(retriever, result)
    events_paired(retriever, counts, "RetrievalStartEvent", "RetrievalEndEvent", required=True)
    trace_present(retriever, trace, result, traced=traced)
    again = run_coroutine(suspending(retriever, lambda: retriever.aretrieve(query), required=bool(result)))
    same(retriever, "sync equals async", first, ranking(again))
    same(retriever, "deterministic", first, ranking(make(similarity_top_k=ENOUGH).retrieve(query)))
    same(retriever, "works in a running event loop", first, ranking(run_coroutine(inside_loop(retriever, lambda: retriever.retrieve(query)))))
    same(retriever, "earlier results unchanged", values, snapshot(result))
    for top_k in (1, 2):
        few = make(similarity_top_k=top_k).retrieve(query)
        if len(few) > top_k or (result and not few):
            raise ContractError(retriever, "top_k", f"similarity_top_k={top_k} gave {len(few)} nodes of {len(result)}")
    return len(result)


def _check_ids_and_batches(retriever: BaseRetriever, queries: Sequence[str]) -> None:
    """The other ways to ask a retriever of this package give what `retrieve` gives."""
    if not isinstance(retriever, TracedRetriever):
        return
    asked = [*queries, queries[0]]
    one_by_one = [ranking(retriever.retrieve(query)) for query in asked]
    same(retriever, "ids are those of retrieve", one_by_one, [retriever.retrieve_ids(query) for query in asked])
    same(retriever, "ids are those of retrieve", one_by_one[0], run_coroutine(suspending(retriever, lambda: retriever.aretrieve_ids(asked[0]), required=True)))
    with count_events() as counts:
        batch = retriever.retrieve_batch(asked)
    events_paired(retriever, counts, "RetrievalStartEvent", "RetrievalEndEvent", required=True)
    same(retriever, "a batch is one by one", one_by_one, [ranking(hits) for hits in batch])
    again = run_coroutine(suspending(retriever, lambda: retriever.aretrieve_batch(asked), required=True))
    same(retriever, "a batch is one by one", one_by_one, [ranking(hits) for hits in again])
    inside = run_coroutine(inside_loop(retriever, lambda: retriever.retrieve_batch(asked)))
    same(retriever, "works in a running event loop", one_by_one, [ranking(hits) for hits in inside])
    if retriever.retrieve_batch([]):
        raise ContractError(retriever, "a batch is one by one", "an empty list of queries has an answer")


def _check_filters(make: Callable[..., BaseRetriever], queries: Sequence[str], filters: MetadataFilters) -> None:
    from llama_index_advanced_rag.stores.filters.metadata_filters import metadata_matches

    total = 0
    for query in queries:
        retriever = make(similarity_top_k=ENOUGH, filters=filters)
        found = retriever.retrieve(query)
        total += len(found)
        wrong = [item.node.node_id for item in found if not metadata_matches(item.node.metadata, filters)]
        if wrong:
            raise ContractError(retriever, "filters", f"nodes outside the filters were returned: {wrong!r:.600}")
        if found and not make(similarity_top_k=1, filters=filters).retrieve(query):
            raise ContractError(retriever, "filters before top_k", "a node matches, but similarity_top_k=1 returned none: candidates were cut first")
    if not total:
        raise ContractError(make(similarity_top_k=1), "something to check", "no query found a node that matches the filters")


def _check_overlap(make: Callable[[BaseEmbedding], BaseRetriever], query: str) -> None:
    retriever = make(RendezvousEmbedding(2, timeout_s=2.0))

    async def both() -> None:
        await asyncio.gather(retriever.aretrieve(query), retriever.aretrieve(query))

    try:
        run_coroutine(both())
    except TimeoutError as error:
        raise ContractError(retriever, "concurrent calls overlap", str(error)) from error
