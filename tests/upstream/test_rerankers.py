"""Faults of the stock rerankers (core 0.14.25); ours passes each check, where cheap the stock component is a strict xfail.

The encoder has random weights: nothing here is about quality.
"""

import copy
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.postprocessor import SentenceTransformerRerank
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from llama_index_advanced_rag.errors import ScorerOutputError
from llama_index_advanced_rag.postprocessors.cross_encoder import CrossEncoderRerank
from llama_index_advanced_rag.testing import stock_fault
from llama_index_advanced_rag.testing.observing import count_events
from llama_index_advanced_rag.testing.random_encoder import save_random_cross_encoder, tokenizer_folder
from llama_index_advanced_rag.trace import capture_trace

QUERY = "Where does the red fox live?"
ENDINGS = ["London", "Paris", "Tokyo", "net sales", "renard"]
needs_model = [pytest.mark.offline_model, pytest.mark.skipif(tokenizer_folder() is None, reason="the extra `offline` (tokenizer) is not installed")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_cross_encoder(tmp_path_factory.mktemp("encoder"), max_tokens=1024)


def stock(folder: Path, **kwargs: Any) -> SentenceTransformerRerank:
    return SentenceTransformerRerank(model=str(folder), top_n=5, device="cpu", **kwargs)


def found(texts: list[str] | None = None) -> list[NodeWithScore]:
    given = ["The red fox lives in a den.", "Grey sky.", "Net sales rose."] if texts is None else texts
    return [NodeWithScore(node=TextNode(id_=f"n{number}", text=text), score=0.9 - number / 10) for number, text in enumerate(given)]


def check_long_text_counts(rerank: BaseNodePostprocessor) -> None:
    """5b, 5h: what stands behind token 512 of a model that reads 1024, and behind its own window."""
    for words in (700, 1500):
        texts = ["fox den sea sky " * (words // 4) + f"{last} " * 40 for last in ENDINGS]
        scores = [float(item.score or 0) for item in rerank.postprocess_nodes(found(texts), query_str=QUERY)]
        assert max(scores) - min(scores) > 1e-4


def check_inputs_stay(rerank: BaseNodePostprocessor) -> None:
    """5c: nodes, scores, metadata, hash and the text the LLM reads."""
    nodes = found()
    before, hashes = copy.deepcopy(nodes), [item.node.hash for item in nodes]
    result = rerank.postprocess_nodes(nodes, query_str=QUERY)
    assert nodes == before
    assert [item.node.hash for item in nodes] == hashes
    assert all("retrieval_score" not in item.node.get_content(MetadataMode.LLM) for item in result)


def check_scores_are_json(rerank: BaseNodePostprocessor) -> None:
    """5c: numpy scores."""
    json.dumps([item.score for item in rerank.postprocess_nodes(found(), query_str=QUERY)])


def check_events(rerank: BaseNodePostprocessor) -> None:
    """5d: instrumentation events, in pairs, also for an empty list."""
    for nodes in (found(), []):
        with count_events() as counts:
            rerank.postprocess_nodes(nodes, query_str=QUERY)
        assert (counts["ReRankStartEvent"], counts["ReRankEndEvent"]) == (1, 1)


def check_safe_default(rerank: Any) -> None:
    """5a: code from the hub is not run unless asked, and the field says what is done."""
    assert inspect.signature(type(rerank)).parameters["trust_remote_code"].default is False
    assert rerank.trust_remote_code is False


def check_arguments(rerank: Any) -> None:
    """5g: batch size, window, activation and cut-off can be set."""
    assert {"batch_size", "max_length", "activation", "score_threshold"} <= set(inspect.signature(type(rerank)).parameters)


CHECKS = [check_long_text_counts, check_inputs_stay, check_scores_are_json, check_events, check_safe_default, check_arguments]


class TestSentenceTransformerRerank:
    pytestmark = needs_model

    @pytest.mark.parametrize("check", CHECKS)
    def test_ours(self, folder: Path, check: Callable[[BaseNodePostprocessor], None]):
        check(CrossEncoderRerank(folder, top_n=5, keep_retrieval_score=True))

    @stock_fault("core 0.14.25: SentenceTransformerRerank cuts at 512 tokens, mutates its input, gives numpy scores, no events, trusts remote code")
    @pytest.mark.parametrize("check", CHECKS)
    def test_stock(self, folder: Path, check: Callable[[BaseNodePostprocessor], None]):
        check(stock(folder, keep_retrieval_score=True))

    def test_the_scores_lie_between_0_and_1_and_the_threshold_is_on_them(self, folder: Path):
        """Issue 18518: negative scores, a cut-off of .76 that does nothing."""
        everything = CrossEncoderRerank(folder).postprocess_nodes(found(), query_str=QUERY)
        assert all(0 <= (item.score or 0) <= 1 for item in everything)
        cut = everything[1].score
        kept = CrossEncoderRerank(folder, score_threshold=cut).postprocess_nodes(found(), query_str=QUERY)
        assert [item.node.node_id for item in kept] == [item.node.node_id for item in everything[:2]]

    def test_the_device_is_honoured_and_reported(self, folder: Path):
        """Issue 10172."""
        with capture_trace() as trace:
            CrossEncoderRerank(folder, device="cpu").postprocess_nodes(found(), query_str=QUERY)
        assert " on cpu, " in trace.all_notes()[0].message


def _by_text(scores: dict[str, float]) -> Callable[[list[tuple[str, str]]], list[float]]:
    return lambda pairs: [scores[passage] for _, passage in pairs]


class TestScorersThatAnswerNonsense:
    """What LLMRerank gets wrong (4b), on a function as scorer: no pair shifts, none is lost, nonsense is no score."""

    def test_fractions_are_scores(self):
        rerank = CrossEncoderRerank(_by_text({"a": 0.9, "b": 0.95}))
        assert [(item.node.node_id, item.score) for item in rerank.postprocess_nodes(found(["a", "b"]), query_str=QUERY)] == [("n1", 0.95), ("n0", 0.9)]

    def test_a_score_belongs_to_its_node_whatever_the_batches(self):
        """Issue 20597, pull 22404: an index that is mapped wrongly, a bad answer that shifts the rest."""
        texts = ["x" * length for length in (5, 1, 9, 3, 7, 2, 8)]
        wanted = {text: float(len(text) * 7 % 10) for text in texts}
        for batch_size in (1, 2, 3, 32):
            result = CrossEncoderRerank(_by_text(wanted), top_n=9, batch_size=batch_size).postprocess_nodes(found(texts), query_str=QUERY)
            assert [item.score for item in result] == [wanted[item.node.get_content()] for item in result]

    @pytest.mark.parametrize(
        "answer", [[], [1.0], [1.0, 2.0, 3.0, 4.0], [1.0, float("nan"), 2.0], [1.0, None, 2.0], ["high", "low", "9"], "Doc: 0, Relevance: 9", None]
    )
    def test_nothing_is_lost(self, answer: Any):
        """Issues 22743, 17352, 11093, 12323, 11470: an error that says what came, or the incoming order and a note."""
        with pytest.raises(ScorerOutputError, match="must return one number for each pair"):
            CrossEncoderRerank(lambda _pairs: answer).postprocess_nodes(found(), query_str=QUERY)
        with capture_trace() as trace:
            kept = CrossEncoderRerank(lambda _pairs: answer, top_n=2, on_error="keep_order").postprocess_nodes(found(), query_str=QUERY)
        assert [item.node.node_id for item in kept] == ["n0", "n1"]
        assert trace.all_notes()[0].level == "warning"
