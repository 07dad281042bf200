"""Routing over filings and multi-hop sets mixed: what a router keeps of the quality of the best route, and what it saves.

usage: python benchmarks/router.py --data ../shared/data [--one-corpus] [--cache DIR] --json OUT

Every question is answered by every route of `CorpusIndex(...).as_retriever("auto")` and by `auto` itself with each router, in turns, in one run. The
measure is all-gold@8 on the multi-hop sets and figure@8 (the figure that answers stands in one of the first 8 chunks, in the right file) on the
filings; `success@8` is both together. Milliseconds are those of a search, router included, the embedding of the question given; each question's is
the median of the rounds.

Beside the fixed routes: `oracle` takes for each question the cheapest of the routes that do best on it; `shuffled` deals the routes that the router
chose to other questions at random (1,000 times), which is a random router of the same shares; `mixture` is the best that tossing between two fixed
routes can reach at the router's cost. `--one-corpus` puts all passages and filings into one index first; without it each set is an index of its own.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import filings
import multihop
import numpy as np
from common import SEED, Row, all_gold, gain, interval, parser, percent, print_table, ranked_documents, read_jsonl, recall, write_result
from llama_index.core.schema import QueryBundle
from router_corpus import one_corpus

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.retrievers.adaptive import AdaptiveRetriever
from llama_index_advanced_rag.retrievers.base import TracedRetriever

FILINGS = "filings"
ROUTERS = ("rules", "embedding")
TOP_K, SHUFFLES = 10, 1000
COLUMNS = ("system", "on", "n", "success@8", "R@5", "figure@5", "ms", "share")
Scores = dict[str, float]


class Asked(NamedTuple):
    """A question: where it is from, and what answers it."""

    dataset: str
    question: Mapping[str, Any]
    bundle: QueryBundle

    @property
    def key(self) -> str:
        """Its name in the results."""
        return f"{self.dataset}/{self.question['id']}"


class Measured(NamedTuple):
    """What a system made of each question.

    Attributes:
        scores: the measures by question.
        ms: milliseconds by question.
        routes: the routes taken by question, for a router.
    """

    scores: dict[str, Scores]
    ms: dict[str, float]
    routes: dict[str, str]


def measures(asked: Asked, found: Sequence[Any]) -> Scores:
    """The measures of one answer."""
    gold = asked.question["gold"]
    if asked.dataset == FILINGS:
        return {f"figure@{k}": filings.figure_in_context(found, gold, k) for k in (5, 8, 10)} | {"success@8": filings.figure_in_context(found, gold, 8)}
    ranked = ranked_documents(found)
    return {"R@5": recall(ranked, gold, 5), "success@8": all_gold(ranked, gold, 8)}


def retrievers_of(index: CorpusIndex) -> dict[str, TracedRetriever]:
    """The fixed routes, and `auto` with each router."""
    routed = {f"routed-{name}": index.as_retriever("auto", router=name, similarity_top_k=TOP_K) for name in ROUTERS}
    routes = cast("AdaptiveRetriever", routed["routed-rules"]).retrievers
    return {f"always-{name}": cast("TracedRetriever", retriever).with_top_k(TOP_K) for name, retriever in routes.items()} | routed


def measure(indexes: Mapping[str, CorpusIndex], questions: Sequence[Asked], rounds: int) -> dict[str, Measured]:
    """Every system on every question, in turns."""
    by_index = {id(index): retrievers_of(index) for index in indexes.values()}
    systems = list(next(iter(by_index.values())))
    found: dict[str, dict[str, Scores]] = {name: {} for name in systems}
    routes: dict[str, dict[str, str]] = {name: {} for name in systems}
    taken: dict[tuple[str, str], list[float]] = {}
    for turn in range(rounds + 1):  # the first warms up
        for number in np.random.default_rng(SEED + turn).permutation(len(questions)):
            asked = questions[number]
            for name, retriever in by_index[id(indexes[asked.dataset])].items():
                started = time.perf_counter()
                hits = retriever.retrieve(asked.bundle)
                elapsed = (time.perf_counter() - started) * 1000
                if turn:
                    taken.setdefault((name, asked.key), []).append(elapsed)
                    continue
                found[name][asked.key] = measures(asked, hits)
                if isinstance(retriever, AdaptiveRetriever):
                    routes[name][asked.key] = retriever.decider.decide(asked.bundle).routes[0]
    return {name: Measured(found[name], {asked.key: statistics.median(taken[name, asked.key]) for asked in questions}, routes[name]) for name in systems}


def oracle(fixed: Mapping[str, Measured], keys: Sequence[str]) -> Measured:
    """For each question the cheapest route among those that do best on it."""
    best = {key: min(fixed, key=lambda name: (-fixed[name].scores[key]["success@8"], fixed[name].ms[key])) for key in keys}
    return Measured({key: fixed[best[key]].scores[key] for key in keys}, {key: fixed[best[key]].ms[key] for key in keys}, best)


def shuffled(fixed: Mapping[str, Measured], routed: Measured, keys: Sequence[str]) -> tuple[list[float], float]:
    """Mean success of each deal of the router's routes to other questions, and the mean milliseconds."""
    dealt = np.array([f"always-{routed.routes[key]}" for key in keys])
    success = {name: np.array([fixed[name].scores[key]["success@8"] for key in keys]) for name in fixed}
    ms = {name: np.array([fixed[name].ms[key] for key in keys]) for name in fixed}
    rng = np.random.default_rng(SEED)
    means: list[float] = []
    costs: list[float] = []
    for _ in range(SHUFFLES):
        deal = rng.permutation(dealt)
        means.append(float(np.mean([success[name][place] if name in success else 0.0 for place, name in enumerate(deal)])))
        costs.append(float(np.mean([ms[name][place] if name in ms else 0.0 for place, name in enumerate(deal)])))
    return means, statistics.fmean(costs)


