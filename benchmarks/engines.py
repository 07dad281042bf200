"""What the engines cost, as ratios to LlamaIndex's own components and to the limit of numpy and bm25s, all measured in one run.

usage: python benchmarks/engines.py --sizes 10000,100000,1000000 --json OUT [--cache FOLDER] [--stock-up-to 100000] [--only GROUP ...]

The text is synthetic and the vectors are random unit vectors, the same in every run. A ratio with a target of ">=" says how many times
better ours is; every other ratio is ours / reference. A group of measures that fails is a row with its error, and the command then
ends with status 1; a missed target does not.
"""

import argparse
import gc
import os
import shutil
import statistics
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, print_table, write_result
from engines_data import Vectors, node_of, questions, texts, vector_file
from engines_measures import TOP_K, Bench, against_limit, against_stock, batched, concurrent, filtered, recalled
from engines_reference import Limit, build_bm25s, persist_stock, stock_hybrid, stock_index, stock_words, tokens_of
from engines_rows import compared, failed, missed, timed
from engines_state import OPENINGS, build_ours, build_words, changed, documents, opened, remembered, save_questions

BLAS_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
GROUPS = ("build", "limit", "filters", "batch", "concurrent", "recall", "change", "stock", "open", "memory")
COLUMNS = ("size", "measure", "ours", "reference", "ratio", "unit", "target", "met", "note")
REPEATED_UP_TO = 20_000
SMALL = "A small run: the targets speak of 100,000 and 1,000,000 documents."


@dataclass
class Run:
    """One size under way: its files, its rows, and what later measures need of earlier ones."""

    size: int
    folder: Path
    groups: tuple[str, ...]
    stock_up_to: int
    rows: list[Row] = field(default_factory=list[Row])
    build_ms: float = 0.0

    def take(self, group: str, measure: Callable[[], list[Row]]) -> None:
        """Add the rows of a group; one that fails is a row too, and the others are still measured."""
        if group not in self.groups:
            return
        try:
            found = measure()
        except Exception as error:  # noqa: BLE001 - hours of other measures must not be lost; the command ends with status 1
            traceback.print_exc()
            found = [failed(self.size, group, error)]
        self.rows += found
        print_table(found, COLUMNS, partial(print, flush=True))

    @property
    def ours(self) -> Path:
        """Folder of our index."""
        return self.folder / f"ours-{self.size}"

    @property
    def stock(self) -> Path:
        """Folder of stock's files."""
        return self.folder / f"stock-{self.size}"

    @property
    def questions(self) -> Path:
        """File of the questions, for other processes."""
        return self.folder / f"questions-{self.size}.npz"


def built(run: Run, vectors: Vectors) -> tuple[Any, Any]:
    """Our index and bm25s's, and the rows of what building them took: bm25s, ours, bm25s again, and all of it three times when it is small."""
    reference, documents_ms, nodes_ms = list[float](), list[float](), list[float]()
    repeated = run.size <= REPEATED_UP_TO and "build" in run.groups
    words = index = None
    for attempt in range(3 if repeated else 1):
        corpus = list(texts(run.size))
        held: list[Any] = []
        reference.append(timed(lambda corpus=corpus, held=held: held.append(build_bm25s(corpus))))
        del corpus
        words = held[0]
        if index is not None:
            index.close()
            shutil.rmtree(run.ours)
        ready = run.size > run.stock_up_to  # the quicker way is enough where only searching is measured
        index, elapsed = build_ours(run.ours, run.size, vectors, ready_nodes=ready)
        (nodes_ms if ready else documents_ms).append(elapsed)
        if "build" in run.groups and run.size <= run.stock_up_to:
            other = run.folder / f"nodes-{run.size}-{attempt}"
            from_nodes, elapsed = build_ours(other, run.size, vectors, ready_nodes=True)
            from_nodes.close()
            shutil.rmtree(other)
            nodes_ms.append(elapsed)
    if not repeated and run.size <= run.stock_up_to:
        corpus = list(texts(run.size))
        reference.append(timed(lambda: build_bm25s(corpus)))
    run.build_ms, limit_ms = statistics.median(documents_ms or nodes_ms), statistics.median(reference)
    found = [compared(run.size, "build from documents against bm25s", run.build_ms, limit_ms, "ms")] if documents_ms else []
    if nodes_ms:
        found.append(compared(run.size, "build from ready nodes against bm25s", statistics.median(nodes_ms), limit_ms, "ms"))
    found.append(compared(run.size, "words alone, tokenised and indexed, against bm25s", build_words(run.size), limit_ms, "ms"))
    run.take("build", lambda: found)
    return index, words


