"""What must be true of the searchable rows, checked against the files and the nodes."""

from collections.abc import Iterator, Sequence

import numpy as np

from llama_index_advanced_rag.errors import IndexFormatError, StorageError
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_generation import ARRAY_FILE, KINDS, LENGTHS, ROWS, VECTORS, file_name
from llama_index_advanced_rag.stores.segment_files import Block, file_checksum
from llama_index_advanced_rag.stores.vectors.vector_matrix import VectorMetric

_BLOCK = 1 << 16
_UNIT = 1e-3  # float16 vectors are of length 1 to about that


def file_problems(files: RowFiles) -> list[str]:
    """Files that are missing, shorter than what was committed, or changed since; reads all of them."""
    found: list[str] = []
    manifest = files.table.read()
    generation = files.open_generation(manifest.generation)
    for kind in KINDS:
        name = file_name(kind, manifest.generation)
        blocks = files.table.blocks(name)
        expected = manifest.n_rows if kind != VECTORS or manifest.dimension is not None else 0
        ends = [0, *(block.start + block.n_rows for block in blocks)]
        if [block.start for block in blocks] != ends[:-1] or ends[-1] != expected:
            found.append(f"The blocks of {name!r} do not cover its {expected} rows.")
        try:
            damaged = generation.damaged(kind, blocks, manifest)
        except (IndexFormatError, StorageError) as error:
            found.append(str(error))
            continue
        found += [f"The file {name!r} is damaged at rows {first} to {last}." for first, last in _ranges(damaged)]
    return found + list(_segment_problems(files))


def _ranges(blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """First and last row of each run of adjacent blocks."""
    ranges: list[tuple[int, int]] = []
    for block in blocks:
        first = ranges.pop()[0] if ranges and ranges[-1][1] + 1 == block.start else block.start
        ranges.append((first, block.start + block.n_rows - 1))
    return ranges


def _segment_problems(files: RowFiles) -> Iterator[str]:
    for file in files.table.segments():
        path = files.path(file.name)
        if path is None:
            continue
        try:
            same = file_checksum(path) == (file.size, file.crc)
        except (IndexFormatError, StorageError) as error:
            yield str(error)
            continue
        if not same:
            yield f"The file {file.name!r} is damaged."


def row_problems(files: RowFiles) -> list[str]:
    """What does not fit together among nodes, rows, postings, vectors and order; the files must be sound."""
    state = files.state()
    living = np.arange(state.n_rows) if state.alive is None else np.flatnonzero(state.alive)
    found: list[str] = []
    if not np.array_equal(files.table.all_rows(), state.row_ids[living]):
        found.append("The nodes that have a row are not the rows that live.")
    without = files.table.nodes_without_row()
    if without:
        found.append(f"{len(without)} nodes cannot be found by any search, {without[0]!r} for one.")
    counted = np.zeros(state.n_rows)
    for segment in state.postings.segments:
        counted += np.bincount(segment.positions, weights=segment.frequencies, minlength=state.n_rows)
    if state.postings.segments and not np.array_equal(counted[living], state.postings.lengths[living]):
        found.append("The postings do not hold as many terms of each text as its length says.")
    return found + _vector_problems(files) + _order_problems(files)


def _vector_problems(files: RowFiles) -> list[str]:
    vectors = files.vectors()
    for start in range(0, len(vectors), _BLOCK):
        lengths = np.linalg.norm(vectors[start : start + _BLOCK].astype(np.float64), axis=1)
        sound = np.isfinite(lengths) if files.metric is not VectorMetric.COSINE else np.abs(lengths - 1.0) < _UNIT
        if not sound.all():
            return [f"The vector at row {start + int(np.argmin(sound))} is not finite, or not of length 1."]
    return []


def _order_problems(files: RowFiles) -> list[str]:
    state, known = files.state(), len(files.order)
    positions = np.searchsorted(state.row_ids, files.table.in_order())
    places = files.order[positions[positions < known]]
    return [] if bool((np.diff(places) > 0).all()) else ["The order of the rows is not that of their documents and places."]


def reclaim(files: RowFiles) -> list[str]:
    """Delete, once, files that a change that was cut off has left in the folder; their names. Within a transaction, so that nobody is writing."""
    folder = files.folder
    if folder is None or files.reclaimed:
        return []
    manifest = files.table.read()
    used = {file.name for file in files.table.segments()} | {file_name(kind, manifest.generation) for kind in (ROWS, LENGTHS, VECTORS)}
    left = sorted(path.name for path in folder.iterdir() if ARRAY_FILE.fullmatch(path.name) and path.name not in used)
    files.remove_files(left)
    files.reclaimed = True
    return left
