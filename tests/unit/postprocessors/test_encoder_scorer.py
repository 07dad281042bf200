"""CrossEncoderRerank with a real sentence-transformers CrossEncoder (random weights: everything but quality)."""

import asyncio
import copy
import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from llama_index_advanced_rag.errors import ConfigurationError, RerankerUnavailableError
from llama_index_advanced_rag.postprocessors import encoder_scorer
from llama_index_advanced_rag.postprocessors.cross_encoder import CrossEncoderRerank, sigmoid
from llama_index_advanced_rag.testing import check_postprocessor_contract
from llama_index_advanced_rag.testing.random_encoder import save_random_cross_encoder, tokenizer_folder
from llama_index_advanced_rag.trace import capture_trace

pytestmark = [pytest.mark.offline_model, pytest.mark.skipif(tokenizer_folder() is None, reason="the extra `offline` (tokenizer) is not installed")]

QUERY = "Where does the red fox live?"
TEXTS = [
    "The red fox lives in a den.",
    "Grey sky over a blue sea.",
    "Net sales were 81,797 million.",
    "fox",
    "",
    "Où vit le renard ?",
    "The red fox lives in a den.",
]

ENDINGS = ["London", "Paris", "Tokyo", "net sales", "renard", "grey", "81,797", "Apple"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_cross_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_cross_encoder(tmp_path_factory.mktemp("long_encoder"), max_tokens=1024)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Any:
    from sentence_transformers import CrossEncoder

    return CrossEncoder(str(folder), device="cpu")


def found(texts: list[str]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=f"n{number}", text=text), score=0.5) for number, text in enumerate(texts)]


def scores(rerank: CrossEncoderRerank, texts: list[str], query: str = QUERY) -> dict[str, float]:
    return {item.node.node_id: item.score or 0.0 for item in rerank.postprocess_nodes(found(texts), query_str=query)}


def long_text(words: int, last: str) -> str:
    return " ".join(["fox", "den", "sea", "sky", "river"][number % 5] for number in range(words)) + " " + last


def test_it_keeps_the_contract(encoder: Any):
    check_postprocessor_contract(lambda: CrossEncoderRerank(encoder, top_n=4), found(TEXTS), QUERY, reranks=True)


def test_scores_are_the_sigmoid_of_the_logits_as_plain_floats(folder: Path, encoder: Any):
    logits = encoder_scorer.logits(encoder, [(QUERY, text) for text in TEXTS], batch_size=32, show_progress=False)
    assert encoder.predict([(QUERY, text) for text in TEXTS]) == pytest.approx([sigmoid(float(logit)) for logit in logits], abs=1e-5)
    expected = {f"n{number}": sigmoid(float(logit)) for number, logit in enumerate(logits)}
    result = CrossEncoderRerank(folder, top_n=99).postprocess_nodes(found(TEXTS), query_str=QUERY)
    assert {item.node.node_id: item.score for item in result} == pytest.approx(expected, abs=1e-5)
    assert all(type(item.score) is float and 0 <= item.score <= 1 for item in result)
    json.dumps([item.score for item in result])
    raw = scores(CrossEncoderRerank(encoder, top_n=99, activation="none"), TEXTS)
    assert list(raw.values()) == pytest.approx(sorted((float(logit) for logit in logits), reverse=True), abs=1e-4)


def test_equal_passages_get_equal_scores_and_keep_their_order(encoder: Any):
    result = scores(CrossEncoderRerank(encoder, top_n=99), TEXTS)
    assert result["n0"] == result["n6"]
    assert list(result).index("n0") < list(result).index("n6")


def test_batches_score_like_single_pairs(encoder: Any):
    texts = [long_text(number * 7, "end") for number in range(12)]
    one = scores(CrossEncoderRerank(encoder, top_n=99, batch_size=1), texts)
    many = scores(CrossEncoderRerank(encoder, top_n=99, batch_size=5), texts)
    assert one == pytest.approx(many, abs=1e-5)


