"""HybridRetriever: any retrievers, weights, failures, timeouts, filters, other queries, explanations."""

import asyncio
import copy
import logging
import threading
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.retrievers.hybrid import HybridRetriever
from llama_index_advanced_rag.retrievers.multi_query import parse_queries
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM, check_retriever_contract, forbidden_settings_llm
from llama_index_advanced_rag.trace import capture_trace
from llama_index_advanced_rag.usage import capture_usage

DOC0 = MetadataFilters(filters=[MetadataFilter(key="document", value="doc0")])


def hits(*scored: tuple[str, float | None], text: str | None = None) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=node_id, text=text or f"text of {node_id}"), score=score) for node_id, score in scored]


class Static(BaseRetriever):
    """A foreign retriever: no async of its own, no top-k, its list as it is; remembers the bundles it was given."""

    def __init__(self, found: list[NodeWithScore], *, error: Exception | None = None, gate: threading.Event | None = None) -> None:
        self.found, self.error, self.gate = found, error, gate
        self.bundles: list[QueryBundle] = []
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.bundles.append(copy.copy(query_bundle))
        query_bundle.embedding = [9.0]
        if self.gate is not None:
            self.gate.wait(10)
        if self.error is not None:
            raise self.error
        return self.found


class Meeting(Static):
    """Answers only once so many retrievers are searching at the same time."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self.barrier = barrier
        super().__init__(hits(("a", 1.0)))

    def _retrieve(self, query_bundle):
        self.barrier.wait(timeout=10)
        return self.found


class Sized(Static):
    """A foreign retriever with a top-k."""

    similarity_top_k = 2

    def _retrieve(self, query_bundle):
        return super()._retrieve(query_bundle)[: self.similarity_top_k]


class Fixed(Sized):
    """One whose top-k cannot be set."""

    @property
    def similarity_top_k(self) -> int:
        return 2


def ids(found: list[NodeWithScore]) -> list[str]:
    return [hit.node_id for hit in found]


def two(**options: Any) -> HybridRetriever:
    return HybridRetriever({"one": Static(hits(("a", 0.9), ("b", 0.8))), "two": Static(hits(("b", 12.0), ("c", 3.0)))}, **options)


def corpus() -> list[TextNode]:
    texts = ["red fox", "red fox runs", "red sea", "blue sea", "green field", "red field at dawn"]
    return [
        TextNode(id_=f"n{number}", text=text, metadata={"document": f"doc{number % 2}"}, excluded_embed_metadata_keys=["document"])
        for number, text in enumerate(texts)
    ]


def dense(nodes: list[TextNode], model: Any = None, **options: Any) -> DenseRetriever:
    index = VectorStoreIndex(nodes, embed_model=DeterministicEmbedding())
    return DenseRetriever(index.vector_store, model or DeterministicEmbedding(), nodes=DictNodeSource(nodes), **options)


class TestFusing:
    def test_contract(self):
        nodes = corpus()
        stock = VectorStoreIndex(nodes, embed_model=DeterministicEmbedding()).as_retriever(similarity_top_k=3)
        check_retriever_contract(
            lambda **options: HybridRetriever([dense(nodes), stock], **options),
            queries=["red fox", "blue sea at dawn"],
            filters=DOC0,
            nodes=nodes,
            make_empty=lambda: HybridRetriever([dense([])]),
            make_with_embedding=lambda model: HybridRetriever([dense(nodes, model), Static([])]),
        )

    def test_reciprocal_rank_by_default(self):
        found = two().retrieve("q")
        assert [(hit.node_id, hit.score) for hit in found] == [("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62)]

    @pytest.mark.parametrize(
        ("fusion", "expected"), [("weighted", "abc"), ("distribution", "bac"), ("percentile", "bac"), ("guarded", "abc"), ("reciprocal_rank", "bac")]
    )
    async def test_every_mode_sync_and_async(self, fusion, expected):
        retriever = two(fusion=fusion)
        found = retriever.retrieve("q")
        assert "".join(ids(found)) == expected
        assert [(hit.node_id, hit.score) for hit in await retriever.aretrieve("q")] == [(hit.node_id, hit.score) for hit in found]

    def test_one_retriever(self):
        assert ids(HybridRetriever([Static(hits(("a", 0.9), ("b", 0.8)))]).retrieve("q")) == ["a", "b"]

    def test_top_k(self):
        assert ids(two(similarity_top_k=1).retrieve("q")) == ["b"]
        assert ids(two().with_top_k(2).retrieve("q")) == ["b", "a"]

    def test_weights_by_name_and_in_order(self):
        assert ids(two(weights={"two": 0.0}).retrieve("q")) == ["a", "b"]
        assert ids(two(weights=[0.1, 5]).retrieve("q")) == ["b", "c", "a"]

    def test_weight_zero_is_not_asked(self):
        unused = Static([])
        HybridRetriever([Static(hits(("a", 1.0))), unused], weights=[1, 0]).retrieve("q")
        assert unused.bundles == []

    def test_weights_are_equal_unless_given(self):
        children = {"dense": Static(hits(("a", 0.8))), "lexical": Static(hits(("b", 12.0), ("c", 6.0)))}
        scores = {hit.node_id: hit.score for hit in HybridRetriever(children, fusion="weighted").retrieve("q")}
        assert scores == {"a": pytest.approx(0.4), "b": pytest.approx(0.5), "c": 0.0}

    def test_score_ranges(self):
        child = Static(hits(("a", 3.0), ("b", 1.0)))
        found = HybridRetriever([child], fusion="weighted", score_ranges=[ScoreRange(0.0, 4.0)]).retrieve("q")
        assert [hit.score for hit in found] == [0.75, 0.25]

    def test_guard(self):
        children = [Static(hits(("h1", 3.0), ("h2", 2.0), ("h3", 1.0))), Static(hits(("g1", 0.2), ("h2", 0.1)))]
        found = HybridRetriever(children, fusion="guarded", guard=1).retrieve("q")
        assert [(hit.node_id, hit.score) for hit in found] == [("h1", 1.0), ("g1", 1 / 2), ("h2", 1 / 3), ("h3", 1 / 4)]

    def test_a_hybrid_in_a_hybrid(self):
        outer = HybridRetriever([two(), Static(hits(("c", 0.5)))], fusion="weighted")
        assert ids(outer.retrieve("q")) == ["b", "c", "a"]

    def test_content_identity(self):
        children = [Static(hits(("a", 0.9), text="same")), Static(hits(("b", 3.0), text="same "))]
        assert ids(HybridRetriever(children).retrieve("q")) == ["a", "b"]
        assert [(hit.node_id, hit.score) for hit in HybridRetriever(children, identity="content").retrieve("q")] == [("a", 2 / 61)]

    @pytest.mark.parametrize("query", ["", " \n"])
    async def test_empty_query(self, query):
        retriever = two()
        assert retriever.retrieve(query) == await retriever.aretrieve(query) == []

    def test_nothing_found(self):
        assert HybridRetriever([Static([]), Static([])], fusion="weighted").retrieve("q") == []


class TestChildren:
    def test_each_has_its_own_bundle_and_the_callers_stays(self):
        children = [Static([]), Static([])]
        bundle = QueryBundle("q", custom_embedding_strs=["x"])
        HybridRetriever(children).retrieve(bundle)
        assert bundle == QueryBundle("q", custom_embedding_strs=["x"])
        assert [child.bundles for child in children] == [[bundle], [bundle]]

    def test_an_embedding_of_the_caller_reaches_one_model(self):
        nodes, model = corpus(), DeterministicEmbedding()
        bundle = QueryBundle("green", embedding=DeterministicEmbedding().get_query_embedding("blue sea"))
        assert ids(HybridRetriever([dense(nodes, model), Static([])], similarity_top_k=1).retrieve(bundle)) == ["n3"]
        assert model.texts == []

    def test_an_embedding_of_the_caller_does_not_reach_two(self):
        nodes, models = corpus(), [DeterministicEmbedding(), DeterministicEmbedding(model_name="other")]
        bundle = QueryBundle("green field", embedding=[0.0] * 64)
        with capture_trace() as trace:
            found = HybridRetriever([dense(nodes, model) for model in models]).retrieve(bundle)
        assert (found[0].node_id, [model.texts for model in models]) == ("n4", [["green field"]] * 2)
        assert "different embedding models" in trace.all_notes()[0].message

    def test_top_n_of_ours_and_of_others_without_changing_them(self):
        ours, sized = dense(corpus(), similarity_top_k=1), Sized(hits(*[(f"s{n}", 1.0 - n / 10) for n in range(5)]))
        found = HybridRetriever([ours, sized], similarity_top_k=50).retrieve("red fox")
        assert len(found) == 6 + 5
        assert (ours.similarity_top_k, sized.similarity_top_k) == (1, 2)

    def test_top_n_per_child(self):
        found = HybridRetriever({"ours": dense(corpus()), "sized": Sized(hits(("x", 2.0), ("y", 1.0)))}, child_top_n={"ours": 2, "sized": 1}).retrieve(
            "red fox"
        )
        assert sorted(ids(found)) == ["n0", "n1", "x"]

    def test_a_top_k_that_cannot_be_set_is_said(self):
        with capture_trace() as trace:
            found = HybridRetriever([Fixed(hits(("a", 3.0), ("b", 2.0), ("c", 1.0)))]).retrieve("q")
        assert ids(found) == ["a", "b"]
        assert "does not let its similarity_top_k be set" in trace.all_notes()[0].message

    def test_filters_before_the_search_of_ours_and_after_that_of_others(self):
        nodes = corpus()
        foreign = Static([NodeWithScore(node=node, score=1.0) for node in nodes[:3]])
        retriever = HybridRetriever(
            [dense(nodes, filters=MetadataFilters(filters=[MetadataFilter(key="document", value="doc1", operator="!=")])), foreign], filters=DOC0
        )
        with capture_trace() as trace:
            found = retriever.retrieve("red fox")
        assert sorted(ids(found)) == ["n0", "n2", "n4"]
        assert [note.message for note in trace.all_notes()] == ["1 of 3 nodes of 'Static' do not match the filters; they were left out after its search."]
        assert len(retriever.with_filters(None).retrieve("red fox")) == 4

    def test_stock_bm25(self):
        from llama_index.retrievers.bm25 import BM25Retriever

        stock = BM25Retriever.from_defaults(nodes=corpus(), similarity_top_k=1)
        assert sorted(ids(HybridRetriever([stock]).retrieve("fox"))) == ["n0", "n1"]
        assert stock.similarity_top_k == 1

    async def test_five_overlap(self):
        barrier = threading.Barrier(5)
        retriever = HybridRetriever([Meeting(barrier) for _ in range(5)])
        assert ids(retriever.retrieve("q")) == ids(await retriever.aretrieve("q")) == ["a"]

    def test_their_results_stay(self):
        found = hits(("a", 0.9), ("b", None))
        before = copy.deepcopy(found)
        retriever = HybridRetriever([Static(found), Static(hits(("b", 4.0)))], fusion="weighted")
        result = retriever.retrieve("q")
        assert found == before
        assert not {id(hit) for hit in result} & {id(hit) for hit in found}
        assert all(type(hit.score) is float for hit in result)

    def test_names(self):
        nodes = corpus()
        assert list(HybridRetriever([dense(nodes), Static([]), dense(nodes), Static([])]).retrievers) == ["dense", "Static", "dense#2", "Static#2"]


class TestFailures:
    @pytest.mark.parametrize("error", [ConnectionError("store down"), RuntimeError("CUDA out of memory"), TimeoutError("its own")])
    async def test_one_failing_child_is_left_out_and_said_once(self, error, caplog):
        retriever = HybridRetriever({"good": Static(hits(("a", 1.0))), "bad": Static([], error=error)})
        with caplog.at_level(logging.WARNING), capture_trace() as trace:
            assert ids(retriever.retrieve("q")) == ["a"]
        message = f"Retriever 'bad' failed and was left out: {type(error).__name__}: {error}"
        assert [note.message for note in trace.all_notes()] == [message]
        assert [record.message for record in caplog.records] == [message]
        assert ids(await retriever.aretrieve("q")) == ["a"]

    async def test_all_failed_raises_the_first_as_it_was(self):
        first = RuntimeError("CUDA out of memory")
        retriever = HybridRetriever([Static([], error=first), Static([], error=ConnectionError("store down"))])
        with pytest.raises(RuntimeError, match="CUDA out of memory") as caught:
            retriever.retrieve("q")
        assert caught.value is first
        with pytest.raises(RuntimeError, match="CUDA out of memory"):
            await retriever.aretrieve("q")

    def test_a_real_exception_goes_before_a_timeout(self):
        gate = threading.Event()
        late, broken = Static([], gate=gate), Static([], error=ConnectionError("store down"))
        with pytest.raises(ConnectionError, match="store down"):
            HybridRetriever([late, broken], timeout_s=0.05).retrieve("q")
        gate.set()

    async def test_a_late_child_is_left_out(self):
        gate = threading.Event()
        children = {"late": Static(hits(("l", 1.0)), gate=gate), "fast": Static(hits(("a", 1.0)))}
        retriever = HybridRetriever(children, timeout_s={"late": 0.05})
        with capture_trace() as trace:
            assert ids(retriever.retrieve("q")) == ids(await retriever.aretrieve("q")) == ["a"]
        gate.set()
        assert [note.message for note in trace.all_notes()] == ["Retriever 'late' failed and was left out: TimeoutError: no answer within 0.05 s"] * 2
        assert [part.evidence for part in trace.walk() if part.stage == "late"] == [[], []]

    async def test_cancelling_goes_through(self):
        gate = threading.Event()
        task = asyncio.create_task(HybridRetriever([Static([], gate=gate)]).aretrieve("q"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()


class TestTrace:
    async def test_evidence_and_child_order(self):
        retriever = HybridRetriever([dense(corpus(), similarity_top_k=2), Static(hits(("n0", 9.3)))], child_top_n=2)
        with capture_trace() as trace:
            retriever.retrieve("red fox")
        evidence = trace.for_node("n0")
        assert [(item.stage, item.why) for item in evidence] == [
            ("dense", "cosine 1.00"),
            ("Static", "Static score 9.3"),
            ("hybrid", "dense #1 (1), Static #1 (9.3)"),
        ]
        assert evidence[-1].details == {"dense": {"rank": 1, "score": pytest.approx(1.0)}, "Static": {"rank": 1, "score": 9.3}}
        assert [part.stage for part in trace.walk()] == ["query", "hybrid", "dense", "Static"]
        with capture_trace() as again:
            await retriever.aretrieve("red fox")
        assert [(part.stage, part.evidence) for part in again.walk()] == [(part.stage, part.evidence) for part in trace.walk()]

    def test_a_named_child_speaks_under_its_name(self):
        with capture_trace() as trace:
            HybridRetriever({"meaning": dense(corpus())}).retrieve("red fox")
        assert [part.stage for part in trace.walk()] == ["query", "hybrid", "meaning"]

    def test_scores_may_be_missing(self):
        with capture_trace() as trace:
            found = HybridRetriever([Static(hits(("a", None), ("b", None)))], fusion="weighted").retrieve("q")
        assert ids(found) == ["a", "b"]
        assert trace.for_node("a")[-1].why == "Static #1"


class TestOtherQueries:
    class ByQuery(Static):
        def _retrieve(self, query_bundle):
            super()._retrieve(query_bundle)
            return hits((query_bundle.query_str, 1.0), ("common", 0.5))

    async def test_one_call_and_the_original_always(self):
        llm, child = ScriptedLLM(['["second", "Original ", "third", "too many"]']), self.ByQuery([])
        retriever = HybridRetriever({"child": child}, num_queries=3, llm=llm)
        with capture_usage() as usage, capture_trace() as trace:
            found = retriever.retrieve("original")
        assert set(ids(found)) == {"original", "second", "third", "common"}
        assert found[0].node_id == "common"
        assert (usage.calls, usage.by_prompt) == (1, {"multi_query": 1})
        assert trace.for_node("common")[-1].why == "child #2 (0.5), child[query 2] #2 (0.5), child[query 3] #2 (0.5)"
        assert [(hit.node_id, hit.score) for hit in await retriever.aretrieve("original")] == [(hit.node_id, hit.score) for hit in found]

    @pytest.mark.parametrize("answer", [ConnectionError("no route"), "I cannot help with that.", "", "[]", '["original"]', "{}"])
    async def test_a_useless_llm_leaves_the_original_alone_and_says_so(self, answer):
        child = self.ByQuery([])
        retriever = HybridRetriever([child], num_queries=4, llm=ScriptedLLM([answer]))
        with capture_trace() as trace:
            assert ids(retriever.retrieve("original")) == ["original", "common"]
        assert trace.all_notes()[0].message.startswith("Only the original query was searched, because ")
        assert ids(await retriever.aretrieve("original")) == ["original", "common"]
        assert [bundle.query_str for bundle in child.bundles] == ["original"] * 2

    def test_guarded_fuses_the_queries_of_each_child_first(self):
        child = self.ByQuery([])
        found = HybridRetriever(
            {"a": child, "b": Static(hits(("g", 1.0)))}, fusion="guarded", guard=1, num_queries=2, llm=ScriptedLLM(['["second"]'])
        ).retrieve("q")
        assert ids(found)[:2] == ["common", "g"]

    def test_no_llm(self):
        with forbidden_settings_llm() as prompts:
            two().retrieve("q")
        assert prompts == []
        with pytest.raises(ConfigurationError, match="num_queries is 3 and there is no llm"):
            two(num_queries=3)

    def test_prompts_can_be_replaced(self):
        llm = ScriptedLLM(['["other"]'])
        retriever = two(num_queries=2, llm=llm, query_gen_prompt="MINE {num_queries} {query_str}")
        retriever.retrieve("q")
        retriever.update_prompts({"multi_query": PromptTemplate("THEIRS {query_str}")})
        retriever.retrieve("q")
        assert llm.prompts == ["MINE 1 q", "THEIRS q"]
        assert "multi_query" in retriever.get_prompts()

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            ('["a b", "c"]', ["a b", "c"]),
            ('```json\n["a b", "c"]\n```', ["a b", "c"]),
            ('Sure! ["a b", "c"] Anything else?', ["a b", "c"]),
            ('Here are 3 queries:\n1. a b\n2) "c"\n- d,', ["a b", "c", "d"]),
            ("1. « net sales 2023 »\n2. 3.5 % growth", ["net sales 2023", "3.5 % growth"]),
            ('[1, null, "a", {"b": 1}]', ["a"]),
            ("2023 was a good year", []),
            ('["unfinished', []),
        ],
    )
    def test_parsing(self, answer, expected):
        assert parse_queries(answer) == expected


class TestConfiguration:
    @pytest.mark.parametrize(
        ("retrievers", "options", "match"),
        [
            ([], {}, "There are no retrievers"),
            ({"a:b": Static([])}, {}, "cannot be used"),
            (["text"], {}, r"pass index\.as_retriever"),
            ([Static([])], {"fusion": "best"}, "fusion is 'best'. It must be one of .*guarded"),
            ([Static([])], {"fusion": "guarded", "weights": [1.0]}, "no effect"),
            ([Static([])], {"weights": [1.0, 2.0]}, "weights has 2 values"),
            ([Static([])], {"weights": {"dense": 1.0}}, r"names \['dense'\]. The retrievers are \['Static'\]"),
            ([Static([])], {"weights": [0.0]}, "one of them above 0"),
            ([Static([])], {"child_top_n": 0}, "child_top_n is 0"),
            ([Static([])], {"timeout_s": -1}, "timeout_s is -1"),
            ([Static([])], {"score_ranges": [(0, 1)]}, "Each must be a ScoreRange"),
            ([Static([])], {"num_queries": 0}, "num_queries is 0"),
            ([Static([])], {"identity": "hash"}, "identity is 'hash'"),
            ([Static([])], {"rrf_k": -1}, "rrf_k is -1"),
            ([Static([])], {"similarity_top_k": 0}, "similarity_top_k is 0"),
        ],
    )
    def test_refused(self, retrievers, options, match):
        with pytest.raises(ConfigurationError, match=match):
            HybridRetriever(retrievers, **options)

    def test_repr(self):
        assert repr(HybridRetriever([dense(corpus())], similarity_top_k=3)) == (
            "HybridRetriever(dense=DenseRetriever(SimpleVectorStore, 'deterministic', similarity_top_k=10), fusion='reciprocal_rank', similarity_top_k=3)"
        )

    def test_score_range(self):
        assert two().score_range == ScoreRange(0.0, 2 / 61)
        assert two(fusion="weighted").score_range == ScoreRange(0.0, 1.0)


class TestFromIndex:
    def test_contract(self):
        nodes = corpus()
        index = VectorStoreIndex(nodes, embed_model=DeterministicEmbedding())
        check_retriever_contract(
            lambda **options: HybridRetriever.from_index(index, **options), queries=["red fox", "blue sea at dawn"], filters=DOC0, nodes=nodes
        )

    def test_dense_and_lexical_speak(self):
        retriever = HybridRetriever.from_index(VectorStoreIndex(corpus(), embed_model=DeterministicEmbedding()), fusion="weighted", similarity_top_k=2)
        with capture_trace() as trace:
            found = retriever.retrieve("blue sea")
        assert found[0].node_id == "n3"
        assert [part.stage for part in trace.walk()] == ["query", "hybrid", "dense", "lexical"]

    def test_a_store_that_keeps_its_own_text(self):
        model = DeterministicEmbedding()
        store = FlatVectorStore()
        store.add([node.model_copy(update={"embedding": model.get_text_embedding(node.text)}) for node in corpus()])
        retriever = HybridRetriever.from_index(VectorStoreIndex.from_vector_store(store, embed_model=model), similarity_top_k=1)
        assert ids(retriever.retrieve("blue sea")) == ["n3"]

    def test_nodes_inserted_later(self):
        index = VectorStoreIndex(corpus(), embed_model=DeterministicEmbedding())
        retriever, late = HybridRetriever.from_index(index, similarity_top_k=1), TextNode(id_="late", text="violet moon")
        index.insert_nodes([late])
        retriever.retrievers["lexical"].add_nodes([late])
        with capture_trace() as trace:
            assert ids(retriever.retrieve("violet moon")) == ["late"]
        assert trace.for_node("late")[-1].details.keys() == {"dense", "lexical"}

    def test_another_embedding_model(self):
        model = DeterministicEmbedding()
        HybridRetriever.from_index(VectorStoreIndex(corpus(), embed_model=DeterministicEmbedding()), embed_model=model).retrieve("red fox")
        assert model.texts == ["red fox"]

    def test_unknown_options_are_refused(self):
        with pytest.raises(TypeError, match="top_k"):
            HybridRetriever.from_index(VectorStoreIndex(corpus(), embed_model=DeterministicEmbedding()), top_k=3)
