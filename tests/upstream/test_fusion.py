"""What the stock QueryFusionRetriever does wrong, row by row: the same check passes on HybridRetriever and fails on the stock one."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms.mock import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQueryMode

from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM, forbidden_settings_llm, stock_fault

Make = Callable[..., BaseRetriever]
STOCK_MODES = {
    "reciprocal_rank": FUSION_MODES.RECIPROCAL_RANK,
    "weighted": FUSION_MODES.RELATIVE_SCORE,
    "distribution": FUSION_MODES.DIST_BASED_SCORE,
}


class Static(BaseRetriever):
    def __init__(self, found: list[NodeWithScore], error: Exception | None = None) -> None:
        self.found, self.error, self.queries = found, error, list[str]()
        super().__init__()

    def _retrieve(self, query_bundle):
        self.queries.append(query_bundle.query_str)
        if self.error is not None:
            raise self.error
        return self.found


def scored(*pairs: tuple[str, float | None], text: str | None = None, **metadata: Any) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=node_id, text=text or f"text {node_id}", metadata=metadata), score=score) for node_id, score in pairs]


def ours(retrievers: list[BaseRetriever], *, fusion: str = "reciprocal_rank", **options: Any) -> HybridRetriever:
    return HybridRetriever(retrievers, fusion=fusion, **options)


def stock(
    retrievers: list[BaseRetriever], *, fusion: str = "reciprocal_rank", weights: Any = None, llm: Any = None, num_queries: int = 1, **options: Any
) -> QueryFusionRetriever:
    return QueryFusionRetriever(
        retrievers,
        llm=llm or MockLLM(),
        mode=STOCK_MODES[fusion],
        similarity_top_k=10,
        num_queries=num_queries,
        use_async=options.pop("use_async", False),
        retriever_weights=weights,
        **options,
    )


def ranked(retriever: BaseRetriever, query: str = "q") -> list[tuple[str, float | None]]:
    return [(hit.node_id, hit.score) for hit in retriever.retrieve(query)]


# [1a], issues/11538, issues/21033: identity is the node id, equal text of two documents stays two nodes


def check_equal_text_of_two_documents(make: Make) -> None:
    nodes = [*scored(("docA", 0.9), text="same"), *scored(("docB", 0.8), text="same")]
    assert [node_id for node_id, _ in ranked(make([Static(nodes)]))] == ["docA", "docB"]


async def test_equal_text_of_two_documents():
    check_equal_text_of_two_documents(ours)
    nodes = [*scored(("docA", 0.9), text="same"), *scored(("docB", 0.8), text="same")]
    assert [hit.node_id for hit in await ours([Static(nodes)]).aretrieve("q")] == ["docA", "docB"]


@stock_fault("core 0.14.25: identity by hash of text and metadata")
def test_equal_text_of_two_documents_stock():
    check_equal_text_of_two_documents(stock)


# [1b], pull/15172: the same node with another metadata key is one node


def check_same_node_with_other_metadata(make: Make) -> None:
    retriever = make([Static(scored(("d1", 0.9))), Static(scored(("d1", 0.5), source="second store"))])
    assert ranked(retriever) == [("d1", pytest.approx(0.03279, abs=1e-5))]


def test_same_node_with_other_metadata():
    check_same_node_with_other_metadata(ours)


@stock_fault("core 0.14.25: a metadata key added by one store makes two nodes, one is dropped")
def test_same_node_with_other_metadata_stock():
    check_same_node_with_other_metadata(stock)


# [1c], issues/21444: weights multiply the reciprocal ranks


def check_weights(make: Make) -> None:
    retrievers = [Static(scored(("A", 0.9), ("B", 0.8))), Static(scored(("B", 9.0), ("A", 8.0)))]
    assert [ranked(make(retrievers, weights=weights))[0][0] for weights in ([1.0, 0.0], [0.0, 1.0])] == ["A", "B"]


def test_weights():
    check_weights(ours)
    only = ranked(ours([Static(scored(("A", 0.9))), Static(scored(("B", 9.0)))], weights=[1.0, 0.0]))
    assert only == [("A", 1 / 61)]


@stock_fault("core 0.14.25: RRF ignores retriever_weights")
def test_weights_stock():
    check_weights(stock)


# [1d]: the results of the parts are not written to


def check_results_of_parts_stay(make: Make, fusion: str) -> None:
    part = Static(scored(("a", 0.9), ("b", 0.5)))
    make([part, Static(scored(("c", 0.3), ("d", 0.2)))], fusion=fusion).retrieve("q")
    assert [hit.score for hit in part.found] == [0.9, 0.5]


@pytest.mark.parametrize("fusion", ["reciprocal_rank", "weighted", "distribution", "percentile", "guarded"])
def test_results_of_parts_stay(fusion):
    check_results_of_parts_stay(ours, fusion)


@pytest.mark.parametrize("fusion", ["reciprocal_rank", "weighted", "distribution"])
@stock_fault("core 0.14.25: scores are written into the children's NodeWithScore objects")
def test_results_of_parts_stay_stock(fusion):
    check_results_of_parts_stay(stock, fusion)


# [1e], pull/21771, pull/22717: a missing score is the lowest


def check_missing_score(make: Make, fusion: str) -> None:
    assert [node_id for node_id, _ in ranked(make([Static(scored(("a", 0.9), ("b", 0.5), ("c", None)))], fusion=fusion))] == ["a", "b", "c"]


@pytest.mark.parametrize("fusion", ["reciprocal_rank", "weighted", "distribution", "percentile", "guarded"])
def test_missing_score(fusion):
    check_missing_score(ours, fusion)


@pytest.mark.parametrize("fusion", ["weighted", "distribution"])
@stock_fault("core 0.14.25: a score of None is a TypeError")
def test_missing_score_stock(fusion):
    check_missing_score(stock, fusion)


# [1f]: one weak hit, or several equal ones, stay weak


def check_weak_hits(make: Make, weak: list[tuple[str, float | None]]) -> None:
    scores = dict(ranked(make([Static(scored(("strong", 0.9))), Static(scored(*weak))], fusion="weighted")))
    assert all((scores[node_id] or 0.0) < 0.1 * (scores["strong"] or 0.0) for node_id, _ in weak)


WEAK = [[("junk", 0.01)], [("junk", 0.01), ("more", 0.01)], [("junk", 0.012), ("more", 0.01)]]


@pytest.mark.parametrize("weak", WEAK)
def test_weak_hits(weak):
    check_weak_hits(ours, weak)


@pytest.mark.parametrize("weak", WEAK)
@stock_fault("core 0.14.25: the best of each list becomes 1.0, however weak")
def test_weak_hits_stock(weak):
    check_weak_hits(stock, weak)


# [1i]: an introduction and numbers are no part of the queries


def check_generated_queries(make: Make) -> None:
    part = Static(scored(("a", 1.0)))
    make([part], llm=ScriptedLLM(["Here are 2 queries:\n1. first\n2. second"]), num_queries=3).retrieve("original")
    assert sorted(part.queries) == ["first", "original", "second"]  # asked side by side


def test_generated_queries():
    check_generated_queries(ours)


@stock_fault("core 0.14.25: 'Here are 2 queries:' and '1. first' are searched")
def test_generated_queries_stock():
    check_generated_queries(stock)


# [1j]: one failing part does not take the others with it


def check_failing_part(make: Make) -> None:
    assert ranked(make([Static([], ConnectionError("store down")), Static(scored(("a", 1.0)))])) == [("a", pytest.approx(1 / 61))]


def test_failing_part():
    check_failing_part(ours)


@stock_fault("core 0.14.25: one ConnectionError ends the retrieval")
def test_failing_part_stock():
    check_failing_part(stock)


# [1k], issues/22401: the original exception reaches the caller


def check_original_exception(make: Make) -> None:
    error = RuntimeError("CUDA out of memory")
    with pytest.raises(RuntimeError) as caught:
        make([Static([], error), Static([], error)]).retrieve("q")
    assert caught.value is error


def test_original_exception():
    check_original_exception(ours)


@pytest.fixture
def closed_loop():
    """The stock component opens an event loop in the main thread and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("closed_loop")
