"""Writing the searchable rows anew from the nodes, when files are damaged or do not fit: what is sound is kept, the rest is made again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import IndexFormatError, StorageError
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.postings.postings_segment import Segment, build_segment, merge_segments, segment_arrays
from llama_index_advanced_rag.stores.rows.row_compaction import write_order
from llama_index_advanced_rag.stores.rows.row_files import POSTINGS, RowFiles
from llama_index_advanced_rag.stores.rows.row_generation import VECTORS, file_name
from llama_index_advanced_rag.stores.rows.row_manifest import Manifest
from llama_index_advanced_rag.stores.rows.sql_row_names import positions_of_rows

_BATCH = 2000

Remake = Callable[[Sequence[BaseNode]], NDArray[Any]]
Count = Callable[[BaseNode], Mapping[str, int]]


def rebuild(files: RowFiles, documents: SQLDocumentStore, *, count: Count, embed: Remake) -> int:
    """Write a new generation from the stored nodes; how many vectors had to be made again.

    Within a transaction of the database, with or without a state.

    Args:
        files: the rows.
        documents: gives the nodes.
        count: how often a node holds each term.
        embed: the vectors, as they are stored, of nodes whose own are lost.

    Raises:
        Exception: what `embed` raises; nothing is changed then.
        StorageError: the disk refused.
    """
    manifest = files.table.read()
    kept = _SoundVectors(files, manifest)
    files.table.give_rows(manifest.next_row)
    rows, lost = files.table.all_rows(), 0
    new = Manifest(manifest.generation + 1, next_row=max(manifest.next_row, int(rows[-1]) + 1 if len(rows) else 1), n_files=manifest.n_files)
    files.table.start_over()
    segments: list[Segment] = []
    for batch in _batches(rows):
        nodes = documents.nodes_of_rows(batch.tolist())
        ordered = [nodes[row] for row in batch.tolist()]
        counts = [count(node) for node in ordered]
        vectors, missing = kept.of(batch, ordered, embed)
        lost += missing
        segments.append(build_segment(new.n_rows, counts))
        new = _appended(files, new, batch, counts, vectors)
    if segments:
        segment = merge_segments(segments, None)
        name = file_name(POSTINGS, new.generation, new.n_files)
        files.table.replace_segments([], [files.write_file(name, segment.start, segment_arrays(segment), segment)])
    write_order(files, replace(new, n_files=new.n_files + 1), rows)
    return lost


def _batches(rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]


def _appended(files: RowFiles, manifest: Manifest, rows: NDArray[np.int64], counts: Sequence[Mapping[str, int]], vectors: NDArray[Any]) -> Manifest:
    lengths = np.array([sum(one.values()) for one in counts], dtype=np.uint32)
    for kind, block in files.open_generation(manifest.generation).append(manifest, rows, lengths, vectors).items():
        files.table.add_block(file_name(kind, manifest.generation), block)
    n_terms = manifest.n_terms + int(lengths.sum(dtype=np.int64))
    return replace(manifest, n_rows=manifest.n_rows + len(rows), n_terms=n_terms, dimension=vectors.shape[1])


class _SoundVectors:
    """The vectors of the old generation whose blocks are what was written.

    Which row stands at each position is known without the file that says so: rows ascend, and each is a node's or is dead.
    """

    def __init__(self, files: RowFiles, manifest: Manifest) -> None:
        self._rows: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._places = np.empty(0, dtype=np.intp)
        self._vectors: NDArray[Any] = np.empty((0, 0))
        rows = np.union1d(files.table.all_rows(), files.table.dead_since(0)[1])
        if manifest.dimension is None or len(rows) != manifest.n_rows:
            return
        try:
            blocks = files.table.blocks(file_name(VECTORS, manifest.generation))
            vectors, sound = files.open_generation(manifest.generation).sound_vectors(manifest, blocks)
        except (IndexFormatError, StorageError):
            return  # which file is missing has been said by the checks; its vectors are made again
        self._places, self._vectors = np.flatnonzero(sound), vectors
        self._rows = rows[self._places]

    def of(self, rows: NDArray[np.int64], nodes: Sequence[BaseNode], embed: Remake) -> tuple[NDArray[Any], int]:
        """The vectors of nodes, and how many of them had to be made again."""
        held = np.isin(rows, self._rows)
        positions = self._places[positions_of_rows(self._rows, rows[held])]
        if held.all():
            return self._vectors[positions], 0
        made = embed([node for node, there in zip(nodes, held.tolist(), strict=True) if not there])
        vectors = np.empty((len(rows), made.shape[1]), dtype=made.dtype)
        vectors[~held] = made
        if len(positions):
            vectors[held] = self._vectors[positions]
        return vectors, len(made)