def test_text_behind_the_window_counts(encoder: Any):
    texts = [long_text(900, f"{last} " * 40) for last in ENDINGS]  # the best window counts, so some endings lift a passage
    assert np.ptp(encoder.predict([(QUERY, text) for text in texts])) < 1e-5, "the model alone does not see the end"
    assert np.ptp(list(scores(CrossEncoderRerank(encoder), texts).values())) > 1e-3


def test_a_long_passage_gets_the_score_of_its_best_window(encoder: Any):
    text = long_text(1200, "The red fox lives in a den.")
    with capture_trace() as trace:
        (result,) = CrossEncoderRerank(encoder).postprocess_nodes(found([text]), query_str=QUERY)
    details = trace.children[0].evidence[0].details
    scorer = encoder_scorer.EncoderScorer(encoder, max_length=None, window_overlap=64, device=None, trust_remote_code=False, model_kwargs={})
    scorer._loaded()
    _, (windows,) = scorer._windows(QUERY, [text])
    alone = encoder.predict([(QUERY, window) for window in windows])
    assert details["windows"] == len(windows) == 3
    assert details["window"] == int(np.argmax(alone)) + 1
    assert result.score == pytest.approx(float(max(alone)), abs=1e-5)
    assert all(len(encoder.tokenizer(QUERY, window)["input_ids"]) <= 512 for window in windows)
    assert windows[0].startswith("fox den")
    assert windows[-1].endswith("lives in a den.")


@given(st.text(max_size=400), st.integers(12, 40), st.integers(0, 40))
@hypothesis_settings(max_examples=60, deadline=None)
def test_no_window_is_truncated_whatever_the_text(encoder: Any, text: str, max_length: int, overlap: int):
    scorer = encoder_scorer.EncoderScorer(encoder, max_length=max_length, window_overlap=overlap, device=None, trust_remote_code=False, model_kwargs={})
    scorer._loaded()
    asked, (windows,) = scorer._windows(QUERY, [text])
    lengths = [len(encoder.tokenizer(asked, window, verbose=False)["input_ids"]) for window in windows]
    assert max(lengths) <= max_length
    assert all(window in text for window in windows)


def test_the_real_window_of_the_model_is_used(long_folder: Path):
    text = long_text(900, "London")
    with capture_trace() as trace:
        CrossEncoderRerank(long_folder).postprocess_nodes(found([text]), query_str=QUERY)
    assert trace.children[0].evidence[0].details["windows"] == 1
    assert "on cpu, window 1024 tokens" in trace.all_notes()[0].message
    with capture_trace() as trace:
        CrossEncoderRerank(long_folder, max_length=256).postprocess_nodes(found([text]), query_str=QUERY)
    assert trace.children[0].evidence[0].details["windows"] == 5
    assert "window 256 tokens" in trace.all_notes()[0].message


def test_the_device_is_honoured_and_reported(folder: Path):
    with capture_trace() as trace:
        CrossEncoderRerank(folder, device="cpu").postprocess_nodes(found(TEXTS), query_str=QUERY)
    assert trace.all_notes()[0].message == f"{folder} on cpu, window 512 tokens: 7 nodes scored, 0 below the threshold, 5 kept"
    with pytest.raises(RuntimeError, match="nonsense"):
        CrossEncoderRerank(folder, device="nonsense").postprocess_nodes(found(TEXTS), query_str=QUERY)


def test_a_question_longer_than_the_window_is_cut_and_that_is_said(encoder: Any):
    with capture_trace() as trace:
        result = scores(CrossEncoderRerank(encoder), [long_text(900, "London"), "fox"], query="Where does it live? " * 1000)
    assert len(set(result.values())) == 2
    assert "The question is longer than half of the 512 tokens" in trace.all_notes()[0].message


def test_it_is_loaded_once_at_first_use_by_many_threads(folder: Path, monkeypatch: pytest.MonkeyPatch):
    loads: list[str] = []
    original = encoder_scorer.load_encoder

    def counted(model: str, **kwargs: Any) -> Any:
        loads.append(model)
        return original(model, **kwargs)

    monkeypatch.setattr(encoder_scorer, "load_encoder", counted)
    rerank = CrossEncoderRerank(folder, top_n=99)
    assert loads == []
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: scores(rerank, TEXTS), range(12)))
    assert loads == [str(folder)]
    assert all(result == results[0] for result in results)


