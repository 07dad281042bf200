"""Retrieval on quarterly filings: is the figure that answers the question in the context, in a chunk of the right file?

usage: python benchmarks/filings.py --data ../shared/data/sec-10-q [--questions FILE] --json OUT
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import Row, gain, holds_figure, interval, parser, percent, print_table, read_jsonl, timed_retrieval, write_result
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.reading.folder import read_folder

SYSTEMS: dict[str, dict[str, Any]] = {
    "dense": {"mode": "dense"},
    "lexical": {"mode": "lexical"},
    "hybrid-rrf": {"mode": "hybrid", "fusion": "reciprocal_rank"},
    "hybrid-weighted": {"mode": "hybrid", "fusion": "weighted"},
    "hybrid-dense-0.7": {"mode": "hybrid", "fusion": "weighted", "weights": {"dense": 0.7, "lexical": 0.3}},
    "hierarchical": {"mode": "hierarchical"},
    "graph-unguarded": {"mode": "graph", "guard": 0},
    "graph": {"mode": "graph"},
    "vote": {"mode": "vote"},
    "vote-guarded": {"mode": "vote", "guard": 1},
}
DELIVERED = "hybrid-weighted"
CUTS = (5, 10)
COLUMNS = ("system", "hops", "n", "figure@5", "figure@5_interval", "figure@10", "figure@10_interval", "words@5", "ms_per_query")


def build_index(docs: Path, cache: Path | None) -> CorpusIndex:
    """The filings, read page by page, in chunks that fit the packaged MiniLM."""
    if cache is not None and (cache / "corpus.sqlite").exists():
        return CorpusIndex.load(cache)
    return CorpusIndex.from_documents(read_folder(docs).documents, persist_dir=cache, embed_model="packaged", language="en", show_progress=True)


def figure_in_context(nodes: Sequence[NodeWithScore], gold: Sequence[Mapping[str, str]], k: int) -> float:
    """1.0 when each gold figure stands, as a whole number, in one of the first k chunks of its file."""
    return float(
        all(
            any(item.node.metadata["file_name"] == part["file"] and holds_figure(item.node.get_content(), part["figure"]) for item in nodes[:k])
            for part in gold
        )
    )


def measure(retriever: BaseRetriever, questions: Sequence[Mapping[str, Any]]) -> list[Row]:
    """A row for one-hop questions, one for two-hop questions, one for all."""
    found, milliseconds = timed_retrieval(retriever, questions)
    scores = {q["id"]: {f"figure@{k}": figure_in_context(found[q["id"]], q["gold"], k) for k in CUTS} for q in questions}
    rows: list[Row] = []
    for hops in (*sorted({q["hops"] for q in questions}), "all"):
        ids = [q["id"] for q in questions if hops in ("all", q["hops"])]
        row: Row = {"hops": hops, "n": len(ids)}
        for k in CUTS:
            column = [scores[key][f"figure@{k}"] for key in ids]
            row |= {f"figure@{k}": percent(column), f"figure@{k}_interval": interval(column)}
        words = [sum(len(item.node.get_content().split()) for item in found[key][:5]) for key in ids]
        row |= {"words@5": round(sum(words) / len(words)), "ms_per_query": milliseconds, "llm_calls": 0, "llm_tokens": 0}
        rows.append({**row, "per_question": {key: scores[key] for key in ids}})
    return rows


def gains(rows: Sequence[Row]) -> list[Row]:
    """Each hybrid against the better of dense and lexical, graph and vote against dense and the hybrid as delivered, by hops and cut."""
    by_key = {(row["system"], row["hops"]): row for row in rows}
    found: list[Row] = []
    for (system, hops), row in by_key.items():
        for k in CUTS:
            name = f"figure@{k}"
            parts = [by_key[part, hops] for part in ("dense", "lexical") if (part, hops) in by_key]
            if system.startswith("hybrid"):
                bases = [max(parts, key=lambda part: part[name])] if parts else []
            else:
                bases = [by_key[base, hops] for base in ("dense", DELIVERED) if (base, hops) in by_key and system not in ("dense", "lexical")]
            for base in bases:
                difference = gain(*({key: values[name] for key, values in item["per_question"].items()} for item in (row, base)))
                found.append({"system": system, "against": base["system"], "hops": hops, "measure": name, "n": row["n"], **difference})
    return found


def main() -> None:
    arguments = parser(__doc__ or "", "../shared/data/sec-10-q")
    arguments.add_argument("--questions", type=Path, default=None)
    arguments.add_argument("--systems", nargs="*", default=list(SYSTEMS), choices=list(SYSTEMS))
    options = arguments.parse_args()
    question_file = options.questions or options.data / "questions.jsonl"
    index, questions = build_index(options.data / "docs", options.cache), read_jsonl(question_file)
    rows = [
        {"dataset": "sec-10-q", "system": system, **row}
        for system in options.systems
        for row in measure(index.as_retriever(similarity_top_k=max(CUTS), **SYSTEMS[system]), questions)
    ]
    differences = gains(rows)
    print_table(rows, COLUMNS)
    print_table(differences, ("system", "against", "hops", "measure", "n", "points", "interval"))
    write_result(
        options.json,
        benchmark="filings",
        data={"docs": options.data / "docs", "questions": question_file},
        rows=rows,
        extra={"gains": differences, "nodes": index.info()["nodes"]},
    )
    index.close()


if __name__ == "__main__":
    main()
