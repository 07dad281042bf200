"""A copy of the array files in another folder, for the database that is copied after them."""

from pathlib import Path

from llama_index_advanced_rag.errors import StorageError
from llama_index_advanced_rag.stores.postings.postings_segment import segment_arrays
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_generation import KINDS, file_name
from llama_index_advanced_rag.stores.rows.row_manifest import SegmentFile
from llama_index_advanced_rag.stores.segment_files import ArrayFile, sync_files, write_arrays

_BLOCK = 1 << 16


def copy_files(files: RowFiles, folder: Path) -> None:
    """Write the files of the state into a folder, each in place of an older one of its name when it is complete.

    In memory the postings have no files, so their sizes and checksums are noted now.

    Raises:
        StorageError: the disk refused.
        IndexFormatError: a file is damaged.
    """
    for kind in KINDS:
        rows = files.array(kind)
        name = file_name(kind, files.manifest.generation)
        draft = ArrayFile(_draft(folder, name), rows.dtype, width=rows.shape[1] if rows.ndim == 2 else None)
        for start in range(0, len(rows), _BLOCK):
            draft.append(rows[start : start + _BLOCK], at=start)
        if len(rows):
            sync_files([_draft(folder, name)])
            _place(folder, name)
    written: list[SegmentFile] = []
    for file in files.table.segments():
        arrays = segment_arrays(files.segments[file.name]) if file.name in files.segments else [files.order]
        size, crc = write_arrays(_draft(folder, file.name), arrays)
        _place(folder, file.name)
        written.append(SegmentFile(file.name, file.first, size, crc))
    if files.folder is None:
        files.table.replace_segments([file.name for file in written], written)


def _draft(folder: Path, name: str) -> Path:
    return folder / f"{name}.tmp"


def _place(folder: Path, name: str) -> None:
    try:
        _draft(folder, name).replace(folder / name)
    except OSError as error:
        raise StorageError(f"The file {name!r} could not be written: {error.strerror or error}. Give a folder that can be written.") from error
