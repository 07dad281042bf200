"""Retrieval on three multi-hop sets: which share of the supporting passages is among the first k.

usage: python benchmarks/multihop.py --data ../shared/data/multihop [--questions NAME=FILE ...] [--systems ...] --json OUT
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import (
    Row,
    all_gold,
    gain,
    interval,
    parser,
    percent,
    print_table,
    ranked_documents,
    read_jsonl,
    recall,
    reciprocal_rank,
    timed_retrieval,
    write_result,
)
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import TextNode

from llama_index_advanced_rag import CorpusIndex, LexicalRetriever
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

DATASETS = ("musique", "hotpotqa", "2wikimultihopqa")
PLAIN = "lexical-plain"  # cut into words as bm25s does by default, to be compared with the independent reference
SYSTEMS: dict[str, dict[str, Any]] = {
    "dense": {"mode": "dense"},
    "lexical": {"mode": "lexical"},
    PLAIN: {},
    "hybrid-rrf": {"mode": "hybrid", "fusion": "reciprocal_rank"},
    "hybrid-weighted": {"mode": "hybrid", "fusion": "weighted"},
    "hybrid-dense-0.7": {"mode": "hybrid", "fusion": "weighted", "weights": {"dense": 0.7, "lexical": 0.3}},
}
TOP_K = 10
COLUMNS = ("dataset", "system", "n", "R@2", "R@5", "R@8", "all@5", "all@8", "MRR", "R@5_interval", "ms_per_query")


def passages(corpus: Sequence[Mapping[str, str]]) -> list[TextNode]:
    """One node a passage, title in front."""
    return [TextNode(id_=row["id"], text=row["text"], metadata={"title": row["title"]}, metadata_template="{value}") for row in corpus]


def plain_lexical(corpus: Sequence[Mapping[str, str]]) -> LexicalRetriever:
    """BM25 over words as bm25s cuts, drops and stems them by default."""
    from bm25s.stopwords import STOPWORDS_EN

    analyzer = TextAnalyzer(language="en", token_pattern=r"(?u)\b\w\w+\b", stop_words=frozenset(STOPWORDS_EN))
    return LexicalRetriever.from_defaults(nodes=passages(corpus), analyzer=analyzer, similarity_top_k=TOP_K)


def build_index(corpus: Sequence[Mapping[str, str]], cache: Path | None) -> CorpusIndex:
    """The passages, embedded with the packaged MiniLM."""
    if cache is not None and (cache / "corpus.sqlite").exists():
        return CorpusIndex.load(cache)
    return CorpusIndex(passages(corpus), persist_dir=cache, embed_model="packaged", language="en")


def measure(retriever: BaseRetriever, questions: Sequence[Mapping[str, Any]]) -> Row:
    """All measures of one system on one set of questions."""
    found, milliseconds = timed_retrieval(retriever, questions)
    per_question: dict[str, dict[str, float]] = {}
    for question in questions:
        ranked, gold = ranked_documents(found[question["id"]]), question["gold"]
        values = {f"R@{k}": recall(ranked, gold, k) for k in (2, 5, 8)} | {f"all@{k}": all_gold(ranked, gold, k) for k in (5, 8)}
        per_question[question["id"]] = {**values, "MRR": reciprocal_rank(ranked, gold)}
    names = list(next(iter(per_question.values())))
    columns = {name: [values[name] for values in per_question.values()] for name in names}
    figures: Row = {name: percent(column) for name, column in columns.items()}
    intervals = {f"{name}_interval": interval(column) for name, column in columns.items()}
    return {"n": len(questions), **figures, **intervals, "ms_per_query": milliseconds, "llm_calls": 0, "llm_tokens": 0, "per_question": per_question}


def pooled_gains(rows: Sequence[Row], measures: Sequence[str] = ("R@5", "all@8")) -> list[Row]:
    """Each system against dense, over all questions of all sets."""
    merged: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        merged.setdefault(row["system"], {}).update({f"{row['dataset']}/{key}": values for key, values in row["per_question"].items()})
    base = merged.get("dense")
    if base is None:
        return []
    gains = []
    for system, questions in merged.items():
        if system != "dense" and questions.keys() == base.keys():
            for name in measures:
                difference = gain({key: values[name] for key, values in questions.items()}, {key: values[name] for key, values in base.items()})
                gains.append({"system": system, "against": "dense", "measure": name, "n": len(questions), **difference})
    return gains


def main() -> None:
    arguments = parser(__doc__ or "", "../shared/data/multihop")
    arguments.add_argument("--questions", nargs="*", default=[], metavar="NAME=FILE", help="other questions for a data set; only the sets named are run")
    arguments.add_argument("--systems", nargs="*", default=list(SYSTEMS), choices=list(SYSTEMS))
    options = arguments.parse_args()
    chosen = dict(item.split("=", 1) for item in options.questions)
    rows: list[Row] = []
    data: dict[str, Path] = {}
    for dataset in chosen or DATASETS:
        corpus_file, question_file = options.data / dataset / "corpus.jsonl", Path(chosen.get(dataset, options.data / dataset / "questions.jsonl"))
        data |= {f"{dataset}/corpus": corpus_file, f"{dataset}/questions": question_file}
        corpus, questions = read_jsonl(corpus_file), read_jsonl(question_file)
        index = build_index(corpus, options.cache / dataset if options.cache else None)
        for system in options.systems:
            retriever = plain_lexical(corpus) if system == PLAIN else index.as_retriever(similarity_top_k=TOP_K, **SYSTEMS[system])
            rows.append({"dataset": dataset, "system": system, **measure(retriever, questions)})
            print_table(rows[-1:], COLUMNS)
        index.close()
    gains = pooled_gains(rows)
    print_table(rows, COLUMNS)
    print_table(gains, ("system", "against", "measure", "n", "points", "interval"))
    write_result(options.json, benchmark="multihop", data=data, rows=rows, extra={"pooled_gains": gains})


if __name__ == "__main__":
    main()