def mixture(fixed: Mapping[str, Measured], keys: Sequence[str], budget_ms: float) -> tuple[float, str]:
    """The best mean success that one fixed route, or tossing between two, reaches within a mean of so many milliseconds."""
    points = {
        name: (statistics.fmean(item.ms[key] for key in keys), statistics.fmean(item.scores[key]["success@8"] for key in keys)) for name, item in fixed.items()
    }
    best = max(((quality, name) for name, (cost, quality) in points.items() if cost <= budget_ms), default=(0.0, "none"))
    for cheap, (low, low_quality) in points.items():
        for dear, (high, high_quality) in points.items():
            if low < budget_ms < high:
                share = (budget_ms - low) / (high - low)
                best = max(best, (low_quality + share * (high_quality - low_quality), f"{1 - share:.0%} {cheap}, {share:.0%} {dear}"))
    return best


def row(system: str, on: str, measured: Measured, keys: Sequence[str], best_ms: float) -> Row:
    """Means, intervals and cost over some questions."""
    figures: Row = {}
    for name in ("success@8", "R@5", "figure@5", "figure@10"):
        column = [measured.scores[key][name] for key in keys if name in measured.scores[key]]
        if column:
            figures |= {name: percent(column), f"{name}_interval": interval(column)}
    ms = statistics.fmean(measured.ms[key] for key in keys)
    return {"system": system, "on": on, "n": len(keys), **figures, "ms": round(ms, 2), "share": round(ms / best_ms, 3), "llm_calls": 0, "llm_tokens": 0}


def against(system: str, base: str, on: str, first: Measured, second: Measured, keys: Sequence[str]) -> Row:
    """A paired difference in success, and the ratio of the milliseconds with its paired interval."""
    difference = gain({key: first.scores[key]["success@8"] for key in keys}, {key: second.scores[key]["success@8"] for key in keys})
    ours, theirs = np.array([first.ms[key] for key in keys]), np.array([second.ms[key] for key in keys])
    draws = np.random.default_rng(SEED).integers(0, len(keys), (10_000, len(keys)))
    ratios = np.quantile(ours[draws].mean(axis=1) / theirs[draws].mean(axis=1), [0.025, 0.975])
    ratio = {"ms_ratio": round(float(ours.mean() / theirs.mean()), 3), "ms_ratio_interval": [round(float(bound), 3) for bound in ratios]}
    return {"system": system, "against": base, "on": on, "n": len(keys), **difference, **ratio}


