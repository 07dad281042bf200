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
        high: the best possible score; None = the highest score of the list at hand.
    """

    low: float | None = None
    high: float | None = None

    @property
    def is_closed(self) -> bool:
        """True when both ends are known."""
        return self.low is not None and self.high is not None


def scale_lists(lists: Sequence[Sequence[float | None]], ranges: Sequence[ScoreRange | None], natural: Sequence[ScoreRange | None]) -> list[list[float]]:
    """Put the scores of several lists on 0..1 so that they can be added.

    Lists made on one known scale (cosines of several indexes) keep their values on it: the best of a weak list stays below
    the good ones of a strong list. Lists of different scales (cosine and BM25) are each put on min-max. A range given for
    a list is used instead. See `scale_scores` for one list.

    Args:
        lists: scores of each list.
        ranges: for each list the range asked for, or None.
        natural: for each list what its scores can be, or None: 0 to 1 if all its scores lie there, from 0 on if none is
            negative, else not known.

    Example:
        >>> scale_lists([[0.9, 0.8], [0.3, 0.2]], [None, None], [None, None])
        [[0.9, 0.8], [0.3, 0.2]]
        >>> scale_lists([[0.9, 0.8], [7.0, 2.0]], [None, None], [None, None])
        [[1.0, 0.0], [1.0, 0.0]]
    """
    own = [known or _inferred(scores) for scores, known in zip(lists, natural, strict=True)]
    shared = own[0] if own and own[0] is not None and own[0].is_closed and all(known == own[0] for known in own) else None
    return [scale_scores(scores, asked or shared, natural=known) for scores, asked, known in zip(lists, ranges, own, strict=True)]


def _inferred(scores: Sequence[float | None]) -> ScoreRange | None:
    known = _finite(scores)
    if not known or min(known) < 0.0:
        return None
    return ScoreRange(0.0, 1.0 if max(known) <= 1.0 else None)


def scale_scores(scores: Sequence[float | None], score_range: ScoreRange | None = None, *, natural: ScoreRange | None = None) -> list[float]:
    """Put the scores of one list on 0..1: min-max within the list, or by the range given.

    - No range: the lowest score of the list is 0, the highest 1. A list without two different scores has no such scale;
      it is placed on its natural one if both ends are known, so that a lone weak hit stays weak, else at 0.5.
    - A range: linear between its ends, clipped; an end that is None is the lowest or highest score of the list.
    - None is 0. A list without any score (a retriever that only orders) is scored by position, see `scale_by_percentile`.

    Example:
        >>> scale_scores([0.75, 0.5, 0.25]), scale_scores([0.01], natural=ScoreRange(0.0, 1.0)), scale_scores([8.0])
        ([1.0, 0.5, 0.0], [0.01], [0.5])
        >>> scale_scores([0.9, 0.3], ScoreRange(0.0, 1.0))
        [0.9, 0.3]
    """
    known = _finite(scores)
    if not known:
        return _by_position(len(scores))
    if score_range is None and min(known) == max(known):
        return [_share(score, natural.low or 0.0, natural.high or 1.0) for score in scores] if natural is not None and natural.is_closed else _undecided(scores)
    low, high = _ends(min(known), max(known), score_range or ScoreRange())
    if low >= high:
        return _undecided(scores)
    if len(known) == len(scores):  # most often, and so every search: no call for each score
        width = high - low
        return [0.0 if value <= low else 1.0 if value >= high else (value - low) / width for value in known]
    return [_share(score, low, high) for score in scores]


def _ends(lowest: float, highest: float, score_range: ScoreRange) -> tuple[float, float]:
    low = lowest if score_range.low is None else score_range.low
    high = highest if score_range.high is None else score_range.high
    if low >= high and score_range.low is not None and score_range.high is not None:
        raise ConfigurationError(f"The score range from {low!r} to {high!r} is empty. low must be below high.")
    return low, high


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
