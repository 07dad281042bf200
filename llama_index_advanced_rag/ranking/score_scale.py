"""Scores of one list on a common scale, 0 to 1, so that lists of different scorers can be added.

A score that is None or not finite is the lowest of its list: 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llama_index_advanced_rag.errors import ConfigurationError

UNDECIDED = 0.5
"""Position of the only value of a list whose scale is not known: neither weak nor strong."""


@dataclass(frozen=True, slots=True)
class ScoreRange:
    """What the scores of one list can be at worst and at best.

    Attributes:
        low: score of a hit that means nothing; None = the lowest score of the list at hand.
        high: the best possible score; None = the highest score of the list at hand, if it has two different scores.
    """

    low: float | None = None
    high: float | None = None


def scale_scores(scores: Sequence[float | None], score_range: ScoreRange | None = None) -> list[float]:
    """Put the scores of one list on 0..1 by the scale they were made on, so that a weak hit stays weak.

    - Both ends known (a cosine, 0 to 1): linear between them, clipped.
    - An end of the range is None: the lowest or the highest score of the list stands for it. If the best end is taken
      from a list whose scores are all equal, nothing says whether they are weak or strong: 0.5.
    - No range: the worst end is 0, or the lowest score if that is negative; the best end is 1, or the highest score if
      that exceeds 1. So similarities keep their value and BM25 scores are divided by the best of the list.
    - None is 0. A list without any score (a retriever that only orders) is scored by position, see `fuse_percentile`.

    `ScoreRange()` is plain min-max.

    Example:
        >>> scale_scores([0.9, 0.3]), scale_scores([8.0, 2.0]), scale_scores([0.01])
        ([0.9, 0.3], [1.0, 0.25], [0.01])
        >>> scale_scores([8.0, 2.0, 5.0], ScoreRange())
        [1.0, 0.0, 0.5]
    """
    known = _finite(scores)
    if not known:
        return _by_position(len(scores))
    low, high, observed = _ends(min(known), max(known), score_range)
    if observed and min(known) == max(known):
        return _undecided(scores)
    return [_share(score, low, high) for score in scores]


def _ends(lowest: float, highest: float, score_range: ScoreRange | None) -> tuple[float, float, bool]:
    if score_range is None:
        return min(0.0, lowest), max(1.0, highest), highest > 1.0
    low = lowest if score_range.low is None else score_range.low
    high = highest if score_range.high is None else score_range.high
    if low >= high and score_range.low is not None and score_range.high is not None:
        raise ConfigurationError(f"The score range from {low!r} to {high!r} is empty. low must be below high.")
    return low, high, score_range.high is None


def _share(score: float | None, low: float, high: float) -> float:
    value = _value(score)
    if value <= low:
        return 0.0
    return 1.0 if value >= high else (value - low) / (high - low)


def scale_by_distribution(scores: Sequence[float | None]) -> list[float]:
    """Mean - 3 sd is 0, mean + 3 sd is 1, clipped; equal scores are at the mean, 0.5. None and no scores: as in `scale_scores`."""
    known = _finite(scores)
    if not known:
        return _by_position(len(scores))
    mean = math.fsum(known) / len(known)
    spread = 3.0 * math.sqrt(math.fsum((score - mean) ** 2 for score in known) / len(known))
    if spread == 0.0 or min(known) == max(known):
        return _undecided(scores)
    return [_share(score, mean - spread, mean + spread) for score in scores]


def scale_by_percentile(scores: Sequence[float | None]) -> list[float]:
    """The share of the list a score exceeds, equal scores counting half, None below all; no scores: as in `scale_scores`."""
    known = _finite(scores)
    if not known:
        return _by_position(len(scores))
    values = [_value(score) for score in scores]
    below, equal = dict[float, int](), dict[float, int]()
    for position, value in enumerate(sorted(values)):
        below.setdefault(value, position)
        equal[value] = equal.get(value, 0) + 1
    return [(below[value] + 0.5 * equal[value]) / len(values) for value in values]


def _by_position(length: int) -> list[float]:
    return [(length - position - 0.5) / length for position in range(length)]


def _undecided(scores: Sequence[float | None]) -> list[float]:
    return [0.0 if _value(score) == -math.inf else UNDECIDED for score in scores]


def _value(score: float | None) -> float:
    return score if score is not None and math.isfinite(score) else -math.inf


def _finite(scores: Sequence[float | None]) -> list[float]:
    return [score for score in scores if score is not None and math.isfinite(score)]
