"""Fusion of ranked lists into one, on ids and numbers. An id is anything hashable: a node id, a position.

A list is best first. Of an id that occurs twice in one list the first occurrence counts. A score of None (or one that is
not finite) is the lowest of its list. A list of weight 0 is left out as if it were not there. Results are best first;
equal scores are ordered by `tie_key` of the id, by default the id itself. Sums do not depend on the order of the lists.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from functools import reduce
from typing import Any, TypeVar

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.score_scale import ScoreRange, scale_by_distribution, scale_by_percentile, scale_lists

Id = TypeVar("Id", bound=Hashable)
Scored = tuple[Id, float | None]
TieKey = Callable[[Id], Any]

RRF_K = 60
GUARD = 2


class FusionMode(str, Enum):
    """How the lists of several retrievers become one."""

    RECIPROCAL_RANK = "reciprocal_rank"
    WEIGHTED = "weighted"
    DISTRIBUTION = "distribution"
    PERCENTILE = "percentile"
    GUARDED = "guarded"


def fuse_reciprocal_rank(
    rankings: Sequence[Sequence[Id]], *, weights: Sequence[float] | None = None, k: int = RRF_K, tie_key: TieKey[Id] = str
) -> list[tuple[Id, float]]:
    """Reciprocal rank fusion: `sum_r w_r / (k + rank_r)`, ranks from 1, no contribution from a list an id is absent from.

    Args:
        rankings: lists of ids, best first.
        weights: one per list, at least 0; None = 1 each.
        k: damping, at least 0; a larger k makes the ranks more alike.
        tie_key: order among equal scores.

    Returns:
        (id, score) best first; scores in (0, sum of weights / (k + 1)].

    Raises:
        ConfigurationError: weights or k cannot work.

    Source: Cormack, Clarke, Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods". Our deviation: weights.

    Example:
        >>> [(i, round(s, 5)) for i, s in fuse_reciprocal_rank([["2", "0", "6"], ["6", "2", "3"]])][:2]
        [('2', 0.03252), ('6', 0.03227)]
    """
    return _best_first(reciprocal_rank_scores(rankings, weights=weights, k=k), tie_key)


def reciprocal_rank_scores(rankings: Sequence[Sequence[Id]], *, weights: Sequence[float] | None = None, k: int = RRF_K) -> dict[Id, float]:
    """The scores of `fuse_reciprocal_rank` by id, in no order.

    Raises:
        ConfigurationError: weights or k cannot work.
    """
    if k < 0:
        raise ConfigurationError(f"k is {k!r}. It must be at least 0; 60 is usual.")
    distinct = [list(dict.fromkeys(ranking)) for ranking in rankings]
    values = [[1.0 / (k + rank) for rank in range(1, len(ids) + 1)] for ids in distinct]
    return _combined(distinct, values, checked_weights(weights, len(rankings)), 1.0)


def fuse_weighted(
    lists: Sequence[Sequence[Scored[Id]]],
    *,
    weights: Sequence[float] | None = None,
    ranges: Sequence[ScoreRange | None] | None = None,
    natural_ranges: Sequence[ScoreRange | None] | None = None,
    tie_key: TieKey[Id] = str,
) -> list[tuple[Id, float]]:
    """Weighted mean of scores put on 0..1; absent counts as 0.

    Lists of different scales are put on min-max each; lists of one known scale keep their values (`score_scale.scale_lists`).

    Args:
        lists: (id, score) best first.
        weights: one per list, at least 0; None = 1 each. Only their proportions count.
        ranges: put the scores of a list on this range instead; None, or None for one list = as above.
        natural_ranges: what the scores of a list can be; None = 0 to 1 if they all lie there, else not known.
        tie_key: order among equal scores.

    Returns:
        (id, score) best first, scores in [0, 1].

    Raises:
        ConfigurationError: weights or ranges cannot work.

    Source: Bruch, Gai, Ingber 2023, "An Analysis of Fusion Functions for Hybrid Retrieval", section 4 (convex combination
    of min-max scaled scores). Our deviation: comparable lists are compared as they are, a list without spread is not raised to 1.

    Example:
        >>> fuse_weighted([[("a", 0.9)], [("junk", 0.01)]])
        [('a', 0.45), ('junk', 0.005)]
    """
    return _best_first(fused_scores(FusionMode.WEIGHTED, lists, weights=weights, ranges=ranges, natural_ranges=natural_ranges), tie_key)


def _one_each(ranges: Sequence[ScoreRange | None] | None, count: int) -> list[ScoreRange | None]:
    known: list[ScoreRange | None] = [None] * count if ranges is None else list(ranges)
    if len(known) != count:
        raise ConfigurationError(f"{len(known)} score ranges were given for {count} lists. Give one for each, None where it is not known.")
    return known


def fuse_distribution(lists: Sequence[Sequence[Scored[Id]]], *, weights: Sequence[float] | None = None, tie_key: TieKey[Id] = str) -> list[tuple[Id, float]]:
    """Weighted mean of scores put on 0..1 by their distribution: mean - 3 sd is 0, mean + 3 sd is 1, clipped.

    Equal scores are all at the mean, 0.5. Arguments, order and errors as in `fuse_weighted`; scores in [0, 1].

    Source: Mazzeschi 2023, "Distribution-Based Score Fusion". Our deviation: clipping, 0.5 for a list without spread.

    Example:
        >>> fuse_distribution([[("a", 3.0), ("b", 1.0)], [("b", 8.0)]], weights=[0.5, 0.5])[0][0]
        'b'
    """
    return _best_first(fused_scores(FusionMode.DISTRIBUTION, lists, weights=weights), tie_key)


def fuse_percentile(lists: Sequence[Sequence[Scored[Id]]], *, weights: Sequence[float] | None = None, tie_key: TieKey[Id] = str) -> list[tuple[Id, float]]:
    """Weighted mean of percentiles: the share of its list that a score exceeds, equal scores counting half.

    The only id of a list is at 0.5. Arguments, order and errors as in `fuse_weighted`; scores in [0, 1).

    Example:
        >>> fuse_percentile([[("a", 12.0), ("b", 3.0)]])
        [('a', 0.75), ('b', 0.25)]
    """
    return _best_first(fused_scores(FusionMode.PERCENTILE, lists, weights=weights), tie_key)


def fused_scores(
    mode: FusionMode,
    lists: Sequence[Sequence[Scored[Id]]],
    *,
    weights: Sequence[float] | None = None,
    ranges: Sequence[ScoreRange | None] | None = None,
    natural_ranges: Sequence[ScoreRange | None] | None = None,
    k: int = RRF_K,
) -> dict[Id, float]:
    """What each id scores under a mode that adds scores or ranks, in no order, for whoever orders them by a rule of his own.

    Raises:
        ConfigurationError: an argument cannot work, or the mode is `guarded`, which only orders.

    Example:
        >>> fused_scores(FusionMode.RECIPROCAL_RANK, [[(7, 0.9), (3, 0.5)], [(3, 12.0)]], k=0)
        {7: 1.0, 3: 1.5}
    """
    if mode is FusionMode.RECIPROCAL_RANK:
        return reciprocal_rank_scores([[item for item, _ in scored] for scored in lists], weights=weights, k=k)
    first = [_first_scores(scored) for scored in lists]
    values = [list(scored.values()) for scored in first]
    if mode is FusionMode.WEIGHTED:
        scaled = scale_lists(values, _one_each(ranges, len(lists)), _one_each(natural_ranges, len(lists)))
    elif mode is FusionMode.DISTRIBUTION:
        scaled = [scale_by_distribution(scores) for scores in values]
    elif mode is FusionMode.PERCENTILE:
        scaled = [scale_by_percentile(scores) for scores in values]
    else:
        raise ConfigurationError(f"The fusion {mode.value!r} adds no scores. Use concatenate_guarded().")
    checked = checked_weights(weights, len(lists))
    return _combined([list(scored) for scored in first], scaled, checked, math.fsum(checked))


def concatenate_guarded(first: Sequence[Id], second: Sequence[Id], guard: int = GUARD) -> list[Id]:
    """The first `guard` ids of `first`, then `second`, then the rest of `first`; each id once.

    For two finished lists of which the second answers what the first cannot (a graph list after a hybrid list): the best
    of the first is kept, and the order of the second is not diluted.

    Raises:
        ConfigurationError: guard is negative.

    Example:
        >>> concatenate_guarded(["h1", "h2", "h3"], ["g1", "h2", "g2"], guard=1)
        ['h1', 'g1', 'h2', 'g2', 'h3']
    """
    if guard < 0:
        raise ConfigurationError(f"guard is {guard!r}. It must be at least 0; 1 or 2 is usual.")
    return list(dict.fromkeys([*first[:guard], *second, *first[guard:]]))


def concatenate_all_guarded(rankings: Sequence[Sequence[Id]], guard: int = GUARD) -> list[tuple[Id, float]]:
    """Any number of lists by `concatenate_guarded`, the first `guard` ids of each before the lists after it; the score is 1 / position.

    Example:
        >>> concatenate_all_guarded([["a", "b"], ["c"]], guard=1)
        [('a', 1.0), ('c', 0.5), ('b', 0.3333333333333333)]
    """
    joined = reduce(lambda later, earlier: concatenate_guarded(earlier, later, guard), reversed(rankings)) if rankings else []
    return [(item, 1.0 / position) for position, item in enumerate(dict.fromkeys(joined), start=1)]


def fuse(
    mode: FusionMode | str,
    lists: Sequence[Sequence[Scored[Id]]],
    *,
    weights: Sequence[float] | None = None,
    ranges: Sequence[ScoreRange | None] | None = None,
    natural_ranges: Sequence[ScoreRange | None] | None = None,
    k: int = RRF_K,
    guard: int = GUARD,
    tie_key: TieKey[Id] = str,
) -> list[tuple[Id, float]]:
    """Fuse by a mode chosen at run time; arguments the mode does not use are ignored.

    `guarded` puts the first `guard` ids of each list before the lists after it; its score is 1 / position.

    Example:
        >>> fuse("guarded", [[("a", 0.9), ("b", 0.8)], [("c", 7.0)]], guard=1)
        [('a', 1.0), ('c', 0.5), ('b', 0.3333333333333333)]
    """
    chosen = FusionMode(mode)
    if chosen is FusionMode.GUARDED:
        return concatenate_all_guarded([[item for item, _ in scored] for scored in lists], guard)
    return _best_first(fused_scores(chosen, lists, weights=weights, ranges=ranges, natural_ranges=natural_ranges, k=k), tie_key)


def _first_scores(scored: Sequence[Scored[Id]]) -> dict[Id, float | None]:
    first: dict[Id, float | None] = {}
    for item, score in scored:
        first.setdefault(item, score)
    return first


def checked_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    """One weight per list, all 1 for None.

    Raises:
        ConfigurationError: their number is wrong, one is negative or not finite, or all are 0.
    """
    values = [1.0] * count if weights is None else [float(weight) for weight in weights]
    if len(values) != count:
        raise ConfigurationError(f"{len(values)} weights {values!r} were given for {count} lists. Give one for each.")
    if any(weight < 0 or not math.isfinite(weight) for weight in values) or (values and not any(values)):
        raise ConfigurationError(f"weights are {values!r}. They must be finite, at least 0, and one of them above 0.")
    return values


def _combined(rankings: Sequence[Sequence[Id]], values: Sequence[Sequence[float]], weights: Sequence[float], total: float) -> dict[Id, float]:
    parts: dict[Id, list[float]] = {}
    for ids, shares, weight in zip(rankings, values, weights, strict=True):
        if weight == 0:
            continue
        for item, share in zip(ids, shares, strict=True):
            parts.setdefault(item, []).append(weight * share)
    return {item: math.fsum(amounts) / total for item, amounts in parts.items()}


def _best_first(scores: Mapping[Id, float], tie_key: TieKey[Id]) -> list[tuple[Id, float]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], tie_key(pair[0])))
