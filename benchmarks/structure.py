"""What structure brings on quarterly filings: is the figure that answers the question in a context of a fixed number of tokens?

usage: python benchmarks/structure.py --data ../shared/data/sec-10-q [--questions FILE] [--budget 2560] [--sweep] --json OUT
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import Row, gain, holds_figure, interval, parser, percent, print_table, read_jsonl, write_result
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import Document, MetadataMode, NodeWithScore

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.embeddings.packaged import load_packaged_embedding
from llama_index_advanced_rag.embeddings.window import embedding_window
from llama_index_advanced_rag.embeddings.window_pooled import WindowPooledEmbedding
from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.reading.folder import read_folder

BUDGET = 2560
MANY = 60  # nodes asked for: more than fit the budget
BASE = "flat-256"
SWEEP = (128, 192, 256, 384, 512)
IN_FULL = 256  # the largest of these that the packaged model reads
COLUMNS = ("system", "hops", "n", "figure", "figure_interval", "tokens", "nodes", "ms_per_query")


@dataclass(frozen=True)
class System:
    """One way to fill the context.

    Attributes:
        parser: makes the nodes.
        chunk_size: most tokens of a chunk.
        retriever: options of `as_retriever`.
    """

    parser: type[SentenceChunkParser] | type[HierarchicalNodeParser]
    chunk_size: int
    retriever: Mapping[str, Any]


HYBRID = {"mode": "hybrid"}
SYSTEMS: dict[str, System] = {
    BASE: System(SentenceChunkParser, 256, HYBRID),
    "flat-512": System(SentenceChunkParser, 512, HYBRID),
    "flat-256, documents first": System(SentenceChunkParser, 256, {"mode": "hierarchical"}),
    "structured, hybrid": System(HierarchicalNodeParser, 256, HYBRID),
    "structured, merge-up": System(HierarchicalNodeParser, 256, {"mode": "hierarchical", "strategy": "merge_up", "max_tokens": BUDGET, "similarity_top_k": 20}),
    "structured, coarse-to-fine": System(HierarchicalNodeParser, 256, {"mode": "hierarchical", "strategy": "top_down"}),
    "structured, coarse-to-fine, merged": System(
        HierarchicalNodeParser, 256, {"mode": "hierarchical", "strategy": "top_down", "min_share": 0.5, "max_tokens": BUDGET}
    ),
    "structured, collapsed": System(HierarchicalNodeParser, 256, {"mode": "hierarchical", "strategy": "collapsed", "summaries": True}),
    "anchors": System(HierarchicalNodeParser, 256, {"mode": "anchor", "embeddings": False}),
    "anchors, with embeddings": System(HierarchicalNodeParser, 256, {"mode": "anchor", "embeddings": True}),
}
DEFAULT = tuple(SYSTEMS)


class Indexes:
    """Makes each index once, and keeps it when there is a folder for it."""

    def __init__(self, docs: Path, cache: Path | None) -> None:
        self._docs, self._cache = docs, cache
        self._model = load_packaged_embedding()
        self._open: dict[str, CorpusIndex] = {}
        self._documents: list[Document] = []

    @property
    def count_tokens(self) -> Callable[[str], int]:
        """Tokens in the embedding model's own tokenizer."""
        return embedding_window(self._model).count_tokens

    def get(self, system: System) -> CorpusIndex:
        """The index of a system."""
        name = f"{system.parser.__name__}-{system.chunk_size}"
        if name not in self._open:
            self._open[name] = self._made(system, None if self._cache is None else self._cache / name)
        return self._open[name]

    def _made(self, system: System, folder: Path | None) -> CorpusIndex:
        window = embedding_window(self._model).max_tokens or 0
        model: BaseEmbedding = self._model if system.chunk_size - 2 <= window else WindowPooledEmbedding(self._model)
        nodes: NodeParser = system.parser.for_model(model, chunk_size=min(system.chunk_size, window) if model is self._model else system.chunk_size)
        if folder is not None and (folder / "corpus.sqlite").exists():
            return CorpusIndex.load(folder, embed_model=model, transformations=[nodes])
        self._documents = self._documents or read_folder(self._docs).documents
        return CorpusIndex.from_documents(self._documents, persist_dir=folder, embed_model=model, language="en", transformations=[nodes])

    def close(self) -> None:
        """Close them."""
        for index in self._open.values():
            index.close()


def context_of(hits: Sequence[NodeWithScore], budget: int, count_tokens: Callable[[str], int]) -> tuple[list[NodeWithScore], int]:
    """The hits that fit into the budget, best first, as an LLM would read them (metadata in front), and their tokens; what does not fit is left out."""
    kept: list[NodeWithScore] = []
    total = 0
    for hit in hits:
        tokens = count_tokens(hit.node.get_content(metadata_mode=MetadataMode.LLM))
        if total + tokens <= budget:
            kept.append(hit)
            total += tokens
    return kept, total


def figure_in_context(nodes: Sequence[NodeWithScore], gold: Sequence[Mapping[str, str]]) -> float:
    """1.0 when each gold figure stands, as a whole number, in a node of its file."""
    return float(
        all(any(item.node.metadata["file_name"] == part["file"] and holds_figure(item.node.get_content(), part["figure"]) for item in nodes) for part in gold)
    )


