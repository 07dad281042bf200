"""The sentences a text turns around: those most like the others, so that a few of them can stand for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError

DAMPING = 0.85
LEAD = 3.0
"""How much more often than a late sentence the walk starts anew at the first one."""

NEAR_DUPLICATE = 0.7
LEAST_SHARE = 0.3
"""A sentence less central than this share of the average does not fill up what is left."""

_ROUNDS = 50
_TOLERANCE = 1e-7
_DIGITS = 12

Floats = NDArray[np.float64]


def central_sentences(
    terms: Sequence[Sequence[str]],
    *,
    token_counts: Sequence[int],
    max_tokens: int,
    weights: Sequence[float] | None = None,
    most_similar: float = NEAR_DUPLICATE,
) -> list[int]:
    """The most central sentences that together fit a number of tokens, none of them said twice.

    Best first, a sentence is taken when it fits into what is left and is no near-duplicate of one taken before; sentences less than a third as
    central as the average are left out. Time is linear in the number of terms, for each sentence taken.

    Args:
        terms: for each sentence, in the order of the text, its search terms, repeated as often as they occur.
        token_counts: what each sentence costs.
        max_tokens: what all together may cost, at least 1.
        weights: each >= 0, multiplied with the centrality of the sentences; None = 1 each. A sentence of weight 0 is never taken.
        most_similar: a sentence with this cosine to a chosen one, or a higher one, is a near-duplicate.

    Returns:
        Indices in the order of the text; the empty list when no sentence fits.

    Raises:
        ConfigurationError: the sequences differ in length, or `max_tokens` is below 1.

    Source: Erkan & Radev 2004, "LexRank" (JAIR 22), see `sentence_centrality`; the cut of near-duplicates is that of the
    reranker in MEAD, which the paper uses.

    Example:
        >>> sentences = ["a cat sat on a mat", "the cat sat", "a cat sat on a mat", "dogs bark", "the mat is a cat's mat"]
        >>> terms = [sentence.split() for sentence in sentences]
        >>> central_sentences(terms, token_counts=[len(words) for words in terms], max_tokens=9)
        [0, 1]
    """
    whole_number("max_tokens", max_tokens)
    if not len(terms) == len(token_counts) == (len(terms) if weights is None else len(weights)):
        raise ConfigurationError(f"There are {len(terms)} sentences and {len(token_counts)} token counts. Expected one count, and one weight, for each.")
    matrix = _TermMatrix.of(terms)
    scores = _centrality(matrix)
    if weights is not None:
        scores = scores * np.asarray(weights, dtype=np.float64)
    scores[scores < LEAST_SHARE * scores.sum() / max(1, len(scores))] = 0.0
    return _chosen(matrix, np.round(scores, _DIGITS), np.asarray(token_counts, dtype=np.int64), max_tokens, most_similar)


def sentence_centrality(terms: Sequence[Sequence[str]]) -> Floats:
    """How central each sentence is among the others.

    A walk goes from a sentence to another in proportion to the cosine of their tf-idf vectors, and starts anew now and then, a little more
    often at the beginning of the text. The share of time it spends at a sentence is its centrality.

    Args:
        terms: for each sentence its search terms.

    Returns:
        Shape (n,), each >= 0, sum 1 (empty for no sentence); higher is more central.

    Source: Erkan & Radev 2004, section 3.3 (continuous LexRank). Our deviations: the matrix of cosines is never built (it is the product of
    the sparse matrix of terms with itself, so that a step of the walk is linear in the text), a sentence is not its own neighbour, the walk
    starts anew more often at the first sentences, and the idf is BM25's.

    Example:
        >>> sentence_centrality([["cat", "sat"], ["cat", "mat"], ["dog"]]).round(2).tolist()
        [0.49, 0.47, 0.04]
    """
    return _centrality(_TermMatrix.of(terms))


@dataclass(frozen=True)
class _TermMatrix:
    """Sentences by terms, sparse, rows of length 1 or 0."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    values: Floats
    n_rows: int
    n_columns: int

    @classmethod
    def of(cls, terms: Sequence[Sequence[str]]) -> "_TermMatrix":
        """The matrix of tf-idf weights."""
        numbers: dict[str, int] = {}
        flat = np.fromiter((numbers.setdefault(term, len(numbers)) for words in terms for term in words), dtype=np.int64)
        owners = np.repeat(np.arange(len(terms), dtype=np.int64), [len(words) for words in terms])
        width = max(1, len(numbers))
        cells, counts = np.unique(owners * width + flat, return_counts=True)
        rows, columns = (cells // width).astype(np.intp), (cells % width).astype(np.intp)
        held_by = np.bincount(columns, minlength=width)
        values = (1.0 + np.log(counts)) * np.log1p((len(terms) - held_by + 0.5) / (held_by + 0.5))[columns]
        norms = np.sqrt(np.bincount(rows, values**2, minlength=len(terms)))
        return cls(rows, columns, values / norms[rows], len(terms), width)

    def similarities(self, weights: Floats) -> Floats:
        """For each sentence the weighted sum of its cosines with all sentences; shape (n,)."""
        by_term = np.bincount(self.columns, self.values * weights[self.rows], minlength=self.n_columns)
        return np.bincount(self.rows, self.values * by_term[self.columns], minlength=self.n_rows).astype(np.float64)

    def similarities_to(self, row: int) -> Floats:
        """The cosine of each sentence with one; shape (n,)."""
        return self.similarities((np.arange(self.n_rows) == row).astype(np.float64))

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Which sentences have terms at all."""
        return np.bincount(self.rows, minlength=self.n_rows) > 0


def _centrality(matrix: _TermMatrix) -> Floats:
    n_rows = matrix.n_rows
    if n_rows == 0:
        return np.zeros(0)
    starts = 1.0 + LEAD / np.arange(1, n_rows + 1)
    starts /= starts.sum()
    own = matrix.filled.astype(np.float64)
    degrees = matrix.similarities(np.ones(n_rows)) - own
    alone = degrees < 1e-9
    shares, current = np.where(alone, 0.0, 1.0 / np.where(alone, 1.0, degrees)), starts
    for _ in range(_ROUNDS):
        leaving = current * shares
        moved = np.maximum(matrix.similarities(leaving) - own * leaving, 0.0) + current[alone].sum() * starts
        after = (1.0 - DAMPING) * starts + DAMPING * moved
        done = np.abs(after - current).sum() < _TOLERANCE
        current = after
        if done:
            break
    return current / current.sum()


def _chosen(matrix: _TermMatrix, scores: Floats, costs: NDArray[np.integer[Any]], max_tokens: int, most_similar: float) -> list[int]:
    chosen: list[int] = []
    free, left = scores > 0.0, max_tokens
    for index in np.argsort(-scores, kind="stable").tolist():
        if not free[index] or costs[index] > left:
            continue
        chosen.append(index)
        left -= int(costs[index])
        free &= matrix.similarities_to(index) < most_similar
        free &= costs <= left
        free[index] = False
        if not free.any():
            break
    return sorted(chosen)
