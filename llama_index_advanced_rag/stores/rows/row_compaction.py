"""Rewriting the array files of a corpus: without dead rows, and with the order of the rows that settles ties."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import IndexFormatError
from llama_index_advanced_rag.stores.postings.postings_segment import merge_segments, remapped, segment_arrays
from llama_index_advanced_rag.stores.rows.row_checks import file_problems
from llama_index_advanced_rag.stores.rows.row_files import ORDER, POSTINGS, RowFiles
from llama_index_advanced_rag.stores.rows.row_generation import file_name
from llama_index_advanced_rag.stores.rows.row_manifest import Manifest
from llama_index_advanced_rag.trace import report

_UNORDERED = 20_000  # so many newer rows are sorted at each search that needs it
_BLOCK = 1 << 16
_SMALL = 1000


def settle(files: RowFiles) -> None:
    """Do what keeps searches fast after changes, if it is worth it: compact when most rows are dead, note the order of many new ones."""
    state = files.state()
    if state.n_rows >= _SMALL and state.n_alive * 2 < state.n_rows:
        try:
            with files.change():
                compact(files)
        except IndexFormatError as error:  # what was changed before is committed; this can wait for the repair
            report("warning", str(error))
    elif state.n_rows - len(files.order) > max(_UNORDERED, len(files.order) // 4):
        with files.change():
            write_order(files, files.manifest, files.state().row_ids)


def compact(files: RowFiles) -> None:
    """Write all living rows into the files of a new generation; within a `change()` that appends nothing.

    Raises:
        IndexFormatError: a file is damaged.
        StorageError: the disk refused; the old generation stays.
    """
    damaged = file_problems(files)  # a copy would have checksums of its own, and hide it
    if damaged:
        raise IndexFormatError(f"{damaged[0]} Mend it with verify(repair=True), then compact.")
    state, manifest = files.state(), files.manifest
    kept = np.arange(state.n_rows) if state.alive is None else np.flatnonzero(state.alive)
    files.table.start_over()
    new = _copied(files, kept, Manifest(manifest.generation + 1, next_row=manifest.next_row, dimension=manifest.dimension, n_files=manifest.n_files))
    if files.segments and len(kept):
        places = np.full(state.n_rows, -1, dtype=np.int64)
        places[kept] = np.arange(len(kept))
        segment = remapped(merge_segments(list(files.segments.values()), state.alive), places)
        name = file_name(POSTINGS, new.generation, new.n_files)
        files.table.replace_segments([], [files.write_file(name, segment.start, segment_arrays(segment), segment)])
    write_order(files, replace(new, n_files=new.n_files + 1), state.row_ids[kept])


def _copied(files: RowFiles, kept: NDArray[np.intp], manifest: Manifest) -> Manifest:
    """Copy rows, lengths and vectors block by block; the manifest of what was written."""
    state, stored = files.state(), files.vectors()
    generation = files.open_generation(manifest.generation)
    for start in range(0, len(kept), _BLOCK):
        block = kept[start : start + _BLOCK]
        lengths = state.postings.lengths[block].astype(np.uint32)
        written = generation.append(manifest, state.row_ids[block], lengths, stored[block] if len(stored) else None)
        for kind, what in written.items():
            files.table.add_block(file_name(kind, manifest.generation), what)
        n_terms = manifest.n_terms + int(lengths.sum(dtype=np.int64))
        manifest = replace(manifest, n_rows=manifest.n_rows + len(block), n_terms=n_terms)
    return manifest


def write_order(files: RowFiles, manifest: Manifest, row_ids: NDArray[np.int64]) -> None:
    """Note the place of each row by sort key; dead rows come last."""
    in_order = files.table.in_order()
    places = np.full(len(row_ids), len(row_ids), dtype=np.int32)
    positions = np.searchsorted(row_ids, in_order)
    places[positions] = np.arange(len(positions), dtype=np.int32)
    old = [file.name for file in files.table.segments() if file.first < 0]
    fresh = files.write_file(file_name(ORDER, manifest.generation, manifest.n_files), -1, [places], places)
    files.table.replace_segments(old, [fresh])
    files.table.write(replace(manifest, n_files=manifest.n_files + 1))
