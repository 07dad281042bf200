"""CrossEncoderRerank with a function as scorer: everything but the model."""

import asyncio
import copy
import json
import logging
import math
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.schema import Document, MetadataMode, NodeWithScore, QueryBundle, TextNode

from llama_index_advanced_rag.errors import ConfigurationError, ScorerOutputError
from llama_index_advanced_rag.postprocessors.cross_encoder import CrossEncoderRerank, sigmoid
from llama_index_advanced_rag.testing import check_postprocessor_contract
from llama_index_advanced_rag.testing.observing import count_events
from llama_index_advanced_rag.trace import capture_trace

QUERY = "red fox den"
TEXTS = ["blue sea", "red car", "red fox den", "fox den", "grey sky"]


def shared_words(pairs: list[tuple[str, str]]) -> list[float]:
    return [float(len(set(query.split()) & set(passage.split()))) for query, passage in pairs]


def found(texts: list[str] | None = None) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=f"n{number}", text=text), score=1 - number / 10) for number, text in enumerate(TEXTS if texts is None else texts)]


def ids(nodes: list[NodeWithScore]) -> list[str]:
    return [item.node.node_id for item in nodes]


class Recorder:
    """A scorer that remembers its batches."""

    def __init__(self, score: Any = shared_words) -> None:
        self.batches: list[list[tuple[str, str]]] = []
        self.score = score

    def __call__(self, pairs: list[tuple[str, str]]) -> Any:
        self.batches.append(pairs)
        return self.score(pairs)


def test_it_keeps_the_contract():
    check_postprocessor_contract(lambda: CrossEncoderRerank(shared_words, top_n=3), found(), QUERY, reranks=True)


def test_the_best_come_first_ties_in_the_incoming_order():
    result = CrossEncoderRerank(shared_words, top_n=4).postprocess_nodes(found(), query_str=QUERY)
    assert [(item.node.node_id, item.score) for item in result] == [("n2", 3.0), ("n3", 2.0), ("n1", 1.0), ("n0", 0.0)]


@given(st.lists(st.sampled_from(TEXTS)), st.integers(1, 8), st.integers(1, 4))
def test_any_list_comes_back_sorted_cut_and_with_each_score_on_its_node(texts: list[str], top_n: int, batch_size: int):
    result = CrossEncoderRerank(shared_words, top_n=top_n, batch_size=batch_size).postprocess_nodes(found(texts), query_str=QUERY)
    expected = sorted(range(len(texts)), key=lambda number: -shared_words([(QUERY, texts[number])])[0])[:top_n]
    assert ids(result) == [f"n{number}" for number in expected]
    assert [item.score for item in result] == shared_words([(QUERY, item.node.get_content()) for item in result])


def test_equal_passages_are_scored_once_in_batches_of_like_length():
    recorder = Recorder()
    texts = ["a", "bbb bbb", "a", "cc", "dddd dddd"]
    result = CrossEncoderRerank(recorder, top_n=9, batch_size=2).postprocess_nodes(found(texts), query_str="q")
    assert [[passage for _, passage in batch] for batch in recorder.batches] == [["dddd dddd", "bbb bbb"], ["cc", "a"]]
    assert len(result) == 5


def test_the_same_node_id_twice_gives_two_results():
    assert ids(CrossEncoderRerank(shared_words).postprocess_nodes([*found(["sea"]), *found(["fox"])], query_str=QUERY)) == ["n0", "n0"]


def test_what_is_scored_is_the_text_the_retriever_saw_unless_told_otherwise():
    node = TextNode(text="body", metadata={"title": "Foxes", "page": 3}, excluded_embed_metadata_keys=["page"], excluded_llm_metadata_keys=["title"])
    seen: dict[str, str] = {}
    for mode in ("embed", "none", MetadataMode.LLM):
        recorder = Recorder()
        CrossEncoderRerank(recorder, metadata_mode=mode).postprocess_nodes([NodeWithScore(node=node)], query_str="q")
        seen[str(MetadataMode(mode).value)] = recorder.batches[0][0][1]
    assert seen == {"embed": "title: Foxes\n\nbody", "none": "body", "llm": "page: 3\n\nbody"}


