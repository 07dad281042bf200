"""What the benchmarks share: data, measures, intervals, and a result file that says on what it was measured."""

import argparse
import hashlib
import json
import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore

Row = dict[str, Any]
SEED = 20261130
PACKAGES = ("llama-index-core", "llama-index-advanced-rag", "bm25s", "PyStemmer", "numpy", "sentence-transformers", "torch")


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def file_digest(path: Path) -> str:
    """sha256 of one file, or of the names and contents of all files of a folder."""
    digest = hashlib.sha256()
    for item in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if item.is_file():
            digest.update(item.name.encode() + item.read_bytes())
    return digest.hexdigest()


def surroundings() -> dict[str, Any]:
    """Cores, memory and versions; never a host, a user or a path."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except ModuleNotFoundError:
            installed[name] = None
    return {"cores": os.cpu_count(), "memory_gib": round(memory, 1), "machine": platform.machine(), "python": platform.python_version(), "versions": installed}


def write_result(path: Path | None, *, benchmark: str, data: Mapping[str, Path], rows: Sequence[Row], extra: Mapping[str, Any] | None = None) -> None:
    """Write rows with their surroundings and the digests of the data; print nothing."""
    if path is None:
        return
    sets = {name: {"file": source.name, "sha256": file_digest(source)} for name, source in data.items()}
    result = {"benchmark": benchmark, "surroundings": surroundings(), "data": sets, "rows": list(rows), **(extra or {})}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def interval(values: Sequence[float], *, scale: float = 100.0) -> list[float]:
    """95 % percentile bootstrap interval of the mean (10,000 resamples, fixed seed), times `scale`."""
    array = np.asarray(values, dtype=float)
    means = array[np.random.default_rng(SEED).integers(0, len(array), (10_000, len(array)))].mean(axis=1)
    return [round(float(bound) * scale, 2) for bound in np.quantile(means, [0.025, 0.975])]


def gain(first: Mapping[str, float], second: Mapping[str, float]) -> Row:
    """Mean difference first - second over the same questions in points, with its paired 95 % interval."""
    differences = [first[key] - second[key] for key in first]
    return {"points": round(100 * statistics.fmean(differences), 2), "interval": interval(differences)}


def percent(values: Iterable[float]) -> float:
    """Mean times 100, two decimals."""
    return round(100 * statistics.fmean(values), 2)


def ranked_documents(nodes: Iterable[NodeWithScore]) -> list[str]:
    """Document ids in the order in which their first node was found."""
    return list(dict.fromkeys(item.node.ref_doc_id or item.node.node_id for item in nodes))


def recall(ranked: Sequence[str], gold: Sequence[str], k: int) -> float:
    """Share of the gold documents among the first k."""
    return len(set(ranked[:k]) & set(gold)) / len(set(gold))


def all_gold(ranked: Sequence[str], gold: Sequence[str], k: int) -> float:
    """1.0 when every gold document is among the first k."""
    return float(set(gold) <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], gold: Sequence[str]) -> float:
    """1 / rank of the first gold document, 0.0 when none was found."""
    return next((1.0 / rank for rank, item in enumerate(ranked, start=1) if item in set(gold)), 0.0)


def holds_figure(text: str, figure: str) -> bool:
    """True when the figure stands in the text as a whole number: 1,797 does not stand in 81,797."""
    return re.search(rf"(?<![\d.,]){re.escape(figure)}(?!\d|[.,]\d)", text) is not None


def timed_retrieval(retriever: BaseRetriever, questions: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[NodeWithScore]], float]:
    """Results by question id, and the median milliseconds of one query (embedding of the query included)."""
    retriever.retrieve(str(questions[0]["question"]))
    found: dict[str, list[NodeWithScore]] = {}
    elapsed: list[float] = []
    for question in questions:
        started = time.perf_counter()
        found[question["id"]] = retriever.retrieve(str(question["question"]))
        elapsed.append((time.perf_counter() - started) * 1000)
    return found, round(statistics.median(elapsed), 2)


def parser(description: str, default_data: str) -> argparse.ArgumentParser:
    """Arguments that all benchmarks take."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--data", type=Path, default=Path(default_data), help="folder of the data set")
    arguments.add_argument("--json", type=Path, default=None, help="write the rows to this file")
    arguments.add_argument("--cache", type=Path, default=None, help="keep the indexes here, to skip embedding the next time")
    return arguments


def print_table(rows: Sequence[Row], columns: Sequence[str], write: Callable[[str], object] = print) -> None:
    """The rows as aligned text."""
    cells = [[str(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in [list(columns), *cells]) for i in range(len(columns))]
    for line in [list(columns), *cells]:
        write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
