"""The searchable rows of a database: appended with the nodes in one transaction, read as one immutable state."""

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import IndexFormatError, StorageError
from llama_index_advanced_rag.ranking.bm25 import K1, B
from llama_index_advanced_rag.stores.filters.filter_columns import FilterColumns
from llama_index_advanced_rag.stores.postings.postings_segment import Segment, build_segment, merge_segments, segment_arrays, segment_from_arrays
from llama_index_advanced_rag.stores.postings.postings_view import PostingsView
from llama_index_advanced_rag.stores.postings.segment_merging import tail_to_merge
from llama_index_advanced_rag.stores.rows.positions import Mask, alive_after
from llama_index_advanced_rag.stores.rows.row_generation import KINDS, ROWS, VECTORS, RowGeneration, file_name
from llama_index_advanced_rag.stores.rows.row_manifest import Manifest, RowManifest, SegmentFile
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.stores.rows.sql_row_names import NewestNames, SqlRowNames, positions_of_rows
from llama_index_advanced_rag.stores.segment_files import map_arrays, write_arrays
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.vectors.vector_matrix import MatrixView, VectorMetric
from llama_index_advanced_rag.trace import report

POSTINGS, ORDER = "postings", "order"
_ATTEMPTS = 5
_NEVER = (-1, -1)
_NO_ORDER = np.empty(0, dtype=np.int32)