def test_scores_of_a_function_stay_as_they_are_and_a_sigmoid_does_not_change_the_ranking():
    plain = CrossEncoderRerank(shared_words).postprocess_nodes(found(), query_str=QUERY)
    squashed = CrossEncoderRerank(shared_words, activation="sigmoid").postprocess_nodes(found(), query_str=QUERY)
    assert ids(plain) == ids(squashed)
    assert [sigmoid(item.score or 0.0) for item in plain] == [item.score for item in squashed]


def test_large_scores_keep_their_ranking_where_the_sigmoid_is_flat():
    rerank = CrossEncoderRerank(lambda pairs: [1000.0 + number for number in range(len(pairs))], activation="sigmoid", batch_size=1 << 20)
    result = rerank.postprocess_nodes(found(["x", "y", "z"]), query_str="q")
    assert ids(result) == ["n2", "n1", "n0"]
    assert {item.score for item in result} == {1.0}


@given(st.floats(allow_nan=False))
def test_the_sigmoid_lies_between_0_and_1(value: float):
    assert 0.0 <= sigmoid(value) <= 1.0
    assert math.isclose(sigmoid(value) + sigmoid(-value), 1.0)


def test_a_threshold_drops_what_scores_lower():
    rerank = CrossEncoderRerank(shared_words, score_threshold=2)
    assert ids(rerank.postprocess_nodes(found(), query_str=QUERY)) == ["n2", "n3"]
    assert CrossEncoderRerank(shared_words, score_threshold=99).postprocess_nodes(found(), query_str=QUERY) == []


def test_arrays_and_columns_of_scores_become_plain_floats():
    for shape in ((-1,), (-1, 1)):
        rerank = CrossEncoderRerank(lambda pairs, shape=shape: np.array(shared_words(pairs), dtype=np.float32).reshape(shape))
        result = rerank.postprocess_nodes(found(), query_str=QUERY)
        assert all(type(item.score) is float for item in result)
        json.dumps([item.to_dict() for item in result])


def test_a_function_sees_a_long_passage_whole():
    recorder = Recorder()
    CrossEncoderRerank(recorder).postprocess_nodes(found(["word " * 5000 + "fox"]), query_str=QUERY)
    assert recorder.batches[0][0][1].endswith("fox")


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        ([1.0], "returned 1 scores for 5 pairs"),
        ([1.0] * 6, "returned 6 scores for 5 pairs"),
        ([1.0, 2.0, float("nan"), 0.0, 0.0], "nan is not a finite number"),
        ([1.0, 2.0, float("inf"), 0.0, 0.0], "inf is not a finite number"),
        ([1.0, None, 0.0, 0.0, 0.0], "must return one number for each pair"),
        (["0.9"] * 5, "'0.9' is text, not a number"),
        ("Doc: 1, Relevance: 9", "a str, not a sequence of numbers"),
        (None, "a NoneType, not a sequence of numbers"),
        (0.5, "a float, not a sequence of numbers"),
        ({0: 1.0}, "a dict, not a sequence of numbers"),
        (np.zeros((5, 2)), "must return one number for each pair"),
    ],
)
def test_scores_that_cannot_be_used_raise_or_keep_the_order(answer: Any, match: str, caplog: pytest.LogCaptureFixture):
    def scorer(_pairs: list[tuple[str, str]]) -> Any:
        return answer

    with pytest.raises(ScorerOutputError, match=match):
        CrossEncoderRerank(scorer).postprocess_nodes(found(), query_str=QUERY)
    with caplog.at_level(logging.WARNING), capture_trace() as trace:
        kept = CrossEncoderRerank(scorer, top_n=4, on_error="keep_order").postprocess_nodes(found(), query_str=QUERY)
    assert [(item.node.node_id, item.score) for item in kept] == [("n0", 1.0), ("n1", 0.9), ("n2", 0.8), ("n3", 0.7)]
    assert "the first 4 nodes are kept in their order" in trace.all_notes()[0].message
    assert "the first 4 nodes are kept in their order" in caplog.text
    assert trace.for_node("n3")[0].why == "not reranked"