def measure(retriever: BaseRetriever, questions: Sequence[Mapping[str, Any]], budget: int, count_tokens: Callable[[str], int]) -> list[Row]:
    """A row for one-hop questions, one for two-hop questions, one for all."""
    retriever.retrieve(str(questions[0]["question"]))
    figures: dict[str, float] = {}
    contexts: dict[str, tuple[int, int, float]] = {}
    for question in questions:
        started = time.perf_counter()
        hits = retriever.retrieve(str(question["question"]))
        elapsed = (time.perf_counter() - started) * 1000
        kept, tokens = context_of(hits, budget, count_tokens)
        figures[question["id"]], contexts[question["id"]] = figure_in_context(kept, question["gold"]), (tokens, len(kept), elapsed)
    rows: list[Row] = []
    for hops in (*sorted({question["hops"] for question in questions}), "all"):
        ids = [question["id"] for question in questions if hops in ("all", question["hops"])]
        column = [figures[key] for key in ids]
        tokens, nodes, elapsed_ms = (statistics.median(contexts[key][place] for key in ids) for place in range(3))
        row: Row = {"hops": hops, "n": len(ids), "figure": percent(column), "figure_interval": interval(column), "tokens": tokens, "nodes": nodes}
        rows.append(
            {**row, "ms_per_query": round(elapsed_ms, 2), "llm_calls": 0, "llm_tokens": 0, "per_question": {key: {"figure": figures[key]} for key in ids}}
        )
    return rows


def gains_against(rows: Sequence[Row], base: str) -> list[Row]:
    """Each system against one, over the same questions."""
    by_key = {(row["system"], row["hops"]): row for row in rows}
    gains: list[Row] = []
    for (system, hops), row in by_key.items():
        other = by_key.get((base, hops))
        if system != base and other is not None:
            gains.append({"system": system, "against": base, "hops": hops, "n": row["n"], **_difference(row, other)})
    return gains


def swept() -> dict[str, System]:
    """Each chunk size, searched flat and from coarse to fine."""
    modes = {"hybrid": HYBRID, "coarse-to-fine": {"mode": "hierarchical", "strategy": "top_down"}}
    return {f"{size}, {name}": System(HierarchicalNodeParser, size, mode) for size in SWEEP for name, mode in modes.items()}


def recommendation(rows: Sequence[Row]) -> str:
    """The size to take: the best one, or the largest that the model reads in full where that is not surely below it."""
    overall = {row["system"]: row for row in rows if row["hops"] == "all"}
    ways = ("hybrid", "coarse-to-fine")
    best = max(SWEEP, key=lambda size: (sum(overall[f"{size}, {way}"]["figure"] for way in ways), -size))
    differences = {size: [_difference(overall[f"{size}, {way}"], overall[f"{best}, {way}"]) for way in ways] for size in SWEEP if size != best}
    taken = best if best <= IN_FULL or any(item["interval"][1] < 0 for item in differences[IN_FULL]) else IN_FULL
    reason = "" if taken == best else f" The model reads {taken} in full, and they are not surely below the best, {best}."
    lines = [f"Recommended chunk size: {taken} tokens.{reason} Best over all questions, both ways to search: {best}."]
    for size, found in differences.items():
        pooled = " (larger than the model's window: mean of windows)" if size > IN_FULL else ""
        lines.append(
            f"  {size}{pooled} against {best}: " + ", ".join(f"{way} {item['points']:+} {item['interval']}" for way, item in zip(ways, found, strict=True))
        )
    return "\n".join(lines)


def _difference(row: Row, other: Row) -> Row:
    return gain(*({key: values["figure"] for key, values in item["per_question"].items()} for item in (row, other)))


def arguments() -> argparse.Namespace:
    """The options of the command."""
    options = parser(__doc__ or "", "../shared/data/sec-10-q")
    options.add_argument("--questions", type=Path, default=None)
    options.add_argument("--budget", type=int, default=BUDGET, help="tokens of context")
    options.add_argument("--systems", nargs="*", default=list(DEFAULT), choices=list(SYSTEMS))
    options.add_argument("--sweep", action="store_true", help="chunk sizes instead of systems, with a recommendation")
    return options.parse_args()


def main() -> None:
    options = arguments()
    question_file = options.questions or options.data / "questions.jsonl"
    indexes, questions = Indexes(options.data / "docs", options.cache), read_jsonl(question_file)
    systems = swept() if options.sweep else {name: SYSTEMS[name] for name in options.systems}
    rows: list[Row] = []
    for name, system in systems.items():
        retriever = indexes.get(system).as_retriever(**{"similarity_top_k": MANY, **system.retriever})
        rows += [{"dataset": "sec-10-q", "system": name, **row} for row in measure(retriever, questions, options.budget, indexes.count_tokens)]
        print_table(rows[-3:], COLUMNS)
    gains = gains_against(rows, "256, hybrid" if options.sweep else BASE)
    print_table(gains, ("system", "against", "hops", "n", "points", "interval"))
    extra: dict[str, Any] = {"gains": gains, "budget": options.budget}
    if options.sweep:
        extra["note"] = recommendation(rows)
        print(extra["note"])
    benchmark = "chunk_sizes" if options.sweep else "structure"
    write_result(options.json, benchmark=benchmark, data={"docs": options.data / "docs", "questions": question_file}, rows=rows, extra=extra)
    indexes.close()


if __name__ == "__main__":
    main()
