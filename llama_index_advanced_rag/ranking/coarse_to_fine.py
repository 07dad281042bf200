"""From coarse to fine: which documents are looked into, and what the score of a passage gains from where it stands."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MIN_DOCUMENTS = 5
MIN_PASSAGES = 200
_PRESORTED = 4096


class ChosenDocuments(NamedTuple):
    """Places of the documents, best first, and for each its share of the best score beyond what was left out, 0 to 1."""

    places: NDArray[np.intp]
    shares: NDArray[np.float64]


def choose_documents(
    scores: NDArray[np.float64], n_passages: NDArray[np.int64], *, min_documents: int = MIN_DOCUMENTS, min_passages: int = MIN_PASSAGES
) -> ChosenDocuments:
    """The best documents: at least so many, and more until they hold enough passages to choose from.

    A share is (score - floor) / (best - floor), where the floor is the best score that was left out, 0.0 when nothing was: what counts is
    how far a document stands above those that are not worth looking into.

    Args:
        scores: (n,) score of each document, >= 0, higher is better; 0.0 = not chosen.
        n_passages: (n,) passages in each.
        min_documents: at least so many, as long as there are any.
        min_passages: and at least so many passages in them.

    Example:
        >>> choice = choose_documents(np.array([1.0, 4.0, 3.0, 0.0]), np.array([9, 9, 9, 9]), min_documents=2, min_passages=10)
        >>> choice.places.tolist(), choice.shares.round(2).tolist()
        ([1, 2], [1.0, 0.67])
    """
    held = np.flatnonzero(scores > 0)
    order = held[np.argsort(-scores[held], kind="stable")] if len(held) <= _PRESORTED else _best_of_many(scores, held, n_passages, min_documents, min_passages)
    enough = int(np.searchsorted(np.cumsum(n_passages[order]), min_passages)) + 1
    chosen = order[: max(min_documents, enough)]
    if not len(chosen):
        return ChosenDocuments(chosen, np.empty(0))
    floor = float(scores[order[len(chosen)]]) if len(order) > len(chosen) else 0.0
    best = float(scores[chosen[0]])
    width = best - floor
    shares = (scores[chosen] - floor) / width if width > 0 else np.ones(len(chosen))
    return ChosenDocuments(chosen, shares)


def _best_of_many(
    scores: NDArray[np.float64], held: NDArray[np.intp], n_passages: NDArray[np.int64], min_documents: int, min_passages: int
) -> NDArray[np.intp]:
    """The best documents in order, equal ones as they come, at least one more than are needed, without sorting all of them."""
    size = _PRESORTED
    while size < len(held):
        least = np.partition(scores[held], -size)[-size]
        best = held[scores[held] >= least]  # all that are equal, so that the first of them are taken
        if size > min_documents and int(n_passages[best].sum()) > min_passages:
            return best[np.argsort(-scores[best], kind="stable")]
        size *= 4
    return held[np.argsort(-scores[held], kind="stable")]


def weighted_mean(parts: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) weighted means of (n, k) scores of 0 to 1.

    Example:
        >>> weighted_mean(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([3.0, 1.0])).tolist()
        [0.75, 0.5]
    """
    return parts @ weights / weights.sum()