def stock_measures(run: Run, bench: Bench, vectors: Vectors) -> list[Row]:
    """The row of stock's hybrid; its files are written for the measure of opening."""
    if run.size > run.stock_up_to:
        ours = statistics.median(timed(partial(bench.retriever().retrieve, bundle)) for bundle in bench.bundles())
        note = f"stock is not built above {run.stock_up_to:,} documents: it takes minutes, many gigabytes and seconds a query"
        return [compared(run.size, "hybrid query against stock", ours, None, "ms", note=note)]
    nodes = [node_of(item) for chunk in documents(run.size) for item in chunk]
    words = stock_words(nodes)  # first, as it would keep vectors in its own copy of the nodes
    index = stock_index(nodes, vectors)
    found = against_stock(bench, stock_hybrid(index, words, top_k=TOP_K), count=20 if run.size <= REPEATED_UP_TO else 5)
    if "open" in run.groups:
        persist_stock(index, words, run.stock)
    return found


def asked_and_changed(run: Run, vectors: Vectors) -> None:
    """Build, ask and change the index; everything held in memory is let go of at the end."""
    asked = questions(run.size, 100 if run.size <= run.stock_up_to else 40)
    save_questions(run.questions, asked)
    index, words = built(run, vectors)
    bench = Bench(run.size, index, Limit(vectors, words), asked, tokens_of(asked, words))
    run.take("limit", lambda: against_limit(bench))
    run.take("filters", lambda: filtered(bench, count=20))
    run.take("batch", lambda: batched(bench, rounds=3))
    run.take("concurrent", lambda: concurrent(bench, rounds=9))
    run.take("recall", lambda: recalled(bench))
    run.take("change", lambda: changed(index, index.embed_model, run.size, run.build_ms))
    run.take("stock", lambda: stock_measures(run, bench, vectors))
    index.close()


def measured(size: int, folder: Path, groups: tuple[str, ...], stock_up_to: int) -> list[Row]:
    """All rows of one size."""
    print(f"\n{size:,} documents: building", flush=True)
    run = Run(size, folder, groups, stock_up_to)
    asked_and_changed(run, np.load(vector_file(folder, size), mmap_mode="r"))
    gc.collect()
    run.take("memory", lambda: remembered(size, run.ours, run.questions))
    stock_openings = OPENINGS if size <= REPEATED_UP_TO else 1
    run.take("open", lambda: opened(size, run.ours, run.stock, run.questions, stock_openings=stock_openings))
    for path in (run.ours, run.stock):
        shutil.rmtree(path, ignore_errors=True)
    return run.rows


def _with_usual_blas() -> None:
    """Begin anew without the variables that choose another kernel of OpenBLAS: it reads them when it is loaded, and both sides shall run as for a user."""
    if any(name in os.environ for name in BLAS_VARIABLES):
        rest = {name: value for name, value in os.environ.items() if name not in BLAS_VARIABLES}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], rest)


def _options() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=[10_000, 100_000], help="numbers of documents")
    arguments.add_argument("--json", type=Path, default=None, help="write the rows to this file, after each size")
    arguments.add_argument("--cache", type=Path, default=None, help="work in this folder and keep the vectors in it; else in a temporary one")
    arguments.add_argument("--stock-up-to", type=int, default=100_000, help="most documents that LlamaIndex's own index is built for")
    arguments.add_argument("--only", nargs="*", choices=GROUPS, default=GROUPS, help="measure these groups; ours and bm25s are always built")
    return arguments.parse_args()


def main() -> None:
    _with_usual_blas()
    options = _options()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.cache or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for size in options.sizes:
            rows += measured(size, folder, tuple(options.only), options.stock_up_to)
            extra = {"note": SMALL} if max(options.sizes) < 100_000 else None
            write_result(options.json, benchmark="engines", data={}, rows=rows, extra=extra)
    print()
    print_table(rows, COLUMNS)
    print("\nTargets missed:", "; ".join(missed(rows)) or "none")
    sys.exit(1 if any(row["unit"] is None for row in rows) else 0)


if __name__ == "__main__":
    main()
