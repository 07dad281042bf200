"""Pairs of vectors that point almost the same way, without a matrix of all pairs."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]

_AT_ONCE = 1 << 23
_LEAST_ROWS = 16
_PAIRS_AT_ONCE = 1 << 14
_DIGITS = 6
_SLACK = 1e-4  # the product of blocks is in single precision; what it lets through is computed again


class Pairs(NamedTuple):
    """Pairs of rows and how strongly each binds; sorted by row, then by column.

    Attributes:
        rows: the lower row of each pair.
        columns: the higher one.
        weights: of each pair.
    """

    rows: Ids
    columns: Ids
    weights: Floats

    def listed(self) -> list[tuple[int, int, float]]:
        """Row, column and weight of each."""
        return list(zip(self.rows.tolist(), self.columns.tolist(), self.weights.tolist(), strict=True))


def near_pairs(matrix: Matrix, *, least: float, most: int) -> Pairs:
    """The pairs of rows with a cosine of at least `least`, each pair once.

    A row with more than `most` such neighbours keeps the `most` nearest, of equally near ones (to five digits) the first; a pair is kept where both keep
    each other, so that no row is in more than `most` pairs. Time is quadratic in the rows (50,000 of 384 numbers: 30 to 50 seconds of CPU), memory
    is not: at most `most` pairs a row are held.

    Args:
        matrix: (n, dimension) unit vectors; rows of zeros are near nothing.
        least: lowest cosine, above 0 and at most 1.
        most: most pairs of a row, at least 1.

    Returns:
        Rows, columns and cosines (rounded to six digits), rows < columns. The cosine of two rows does not depend on the other rows.

    Raises:
        ConfigurationError: `least` or `most` cannot work.

    Example:
        >>> pairs = near_pairs(np.array([[1, 0], [0.6, 0.8], [0.8, 0.6]], dtype=np.float32), least=0.8, most=5)
        >>> pairs.listed()
        [(0, 2, 0.8), (1, 2, 0.96)]
    """
    whole_number("most", most)
    if not 0 < least <= 1:
        raise ConfigurationError(f"least is {least!r}. It must be a cosine above 0 and at most 1.")
    rows, columns = _mutual(*_candidates(matrix, least - _SLACK, most), len(matrix))
    cosines = _cosines(matrix, rows, columns)
    near = cosines >= least
    return Pairs(rows[near], columns[near], cosines[near])


def strongest_pairs(pairs: Pairs, n: int, *, most: int) -> Pairs:
    """The pairs that are among the `most` strongest of both their rows; of equally strong ones those with the first rows.

    Args:
        pairs: each pair once.
        n: number of rows.
        most: most pairs of a row, at least 1.

    Example:
        >>> pairs = Pairs(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0.8, 0.9, 0.9]))
        >>> strongest_pairs(pairs, 3, most=1).columns.tolist()
        [2]
    """
    ends, others = np.concatenate([pairs.rows, pairs.columns]), np.concatenate([pairs.columns, pairs.rows])
    order = np.lexsort((others, -np.tile(pairs.weights, 2), ends))
    starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))])[:-1]
    kept = order[np.arange(len(order)) - starts[ends[order]] < most]
    rows, columns = _mutual(ends[kept], others[kept], n)
    of_pair = np.argsort(pairs.rows * n + pairs.columns, kind="stable")
    found = of_pair[np.searchsorted((pairs.rows * n + pairs.columns)[of_pair], rows * n + columns)]
    return Pairs(rows, columns, pairs.weights[found])


def _candidates(matrix: Matrix, least: float, most: int) -> tuple[Ids, Ids]:
    """Row and neighbour, in both directions."""
    n = len(matrix)
    step = max(_LEAST_ROWS, _AT_ONCE // max(1, n))
    found = [_of_block(matrix, start, min(n, start + step), least, most) for start in range(0, n, step)]
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *(rows for rows, _ in found)]), np.concatenate([none, *(columns for _, columns in found)])


def _of_block(matrix: Matrix, start: int, stop: int, least: float, most: int) -> tuple[Ids, Ids]:
    cosines = matrix[start:stop] @ matrix.T
    cosines[np.arange(stop - start), np.arange(start, stop)] = -np.inf
    near = cosines >= least
    for row in np.flatnonzero(np.count_nonzero(near, axis=1) > most).tolist():
        near[row] = _nearest(np.round(cosines[row], _DIGITS - 1), most)
    places = np.flatnonzero(near)
    return places // len(matrix) + start, places % len(matrix)


def _nearest(values: Matrix, most: int) -> NDArray[np.bool_]:
    """Where the highest values are, of equal ones the first."""
    last = np.partition(values, len(values) - most)[len(values) - most]
    kept = values > last
    kept[np.flatnonzero(values == last)[: most - int(kept.sum())]] = True
    return kept


def _mutual(rows: Ids, columns: Ids, n: int) -> tuple[Ids, Ids]:
    """The pairs that are there in both directions, each once, sorted."""
    forward, backward = rows < columns, rows > columns
    there: Any = np.intersect1d(rows[forward] * n + columns[forward], columns[backward] * n + rows[backward])
    return there // max(1, n), there % max(1, n)


def _cosines(matrix: Matrix, rows: Ids, columns: Ids) -> Floats:
    parts = [slice(start, start + _PAIRS_AT_ONCE) for start in range(0, len(rows), _PAIRS_AT_ONCE)]
    exact = [(matrix[rows[part]].astype(np.float64) * matrix[columns[part]]).sum(axis=1) for part in parts]
    return np.minimum(np.round(np.concatenate([np.zeros(0), *exact]), _DIGITS), 1.0)
