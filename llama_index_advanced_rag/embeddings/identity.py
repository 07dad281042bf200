"""A name for what a model's vectors are: equal on two machines for the same model, different when vectors would differ."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from llama_index.core.embeddings import BaseEmbedding

from llama_index_advanced_rag.embeddings.packaged import file_sha256

# Public fields, in the classes of LlamaIndex, that change the vectors; keys, addresses and batch sizes do not.
_VECTOR_FIELDS = (
    "additional_kwargs",
    "dimensions",
    "embed_dim",
    "embedding_type",
    "input_type",
    "max_length",
    "mode",
    "normalize",
    "output_dimension",
    "pooling",
    "query_instruction",
    "task",
    "text_instruction",
    "truncate_dim",
)
_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".onnx", ".gguf")


def embedding_identity(model: BaseEmbedding) -> str:
    """Class, model name and the settings that change vectors, as one line of text without paths or secrets.

    For a local folder the name is a sha256 over its weights and configuration files, so that the same files at another
    place are the same model.

    Example:
        >>> from llama_index.core.embeddings import MockEmbedding
        >>> embedding_identity(MockEmbedding(embed_dim=8))
        'MockEmbedding|unknown|embed_dim=8'
    """
    settings = [f"{name}={json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)}" for name, value in _settings(model)]
    return "|".join([model.class_name(), _portable_name(model.model_name), *settings])


def _settings(model: BaseEmbedding) -> list[tuple[str, Any]]:
    fields = type(model).model_fields
    values = [(name, getattr(model, name)) for name in _VECTOR_FIELDS if name in fields]
    return [(name, value) for name, value in values if value is not None and value != {}]


def _portable_name(name: str) -> str:
    path = Path(name).expanduser()
    if not name or not path.exists():
        return path.name if path.is_absolute() else name
    files = _model_files(path) if path.is_dir() else [path]
    return f"local@{_fingerprint(path, tuple((file, file.stat().st_size, file.stat().st_mtime_ns) for file in files))[:16]}"


def _model_files(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.rglob("*") if file.is_file() and ".git" not in file.relative_to(folder).parts)
    suffix = next((suffix for suffix in _WEIGHT_SUFFIXES if any(file.suffix == suffix for file in files)), None)
    return [file for file in files if file.suffix == suffix] + [file for file in files if file.suffix == ".json" or file.name in {"vocab.txt", "merges.txt"}]


@lru_cache(maxsize=32)
def _fingerprint(root: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    """One sha256 over the files; sizes and times are part of the key, so that a changed file is read again."""
    digest = hashlib.sha256()
    for file, _size, _time in files:
        digest.update(f"{file.relative_to(root).as_posix()}\0{file_sha256(file)}\n".encode())
    return digest.hexdigest()
