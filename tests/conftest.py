"""Fixtures shared by all tests."""

import os
from collections.abc import Iterator
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"  # before anything imports huggingface_hub: a test never reaches a model hub
os.environ["TRANSFORMERS_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # ranx, a reference for fusion, would compile for two minutes

import pytest
from llama_index.core import Settings
from llama_index.core.embeddings import BaseEmbedding


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of corpora outside the repository; the test is skipped where there is none."""
    value = os.environ.get("ADVANCED_RAG_DATA")
    if not value:
        pytest.skip("ADVANCED_RAG_DATA is not set: the corpora outside the repository are not there")
    root = Path(value)
    if not root.is_dir():
        pytest.skip(f"ADVANCED_RAG_DATA names no folder: {value}")
    return root


@pytest.fixture
def settings_llm_untouched() -> Iterator[None]:
    """`Settings.llm` is unset, must not be asked for, and is as before afterwards."""
    before = Settings._llm
    Settings._llm = None
    yield
    after, Settings._llm = Settings._llm, before
    assert after is None, "Settings.llm was resolved or set"


@pytest.fixture(scope="session")
def minilm() -> BaseEmbedding:
    """The packaged MiniLM of the extra `offline`, loaded once."""
    from llama_index_advanced_rag.embeddings.packaged import load_packaged_embedding, packaged_model_folder

    if packaged_model_folder() is None:
        pytest.skip("the packaged MiniLM (extra `offline`) is not installed")
    return load_packaged_embedding()