class RowFiles:
    """Vectors, postings and liveness of the nodes that have a row, kept in step with the database.

    A writer opens a `change()`, stores its nodes under the rows from `next_row` on, and `append`s what is searched of them; rows
    of deleted nodes die by themselves. When the block ends all of it is committed and becomes the state, or none of it. What a
    change that was taken back has left in the files is overwritten by the next one.

    Args:
        database: holds the nodes, and what of the files is committed; the files are in its folder, or in memory.
        metric: how vectors are compared; None when they are searched elsewhere and only kept here.
        dtype: of the vectors, "float32" or "float16".
        unread: leave what is there alone until the first `refresh`, for repairing it.
    """

    def __init__(self, database: CorpusDatabase, *, metric: VectorMetric | None = VectorMetric.COSINE, dtype: str = "float32", unread: bool = False) -> None:
        self._database, self.metric, self._dtype = database, metric, dtype
        self.table = RowManifest(database)
        self.generation = self._next_generation = RowGeneration(None, 0)
        self._manifest = Manifest()
        self._segments: dict[str, Segment] = {}
        self._fresh: dict[str, Any] = {}
        self._order: tuple[str, NDArray[np.integer]] = ("", _NO_ORDER)
        self._dead_seq = 0
        self.reclaimed = False
        self._version = _NEVER
        self._state: RowState | None = None
        if not unread:
            self.refresh()

    def open_generation(self, number: int) -> RowGeneration:
        """The array files of a generation, which are made when something is appended; in memory it is made once."""
        known = next((one for one in (self.generation, self._next_generation) if one.number == number), None)
        if self._database.path is None and known is not None:
            return known
        self._next_generation = RowGeneration(self._database.path, number, dtype=self._dtype)
        return self._next_generation

    @property
    def folder(self) -> Path | None:
        """Where the files are; None in memory."""
        return self._database.path

    @property
    def manifest(self) -> Manifest:
        """The numbering of the state."""
        return self._manifest

    @property
    def segments(self) -> Mapping[str, Segment]:
        """The postings of the state, by the name of their file, in the order of their positions."""
        return self._segments

    @property
    def order(self) -> NDArray[np.integer[Any]]:
        """(m,) place of the first m positions among each other by sort key."""
        return self._order[1]

    @property
    def next_row(self) -> int:
        """The first row that the next `append` gives."""
        return self._manifest.next_row

    def state(self) -> RowState:
        """The state of the last `refresh`."""
        assert self._state is not None  # noqa: S101 - set by the constructor
        return self._state

    def vectors(self) -> NDArray[np.floating]:
        """(n_rows, dimension) vectors as they are stored; (0, 0) when there are none."""
        found = self.generation.vectors(self._manifest)
        return np.empty((0, 0), dtype=self._dtype) if found is None else found

    def array(self, kind: str) -> NDArray[Any]:
        """The rows of one kind of file, as they are stored."""
        n_rows = self._manifest.n_rows
        return self.vectors() if kind == VECTORS else self.generation.rows(n_rows) if kind == ROWS else self.generation.lengths(n_rows)

    def vectors_of_hashes(self, embed_hashes: Iterable[str]) -> dict[str, NDArray[np.floating]]:
        """Stored vectors by the hash of the text they embed."""
        rows = self.table.rows_of_hashes(embed_hashes)
        stored, row_ids = self.vectors(), self.state().row_ids
        places = np.searchsorted(row_ids, np.array(list(rows.values()), dtype=np.int64))
        return {digest: stored[place] for digest, place in zip(rows, places.tolist(), strict=True) if place < len(stored)}

    @contextmanager
    def change(self) -> Generator[None, None, None]:
        """A transaction of the database that begins with the newest state and ends with a newer one; nobody reads rows in its middle.

        Raises:
            ReadOnlyIndexError: the database was opened for reading.
            StorageError: the disk refused, or another process is writing.
        """
        with self._database.alone():
            with self._database.transaction(first=self.refresh):
                yield
            self.refresh()

    def refresh(self) -> bool:
        """Make what is committed the state; True when it is another one. Without a commit this costs microseconds.

        Raises:
            IndexFormatError: a file is damaged; the state stays what it was.
        """
        with self._database.alone():
            if self._database.changing:
                return False  # what is not committed is nobody's state
            for attempt in range(_ATTEMPTS):
                version = self._database.data_version(), self._database.own_changes
                if version == self._version:
                    return False
                try:
                    with self._database.snapshot():
                        self._take_over()
                except IndexFormatError:
                    if attempt == _ATTEMPTS - 1 or self._database.data_version() == version[0]:
                        raise
                    continue  # another process has replaced a file in the meantime
                self._version = version
                return True
        return False

    def _take_over(self) -> None:
        manifest = self.table.read()
        same = manifest.generation == self.generation.number
        generation = self.generation if same else self.open_generation(manifest.generation)
        before = self._state if same else None
        generation.catch_up(self.table, manifest)
        seq, dead = self.table.dead_since(self._dead_seq if same else 0)
        files = self.table.segments()
        segments = {file.name: self._segments.get(file.name) or self._mapped(file) for file in files if file.first >= 0}
        order = self._order_of(files)
        row_ids = generation.rows(manifest.n_rows)
        alive = alive_after(before.alive if before else None, len(row_ids), positions_of_rows(row_ids, dead))
        names = SqlRowNames(self._database, row_ids, order[1])
        postings = self._postings(tuple(segments.values()), generation.lengths(manifest.n_rows), alive, manifest.n_terms)
        if before is not None:
            self._newest.names = names
        else:
            self._newest = NewestNames(names)
        columns = before.columns if before else FilterColumns(self._newest.metadata)
        matrix = self._matrix_loader(generation, manifest, alive, before.known_matrix if before else None)
        self._state = RowState(manifest.generation, row_ids, alive, names, columns, postings, matrix)
        gone = [*(self._segments.keys() - segments.keys()), *({self._order[0]} - {order[0], ""})]
        old = None if same else self.generation
        self.generation, self._manifest, self._segments, self._order, self._dead_seq = generation, manifest, segments, order, seq
        self._fresh.clear()
        if not self._database.read_only:
            self.remove_files([*gone, *(file_name(kind, old.number) for kind in KINDS if old is not None)])

    def _postings(self, segments: tuple[Segment, ...], lengths: NDArray[np.uint32], alive: Mask | None, n_terms: int) -> PostingsView:
        dead_terms = 0 if alive is None else int(lengths[~alive].sum(dtype=np.int64))
        n_texts = len(lengths) if alive is None else int(np.count_nonzero(alive))
        return PostingsView(segments=segments, lengths=lengths, alive=alive, n_texts=n_texts, n_terms=n_terms - dead_terms, k1=K1, b=B)

    def _matrix_loader(self, generation: RowGeneration, manifest: Manifest, alive: Mask | None, before: MatrixView | None) -> Callable[[], MatrixView | None]:
        metric = self.metric

        def load() -> MatrixView | None:
            vectors = generation.vectors(manifest) if metric is not None else None
            if vectors is None or metric is None:
                return None
            return MatrixView(metric=metric, vectors=vectors, alive=alive) if before is None else before.grown(vectors, alive)

        return load

    def _mapped(self, file: SegmentFile) -> Segment:
        path = self.path(file.name)
        return self._fresh[file.name] if path is None else segment_from_arrays(map_arrays(path, size=file.size, crc=file.crc))

    def _order_of(self, files: Sequence[SegmentFile]) -> tuple[str, NDArray[np.integer]]:
        file = next((file for file in files if file.first < 0), None)
        if file is None:
            return "", _NO_ORDER
        path = self.path(file.name)
        if file.name == self._order[0]:
            return self._order
        return file.name, self._fresh[file.name] if path is None else map_arrays(path, size=file.size, crc=file.crc)[0]

    def path(self, name: str) -> Path | None:
        """Where a file is; None in memory."""
        return None if self._database.path is None else self._database.path / name

    def append(self, vectors: NDArray[np.floating] | None, counts: Sequence[Mapping[str, int]] | None, *, n_new: int) -> None:
        """Write rows for new nodes, which the caller stores under the rows from `next_row` on, in its transaction.

        Args:
            vectors: (n_new, dimension), as they are to be stored.
            counts: how often each text holds each term; None for a store without words.
            n_new: how many.

        Raises:
            StorageError: the disk refused.
        """
        if not n_new:
            return
        manifest = self._manifest
        if self.table.read() != manifest:
            raise StorageError("Rows were appended twice in one change, or without one. Append once, inside the block of change().")
        rows = np.arange(manifest.next_row, manifest.next_row + n_new, dtype=np.int64)
        lengths = np.array([sum(count.values()) for count in counts] if counts is not None else [0] * n_new, dtype=np.uint32)
        for kind, block in self.generation.append(manifest, rows, lengths, vectors).items():
            self.table.add_block(file_name(kind, manifest.generation), block)
        n_files = self._add_segment(manifest, counts) if counts is not None else manifest.n_files
        self.table.write(
            replace(
                manifest,
                n_rows=manifest.n_rows + n_new,
                next_row=manifest.next_row + n_new,
                n_terms=manifest.n_terms + int(lengths.sum(dtype=np.int64)),
                dimension=vectors.shape[1] if vectors is not None else manifest.dimension,
                n_files=n_files,
            )
        )

    def sizes(self) -> dict[str, int]:
        """Number of searchable rows and of deleted ones that take space, and bytes of vectors and postings."""
        state, item = self.state(), np.dtype(self._dtype).itemsize
        vectors = state.n_rows * (self._manifest.dimension or 0) * item
        postings = sum(array.nbytes for segment in self._segments.values() for array in segment_arrays(segment))
        return {"rows": state.n_alive, "dead_rows": state.n_rows - state.n_alive, "vector_bytes": vectors, "postings_bytes": postings}

    def _add_segment(self, manifest: Manifest, counts: Sequence[Mapping[str, int]]) -> int:
        """Write a segment, merged with its elders where there are many of its size; the new number of files."""
        elders = list(self._segments.items())
        taken = self._sound([name for name, _ in elders[len(elders) - tail_to_merge([*(len(segment) for _, segment in elders), len(counts)]) :]])
        gone, together = list(taken), [*taken.values(), build_segment(manifest.n_rows, counts)]
        merged = together[0] if len(together) == 1 else merge_segments(together, self.state().alive)
        self.table.replace_segments(
            gone, [self.write_file(file_name(POSTINGS, manifest.generation, manifest.n_files), merged.start, segment_arrays(merged), merged)]
        )
        return manifest.n_files + 1

    def _sound(self, names: Sequence[str]) -> dict[str, Segment]:
        """Segments to be merged, read again; none of them if one is damaged, which a merge would only hide."""
        files = {file.name: file for file in self.table.segments()}
        try:
            return {name: self._segments[name] if self.folder is None else self._mapped(files[name]) for name in names}
        except IndexFormatError as error:
            report("warning", str(error))
            return {}

    def write_file(self, name: str, first: int, arrays: Sequence[NDArray[Any]], kept: Any) -> SegmentFile:
        """Write a file of arrays; in memory `kept` is kept in its place."""
        path = self.path(name)
        if path is None:
            self._fresh[name] = kept
            return SegmentFile(name, first, 0, 0)
        return SegmentFile(name, first, *write_arrays(path, arrays))

    def remove_files(self, names: Iterable[str]) -> None:
        """Delete files that nothing refers to any more; whoever has them mapped keeps reading them."""
        for path in filter(None, map(self.path, names)):
            with contextlib.suppress(PermissionError):  # a system that keeps mapped files: the next writer comes again
                path.unlink(missing_ok=True)
