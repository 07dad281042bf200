"""Retrievers over rows: what they find is what the same retrievers over nodes find, whatever the way to ask."""

import asyncio
import logging
import threading
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.schema import Document, IndexNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex, FlatVectorStore, HybridRetriever, LexicalRetriever
from llama_index_advanced_rag._concurrency import run_coroutine
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError
from llama_index_advanced_rag.ranking.fusion import FusionMode
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM, count_events
from llama_index_advanced_rag.trace import RetrievalTrace, capture_trace

EVEN = MetadataFilters(filters=[MetadataFilter(key="even", value="yes")])
LATE = MetadataFilters(filters=[MetadataFilter(key="number", value=3, operator=">"), EVEN], condition=FilterCondition.OR)
TEXTS = ["red fox", "red fox runs", "red sea", "blue sea", "green field", "red field at dawn", "blue sea", "red fox"]
WORDS = ["red", "fox", "sea", "blue"]
texts_strategy = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), min_size=0, max_size=14)
KINDS = ["lexical", "dense", "hybrid"]


def scored(hits: list[NodeWithScore]) -> list[tuple[str, float | None]]:
    return [(hit.node.node_id, hit.score) for hit in hits]


def close(found: list[Any], expected: list[Any]) -> None:
    assert [item[0] for item in found] == [item[0] for item in expected]
    assert [item[1] for item in found] == pytest.approx([item[1] for item in expected], abs=1e-12)


def traced(retriever: Any, query: Any) -> tuple[list[Any], RetrievalTrace]:
    with capture_trace("q") as trace:
        found = scored(retriever.retrieve(query))
    return found, trace


