"""Personalised PageRank of the package against igraph (PRPACK) and networkx, on graphs of passages and entities with popular and rare ones.

Both references run in the same process on the same graph, turn by turn, with igraph on one thread (with more it is slower on a busy machine, and
ours uses one). Ratios are medians of time by time of ours: above 1, ours is faster. No data set is read. The largest graph needs 8 GB of memory.

usage: python benchmarks/pagerank.py [--json OUT] [--sizes 1000 10000 100000 1100000]   (needs the group `benchmark`: igraph, networkx)
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before igraph is loaded

import igraph
import networkx as nx
import numpy as np
from common import SEED, Row, parser, print_table, write_result
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, triu

from llama_index_advanced_rag.ranking.pagerank import DAMPING, LOCAL_TOLERANCE, TOLERANCE, local_pagerank, personalized_pagerank
from llama_index_advanced_rag.ranking.walk_matrix import WalkMatrix

SIZES = {1000: (600, 400, 10), 10_000: (6_000, 4_000, 16), 100_000: (60_000, 40_000, 17), 1_100_000: (1_000_000, 100_000, 10)}
"""Nodes: passages, entities, mentions in a passage."""

N_SEEDS = (5, 120)
N_ENTITY_SEEDS = 5
PRIOR = 0.4
ALIAS_SHARE = 0.1
FIRST = 100
MOST_FOR_NETWORKX = 100_000
ROUNDS, MOST_ROUNDS = 5, 51
_PER_ROUND = 300_000  # small graphs take a millisecond, which is measured more often
COLUMNS = (
    "nodes",
    "edges",
    "seeds",
    "system",
    "ratio_igraph",
    "ratio_networkx",
    "l1_networkx",
    "l1_igraph",
    "error_at_average_degree",
    "bound_kept",
    "first_100",
)

NOTE = (
    "Synthetic graphs of passages and entities, damping 0.5. `ratio_igraph` and `ratio_networkx`: their time / ours, medians of runs in turns, igraph "
    "(PRPACK) on one thread. `l1`: sum of all differences from networkx (run to 1e-10; not run on the largest graph) and from igraph. `personalized_pagerank` "
    "keeps 1e-6 in that sum; `local_pagerank` keeps 2e-6 at a passage or entity of average degree, for ranking: `first_100` of the best 100 passages are the "
    "right ones. On small graphs it solves for all nodes too."
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """Seeds with their weights."""

    seeds: NDArray[np.int64]
    weights: Floats


def passages_and_entities(n_passages: int, n_entities: int, mentions: int) -> csr_array:
    """Passages first, then entities: mentions by Zipf's law, the first entity in half of the passages, and alias edges between entities."""
    rng = np.random.default_rng(SEED)
    popularity = np.cumsum(1.0 / np.arange(1, n_entities + 1))
    mentioned = np.searchsorted(popularity / popularity[-1], rng.random(n_passages * mentions)).clip(max=n_entities - 1)
    names = rng.integers(0, n_entities, (int(ALIAS_SHARE * n_entities), 2))
    names = names[names[:, 0] != names[:, 1]]
    first = np.concatenate([np.repeat(np.arange(n_passages), mentions), n_passages + names[:, 0]])
    second = n_passages + np.concatenate([rng.permutation(n_entities)[mentioned], names[:, 1]])
    weights = np.concatenate([rng.integers(1, 4, n_passages * mentions).astype(float), rng.uniform(0.8, 1.0, len(names))])
    n_nodes = n_passages + n_entities
    half = coo_array((weights, (first.astype(np.int32), second.astype(np.int32))), shape=(n_nodes, n_nodes)).tocsr()
    return csr_array(half + half.T)


def question_of(graph: csr_array, n_passages: int, n_seeds: int) -> Question:
    """Some entities by 1 / df, and passages that share a fixed part of the restart."""
    rng = np.random.default_rng(SEED + n_seeds)
    counts = np.diff(graph.indptr)
    entities = rng.choice(n_passages + np.flatnonzero(counts[n_passages:]), N_ENTITY_SEEDS, replace=False)
    passages = rng.choice(n_passages, n_seeds - N_ENTITY_SEEDS, replace=False)
    rare = 1.0 / counts[entities]
    share = PRIOR if len(passages) else 0.0
    weights = np.concatenate([(1 - share) * rare / rare.sum(), np.full(len(passages), share / max(1, len(passages)))])
    return Question(np.concatenate([entities, passages]).astype(np.int64), weights)


def reference_igraph(graph: csr_array, question: Question) -> Callable[[], list[float]]:
    """PRPACK, which stops at 1e-10 and has no other setting."""
    edges = triu(graph).tocoo()
    network = igraph.Graph(n=graph.shape[0], edges=np.stack([edges.row, edges.col], axis=1), directed=False)
    network.es["weight"] = edges.data
    reset = np.zeros(graph.shape[0])
    reset[question.seeds] = question.weights
    listed = reset.tolist()
    return lambda: network.personalized_pagerank(damping=DAMPING, reset=listed, weights="weight", implementation="prpack")


