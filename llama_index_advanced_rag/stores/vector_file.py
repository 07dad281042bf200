"""The file of a flat vector store: an npz archive (checksummed by zip, no pickle) that holds vectors and a JSON table."""

import io
import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import DEFAULT_PERSIST_FNAME

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores.node_codec import Inherited, NodeRow, decode_node, encode_node
from llama_index_advanced_rag.stores.vector_matrix import VectorMetric
from llama_index_advanced_rag.stores.vector_scores import Matrix

FORMAT = "llama-index-advanced-rag/flat-vectors"
FORMAT_VERSION = 1


class VectorRow(NamedTuple):
    """What is known of one vector besides its numbers."""

    node_id: str
    ref_doc_id: str | None
    sort_key: str
    metadata: dict[str, Any]
    node: BaseNode | None


class VectorFile(NamedTuple):
    """A whole store: `vectors` is (n, dimension) float32, `rows` are its n rows."""

    metric: VectorMetric
    keep_nodes: bool
    vectors: Matrix
    rows: Sequence[VectorRow]


def persist_file(persist_dir: str, namespace: str = "default") -> str:
    """Where LlamaIndex's `StorageContext.persist` puts a vector store.

    Example:
        >>> persist_file("storage")
        'storage/default__vector_store.json'
    """
    return str(Path(persist_dir) / f"{namespace}__{DEFAULT_PERSIST_FNAME}")


def write_vector_file(path: str, content: VectorFile, *, fs: Any = None) -> None:
    """Write the file, on this machine beside the old one and then in its place, or through an fsspec file system.

    Raises:
        ConfigurationError: metadata that are not JSON.
        StorageError: the disk refused.
    """
    buffer = io.BytesIO()
    table = np.frombuffer(_table(content).encode(), dtype=np.uint8)
    np.savez(buffer, vectors=content.vectors.astype("<f4", copy=False), table=table)
    try:
        _write(path, buffer.getvalue(), fs)
    except OSError as error:
        raise StorageError(f"The vectors could not be written to {path!r}: {error.strerror or error}. Give a place that can be written.") from error


def _write(path: str, data: bytes, fs: Any) -> None:
    if fs is not None:
        fs.makedirs(os.path.dirname(path) or ".", exist_ok=True)  # noqa: PTH120 - a path of the file system's own
        with fs.open(path, "wb") as file:
            file.write(data)
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _table(content: VectorFile) -> str:
    rows = [[row.node_id, row.ref_doc_id, row.sort_key, row.metadata, _encoded(row.node)] for row in content.rows]
    header = {"format": FORMAT, "version": FORMAT_VERSION, "metric": content.metric.value, "keep_nodes": content.keep_nodes}
    try:
        return json.dumps({**header, "rows": rows})
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"The store cannot be written: some metadata are not JSON ({error}). Use text, numbers, lists or dicts.") from error


def _encoded(node: BaseNode | None) -> NodeRow | None:
    return None if node is None else encode_node(node, Inherited(), keep_embedding=False)


def read_vector_file(path: str, *, fs: Any = None) -> VectorFile:
    """Read what `write_vector_file` wrote.

    Raises:
        IndexNotFoundError: there is no such file.
        IndexFormatError: the file is damaged, or is none of ours or of another format version.
    """
    data = _read(path, fs)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            vectors, table = archive["vectors"], json.loads(archive["table"].tobytes())
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise IndexFormatError(f"The file {path!r} holds no FlatVectorStore, or is damaged ({error}). Persist the store again.") from error
    if table.get("format") != FORMAT or table.get("version") != FORMAT_VERSION:
        found = (table.get("format"), table.get("version"))
        raise IndexFormatError(f"The file {path!r} has the format {found!r}, expected {(FORMAT, FORMAT_VERSION)!r}. Persist the store again.")
    rows = [VectorRow(node_id, ref, key, metadata, _decoded(node_id, node)) for node_id, ref, key, metadata, node in table["rows"]]
    return VectorFile(VectorMetric(table["metric"]), table["keep_nodes"], vectors.astype(np.float32, copy=False), rows)


def _read(path: str, fs: Any) -> bytes:
    try:
        if fs is None:
            return Path(path).read_bytes()
        with fs.open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise IndexNotFoundError(f"There is no file {path!r}. Check the path, or persist a FlatVectorStore there first.") from error
    except OSError as error:
        raise StorageError(f"The file {path!r} could not be read: {error.strerror or error}.") from error


def _decoded(node_id: str, row: list[Any] | None) -> BaseNode | None:
    return None if row is None else decode_node(node_id, NodeRow(*row), Inherited())
