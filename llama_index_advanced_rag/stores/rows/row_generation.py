"""The array files of one numbering of the rows: which row stands at each position, its length in terms, its vector."""

import contextlib
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import IndexFormatError
from llama_index_advanced_rag.stores.rows.row_manifest import Manifest, RowManifest
from llama_index_advanced_rag.stores.segment_files import ArrayFile, Block, sync_files

ROWS, LENGTHS, VECTORS = "rows", "lengths", "vectors"
ARRAY_FILE = re.compile(r"(rows|lengths|vectors|postings|order)-\d+(-\d+)?\.bin(\.tmp)?")
KINDS = (ROWS, LENGTHS, VECTORS)
_NO_VECTORS = ArrayFile(None, np.float32, width=0)


def file_name(kind: str, generation: int, number: int | None = None) -> str:
    """Name of a file of a generation.

    Example:
        >>> file_name("vectors", 2), file_name("postings", 1, 7)
        ('vectors-2.bin', 'postings-1-7.bin')
    """
    return f"{kind}-{generation}.bin" if number is None else f"{kind}-{generation}-{number}.bin"


class RowGeneration:
    """Row numbers (int64), lengths (uint32) and vectors (float32 or float16), appended side by side.

    Args:
        folder: where the files are; None = memory.
        number: of the generation.
        prefix: in front of the file names, for stores that share a folder.
        dtype: of the vectors.
    """

    def __init__(self, folder: Path | None, number: int, *, prefix: str = "", dtype: str = "float32") -> None:
        self.number = number
        self._folder, self._prefix, self._dtype = folder, prefix, dtype
        self._files = {ROWS: ArrayFile(self.path(ROWS), np.int64), LENGTHS: ArrayFile(self.path(LENGTHS), np.uint32)}
        self._unchecked: dict[str, list[Block]] = {kind: [] for kind in KINDS}
        self._known = 0
        self._checking = threading.Lock()

    def path(self, kind: str, number: int | None = None) -> Path | None:
        """Where a file of this generation is; None in memory."""
        return None if self._folder is None else self._folder / (self._prefix + file_name(kind, self.number, number))

    def _vectors(self, dimension: int) -> ArrayFile:
        if VECTORS not in self._files and dimension:
            self._files[VECTORS] = ArrayFile(self.path(VECTORS), self._dtype, width=dimension)
        return self._files.get(VECTORS, _NO_VECTORS)

    def append(self, manifest: Manifest, rows: NDArray[np.int64], lengths: NDArray[np.uint32], vectors: NDArray[np.floating] | None) -> Mapping[str, Block]:
        """Write rows behind those of the manifest and wait until they are on the disk; what is written, by kind of file.

        Raises:
            StorageError: the disk refused.
        """
        blocks = {ROWS: self._files[ROWS].append(rows, at=manifest.n_rows), LENGTHS: self._files[LENGTHS].append(lengths, at=manifest.n_rows)}
        if vectors is not None:
            blocks[VECTORS] = self._vectors(vectors.shape[1]).append(vectors, at=manifest.n_rows)
        sync_files([path for kind in blocks if (path := self.path(kind)) is not None])
        return blocks

    def catch_up(self, table: RowManifest, manifest: Manifest) -> None:
        """Take note of what is committed since, and check rows and lengths of it; vectors are checked when they are first read.

        Raises:
            IndexFormatError: a file is damaged.
        """
        with self._checking:
            for kind, unchecked in self._unchecked.items():
                replaced = kind in self._files and self._files[kind].drop_replaced()  # by a copy from elsewhere
                known = [] if replaced else unchecked
                self._unchecked[kind] = known + table.blocks(file_name(kind, self.number), start=0 if replaced else self._known)
            self._known = manifest.n_rows
        self.check(ROWS)
        self.check(LENGTHS)
        with contextlib.suppress(IndexFormatError):  # said at the first search that reads them
            self.vectors(manifest, checked=False)  # mapped now: the file may be gone then, after a compaction by another process

    def check(self, kind: str) -> None:
        """Compare with the checksums what has not been compared yet.

        Raises:
            IndexFormatError: the file is damaged.
        """
        with self._checking:  # a second thread waits for what the first one finds
            unchecked = self._unchecked[kind]
            damaged = self._files[kind].damaged(unchecked) if self._folder is not None and unchecked else []
            if not damaged:
                self._unchecked[kind] = []
        if damaged:
            raise IndexFormatError(
                f"The file {file_name(kind, self.number)!r} of this index is damaged at rows {damaged[0].start} to {damaged[0].start + damaged[0].n_rows - 1}: "
                "its checksum is not that of what was written. Restore a copy of the folder, or repair it with verify(repair=True)."
            )

    def rows(self, n_rows: int) -> NDArray[np.int64]:
        """(n_rows,) row numbers, ascending."""
        return self._files[ROWS].view(n_rows)

    def lengths(self, n_rows: int) -> NDArray[np.uint32]:
        """(n_rows,) terms of each text."""
        return self._files[LENGTHS].view(n_rows)

    def vectors(self, manifest: Manifest, *, checked: bool = True) -> NDArray[np.floating] | None:
        """(n_rows, dimension) vectors; None when there are none.

        Raises:
            IndexFormatError: the file is damaged.
        """
        if manifest.dimension is None or not manifest.n_rows:
            return None
        file = self._vectors(manifest.dimension)
        if checked:
            self.check(VECTORS)
        return file.view(manifest.n_rows)

    def damaged(self, kind: str, blocks: Sequence[Block], manifest: Manifest) -> list[Block]:
        """Those of the blocks that are cut, or whose bytes are not what was written.

        Raises:
            IndexFormatError: the file is missing.
        """
        file = self._vectors(manifest.dimension or 0) if kind == VECTORS else self._files[kind]
        return file.damaged(blocks)

    def sound_vectors(self, manifest: Manifest, blocks: Sequence[Block]) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
        """The vectors as far as the file goes, and which of them are what was written.

        Raises:
            IndexFormatError: the file is missing.
        """
        file = self._vectors(manifest.dimension or 0)
        vectors = file.view(file.held(manifest.n_rows))
        sound = np.zeros(len(vectors), dtype=bool)
        damaged = set(file.damaged(blocks))
        for block in blocks:
            sound[block.start : block.start + block.n_rows] = block not in damaged
        return vectors, sound
