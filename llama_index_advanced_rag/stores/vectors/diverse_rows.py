"""Maximal marginal relevance over all rows, without comparing every row with every pick."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.stores.rows.positions import NOTHING, Found, Positions, RowNames
from llama_index_advanced_rag.stores.vectors.vector_scores import Bounds, Matrix, Scores, VectorMetric, exact_similarities, lower_floor, products, rounding

_FIRST_LOOK = 256
_LOWEST = float(np.finfo(np.float64).min)  # what is picked has -inf


class DiverseRows:
    """Picks rows one by one, each with the highest `relevance * sim(query, row) - (1 - relevance) * max(sim(picked, row))`.

    Exact: a marginal score only falls as more is picked, so the score with fewer picks is a bound. All rows are compared with
    the query and the first pick, in float32 with its error allowed for; later picks are compared only with rows whose bound
    reaches the best score known, in float64 (lazy greedy, Minoux 1978). Where vectors are alike in all directions these are few;
    at worst they are all rows.

    Source: Carbonell and Goldstein, SIGIR 1998. LlamaIndex's own version (core 0.14) compares with the last pick only.

    Args:
        metric: how vectors are compared.
        vectors: (n, dimension) float32 or float16.
        positions: only these rows; None = all.
        squared: (n,) squared lengths of the rows, for `euclidean`.
        longest: the greatest length of a row.
    """

    def __init__(self, metric: VectorMetric, vectors: Matrix, positions: Positions | None, squared: NDArray[Any] | None, longest: float) -> None:
        self._metric = metric
        self._vectors = vectors
        self._positions = positions
        self._squared = squared if squared is None or positions is None else squared[positions]
        self._longest = longest

    def pick(self, query: Scores, *, top_k: int, names: RowNames, relevance: float) -> Found:
        """At most `top_k` rows in the order of picking, with their marginal scores; equal ones in the order of `names`."""
        count = len(self._vectors) if self._positions is None else len(self._positions)
        if not count:
            return NOTHING
        state = _Marginals(self, query, relevance, count)
        picked: list[int] = []
        scores: list[float] = []
        for _ in range(min(top_k, count)):
            best, places = state.best()
            scores.append(best)
            picked.append(places[0] if len(places) == 1 else self._first(np.array(places), names))
            state.take(picked[-1])
        return Found(self.at(np.array(picked)), np.array(scores))

    def _first(self, places: Positions, names: RowNames) -> int:
        first = names.in_order(self.at(places), 1)[0]
        return int(places[np.flatnonzero(self.at(places) == first)[0]])

    def at(self, places: Positions) -> Positions:
        """Positions of the rows in these places of the selection."""
        return places if self._positions is None else self._positions[places]

    def vector(self, place: int) -> Scores:
        """One row in float64."""
        return self._vectors[self.at(np.array([place]))[0]].astype(np.float64)

    def exact(self, query: Scores, places: Positions) -> Scores:
        """Similarities in float64."""
        return exact_similarities(self._metric, self._vectors, query, self.at(places))

    def bounds(self, query: Scores) -> Bounds:
        """Between which values the similarity of each row of the selection to a vector lies."""
        values, length = products(self._vectors, query, self._positions), float(np.linalg.norm(query))
        error = np.float32(rounding(self._vectors.shape[1]))
        if self._squared is None:
            if self._metric is VectorMetric.COSINE:
                np.clip(values, -1.0, 1.0, out=values)
            margin = error * np.float32(length * self._longest)
            return Bounds(values - margin, values + margin)
        squared = self._squared + np.float32(length**2) - 2 * values
        margin = error * np.float32(2 * (length + self._longest) ** 2)
        low, high = (1 / (1 + np.sqrt(np.maximum(squared + side, 0))) for side in (margin, -margin))
        return Bounds(low * np.float32(1 - 1e-6), high * np.float32(1 + 1e-6))


class _Marginals:
    """An upper bound of the marginal score of each row, exact in the rows that were looked at since the last pick."""

    def __init__(self, rows: DiverseRows, query: Scores, relevance: float, count: int) -> None:
        self._rows, self._query, self._relevance = rows, query, relevance
        self._picks: list[Scores] = []
        self._wanted = relevance * rows.bounds(query).high.astype(np.float64)
        self._bound = self._wanted.copy()
        self._overlap = np.full(count, -np.inf)
        self._looked_at = np.zeros(count, dtype=bool)
        self._compared = np.zeros(count, dtype=np.int32)  # with how many picks, in float64

    def best(self) -> tuple[float, list[int]]:
        """The highest marginal score and the places that have it."""
        best, look, fresh = -np.inf, _FIRST_LOOK, np.empty(0, dtype=np.intp)
        threshold = lower_floor(self._bound, look)
        while True:
            reaching = np.flatnonzero(self._bound >= max(threshold, _LOWEST))
            stale = np.setdiff1d(reaching, fresh, assume_unique=True)
            if not len(stale):
                return best, reaching[self._bound[reaching] == best].tolist()
            if len(stale) > look:
                stale = stale[np.argpartition(self._bound[stale], -look)[-look:]]
            self._refresh(stale)
            fresh = np.concatenate([fresh, stale])
            best = threshold = max(best, float(self._bound[stale].max()))
            look *= 2

    def _refresh(self, places: Positions) -> None:
        unseen = places[~self._looked_at[places]]
        self._wanted[unseen] = self._relevance * self._rows.exact(self._query, unseen)
        self._overlap[unseen] = -np.inf
        self._looked_at[unseen] = True
        for number, pick in enumerate(self._picks):
            behind = places[self._compared[places] <= number]
            self._overlap[behind] = np.maximum(self._overlap[behind], self._rows.exact(pick, behind))
        self._compared[places] = len(self._picks)
        self._bound[places] = self._wanted[places] - (1.0 - self._relevance) * self._overlap[places] if self._picks else self._wanted[places]

    def take(self, place: int) -> None:
        """Pick a row; bounds stay bounds."""
        first = not self._picks
        self._picks.append(self._rows.vector(place))
        if first:
            low = self._rows.bounds(self._picks[0]).low
            self._bound = self._wanted - (1.0 - self._relevance) * low
        self._bound[place] = -np.inf