def report(systems: Mapping[str, Measured], questions: Sequence[Asked]) -> tuple[list[Row], dict[str, Any]]:
    """Rows, differences, and how the questions were dealt out."""
    fixed = {name: item for name, item in systems.items() if name.startswith("always-")}
    routers = {name: item for name, item in systems.items() if name.startswith("routed-")}
    keys = [asked.key for asked in questions]
    parts = {"mixed": keys, "multi-hop": [k for k in keys if not k.startswith(FILINGS)], FILINGS: [k for k in keys if k.startswith(FILINGS)]}
    best = max(fixed, key=lambda name: (statistics.fmean(fixed[name].scores[key]["success@8"] for key in keys), -statistics.fmean(fixed[name].ms.values())))
    rows, gains = [], []
    for on, some in parts.items():
        best_ms = statistics.fmean(fixed[best].ms[key] for key in some)
        rows += [row(name, on, item, some, best_ms) for name, item in [*systems.items(), ("oracle", oracle(fixed, keys))]]
        for name, item in routers.items():
            gains += [against(name, base, on, item, fixed[base], some) for base in dict.fromkeys((best, "always-moderate", "always-simple"))]
    extra: dict[str, Any] = {"best_fixed": best, "gains": gains, "random": [], "dealt": {}}
    for name, item in routers.items():
        means, cost = shuffled(fixed, item, keys)
        own, ms = statistics.fmean(item.scores[key]["success@8"] for key in keys), statistics.fmean(item.ms.values())
        tossed, how = mixture(fixed, keys, ms)
        extra["random"].append(
            {
                "system": name,
                "success@8": round(100 * own, 2),
                "shuffled": percent(means),
                "shuffled_interval": [round(100 * float(bound), 2) for bound in np.quantile(means, [0.025, 0.975])],
                "shuffled_ms": round(cost, 2),
                "mixture": round(100 * tossed, 2),
                "of": how,
                "ms": round(ms, 2),
            }
        )
        for on, some in parts.items():
            extra["dealt"].setdefault(name, {})[on] = {route: sum(item.routes[key] == route for key in some) for route in dict.fromkeys(item.routes.values())}
    return rows, extra


def load(data: Path, cache: Path | None) -> tuple[dict[str, CorpusIndex], list[tuple[str, dict[str, Any]]]]:
    """An index a set, and all questions with the name of their set."""
    indexes = {FILINGS: filings.build_index(data / "sec-10-q" / "docs", cache / FILINGS if cache else None)}
    asked = [(FILINGS, question) for question in read_jsonl(data / "sec-10-q" / "questions.jsonl")]
    for name in multihop.DATASETS:
        folder = data / "multihop" / name
        indexes[name] = multihop.build_index(read_jsonl(folder / "corpus.jsonl"), cache / name if cache else None)
        asked += [(name, question) for question in read_jsonl(folder / "questions.jsonl")]
    return indexes, asked


def main() -> None:
    arguments = parser(__doc__ or "", "../shared/data")
    arguments.add_argument("--rounds", type=int, default=5, help="how often each search is timed")
    arguments.add_argument("--one-corpus", action="store_true", help="one index over everything instead of one a set")
    options = arguments.parse_args()
    indexes, asked = load(options.data, options.cache)
    embed_model = indexes[FILINGS].embed_model
    questions = [Asked(name, item, QueryBundle(item["question"], embedding=embed_model.get_query_embedding(item["question"]))) for name, item in asked]
    if options.one_corpus:
        whole = one_corpus(list(indexes.values()), options.cache / "one-corpus" if options.cache else None)
        indexes = dict.fromkeys(indexes, whole)
    systems = measure(indexes, questions, options.rounds)
    rows, extra = report(systems, questions)
    print_table(rows, COLUMNS)
    print_table(extra["gains"], ("system", "against", "on", "n", "points", "interval", "ms_ratio", "ms_ratio_interval"))
    print_table(extra["random"], ("system", "success@8", "shuffled", "shuffled_interval", "shuffled_ms", "mixture", "of", "ms"))
    print(extra["dealt"])
    per_question = {
        name: {key: {**item.scores[key], "ms": round(item.ms[key], 3), "route": item.routes.get(key)} for key in item.scores} for name, item in systems.items()
    }
    data = {"docs": options.data / "sec-10-q" / "docs", "questions": options.data / "sec-10-q" / "questions.jsonl"}
    data |= {f"{name}/{part}": options.data / "multihop" / name / f"{part}.jsonl" for name in multihop.DATASETS for part in ("corpus", "questions")}
    name = "router_one_corpus" if options.one_corpus else "router"
    write_result(options.json, benchmark=name, data=data, rows=rows, extra={**extra, "systems": per_question})


if __name__ == "__main__":
    main()