def told(trace: RetrievalTrace) -> Any:
    """Everything of a trace but the times, and scores to what two ways to add can agree on."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(item) for key, item in value.items() if key != "elapsed_ms"}
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return round(value, 9) + 0.0 if isinstance(value, float) else value

    return rounded(trace.to_dict()), trace.all_labels()


@st.composite
def options_of(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    options: dict[str, Any] = {"similarity_top_k": draw(st.integers(1, 16)), "filters": draw(st.sampled_from([None, EVEN, LATE]))}
    if kind == "dense":
        options["doc_ids"] = draw(st.sampled_from([None, ["doc0", "doc2", "unknown"]]))
        options["node_ids"] = draw(st.sampled_from([None, ["n1", "n2", "n3", "n8"]]))
    if kind == "hybrid":
        options["fusion"] = draw(st.sampled_from(list(FusionMode)))
        if options["fusion"] is not FusionMode.GUARDED:
            options["weights"] = draw(st.sampled_from([None, {"dense": 0.3, "lexical": 0.7}, {"dense": 0.0}]))
        options["child_top_n"] = draw(st.sampled_from([None, 3, {"dense": 2}]))
        options["rrf_k"] = draw(st.sampled_from([0, 60]))
    return options


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data(), texts=texts_strategy)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_and_nodes_agree(kind: str, data: st.DataObject, texts: list[str], make_rows: Any):
    deleted = data.draw(st.sets(st.integers(0, max(0, len(texts) - 1)), max_size=len(texts)))
    rows, options = make_rows(texts, deleted=deleted), data.draw(options_of(kind))
    by_row, by_node = getattr(rows, kind)(**options), getattr(rows, f"node_{kind}")(**options)
    assert by_row.row_space is rows
    assert by_node.row_space is None
    queries = ["red fox", "sea", "blue blue red", "unknown", "", "fox sea"]
    expected = [scored(by_node.retrieve(query)) for query in queries]
    batch, async_batch = by_row.retrieve_batch(queries), run_coroutine(by_row.aretrieve_batch(queries))
    for place, query in enumerate(queries):
        close(scored(by_row.retrieve(query)), expected[place])
        close(by_row.retrieve_ids(query), expected[place])
        close(by_node.retrieve_ids(query), expected[place])
        close(scored(batch[place]), expected[place])
        close(scored(async_batch[place]), expected[place])
        close(scored(run_coroutine(by_row.aretrieve(query))), expected[place])
        close(run_coroutine(by_row.aretrieve_ids(query)), expected[place])
    found, trace = traced(by_row, queries[0])
    expected_found, expected_trace = traced(by_node, queries[0])
    close(found, expected_found)
    assert told(trace) == told(expected_trace)


class TestReading:
    @pytest.mark.parametrize("kind", KINDS)
    def test_only_the_final_nodes_are_read(self, make_rows, kind):
        rows = make_rows(TEXTS)
        retriever = getattr(rows, kind)(similarity_top_k=2)
        assert len(retriever.retrieve("red fox")) == 2
        assert rows.read == 2
        assert len(retriever.retrieve_ids("red fox")) == 2
        assert rows.read == 2

    @pytest.mark.parametrize("kind", KINDS)
    def test_one_state_a_search(self, make_rows, kind):
        rows = make_rows(TEXTS)
        getattr(rows, kind)().retrieve("red fox")
        assert (rows.searched, rows.refreshed) == (1, 0)

    @pytest.mark.parametrize("kind", KINDS)
    async def test_a_row_deleted_in_the_middle_is_searched_around(self, make_rows, kind):
        for way in ("retrieve", "aretrieve"):
            rows = make_rows(TEXTS)
            retriever = getattr(rows, kind)(similarity_top_k=2)
            assert [hit.node_id for hit in retriever.retrieve("red fox")] == ["n0", "n7"]
            rows.before_reading = [lambda gone=rows.gone: gone.add(0)]
            found = retriever.retrieve("red fox") if way == "retrieve" else await retriever.aretrieve("red fox")
            assert [hit.node_id for hit in found] == ["n7", "n1"]
            assert scored(found) == retriever.retrieve_ids("red fox")

    def test_the_query_is_embedded_once_however_often_is_searched(self, make_rows):
        rows = make_rows(TEXTS)
        rows.before_reading = [lambda: rows.gone.add(7), lambda: rows.gone.add(0)]
        found = rows.hybrid(similarity_top_k=2).retrieve("red fox")
        assert rows.model.texts == ["red fox"]
        assert rows.gone == {0, 7}
        close(scored(found), scored(rows.node_hybrid(similarity_top_k=2).retrieve("red fox")))

    def test_ids_are_searched_around_too(self, make_rows):
        rows = make_rows(TEXTS)
        rows.gone.add(0)
        assert [node_id for node_id, _ in rows.lexical(similarity_top_k=2).retrieve_ids("red fox")] == ["n7", "n1"]

    def test_the_last_attempt_sees_a_state_that_stands_still(self, make_rows):
        rows = make_rows(TEXTS)
        rows.before_reading = [lambda place=place: rows.gone.add(place) for place in (5, 2, 1, 7, 0)]
        found = rows.dense(similarity_top_k=3).retrieve("red fox")
        assert len(found) == 3
        assert not {int(hit.node_id[1:]) for hit in found} & rows.gone

    def test_rows_without_nodes_are_left_out_and_said(self, make_rows, caplog):
        rows = make_rows(TEXTS)
        rows.refresh = lambda: False
        rows.gone.add(0)
        with caplog.at_level(logging.WARNING), capture_trace() as trace:
            found = rows.lexical(similarity_top_k=2).retrieve("red fox")
        assert [hit.node_id for hit in found] == ["n7"]
        assert "1 rows that were found" in trace.all_notes()[0].message

    def test_no_vectors_no_hits(self, make_rows):
        rows = make_rows([])
        assert rows.dense().retrieve("red") == rows.hybrid().retrieve("red") == []


class TestWhere:
    def test_an_external_vector_store_keeps_to_nodes(self, make_rows):
        rows = make_rows(TEXTS)
        mixed = HybridRetriever({"dense": rows.node_dense(), "lexical": rows.lexical()}, similarity_top_k=3)
        assert mixed.row_space is None
        assert scored(mixed.retrieve("red fox")) == scored(rows.hybrid(similarity_top_k=3).retrieve("red fox"))

    def test_two_corpora_are_two_spaces(self, make_rows):
        one, two = make_rows(TEXTS), make_rows(TEXTS[::-1])
        both = HybridRetriever([one.lexical(), two.lexical()])
        assert both.row_space is None
        assert {hit.node_id for hit in both.retrieve("fox")} == {"n0", "n1", "n6", "n7"}

    def test_text_as_identity_reads_nodes(self, make_rows):
        rows = make_rows(TEXTS)
        assert rows.hybrid(identity="content").row_space is None
        assert [hit.node.text for hit in rows.hybrid(identity="content").retrieve("blue sea")].count("blue sea") == 1

    def test_a_subclass_that_finds_in_its_own_way_is_asked_its_way(self, make_rows):
        class Reversed(LexicalRetriever):
            def _find(self, query_bundle):
                return super()._find(query_bundle)[::-1]

        rows = make_rows(TEXTS)
        plain = rows.lexical()
        other = Reversed(plain.postings, rows)
        assert other.row_space is None
        assert other.retrieve_ids("fox") == scored(other.retrieve("fox")) == plain.retrieve_ids("fox")[::-1]
        assert HybridRetriever([other]).row_space is None

    def test_listeners_of_a_part_hear_it(self, make_rows):
        from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler

        rows, handler = make_rows(TEXTS), LlamaDebugHandler(print_trace_on_end=False)
        hybrid = HybridRetriever([rows.dense(callback_manager=CallbackManager([handler])), rows.lexical()])
        hybrid.retrieve("fox")
        assert hybrid.row_space is None
        assert len(handler.get_event_pairs()) == 1


class TestParts:
    def test_each_embeds_once_and_an_embedding_of_the_caller_is_used(self, make_rows):
        rows = make_rows(TEXTS)
        vector = DeterministicEmbedding().get_query_embedding("blue sea")
        assert rows.hybrid(similarity_top_k=1).retrieve_ids(QueryBundle("sea", embedding=vector))[0][0] == "n3"
        assert rows.model.texts == []

    def test_a_part_that_fails_is_left_out_and_said(self, make_rows):
        rows = make_rows(TEXTS)
        hybrid = HybridRetriever({"dense": rows.dense(DeterministicEmbedding(fail_on="fox")), "lexical": rows.lexical()})
        alone = HybridRetriever({"lexical": rows.lexical()})
        for ask in (hybrid.retrieve, lambda query: run_coroutine(hybrid.aretrieve(query))):
            with capture_trace() as trace:
                assert scored(ask("fox")) == scored(alone.retrieve("fox"))
            notes = [note.message for note in trace.all_notes()]
            assert notes == ["Retriever 'dense' failed and was left out: ConnectionError: the embedding service is down"]
        assert hybrid.retrieve_ids("fox") == alone.retrieve_ids("fox")

    def test_when_all_fail_the_first_error_is_raised(self, make_rows):
        rows = make_rows(TEXTS)
        hybrid = HybridRetriever([rows.dense(DeterministicEmbedding(fail_on="fox"))])
        for ask in (
            hybrid.retrieve,
            hybrid.retrieve_ids,
            lambda query: run_coroutine(hybrid.aretrieve(query)),
            lambda query: hybrid.retrieve_batch([query] * 2),
        ):
            with pytest.raises(ConnectionError, match="the embedding service is down"):
                ask("fox")

    async def test_a_late_part_is_left_out(self, make_rows):
        class Waiting(DeterministicEmbedding):
            def _get_query_embedding(self, query):
                gate.wait(10)
                return super()._get_query_embedding(query)

            async def _aget_query_embedding(self, query):
                await asyncio.Event().wait()

        rows, gate = make_rows(TEXTS), threading.Event()
        hybrid = HybridRetriever({"dense": rows.dense(Waiting()), "lexical": rows.lexical()}, timeout_s={"dense": 0.05})
        expected = HybridRetriever({"lexical": rows.lexical()}).retrieve_ids("fox")
        try:
            for found in (hybrid.retrieve("fox"), await hybrid.aretrieve("fox"), hybrid.retrieve_batch(["fox", "sea"])[0]):
                assert scored(found) == expected
            with capture_trace() as trace:
                hybrid.retrieve("fox")
        finally:
            gate.set()
        assert [part.stage for part in trace.children[0].children] == ["dense", "lexical"]
        assert "no answer within 0.05 s" in trace.all_notes()[0].message

    def test_other_queries_are_fused_as_over_nodes(self, make_rows):
        rows = make_rows(TEXTS)
        for fusion in FusionMode:
            found, expected = (
                make(fusion=fusion, num_queries=3, llm=ScriptedLLM(['["blue sea", "green field"]'] * 2)) for make in (rows.hybrid, rows.node_hybrid)
            )
            assert found.row_space is rows
            close(found.retrieve_ids("red fox"), scored(expected.retrieve("red fox")))
            assert told(traced(found, "red fox")[1]) == told(traced(expected, "red fox")[1])

    def test_own_filters_of_a_part_and_those_of_all(self, make_rows):
        rows = make_rows(TEXTS)
        hybrid = HybridRetriever([rows.dense(filters=EVEN), rows.lexical()], filters=LATE)
        nodes = HybridRetriever([rows.node_dense(filters=EVEN), rows.node_lexical()], filters=LATE)
        close(hybrid.retrieve_ids("red fox"), scored(nodes.retrieve("red fox")))

    def test_changes_of_others_are_looked_for_once_a_search(self, make_rows):
        rows = make_rows(TEXTS)
        for kind in KINDS:
            for way in ("retrieve", "retrieve_ids"):
                rows.refreshed = 0
                getattr(getattr(rows, kind)().refreshed_by(rows.refresh), way)("fox")
                assert rows.refreshed == 1
        HybridRetriever([rows.dense().refreshed_by(rows.refresh), rows.lexical()]).retrieve("fox")
        assert rows.refreshed == 2


class TestBatch:
    @pytest.mark.parametrize("kind", KINDS)
    def test_together(self, make_rows, kind):
        rows = make_rows(TEXTS)
        found = getattr(rows, kind)(similarity_top_k=3).retrieve_batch(["red fox", "blue sea", "red fox"])
        assert rows.searched == 1
        assert scored(found[0]) == scored(found[2])
        assert rows.model.texts.count("red fox") == (0 if kind == "lexical" else 1)

    def test_each_result_is_its_own(self, make_rows):
        one, two = make_rows(TEXTS).lexical().retrieve_batch(["fox", "fox"])
        one[0].node.metadata["mine"] = True
        assert "mine" not in two[0].node.metadata

    @pytest.mark.parametrize("kind", KINDS)
    async def test_events_are_those_of_retrieve(self, make_rows, kind):
        retriever = getattr(make_rows(TEXTS), kind)()
        with count_events() as one_by_one:
            for query in ("fox", "sea"):
                retriever.retrieve(query)
        with count_events() as together:
            retriever.retrieve_batch(["fox", "sea"])
        with count_events() as awaited:
            await retriever.aretrieve_batch(["fox", "sea"])
        names = ("RetrievalStartEvent", "RetrievalEndEvent")
        assert [together[name] for name in names] == [awaited[name] for name in names] == [one_by_one[name] for name in names] == [2, 2]

    @pytest.mark.parametrize("queries", [[], ["fox"], [QueryBundle("fox")]])
    async def test_none_and_one(self, make_rows, queries):
        retriever = make_rows(TEXTS).hybrid()
        expected = [scored(retriever.retrieve(query)) for query in queries]
        assert [scored(hits) for hits in retriever.retrieve_batch(queries)] == [scored(hits) for hits in await retriever.aretrieve_batch(queries)] == expected

    def test_a_single_query_is_no_list(self, make_rows):
        with pytest.raises(ConfigurationError, match="Expected a list of queries"):
            make_rows(TEXTS).lexical().retrieve_batch("fox")

    def test_one_query_that_cannot_be_embedded_leaves_the_others(self, make_rows):
        rows = make_rows(TEXTS)
        hybrid = HybridRetriever({"dense": rows.dense(DeterministicEmbedding(fail_on="fox")), "lexical": rows.lexical()})
        assert [scored(hits) for hits in hybrid.retrieve_batch(["fox", "sea"])] == [scored(hybrid.retrieve(query)) for query in ("fox", "sea")]

    def test_one_vector_that_cannot_be_searched_leaves_the_others(self, make_rows):
        rows = make_rows(TEXTS)
        queries = [QueryBundle("fox", embedding=[1.0]), QueryBundle("sea", embedding=rows.model.get_query_embedding("sea"))]
        hybrid = rows.hybrid()
        assert [scored(hits) for hits in hybrid.retrieve_batch(queries)] == [scored(hybrid.retrieve(query)) for query in queries]

    def test_a_listener_gets_each_trace(self, make_rows):
        retriever = make_rows(TEXTS).hybrid()
        with capture_trace() as trace:
            retriever.retrieve_batch(["fox", "sea"])
        assert [(part.stage, part.query, len(part.children)) for part in trace.children] == [("hybrid", "fox", 2), ("hybrid", "sea", 2)]

    async def test_index_nodes_lead_to_their_objects(self, make_rows):
        inner = TextNode(id_="inner", text="the whole table")
        rows = type(make_rows([]))([IndexNode(id_="i", text="red fox", index_id="table"), TextNode(id_="n", text="red sea")])
        for kind in KINDS:
            retriever = getattr(rows, kind)(object_map={"table": inner})
            expected = [scored(retriever.retrieve(query)) for query in ("red fox", "sea")]
            assert expected[0][0][0] == "inner"
            assert [scored(hits) for hits in retriever.retrieve_batch(["red fox", "sea"])] == expected
            assert [scored(hits) for hits in await retriever.aretrieve_batch(["red fox", "sea"])] == expected
            assert retriever.retrieve_ids("red fox")[0][0] == "i"


class TestOverAnIndex:
    @pytest.mark.parametrize("kind", KINDS)
    def test_rows_of_an_index_and_its_nodes_agree_after_changes(self, tmp_path, kind):
        model = DeterministicEmbedding()
        documents = [Document(id_=f"d{number}", text=text, metadata={"number": number}) for number, text in enumerate(TEXTS)]
        with CorpusIndex.from_documents(documents, embed_model=model, persist_dir=tmp_path, language="en") as index:
            retriever = index.as_retriever(kind, similarity_top_k=6)
            index.delete_ref_doc("d0")
            index.insert(Document(id_="d9", text="red fox at sea", metadata={"number": 9}))
            index.update_ref_doc(Document(id_="d1", text="blue fox", metadata={"number": 1}))
            assert retriever.row_space is index.corpus
            nodes = list(index.docstore.docs.values())
            words = LexicalRetriever.from_defaults(nodes=nodes, language="en")
            store = FlatVectorStore(keep_nodes=False)
            store.add([node.model_copy(update={"embedding": model.get_text_embedding(node.get_content(MetadataMode.EMBED))}) for node in nodes])
            vectors = DenseRetriever(store, model, nodes=DictNodeSource(nodes))
            by_node = {"lexical": words, "dense": vectors, "hybrid": HybridRetriever({"dense": vectors, "lexical": words}, fusion="weighted")}[kind]
            for query in ("red fox", "blue sea", "fox at dawn"):
                for filters in (None, MetadataFilters(filters=[MetadataFilter(key="number", value=[1, 3, 9], operator="in")])):
                    expected = scored(by_node.with_top_k(6).with_filters(filters).retrieve(query))
                    assert expected
                    close(scored(retriever.with_filters(filters).retrieve(query)), expected)
                    close(retriever.with_filters(filters).retrieve_ids(query), expected)

    def test_an_index_is_not_changed_through_a_retriever(self):
        index = CorpusIndex.from_documents([Document(id_="d", text="red fox")], embed_model=DeterministicEmbedding())
        retriever = index.as_retriever("lexical")
        (found,) = retriever.retrieve("fox")
        with pytest.raises(ConfigurationError, match=r"Call index.insert"):
            retriever.add_nodes([TextNode(id_=found.node_id, text="green fox")])
        with pytest.raises(ConfigurationError, match=r"Call index.delete_ref_doc"):
            retriever.delete_nodes([found.node_id])
        assert retriever.retrieve("fox")[0].node.text == "red fox"


class TestElsewhere:
    async def test_retrievers_over_nodes_have_the_same_methods(self, make_rows):
        rows = make_rows(TEXTS)
        retriever = rows.node_hybrid(similarity_top_k=3)
        expected = [scored(retriever.retrieve(query)) for query in ("fox", "sea", "red")]
        assert [retriever.retrieve_ids(query) for query in ("fox", "sea", "red")] == expected
        assert [await retriever.aretrieve_ids(query) for query in ("fox", "sea", "red")] == expected
        assert [scored(hits) for hits in retriever.retrieve_batch(["fox", "sea", "red"])] == expected
        assert [scored(hits) for hits in await retriever.aretrieve_batch(["fox", "sea", "red"], show_progress=True)] == expected

    def test_a_hit_without_a_score_has_none_to_give(self):
        from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQueryResult

        class Unscored(BasePydanticVectorStore):
            stores_text: bool = True

            @property
            def client(self):
                return None

            def add(self, nodes, **kwargs):
                return []

            def delete(self, ref_doc_id, **kwargs):
                return None

            def query(self, query, **kwargs):
                return VectorStoreQueryResult(nodes=[TextNode(id_="a", text="a")], ids=["a"])

        assert DenseRetriever(Unscored(), DeterministicEmbedding()).retrieve_ids("a") == [("a", 0.0)]

    def test_the_trace_of_ids_is_that_of_retrieve(self, make_rows):
        retriever = make_rows(TEXTS).hybrid()
        with capture_trace("q") as trace:
            found = retriever.retrieve_ids("red fox")
        expected, expected_trace = traced(retriever, "red fox")
        assert found == expected
        assert told(trace) == told(expected_trace)


async def test_concurrent_searches_agree(make_rows):
    retriever = make_rows(TEXTS).hybrid()
    expected = scored(retriever.retrieve("red fox"))
    found = await asyncio.gather(*(retriever.aretrieve("red fox") for _ in range(16)))
    assert Counter(str(scored(hits)) for hits in found) == {str(expected): 16}
    assert len({id(hit.node) for hits in found for hit in hits}) == 16 * len(expected)
    assert await asyncio.gather(*(retriever.aretrieve_ids("red fox") for _ in range(16))) == [expected] * 16


async def test_concurrent_searches_fail_alone(make_rows):
    rows = make_rows(TEXTS)
    queries = [QueryBundle("fox"), QueryBundle("", embedding=[1.0]), QueryBundle("sea")]
    hybrid = HybridRetriever([rows.dense()])
    found = await asyncio.gather(*(hybrid.aretrieve(query) for query in queries), return_exceptions=True)
    assert [scored(found[place]) for place in (0, 2)] == [scored(hybrid.retrieve(queries[place])) for place in (0, 2)]
    assert isinstance(found[1], EmbeddingMismatchError)