async def test_two_rerankers_may_share_one_model_side_by_side(encoder: Any):
    rerankers = [CrossEncoderRerank(encoder, top_n=99, batch_size=2) for _ in range(4)]
    results = await asyncio.gather(*(rerank.apostprocess_nodes(found(TEXTS), QueryBundle(QUERY)) for rerank in rerankers))
    assert len({tuple(item.node.node_id for item in result) for result in results}) == 1


def test_copies_and_pickles_work_after_use(folder: Path):
    rerank = CrossEncoderRerank(folder, top_n=3)
    expected = scores(rerank, TEXTS)
    for other in (copy.copy(rerank), copy.deepcopy(rerank), pickle.loads(pickle.dumps(rerank)), CrossEncoderRerank.from_dict(rerank.to_dict())):
        assert scores(other, TEXTS) == expected


def test_a_model_that_is_not_there_is_refused_with_the_ways_out(tmp_path: Path):
    missing = str(tmp_path / "nothing here")
    rerank = CrossEncoderRerank(missing)
    with pytest.raises(RerankerUnavailableError, match=r"could not be loaded.*Give the name of a model on the hub"):
        rerank.postprocess_nodes(found(TEXTS), query_str=QUERY)
    kept = CrossEncoderRerank(missing, on_error="keep_order", top_n=2).postprocess_nodes(found(TEXTS), query_str=QUERY)
    assert [item.node.node_id for item in kept] == ["n0", "n1"]


def test_an_embedding_model_is_refused_because_its_scores_would_be_random():
    rerank = CrossEncoderRerank(str(tokenizer_folder()), on_error="keep_order")
    with pytest.raises(ConfigurationError, match="weights of BertModel, which has no scoring head"):
        rerank.postprocess_nodes(found(TEXTS), query_str=QUERY)


def test_a_model_with_several_scores_is_refused(tmp_path: Path):
    rerank = CrossEncoderRerank(save_random_cross_encoder(tmp_path, num_labels=3))
    with pytest.raises(ConfigurationError, match="gives 3 scores for each pair"):
        rerank.postprocess_nodes(found(TEXTS), query_str=QUERY)


@pytest.mark.parametrize(("max_length", "match"), [(513, "max_length is 513, but .* reads 512 tokens"), (4, "max_length is 4. .* needs at least 5 tokens")])
def test_a_window_that_cannot_be_is_refused(folder: Path, encoder: Any, max_length: int, match: str):
    for model in (folder, encoder):
        with pytest.raises(ConfigurationError, match=match):
            CrossEncoderRerank(model, max_length=max_length).postprocess_nodes(found(TEXTS), query_str=QUERY)


def test_the_smallest_window_works(encoder: Any):
    assert len(scores(CrossEncoderRerank(encoder, max_length=5, top_n=99), TEXTS)) == 7


def test_arguments_of_loading_are_refused_with_a_loaded_model(encoder: Any):
    with pytest.raises(ConfigurationError, match="device, model_kwargs cannot be used: model is a loaded model"):
        CrossEncoderRerank(encoder, device="cpu", model_kwargs={"revision": "x"})


def test_a_tokenizer_without_offsets_is_counted_word_by_word():
    class Slow:
        is_fast = False

        def tokenize(self, word: str) -> list[str]:
            return [word[start : start + 2] for start in range(0, len(word), 2)]

    assert encoder_scorer.token_spans(Slow(), "ab  abcd a") == [(0, 2), (4, 8), (4, 8), (9, 10)]


def test_importing_and_constructing_loads_no_torch():
    code = (
        "import sys\n"
        "from llama_index_advanced_rag.postprocessors import cross_encoder, encoder_scorer, lost_in_the_middle, pair_scorers\n"
        "import llama_index_advanced_rag.testing.random_encoder\n"
        "cross_encoder.CrossEncoderRerank('some/model')\n"
        "print([name for name in ('torch', 'transformers', 'sentence_transformers') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    assert run.stdout.strip() == "[]"
