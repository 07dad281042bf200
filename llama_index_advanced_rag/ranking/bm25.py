"""BM25 on counts: what one term adds to the score of a text.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, section 3.4, with the idf that
Lucene uses, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative. The query side has no saturation: a term that the query
holds twice counts twice (as in Lucene and bm25s).
"""

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

K1 = 1.5
B = 0.75


def inverse_document_frequency(n_texts: int, n_texts_with_term: int) -> float:
    """How much a term tells: > 0, high for a rare term.

    Example:
        >>> round(inverse_document_frequency(8, 1), 4), round(inverse_document_frequency(8, 8), 4)
        (1.7918, 0.0572)
    """
    return log((n_texts - n_texts_with_term + 0.5) / (n_texts_with_term + 0.5) + 1)


def length_norms(lengths: NDArray[np.number[Any]], *, average_length: float, k1: float = K1, b: float = B) -> NDArray[np.float64]:
    """The part of the formula that depends on the text only: how many occurrences of a term give half of what endless ones would.

    Args:
        lengths: terms in each text; shape (n,).
        average_length: mean length over all texts, > 0.
        k1: how late repetition saturates, >= 0.
        b: how much a long text is discounted, 0 to 1.

    Returns:
        Shape (n,), each >= 0.

    Example:
        >>> length_norms(np.array([10, 20]), average_length=10.0).tolist()
        [1.5, 2.625]
    """
    return k1 * (1 - b + b * lengths.astype(np.float64) / average_length)


def term_contributions(
    frequencies: NDArray[np.number[Any]], norms: NDArray[np.float64], *, idf: float, times: float = 1, k1: float = K1
) -> NDArray[np.float64]:
    """What a term adds to the score of each text that holds it.

    Args:
        frequencies: how often each text holds the term, at least 1; shape (n,).
        norms: `length_norms` of these texts; shape (n,). An infinite one gives 0.
        idf: `inverse_document_frequency` of the term.
        times: how often the query holds the term.
        k1: how late repetition saturates, >= 0.

    Returns:
        Shape (n,), each in (0, times * idf * (k1 + 1)); higher is better. A text's value depends on its own numbers only, to the last bit.

    Example:
        >>> term_contributions(np.array([1, 3]), np.array([1.5, 1.5]), idf=2.0).round(3).tolist()
        [2.0, 3.333]
    """
    counts = frequencies.astype(np.float64)
    return times * idf * (k1 + 1) * counts / (counts + norms)
