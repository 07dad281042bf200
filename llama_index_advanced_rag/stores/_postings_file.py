"""The file of a postings store: a npz archive of arrays, one of which is the JSON header. No pickle; every part has its checksum."""

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores._postings_segment import Segment

FORMAT = "advanced-rag-postings"
FORMAT_VERSION = 1


def write_postings(path: Path, segment: Segment, settings: dict[str, Any]) -> None:
    """Write a segment without deleted rows; the old file is replaced at once or not at all.

    Raises:
        StorageError: the disk refused.
    """
    header = {"format": FORMAT, "version": FORMAT_VERSION, "settings": settings}
    arrays = {
        "header": _json_array(header),
        "node_ids": _json_array(segment.node_ids),
        "sort_keys": _json_array(segment.sort_keys),
        "terms": _json_array(list(segment.slots)),
        "lengths": segment.lengths,
        "indptr": segment.indptr,
        "rows": segment.rows,
        "frequencies": segment.frequencies,
    }
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".tmp", delete=False) as file:
            temporary = file.name
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise StorageError(f"The postings could not be written to {str(path)!r}: {error}. Free space or choose another folder.") from error


def read_postings(path: Path) -> tuple[Segment, dict[str, Any]]:
    """The segment and the settings that `write_postings` wrote.

    Raises:
        IndexNotFoundError: no such file.
        IndexFormatError: not such a file, damaged, or of another version.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            header: dict[str, Any] = _json_value(archive["header"])
            _check_version(path, header)
            return _segment(archive), header["settings"]
    except FileNotFoundError as error:
        raise IndexNotFoundError(f"There is no postings file {str(path)!r}. Expected the file that save() wrote.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, TypeError, AttributeError) as error:
        if isinstance(error, IndexFormatError):
            raise
        raise IndexFormatError(f"{str(path)!r} is not a postings file, or it is damaged: {error}. Build the index again.") from error


def _check_version(path: Path, header: dict[str, Any]) -> None:
    found = (header.get("format"), header.get("version"))
    if found != (FORMAT, FORMAT_VERSION):
        raise IndexFormatError(f"{str(path)!r} has format {found!r}. This version reads {(FORMAT, FORMAT_VERSION)!r}. Build the index again.")


def _segment(archive: Any) -> Segment:
    terms: list[str] = _json_value(archive["terms"])
    node_ids: list[str] = _json_value(archive["node_ids"])
    return Segment(
        node_ids,
        _json_value(archive["sort_keys"]),
        archive["lengths"],
        np.ones(len(node_ids), dtype=bool),
        {term: slot for slot, term in enumerate(terms)},
        archive["indptr"],
        archive["rows"],
        archive["frequencies"],
    )


def _json_array(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(value, separators=(",", ":")).encode(), dtype=np.uint8)


def _json_value(array: NDArray[np.uint8]) -> Any:
    return json.loads(array.tobytes())