@stock_fault("core 0.14.25: 'CUDA out of memory' is reported as 'Detected nested async'")
def test_original_exception_stock():
    check_original_exception(lambda retrievers: stock(retrievers, use_async=True))


# [1l]: no LLM without other queries


def test_no_llm():
    with forbidden_settings_llm() as prompts:
        assert ranked(ours([Static(scored(("a", 1.0)))])) == [("a", 1 / 61)]
    assert prompts == []


@stock_fault("core 0.14.25: num_queries=1 resolves Settings.llm, which asks for an OpenAI key")
def test_no_llm_stock(monkeypatch):
    from llama_index.core import Settings

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(Settings, "_llm", None)
    QueryFusionRetriever([Static(scored(("a", 1.0)))], num_queries=1)


# [1m]: ranks start at 1


def check_first_rank(make: Make) -> None:
    assert ranked(make([Static(scored(("a", 0.9)))])) == [("a", pytest.approx(1 / 61))]


def test_first_rank():
    check_first_rank(ours)


@stock_fault("core 0.14.25: ranks start at 0, the first scores 1/60")
def test_first_rank_stock():
    check_first_rank(stock)


# [16g]: filters, a top-k for each part, time limits


def test_filters_top_n_and_time_limits():
    gate = threading.Event()

    class Late(Static):
        def _retrieve(self, query_bundle):
            gate.wait(10)
            return self.found

    parts: dict[str, BaseRetriever] = {"french": Static(scored(("a", 0.9), lang="fr") + scored(("b", 0.8), lang="en")), "late": Late(scored(("l", 1.0)))}
    only_french = MetadataFilters(filters=[MetadataFilter(key="lang", value="fr")])
    retriever = HybridRetriever(parts, filters=only_french, child_top_n={"french": 1}, timeout_s={"late": 0.05})
    assert [node_id for node_id, _ in ranked(retriever)] == ["a"]
    gate.set()


