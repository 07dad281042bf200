"""The file of a postings store: arrays that are memory-mapped, three of them JSON, and a seal that tells whether they are whole."""

import io
import json
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores.postings.postings_segment import Segment, segment_arrays, segment_from_arrays
from llama_index_advanced_rag.stores.segment_files import map_arrays, write_arrays

FORMAT_VERSION = 2
_MARK = int.from_bytes(b"postings", "little")
_SEAL_DTYPE = np.dtype("<u8")  # four of them, as the last array: mark, format version, bytes before the seal, their CRC-32


class StoredPostings(NamedTuple):
    """What a file holds: texts at positions 0 to n - 1, all alive."""

    node_ids: list[str]
    sort_keys: list[str]
    lengths: NDArray[np.uint32]
    segment: Segment
    settings: dict[str, Any]


def write_postings(path: Path, postings: StoredPostings) -> None:
    """Write postings; the old file is replaced at once or not at all.

    Raises:
        StorageError: the disk refused.
    """
    values: list[Any] = [postings.settings, postings.node_ids, postings.sort_keys]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=path.name) as unfinished:
            file = Path(unfinished) / path.name
            size, crc = write_arrays(file, [*(_json_array(value) for value in values), postings.lengths, *segment_arrays(postings.segment)])
            with file.open("ab") as opened:
                opened.write(_sealed(FORMAT_VERSION, size, crc))
            file.replace(path)
    except OSError as error:
        raise StorageError(f"The postings could not be written to {str(path)!r}: {error}. Free space or choose another folder.") from error


def read_postings(path: Path) -> StoredPostings:
    """What `write_postings` wrote; the postings stay in the file and are memory-mapped.

    Raises:
        IndexNotFoundError: no such file.
        IndexFormatError: not such a file, damaged, or of another version.
        StorageError: it cannot be read.
    """
    version, size, crc, seal = _read_seal(path)
    if version != FORMAT_VERSION:
        raise IndexFormatError(f"{str(path)!r} has format version {version}. This version reads {FORMAT_VERSION}. Build the index again.")
    # the checksum of the whole file goes on from that of the part before the seal
    try:
        settings, node_ids, sort_keys, lengths, *arrays, _ = map_arrays(path, size=size + len(seal), crc=zlib.crc32(seal, crc))
    except IndexFormatError as error:
        raise IndexFormatError(f"{str(path)!r} is damaged: its size or checksum is not what was written. Build the index again.") from error
    return StoredPostings(_json_value(node_ids), _json_value(sort_keys), lengths, segment_from_arrays(arrays), _json_value(settings))


def _sealed(version: int, size: int, crc: int) -> bytes:
    """What stands behind the arrays: an array like them, so that they are read as they were written."""
    file = io.BytesIO()
    npy.write_array(file, np.array([_MARK, version, size, crc], dtype=_SEAL_DTYPE))
    return b"\0" * (-size % 64) + file.getvalue()


def _read_seal(path: Path) -> tuple[int, int, int, bytes]:
    """Format version, size, CRC-32, and the bytes that say so."""
    end = _file_end(path)
    mark, version, size, crc = np.frombuffer(end[-4 * _SEAL_DTYPE.itemsize :].rjust(4 * _SEAL_DTYPE.itemsize), dtype=_SEAL_DTYPE).tolist()
    seal = _sealed(version, size, crc)
    if mark != _MARK or crc >> 32 or not end.endswith(seal):
        raise IndexFormatError(f"{str(path)!r} is not a postings file of format version {FORMAT_VERSION}, or it is damaged. Build the index again.")
    return version, size, crc, seal


def _file_end(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 1024))
            return file.read()
    except FileNotFoundError as error:
        raise IndexNotFoundError(f"There is no postings file {str(path)!r}. Expected the file that save() wrote.") from error
    except OSError as error:
        raise StorageError(f"The file {str(path)!r} could not be read: {error.strerror or error}. Check the disk.") from error


def _json_array(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value, separators=(",", ":")).encode(), dtype=np.uint8)


def _json_value(array: NDArray[np.uint8]) -> Any:
    return json.loads(array.tobytes())