def test_the_exception_of_a_scorer_is_raised_as_it_was():
    def broken(_pairs: list[tuple[str, str]]) -> list[float]:
        raise ConnectionError("429 too many requests")

    with pytest.raises(ConnectionError, match="429"):
        CrossEncoderRerank(broken).postprocess_nodes(found(), query_str=QUERY)
    nodes = found()[:2]
    nodes[1].score = None
    kept = CrossEncoderRerank(broken, on_error="keep_order").postprocess_nodes(nodes, query_str=QUERY)
    assert [(item.node.node_id, item.score) for item in kept] == [("n0", 1.0), ("n1", None)]


def test_no_question_is_an_error_and_an_empty_one_keeps_the_order():
    recorder = Recorder()
    rerank = CrossEncoderRerank(recorder, top_n=2)
    with pytest.raises(ConfigurationError, match=r"query_bundle is None\. A reranker needs the question"):
        rerank.postprocess_nodes(found())
    with capture_trace() as trace:
        assert ids(rerank.postprocess_nodes(found(), query_str="  \n")) == ["n0", "n1"]
    assert trace.all_notes()[0].message.startswith("The question is empty")
    assert recorder.batches == []


@pytest.mark.parametrize("nodes", [[], found()], ids=["no nodes", "nodes"])
def test_events_come_in_pairs_in_both_systems(nodes: list[NodeWithScore]):
    handler = LlamaDebugHandler(print_trace_on_end=False)
    rerank = CrossEncoderRerank(shared_words, callback_manager=CallbackManager([handler]), top_n=2)
    with count_events() as counts:
        result = rerank.postprocess_nodes(nodes, query_str=QUERY)
    assert (counts["ReRankStartEvent"], counts["ReRankEndEvent"]) == (1, 1)
    ((start, end),) = handler.get_event_pairs(CBEventType.RERANKING)
    assert start.payload is not None
    assert end.payload is not None
    assert start.payload[EventPayload.MODEL_NAME] == "shared_words"
    assert start.payload[EventPayload.TOP_K] == 2
    assert ids(end.payload[EventPayload.NODES]) == ids(result)


def test_events_come_in_pairs_when_the_scorer_fails():
    handler = LlamaDebugHandler(print_trace_on_end=False)
    rerank = CrossEncoderRerank(lambda pairs: 1 / 0, callback_manager=CallbackManager([handler]))
    with count_events() as counts, pytest.raises(ZeroDivisionError):
        rerank.postprocess_nodes(found(), query_str=QUERY)
    assert (counts["ReRankStartEvent"], counts["ReRankEndEvent"]) == (1, 1)
    assert len(handler.get_event_pairs(CBEventType.RERANKING)) == 1


def test_the_retrieval_score_goes_into_the_trace_and_not_into_the_node():
    nodes = found()
    before = copy.deepcopy(nodes)
    with capture_trace() as trace:
        CrossEncoderRerank(shared_words, top_n=1).postprocess_nodes(nodes, query_str=QUERY)
    (evidence,) = trace.children[0].evidence
    assert evidence.details == {"raw_score": 3.0, "window": 1, "windows": 1, "retrieval_rank": 3, "retrieval_score": 0.8}
    assert evidence.why == "reads as 3.000 relevant to the question; it was number 3"
    assert nodes == before
    with capture_trace() as trace:
        CrossEncoderRerank(shared_words, top_n=1, keep_retrieval_score=False).postprocess_nodes(nodes, query_str=QUERY)
    assert "retrieval_score" not in trace.children[0].evidence[0].details