def reference_networkx(graph: csr_array, question: Question) -> Callable[[float], Floats]:
    """networkx; the argument is the change at which it stops."""
    network = nx.from_scipy_sparse_array(graph)
    personalization = {int(node): float(weight) for node, weight in zip(question.seeds, question.weights, strict=True)}

    def run(stop: float) -> Floats:
        shares = nx.pagerank(network, alpha=DAMPING, personalization=personalization, tol=stop / graph.shape[0], max_iter=1000)
        return np.fromiter((shares[node] for node in range(graph.shape[0])), dtype=np.float64)

    return run


def interleaved(jobs: Sequence[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Seconds of each job in each round, turn by turn, after a first round that is not counted."""
    for job in jobs:
        job()
    taken: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for job, times in zip(jobs, taken, strict=True):
            started = time.perf_counter()
            job()
            times.append(time.perf_counter() - started)
    return taken


def ratio(others: Sequence[float], ours: Sequence[float]) -> float:
    return round(statistics.median(others) / statistics.median(ours), 1)


def short(value: float) -> float:
    """Two digits that count."""
    return float(f"{value:.1e}")


def quality(found: Floats, exact: Floats, walk: WalkMatrix, n_passages: int) -> Row:
    """How far off the values of passages and entities are, and how many of the first 100 passages are the same."""
    first = [set(np.argsort(-values[:n_passages], kind="stable")[:FIRST].tolist()) for values in (found, exact)]
    linked = walk.degrees > 0
    worst = float((np.abs(found - exact)[linked] / walk.degrees[linked]).max() * walk.average_degree)
    return {"l1": short(np.abs(found - exact).sum()), "error_at_average_degree": short(worst), "first_100": len(first[0] & first[1])}


def measure(n_nodes: int, n_seeds: int) -> list[Row]:
    """Rows of one graph and one question: all nodes exact, and local."""
    n_passages = SIZES[n_nodes][0]
    graph = passages_and_entities(*SIZES[n_nodes])
    walk, question = WalkMatrix.of(graph), question_of(graph, n_passages, n_seeds)
    theirs = reference_igraph(graph, question)
    systems: dict[str, Callable[[], Floats]] = {
        "personalized_pagerank": lambda: personalized_pagerank(walk, question.seeds, question.weights),
        "local_pagerank": lambda: local_pagerank(walk, question.seeds, question.weights),
    }
    with_networkx = n_nodes <= MOST_FOR_NETWORKX
    other = reference_networkx(graph, question) if with_networkx else None
    jobs: list[Callable[[], Any]] = [theirs, *systems.values(), *([lambda: other(TOLERANCE)] if other else [])]
    times = interleaved(jobs, max(ROUNDS, min(MOST_ROUNDS, _PER_ROUND // n_nodes)))
    exact = other(1e-10) if other else personalized_pagerank(walk, question.seeds, question.weights, tolerance=1e-11)
    igraph_shares = np.array(theirs())
    rows: list[Row] = []
    for place, (name, system) in enumerate(systems.items(), start=1):
        found = system()
        judged = quality(found, exact, walk, n_passages)
        kept = judged["l1"] <= TOLERANCE if name == "personalized_pagerank" else judged["error_at_average_degree"] <= LOCAL_TOLERANCE
        rows.append(
            {
                "nodes": n_nodes,
                "edges": walk.edges.nnz // 2,
                "largest_degree": int(np.diff(walk.edges.indptr).max()),
                "seeds": n_seeds,
                "system": name,
                "ratio_igraph": ratio(times[0], times[place]),
                "ratio_networkx": ratio(times[3], times[place]) if other else None,
                "l1_networkx": judged["l1"] if other else None,
                "l1_igraph": short(np.abs(found - igraph_shares).sum()),
                "error_at_average_degree": judged["error_at_average_degree"],
                "bound_kept": bool(kept),
                "first_100": judged["first_100"],
            }
        )
    return rows


def arguments() -> argparse.Namespace:
    """The options of the command."""
    options = parser(__doc__ or "", ".")
    options.add_argument("--sizes", nargs="*", type=int, default=list(SIZES), choices=list(SIZES), help="nodes of the graphs")
    return options.parse_args()


def main() -> None:
    options = arguments()
    rows = [row for n_nodes in options.sizes for n_seeds in N_SEEDS for row in measure(n_nodes, n_seeds)]
    print_table(rows, COLUMNS)
    settings = {"damping": DAMPING, "tolerance": TOLERANCE, "local_tolerance": LOCAL_TOLERANCE, "rounds": [ROUNDS, MOST_ROUNDS], "igraph_threads": 1}
    installed = {name: version(name) for name in ("scipy", "igraph", "networkx")}
    write_result(options.json, benchmark="pagerank", data={}, rows=rows, extra={"note": NOTE, "settings": settings, "references": installed})


if __name__ == "__main__":
    main()
