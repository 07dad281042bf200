"""How much a question is like the examples of some routes, and which routes follow from that: arithmetic on arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[Any]
_NEAREST = 3
_SHARPNESS = 30.0  # on the tuning half of tests/data/routing.jsonl the shares were likely with it for both models that come as packages


@dataclass(frozen=True, slots=True)
class Centred:
    """Directions of examples, seen from the middle of the examples.

    What all texts share in a model (cosines of 0.7 to 0.95 and no others, say) is gone, so that the same numbers mean the same for
    different models.

    Attributes:
        middle: shape (d,).
        directions: shape (n, d), unit vectors; zeros for an example that is the middle itself.
    """

    middle: Vector
    directions: Vector

    @classmethod
    def of(cls, examples: Vector) -> "Centred":
        """The examples, a matrix of shape (n, d), n at least 1."""
        units = _units(examples)
        middle = units.mean(axis=0)
        return cls(middle, _units(units - middle))


def likeness(question: Vector, examples: Centred) -> Vector:
    """Cosines of a question, shape (d,), and examples, seen from the middle of the examples.

    Returns:
        Shape (n,), -1 to 1, higher is more alike; 0 for an example that is the middle itself.

    Example:
        >>> likeness(np.array([9.0, 1.0]), Centred.of(np.array([[9.0, 2.0], [9.0, -2.0]]))).round(2).tolist()
        [0.99, -0.99]
    """
    return examples.directions @ _units(_units(question) - examples.middle)


def route_shares(like: Vector, counts: Sequence[int]) -> Vector:
    """How well each route fits, from the three of its examples that are most alike (fewer, where a route has fewer).

    Args:
        like: likeness to the examples, those of the first route first.
        counts: how many examples each route has; at least 1 each.

    Returns:
        A share for each route, 0 to 1, together 1, higher is better.

    Example:
        >>> route_shares(np.array([0.5, 0.1, 0.4, 0.3]), [2, 2]).round(2).tolist()
        [0.18, 0.82]
    """
    nearest = min(_NEAREST, *counts)
    parts = np.split(like.astype(np.float64), np.cumsum(counts)[:-1])
    fits = np.array([np.sort(part)[-nearest:].mean() for part in parts])
    weights = np.exp(_SHARPNESS * (fits - fits.max()))
    return weights / weights.sum()


def clear_routes(shares: Sequence[float], *, threshold: float, margin: float, several_within: float, max_routes: int) -> tuple[int, ...]:
    """The routes that are clear, best first; none where that is in doubt.

    Those within `several_within` of the best are taken, at most `max_routes`. It is in doubt where the best has less than
    `threshold`, and where one that is not taken comes within less than `margin` of the best.

    Args:
        shares: share of each route; of equal ones the first is better.
        threshold: least share of the best.
        margin: least distance between the best and the best that is not taken.
        several_within: largest distance to the best of another that is taken too.
        max_routes: most routes.

    Example:
        >>> clear_routes([0.2, 0.45, 0.35], threshold=0.3, margin=0.05, several_within=0.0, max_routes=1)
        (1,)
        >>> clear_routes([0.2, 0.42, 0.38], threshold=0.3, margin=0.05, several_within=0.0, max_routes=1)
        ()
        >>> clear_routes([0.2, 0.42, 0.38], threshold=0.3, margin=0.05, several_within=0.1, max_routes=2)
        (1, 2)
    """
    ranked = sorted(range(len(shares)), key=lambda place: -shares[place])
    best = shares[ranked[0]]
    taken = [place for place in ranked if best - shares[place] <= several_within][:max_routes] if several_within > 0 else ranked[:1]
    beaten = best - shares[ranked[len(taken)]] if len(taken) < len(ranked) else 1.0
    return tuple(taken) if best >= threshold and beaten >= margin else ()


def _units(vectors: Vector) -> Vector:
    """Vectors of length 1; one without a direction stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors, dtype=np.float64), where=lengths > 1e-9)