async def test_two_async_calls_of_a_function_overlap():
    both = threading.Barrier(2, timeout=20)

    def scorer(pairs: list[tuple[str, str]]) -> list[float]:
        both.wait()  # passes only when the other call is here too
        return shared_words(pairs)

    rerank = CrossEncoderRerank(scorer)
    one, two = await asyncio.gather(*(rerank.apostprocess_nodes(found(), QueryBundle(QUERY)) for _ in range(2)))
    assert ids(one) == ids(two)


def test_documents_and_empty_texts_can_be_scored():
    nodes = [NodeWithScore(node=Document(text="", id_="empty")), NodeWithScore(node=Document(text="fox", id_="fox"))]
    assert ids(CrossEncoderRerank(shared_words).postprocess_nodes(nodes, query_str=QUERY)) == ["fox", "empty"]


def test_it_survives_a_dictionary_and_json():
    rerank = CrossEncoderRerank(
        "some/model", top_n=7, max_length=256, score_threshold=0.3, activation="none", metadata_mode="llm", model_kwargs={"revision": "abc"}
    )
    data = json.loads(rerank.to_json())
    assert (data["class_name"], data["model"], data["activation"], data["metadata_mode"]) == ("CrossEncoderRerank", "some/model", "none", "llm")
    assert CrossEncoderRerank.from_dict(data).to_dict() == rerank.to_dict()


def test_one_made_with_a_function_asks_for_it_again():
    data = CrossEncoderRerank(shared_words, top_n=1).to_dict()
    with pytest.raises(ConfigurationError, match=r"model is None.*from_dict\(data, model=...\)"):
        CrossEncoderRerank.from_dict(data)
    assert ids(CrossEncoderRerank.from_dict(data, model=shared_words).postprocess_nodes(found(), query_str=QUERY)) == ["n2"]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"top_n": 0}, "top_n is 0. It must be a whole number of at least 1"),
        ({"top_n": 2.5}, "top_n is 2.5"),
        ({"top_n": True}, "top_n is True"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"max_length": 0}, "max_length is 0"),
        ({"window_overlap": -1}, "window_overlap is -1"),
        ({"activation": "tanh"}, "activation is 'tanh'. It must be one of 'auto', 'sigmoid', 'none'"),
        ({"metadata_mode": "some"}, "metadata_mode is 'some'. It must be one of 'all', 'embed', 'llm', 'none'"),
        ({"on_error": "ignore"}, "on_error is 'ignore'. It must be one of 'raise', 'keep_order'"),
        ({"score_threshold": float("nan")}, "score_threshold is nan"),
        ({"score_threshold": "0.5"}, "score_threshold is '0.5'"),
        ({"model_kwargs": {"max_length": 99}}, "model_kwargs holds max_length"),
        ({"model": ""}, "model is ''. It must be the name or folder"),
        ({"model": 7}, "model is 7. It must be the name or folder"),
        ({"model": shared_words, "max_length": 99}, "max_length cannot be used: model is a function"),
        ({"model": shared_words, "device": "cpu", "trust_remote_code": True}, "device, trust_remote_code cannot be used: model is a function"),
    ],
)
def test_wrong_arguments_are_refused_at_construction(arguments: dict[str, Any], match: str):
    with pytest.raises(ConfigurationError, match=match):
        CrossEncoderRerank(**{"model": "some/model", **arguments})


def test_an_argument_nobody_knows_is_refused():
    with pytest.raises(TypeError, match="top_k"):
        CrossEncoderRerank("some/model", top_k=3)  # type: ignore[call-arg]


def test_remote_code_is_not_trusted_unless_asked():
    assert CrossEncoderRerank("some/model").trust_remote_code is False
