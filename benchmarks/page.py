"""Write docs/benchmarks.md from the committed result files, so that no figure is copied by hand.

usage: python benchmarks/page.py [--check]
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
HIDDEN = ("per_question", "dataset")
TITLES = {
    "french": "French: answers of a public authority on data protection",
    "filings": "Quarterly filings: the figure stands in the context",
    "multihop": "Multi-hop questions: all supporting passages",
    "reference": "Independent reference for the multi-hop sets",
    "router": "Router: quality and time of routes and routers",
    "router_one_corpus": "Router: the same over one corpus of everything",
    "routing": "Routers: how well they tell routes apart",
    "routing_llm": "Routers: the same of a small LLM",
    "small_llm": "A small LLM, end to end",
    "structure": "Structure: the figure stands in a context of equal tokens",
    "chunk_sizes": "Chunk sizes: the figure stands in a context of equal tokens",
    "engines": "Engines: what searching, building and storing cost",
    "graph_scale": "Entity graph: what it costs beside the hybrid",
    "pagerank": "Personalised PageRank against igraph and networkx",
}
NOTES = {
    "structure": "The first nodes of each system that fit into 2,560 tokens (of the embedding model, metadata included) are the context. `figure` is the share "
    "of questions whose figure stands in it, in a node of the right file. Differences are against flat chunks of 256 tokens, searched hybrid.",
    "chunk_sizes": "As above, for chunks of other sizes; beyond 256 tokens, what the model reads, their vectors are means of windows. Differences are against "
    "chunks of 256 tokens, searched hybrid.",
    "router": "68 questions on filings and 150 multi-hop questions, each set an index of its own. `success@8`: all supporting passages, or the figure, "
    "in the first 8. Milliseconds are means over the questions of the medians of each, the embedding of the question given; `share` is their ratio to the "
    "fixed route that succeeds most. `oracle` takes for each question the cheapest route that does best on it.",
    "router_one_corpus": "The same questions, all filings and passages in one index of 12,906 passages: 9,003 of them are documents of their own.",
    "routing": "350 questions written for the project, half of them held out of tuning by the hash of their id. `accuracy` counts a doubt as wrong, "
    "`with_default` as the route that is taken in doubt. Questions and labels are of one hand, and the figure of the held-out half was looked at while the "
    "rules were cut and widened.",
    "routing_llm": "qwen2.5-coder-1.5b-instruct (4 bits) on two cores, on the first 50 of the held-out questions: it keeps to the format, and judges "
    "little. A prompt that asked for the name before the reason had 16.0 [6.0, 26.0] on the same questions.",
    "engines": "Synthetic text and random vectors, all of one row measured in turns in one run. A ratio whose target is >= says how many times better "
    "ours is; every other one is ours / reference. `met` is empty where no target speaks of that number of documents.",
}
INTRODUCTION = """# Measurements

Made by `python benchmarks/page.py` from `benchmarks/results/*.json`, which hold every question's score. Figures are percentages
with 95 % bootstrap intervals in brackets; a difference is paired over the same questions. The data sets are not part of the
package; each result file names them and their sha256. Milliseconds are medians on the machine named and serve only to compare
rows of one table. No row uses an LLM unless it says so.
"""


def cell(row: Mapping[str, Any], column: str) -> str:
    """A value, with its interval when the row has one."""
    value, bounds = row.get(column), row.get(f"{column}_interval")
    value = "" if value is None else value
    return f"{value} [{bounds[0]}, {bounds[1]}]" if bounds else str(value)


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as a Markdown table; intervals stand in the cell of their figure."""
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in HIDDEN and not name.endswith("_interval")]
    lead = ["dataset"] if len({row.get("dataset") for row in rows}) > 1 else []
    columns = lead + names
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(cell(row, column) for column in columns) + " |" for row in rows]


def section(result: Mapping[str, Any]) -> list[str]:
    """One result file."""
    name = str(result["benchmark"])
    lines = [f"## {TITLES.get(name, name)}", ""]
    lines += [text for note in (NOTES.get(name), result.get("note")) if note for text in (note, "")]
    around = result.get("surroundings")
    if around:
        versions = ", ".join(f"{package} {number}" for package, number in around["versions"].items() if number)
        lines += [f"{around['cores']} cores, {around['memory_gib']} GiB, {around['machine']}, Python {around['python']}; {versions}.", ""]
    lines += [*table(result["rows"]), ""]
    for title, key in (("Differences", "gains"), ("Differences, sets pooled", "pooled_gains"), ("Against chance", "random")):
        if result.get(key):
            lines += [f"{title}, in points:", "", *table(result[key]), ""]
    if result.get("confusions"):
        lines += ["Rows are labels, columns what was chosen:", "", *table(result["confusions"]), ""]
    return lines


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        lines += section(json.loads(path.read_text(encoding="utf-8")))
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="fail when the page is not what the results say")
    if arguments.parse_args().check:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else "docs/benchmarks.md is out of date: run python benchmarks/page.py")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
