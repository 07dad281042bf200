"""From hits on lines, on titles and by embedding to an order of the regions (sections, pages, chunks) they stand in.

Everything here is numbers: keywords are indices from 0, each with a weight (its idf); regions are whatever the caller names them by.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

_DOCUMENT, _PASSAGE, _TITLE, _LINE, _TOGETHER, _SIMILARITY = 0.25, 0.25, 0.2, 0.2, 0.1, 0.25
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class RegionSignals:
    """What the detectors say about one region, each from 0 (nothing) to 1.

    Attributes:
        document: its document, see `coarse_to_fine.choose_documents`.
        title: `score_title` of its heading and those above.
        line: `score_line` of its best line.
        together: `coverage` of the words that stand anywhere on one of its pages, or in its headings.
        passage: lexical score of its best passage, the best one of the search 1.
        similarity: embedding similarity of its best passage, on the scale of the search; None where no embedding was asked.
    """

    document: float = 0.0
    title: float = 0.0
    line: float = 0.0
    together: float = 0.0
    passage: float = 0.0
    similarity: float | None = None


def coverage(words: Collection[int], weights: Sequence[float]) -> float:
    """The share of the question's weight that some of its words hold: 0 to 1.

    Args:
        words: distinct keywords.
        weights: weight of each keyword of the question, at least 0.

    Example:
        >>> coverage({0, 2}, [1.0, 2.0, 1.0]), coverage({0}, [0.0])
        (0.5, 0.0)
    """
    total = sum(weights)
    return min(1.0, sum(weights[word] for word in sorted(words)) / total) if total > 0 else 0.0


def score_line(words: Collection[int], weights: Sequence[float]) -> float:
    """How well a line answers: `c (1 + c) / 2` where c is its `coverage`, so that keywords that meet count for more than their sum. 0 to 1.

    Example:
        >>> score_line({0}, [1.0, 1.0]), score_line({0, 1}, [1.0, 1.0])
        (0.375, 1.0)
    """
    return line_score(coverage(words, weights))


def line_score(share: float) -> float:
    """`score_line` of a line with this `coverage`."""
    return share * (1 + share) / 2


def score_title(own: Collection[int], n_terms: int, above: Sequence[tuple[Collection[int], int]], weights: Sequence[float]) -> float:
    """How well a heading answers: the geometric mean of the question's share in it and its share in the question; headings above count half. 0 to 1.

    Args:
        own: keywords in the heading.
        n_terms: terms of the heading, keywords or not.
        above: the same two of each heading above it.
        weights: weight of each keyword of the question.

    Example:
        >>> score_title({0, 1}, 2, [], [1.0, 1.0]), score_title({0}, 4, [({1}, 1)], [1.0, 1.0])
        (1.0, 0.3535533905932738)
    """
    outer = max((heading_match(coverage(words, weights), len(words), count) for words, count in above), default=0.0)
    return nested_title(heading_match(coverage(own, weights), len(own), n_terms), outer)


def heading_match(share: float, n_words: int, n_terms: int) -> float:
    """What one heading adds to `score_title`: the geometric mean of the question's `coverage` in it and of its share of keywords."""
    return sqrt(share * min(1.0, n_words / n_terms)) if n_terms else 0.0


def nested_title(own: float, above: float) -> float:
    """`score_title` from the `heading_match` of the heading and the best one of those above it."""
    return max(own, _HALF * above)


def score_region(signals: RegionSignals) -> float:
    """The weighted mean of the signals: document 0.25, passage 0.25, title 0.2, line 0.2, together 0.1, similarity (where asked) 0.25. 0 to 1.

    Example:
        >>> score_region(RegionSignals(1, 1, 1, 1, 1)), score_region(RegionSignals(line=1.0)), score_region(RegionSignals(similarity=1.0))
        (1.0, 0.2, 0.2)
    """
    parts = [
        (_DOCUMENT, signals.document),
        (_TITLE, signals.title),
        (_LINE, signals.line),
        (_TOGETHER, signals.together),
        (_PASSAGE, signals.passage),
    ]
    if signals.similarity is not None:
        parts.append((_SIMILARITY, signals.similarity))
    return sum(weight * value for weight, value in parts) / sum(weight for weight, _ in parts)


def rank_regions(signals: Mapping[Key, RegionSignals], ties: Mapping[Key, tuple[str, int, str]]) -> list[tuple[Key, float]]:
    """All regions with their scores, best first.

    Args:
        signals: what is known about each.
        ties: document, place in the text and name of each: the order among equal scores.

    Example:
        >>> signals = {"a": RegionSignals(line=0.4), "b": RegionSignals(line=0.8)}
        >>> [key for key, _ in rank_regions(signals, {"a": ("d", 0, "a"), "b": ("d", 9, "b")})]
        ['b', 'a']
    """
    return sorted(((key, score_region(known)) for key, known in signals.items()), key=lambda item: (-item[1], ties[item[0]]))


def apply_verdict(ranked: Sequence[tuple[Key, float]], named: Sequence[Key]) -> list[tuple[Key, float]]:
    """The regions an arbiter named, in its order, then the others in theirs.

    The named ones have scores from 1 down to above 0.5, the others half of their own, so that all stay in 0 to 1 and descend.
    Without a named one the order and the scores are those given.

    Args:
        ranked: regions and scores from 0 to 1, best first.
        named: distinct regions, best first; they need not be among the ranked ones.

    Example:
        >>> apply_verdict([("a", 0.8), ("b", 0.4)], ["c", "b"])
        [('c', 1.0), ('b', 0.75), ('a', 0.4)]
    """
    if not named:
        return list(ranked)
    chosen = set(named)
    first = [(key, 1.0 - _HALF * place / len(named)) for place, key in enumerate(named)]
    return first + [(key, _HALF * score) for key, score in ranked if key not in chosen]


def order_passages(anchors: Sequence[float]) -> list[int]:
    """The passages of a region in the order in which they are worth reading: hit ones best first, then outwards from the best.

    Args:
        anchors: for each passage, in the order of the text, how good its best hit is; 0 = it has none.

    Returns:
        A permutation of `range(len(anchors))`.

    Example:
        >>> order_passages([0, 0, 0.5, 0, 0.9]), order_passages([0, 0, 0])
        ([4, 2, 3, 1, 0], [0, 1, 2])
    """
    best = max(range(len(anchors)), key=lambda place: (anchors[place], -place), default=0)
    return sorted(range(len(anchors)), key=lambda place: (-anchors[place], abs(place - best), place))


def spread_scores(scores: Sequence[float], counts: Sequence[int], *, floor: float = 0.0) -> list[list[float]]:
    """A score for each passage of each region: the first has the region's, the others less, down to the score of the next region.

    Args:
        scores: regions' scores, descending.
        counts: how many passages of each are given.
        floor: score of the region after the last, at most that of the last.

    Example:
        >>> spread_scores([1.0, 0.5], [2, 1]), spread_scores([0.5], [2], floor=0.4)
        ([[1.0, 0.75], [0.5]], [[0.5, 0.45]])
    """
    after = [*scores[1:], floor][: len(scores)]
    return [[high - (high - low) * place / count for place in range(count)] for high, low, count in zip(scores, after, counts, strict=True)]
