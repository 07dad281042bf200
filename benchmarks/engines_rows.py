"""Rows of the engine benchmark: two figures, their ratio, and the target that the ratio is held to; and clocks that take turns."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common import Row

MEGA = 1_000_000
THROUGHPUT = "queries/s"


@dataclass(frozen=True)
class Target:
    """What a ratio must be, from a number of documents on.

    Attributes:
        bound: the limit of the ratio.
        at_least: the ratio says how many times better ours is, and must reach the bound; else it is ours / reference and must not exceed it.
        sizes: fewest and most documents that the target speaks of.
    """

    bound: float
    at_least: bool = False
    sizes: tuple[int, int] = (100_000, MEGA)

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"

    def met(self, size: int, ratio: float) -> bool | None:
        """Whether it is met; None for a size that it does not speak of."""
        if not self.sizes[0] <= size <= self.sizes[1]:
            return None
        return ratio >= self.bound if self.at_least else ratio <= self.bound


_AT_100K = (100_000, 100_000)
TARGETS = {
    "hybrid query against stock": Target(100, at_least=True, sizes=_AT_100K),
    "hybrid ids and scores against the limit": Target(1.3),
    "hybrid retrieve() against the limit": Target(1.6),
    **{f"filtered by {name} against unfiltered": Target(1.0) for name in ("==", "in", "range", "any", "all")},
    **{f"filtered by {name} against unfiltered": Target(3.0) for name in ("contains", "text_match")},
    "build from ready nodes against bm25s": Target(1.0, sizes=_AT_100K),
    "open and first query against stock": Target(50, at_least=True, sizes=_AT_100K),
    "insert one document against a rebuild": Target(0.01),
    "delete one document against a rebuild": Target(0.01),
    "private memory after 100 queries against the vectors": Target(0.4, sizes=(MEGA, MEGA)),
    "64 queries in one batch against one by one": Target(2.0, at_least=True),
    "8 concurrent aretrieve against one by one": Target(1.0),
    "longest stall of the event loop against one query": Target(0.5),
    "recall@100 of dense against exact": Target(0.999, at_least=True),
}


def compared(size: int, measure: str, ours: float, reference: float | None, unit: str, **more: object) -> Row:
    """One row; without a reference there is no ratio, and `more` says why."""
    target = TARGETS.get(measure)
    row: Row = {"size": size, "measure": measure, "ours": _short(ours), "reference": None if reference is None else _short(reference), "ratio": None}
    if reference is not None and reference > 0 and ours > 0:
        better_is_less = target is not None and target.at_least and unit in ("ms", "s")
        row["ratio"] = _short(reference / ours if better_is_less else ours / reference)
    row |= {"unit": unit, "target": str(target) if target else None, "met": None}
    if target is not None and row["ratio"] is not None:
        row["met"] = target.met(size, row["ratio"])
    return row | more


def failed(size: int, group: str, error: BaseException) -> Row:
    """The row of a group of measures that could not be taken."""
    empty = dict.fromkeys(("ours", "reference", "ratio", "unit", "target"))
    return {"size": size, "measure": group, **empty, "met": False, "note": f"{type(error).__name__}: {error}"[:300]}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def taking_turns(count: int, *calls: Callable[[int], object], warm_up: int = 2) -> list[float]:
    """Median milliseconds of each call over `count` rounds; every round makes all calls, each time beginning with another one."""
    elapsed: list[list[float]] = [[] for _ in calls]
    for number in range(-warm_up, count):
        for turn in range(len(calls)):
            place = (number + turn) % len(calls)
            started = time.perf_counter()
            calls[place](number % count)
            if number >= 0:
                elapsed[place].append((time.perf_counter() - started) * 1000)
    return [statistics.median(values) for values in elapsed]


def timed(call: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def missed(rows: Sequence[Row]) -> list[str]:
    """The measures whose target is not met, with their sizes."""
    return [f"{row['measure']} ({row['size']:,})" for row in rows if row["met"] is False]
