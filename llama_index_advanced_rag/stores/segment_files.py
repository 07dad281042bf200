"""Arrays in files that are appended, checked and memory-mapped; or the same arrays in memory.

A file knows nothing of what is committed: how many rows count, and their checksums, stand in the database, in the same
transaction as what they belong to. Rows beyond that were never committed; they are ignored and overwritten.
"""

import contextlib
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from llama_index_advanced_rag.errors import IndexFormatError, StorageError

_ALIGNMENT = 64
_RESTORE = "Restore a copy of the folder, or repair it with verify(repair=True)."


class Block(NamedTuple):
    """Rows written by one append: `n_rows` rows from `start` on, and the CRC-32 of their bytes."""

    start: int
    n_rows: int
    crc: int


class ArrayFile:
    """Rows of one type and shape, appended to a file and read through a memory map; without a path they are kept in memory.

    Args:
        path: the file, made at the first append; None = memory.
        dtype: of the elements; stored little endian.
        width: elements a row; None = a row is one number and views are one-dimensional.

    Example:
        >>> file = ArrayFile(None, np.float32, width=2)
        >>> file.append(np.array([[1.0, 2.0]]), at=0).n_rows
        1
        >>> file.view(1).tolist()
        [[1.0, 2.0]]
    """

    def __init__(self, path: Path | None, dtype: DTypeLike, *, width: int | None = None) -> None:
        self.path = path
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._row_shape = () if width is None else (width,)
        self._row_bytes = self._dtype.itemsize * (1 if width is None else width)
        self._rows: NDArray[Any] = np.empty((0, *self._row_shape), dtype=self._dtype)
        self._mapped_file: tuple[int, int] | None = None

    def append(self, rows: NDArray[Any], *, at: int) -> Block:
        """Write rows behind the first `at` rows, over whatever a cut-off write has left there.

        Raises:
            IndexFormatError: the file is missing, or shorter than `at` rows.
            StorageError: the disk refused.
        """
        data = np.ascontiguousarray(rows, dtype=self._dtype)
        if self.path is None:
            self._keep(data, at)
        else:
            _write_at(self.path, data, at * self._row_bytes)
        return Block(at, len(data), zlib.crc32(_bytes(data)))

    def _keep(self, data: NDArray[Any], at: int) -> None:
        end = at + len(data)
        if end > len(self._rows):
            larger = np.empty((max(end, 2 * len(self._rows)), *self._row_shape), dtype=self._dtype)
            larger[:at] = self._rows[:at]
            self._rows = larger  # views of the old array stay what they were
        self._rows[at:end] = data

    def view(self, count: int) -> NDArray[Any]:
        """The first `count` rows, read-only; later appends do not show in it.

        Raises:
            IndexFormatError: the file is shorter than that, or missing.
            StorageError: it cannot be read.
        """
        if count == 0:
            return np.empty((0, *self._row_shape), dtype=self._dtype)
        if self.path is None:
            view = self._rows[:count]
            view.flags.writeable = False
            return view
        rows = self._rows  # another thread may map more or less of the file meanwhile
        if len(rows) < count:
            self._mapped_file = self._mapped_file or _identity(self.path)
            rows = self._rows = _mapped(self.path, self._dtype, (count, *self._row_shape), 0)
        return rows[:count]

    def drop_replaced(self) -> bool:
        """True when another file has come in the place of the one that was read; then nothing of the old one is kept."""
        if self.path is None or self._mapped_file is None or _identity(self.path) in {None, self._mapped_file}:
            return False
        self._rows, self._mapped_file = self._rows[:0], None
        return True

    def held(self, count: int) -> int:
        """How many of the first `count` rows there are: fewer where the file has been cut.

        Raises:
            IndexFormatError: the file is missing, and was not mapped before.
        """
        if self.path is None:
            return min(count, len(self._rows))
        try:
            return min(count, self.path.stat().st_size // self._row_bytes)
        except FileNotFoundError as error:
            if len(self._rows) >= count:
                return count  # what is mapped outlives its name
            raise _missing(self.path) from error

    def damaged(self, blocks: Sequence[Block]) -> list[Block]:
        """Those of the blocks that are cut, or whose bytes are not what was written; reads them all.

        Raises:
            IndexFormatError: the file is missing.
            StorageError: it cannot be read.
        """
        if not blocks:
            return []
        rows = self.view(self.held(max(block.start + block.n_rows for block in blocks)))  # beyond its end a cut file must not be touched
        return [block for block in blocks if block != Block(block.start, *_length_and_checksum(rows[block.start : block.start + block.n_rows]))]


def write_arrays(path: Path, arrays: Sequence[NDArray[Any]]) -> tuple[int, int]:
    """Write arrays into one new file, each as numpy's npy format describes, and make sure they are on the disk.

    Returns:
        Size and CRC-32 of the file.

    Raises:
        StorageError: the disk refused.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for array in arrays:
                file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                npy.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(path.parent)
        return file_checksum(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # what stays is reclaimed by a later update
            path.unlink(missing_ok=True)
        raise _refused(path, error) from error


def map_arrays(path: Path, *, size: int, crc: int) -> list[NDArray[Any]]:
    """The arrays that `write_arrays` wrote, memory-mapped and read-only.

    Raises:
        IndexFormatError: the file is not what was written (size or checksum), or missing.
        StorageError: it cannot be read.
    """
    if (size, crc) != file_checksum(path):
        raise IndexFormatError(f"The file {path.name!r} of this index is damaged: its size or checksum is not what was written. {_RESTORE}")
    arrays: list[NDArray[Any]] = []
    with path.open("rb") as file:
        while file.tell() < size:
            file.seek(-file.tell() % _ALIGNMENT, os.SEEK_CUR)
            shape, _fortran, dtype = _header(file)
            arrays.append(_mapped(path, dtype, shape, file.tell()))
            file.seek(arrays[-1].nbytes, os.SEEK_CUR)
    return arrays


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
    return read(file)


def file_checksum(path: Path) -> tuple[int, int]:
    """Size and CRC-32 of a whole file.

    Raises:
        IndexFormatError: there is no such file.
        StorageError: it cannot be read.
    """
    size = crc = 0
    try:
        with path.open("rb") as file:
            while part := file.read(1 << 22):
                size, crc = size + len(part), zlib.crc32(part, crc)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except OSError as error:
        raise StorageError(f"The file {str(path)!r} could not be read: {error.strerror or error}. Check the disk.") from error
    return size, crc


def sync_files(paths: Sequence[Path]) -> None:
    """Wait until what was written to these files is on the disk.

    Raises:
        StorageError: the disk refused.
    """
    for path in paths:
        _sync(path)


def _sync(path: Path) -> None:
    try:
        with path.open("r+b") as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise _refused(path, error) from error


def _sync_folder(folder: Path) -> None:
    """Wait until the names of new files are on the disk, without which a power cut would lose the files."""
    if os.name == "nt":
        return  # folders cannot be opened there; names are on the disk with the files
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_at(path: Path, data: NDArray[Any], offset: int) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = 0 if offset else os.O_CREAT
        descriptor = os.open(path, os.O_RDWR | made | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(descriptor, "r+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end < offset:
                raise IndexFormatError(f"The file {path.name!r} of this index is shorter than what was committed. {_RESTORE}")
            file.seek(offset)
            file.write(_bytes(data))
        if not end:
            _sync_folder(path.parent)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except OSError as error:
        raise _refused(path, error) from error


def _mapped(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> NDArray[Any]:
    if 0 in shape:
        return np.empty(shape, dtype=dtype)
    try:
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape).view(np.ndarray)
    except FileNotFoundError as error:
        raise _missing(path) from error
    except ValueError as error:
        raise IndexFormatError(f"The file {path.name!r} of this index is shorter than what was committed. {_RESTORE}") from error
    except OSError as error:
        raise StorageError(f"The file {str(path)!r} could not be read: {error.strerror or error}. Check the disk.") from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _missing(path: Path) -> IndexFormatError:
    return IndexFormatError(f"The file {path.name!r} of this index is missing. {_RESTORE}")


def _length_and_checksum(rows: NDArray[Any]) -> tuple[int, int]:
    return len(rows), zlib.crc32(_bytes(rows))


def _bytes(data: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8).data


def _refused(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The disk refused a write to {path.name!r} ({error.strerror or error}). Nothing of this update was kept; free some space and run it again."
    )