# issues/18090, issues/21159: concurrent calls wait for the LLM together


async def test_concurrent_calls_overlap():
    here, both_waiting = 0, asyncio.Event()

    class Meeting(ScriptedLLM):
        async def acomplete(self, prompt, formatted=False, **kwargs):
            nonlocal here
            here += 1
            if here == 2:
                both_waiting.set()
            await asyncio.wait_for(both_waiting.wait(), 10)
            return self.complete(prompt)

    retriever = ours([Static(scored(("a", 1.0)))], llm=Meeting(['["other"]']), num_queries=2)
    found = await asyncio.gather(retriever.aretrieve("q"), retriever.aretrieve("q"))
    assert [[hit.node_id for hit in hits] for hits in found] == [["a"], ["a"]]


# issues/17349, issues/18779: sync retrieval inside a running event loop


async def test_inside_a_running_loop():
    assert ranked(ours([Static(scored(("a", 0.9))), Static(scored(("a", 0.5)))])) == [("a", 2 / 61)]


# issues/8922: one top-k over several indexes whose best hits are not equally good


def check_global_top_k(make: Make) -> None:
    lists = [[("best", 0.95), ("good", 0.9)], [("fair", 0.4)], [("weak", 0.1)], [("junk", 0.02)], [("noise", 0.01)]]
    found = ranked(make([Static(scored(*pairs)) for pairs in lists], fusion="weighted"))
    assert [node_id for node_id, _ in found] == ["best", "good", "fair", "weak", "junk", "noise"]


def test_global_top_k():
    check_global_top_k(ours)


@stock_fault("core 0.14.25: the only hit of an index is as good as the best of another")
def test_global_top_k_stock():
    check_global_top_k(stock)


# issues/16325: hybrid search on the default store


def corpus_index() -> VectorStoreIndex:
    nodes = [TextNode(id_=word, text=f"{word} {word} and other words") for word in ("fox", "sea", "field")]
    for node in nodes:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"document of {node.node_id}")
    return VectorStoreIndex(nodes, embed_model=DeterministicEmbedding())


def test_hybrid_search_on_the_default_store():
    assert ranked(HybridRetriever.from_index(corpus_index()), "fox")[0][0] == "fox"


@stock_fault("core 0.14.25: 'Invalid query mode: hybrid' on the default store")
def test_hybrid_search_on_the_default_store_stock():
    retriever = corpus_index().as_retriever(vector_store_query_mode=VectorStoreQueryMode.HYBRID)
    assert ranked(retriever, "fox")[0][0] == "fox"
