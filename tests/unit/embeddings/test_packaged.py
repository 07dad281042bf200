import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import MetadataMode

from llama_index_advanced_rag.embeddings import packaged
from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, embedding_window
from llama_index_advanced_rag.errors import ModelIntegrityError
from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser


@pytest.fixture(scope="session")
def window(minilm: BaseEmbedding) -> EmbeddingWindow:
    return embedding_window(minilm)


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "PACKAGE", "no_such_package_at_all")
    assert packaged.packaged_model_folder() is None
    with pytest.raises(FileNotFoundError, match=r"\[offline\]"):
        packaged.load_packaged_embedding()


@pytest.mark.parametrize("content", [None, b"tampered"])
def test_other_weights_are_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelIntegrityError, match="expected '53aa51172d14"):
        packaged.check_weights(tmp_path)


def tokens_read(minilm: BaseEmbedding, text: str) -> int:
    """What the model itself counts, its two special tokens included."""
    return len(minilm._model.tokenizer(text, truncation=False, verbose=False)["input_ids"])


@pytest.mark.offline_model
def test_vectors_are_unit_and_mean_something(minilm: BaseEmbedding) -> None:
    cat, kitten, tax = np.array(minilm.get_text_embedding_batch(["a cat", "a kitten", "income tax law"]))
    assert cat.shape == (384,)
    assert np.linalg.norm(cat) == pytest.approx(1.0)
    assert cat @ kitten > 0.6 > 0.3 > cat @ tax


@pytest.mark.offline_model
def test_the_name_holds_no_path(minilm: BaseEmbedding) -> None:
    assert embedding_identity(minilm) == f"HuggingFaceEmbedding|{packaged.MODEL_NAME}|max_length=256|normalize=true"


def test_loading_leaves_the_loggers_as_they_were() -> None:
    logger = logging.getLogger("sentence_transformers")
    before = logger.level
    logger.setLevel(logging.DEBUG)
    with packaged.quiet_model_loading():
        assert logger.level == logging.ERROR
    assert logger.level == logging.DEBUG
    logger.setLevel(before)


@pytest.mark.offline_model
@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from(list("abcXYZ019.,$%-'’éß今日\u00a0\u200b\t\n []SEP#")), max_size=200))
def test_tokens_are_counted_as_the_model_counts(minilm: BaseEmbedding, window: EmbeddingWindow, text: str) -> None:
    assert window.count_tokens(text) == tokens_read(minilm, text) - 2


@pytest.mark.offline_model
def test_every_chunk_fits_the_window(minilm: BaseEmbedding, window: EmbeddingWindow) -> None:
    assert window.max_tokens == 254
    line = "Net sales of product {0} were $ {1:,} in Q3-2023. Comparability isn't guaranteed; see Note {0}.\n"
    text = "".join(line.format(number, number * 1237) for number in range(400))
    nodes = SentenceChunkParser.for_model(minilm).get_nodes_from_documents([Document(text=text, metadata={"title": "2023 Q3 AAPL"})])
    lengths = sorted(tokens_read(minilm, node.get_content(metadata_mode=MetadataMode.EMBED)) for node in nodes)
    assert lengths[-1] <= 256
    assert lengths[len(lengths) // 2] > 200


@pytest.mark.offline_model
def test_a_chunk_size_beyond_the_window_is_said(minilm: BaseEmbedding, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        SentenceChunkParser.for_model(minilm, chunk_size=512)
    assert "chunk_size=512 is more than the 254 tokens" in caplog.text
