"""Retrieval on three multi-hop sets: which share of the supporting passages is among the first k.

usage: python benchmarks/multihop.py --data ../shared/data/multihop [--questions NAME=FILE ...] [--systems ...] --json OUT

Systems ending in `+rerank` put the first 20 of a system in the order of a reranker; no package carries weights of a cross-encoder, so the reranker here
compares question and passage by the packaged embedding. `graph-tuned` is the graph with numbers chosen by 5-fold cross-validation over the
questions of all sets: each question is answered with the numbers that were best on others.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
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
from hipporag import TRIPLES, HippoRAG2Retriever, load_hipporag
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from llama_index_advanced_rag import CorpusIndex, CrossEncoderRerank, EntityGraphRetriever, LexicalRetriever
from llama_index_advanced_rag.evaluation.tuning import WALK_GRID, LabelledQuestion, TuningCase, recall_at, tune_together
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

DATASETS = ("musique", "hotpotqa", "2wikimultihopqa")
PLAIN = "lexical-plain"  # cut into words as bm25s does by default, to be compared with the independent reference
INDEX_SYSTEMS: dict[str, dict[str, Any]] = {
    "dense": {"mode": "dense"},
    "lexical": {"mode": "lexical"},
    "hybrid-rrf": {"mode": "hybrid", "fusion": "reciprocal_rank"},
    "hybrid-weighted": {"mode": "hybrid", "fusion": "weighted"},
    "hybrid-dense-0.7": {"mode": "hybrid", "fusion": "weighted", "weights": {"dense": 0.7, "lexical": 0.3}},
    "graph-unguarded": {"mode": "graph", "guard": 0},
    "graph": {"mode": "graph"},
    "graph-second-hop": {"mode": "graph", "second_hop": 0.5},
    "vote": {"mode": "vote"},
    "vote-guarded": {"mode": "vote", "guard": 1},
}
SIMPLE = ("dense", "lexical", "hybrid-rrf", "hybrid-weighted")
HIPPORAG, OF_FACTS, TUNED = "hipporag2-no-filter", "graph-triples", "graph-tuned"
OF_TRIPLES = (HIPPORAG, OF_FACTS, f"{OF_FACTS}-unguarded")
RERANK = "+rerank"
BASES = (PLAIN, *INDEX_SYSTEMS, *OF_TRIPLES)
SYSTEMS = (*BASES, *(f"{name}{RERANK}" for name in ("hybrid-weighted", "graph", "vote", HIPPORAG, OF_FACTS)))
TOP_K, RERANKED = 10, 20
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


class Reranked(BaseRetriever):
    """What a retriever finds, put in another order by a postprocessor."""

    def __init__(self, retriever: BaseRetriever, rerank: CrossEncoderRerank) -> None:
        super().__init__()
        self._retriever, self._rerank = retriever, rerank

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._rerank.postprocess_nodes(self._retriever.retrieve(query_bundle), query_bundle)


class Systems:
    """The retrievers over one set of passages."""

    def __init__(self, folder: Path, corpus: Sequence[Mapping[str, str]], cache: Path | None) -> None:
        self.index = build_index(corpus, cache / folder.name if cache else None)
        self._folder, self._corpus, self._cache = folder, corpus, cache
        self._graph: EntityGraph | None = None
        self._facts: TextVectors | None = None
        self._hipporag: Any = None

    def retriever(self, system: str, top_k: int = TOP_K) -> BaseRetriever:
        """The retriever of a name in `SYSTEMS`."""
        if system.endswith(RERANK):
            return Reranked(self.retriever(system.removesuffix(RERANK), RERANKED), CrossEncoderRerank(self._cosines, top_n=TOP_K))
        if system == PLAIN:
            return plain_lexical(self._corpus)
        if system in INDEX_SYSTEMS:
            return self.index.as_retriever(similarity_top_k=top_k, **INDEX_SYSTEMS[system])
        if system == HIPPORAG:
            return self._hippo(top_k)
        guard = 0 if system.endswith("-unguarded") else 1
        hybrid = self.index.as_retriever("hybrid", similarity_top_k=top_k)
        return EntityGraphRetriever(
            hybrid, self._triples_graph(), nodes=self.index.corpus, similarity_top_k=top_k, guard=guard, vectors=self._fact_vectors(), language="en"
        )

    def _hippo(self, top_k: int) -> BaseRetriever:
        if self._hipporag is None:
            vectors = self.index.corpus.vectors_of_nodes([row["id"] for row in self._corpus])
            self._hipporag = load_hipporag(self._folder, self._corpus, cache=self._cache, passage_vectors=vectors)
        return HippoRAG2Retriever(self._hipporag, passages(self._corpus), similarity_top_k=top_k)

    def _triples_graph(self) -> EntityGraph:
        """The graph of the given triples and the titles."""
        if self._graph is None:
            triples = {row["id"]: row["triples"] for row in read_jsonl(self._folder / TRIPLES)}
            self._graph = EntityGraph.from_triples(triples, titles={row["id"]: row["title"] for row in self._corpus})
        return self._graph

    def _fact_vectors(self) -> TextVectors:
        if self._facts is None:
            store = SQLiteKVStore(self._cache / f"{self._folder.name}-facts.sqlite") if self._cache else None
            self._facts = TextVectors(self.index.embed_model, store)
        return self._facts

    def _cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """How alike question and passage are by the packaged embedding, whose vectors of passages the index holds."""
        query = np.asarray(self.index.embed_model.get_query_embedding(pairs[0][0]))
        return [float(query @ self._vectors()[passage]) for _, passage in pairs]

    def _vectors(self) -> dict[str, Any]:
        if not hasattr(self, "_by_text"):
            nodes = passages(self._corpus)
            vectors = self.index.corpus.vectors_of_nodes([node.node_id for node in nodes])
            self._by_text = {node.get_content(MetadataMode.EMBED): vector for node, vector in zip(nodes, vectors, strict=True)}
        return self._by_text


def measures(found: Sequence[NodeWithScore], gold: Sequence[str]) -> dict[str, float]:
    """All measures of one answer."""
    ranked = ranked_documents(found)
    values = {f"R@{k}": recall(ranked, gold, k) for k in (2, 5, 8)} | {f"all@{k}": all_gold(ranked, gold, k) for k in (5, 8)}
    return {**values, "MRR": reciprocal_rank(ranked, gold)}


def row_of(per_question: Mapping[str, Mapping[str, float]], milliseconds: float | None) -> Row:
    """Means, intervals and costs."""
    names = list(next(iter(per_question.values())))
    columns = {name: [values[name] for values in per_question.values()] for name in names}
    figures: Row = {name: percent(column) for name, column in columns.items()}
    intervals = {f"{name}_interval": interval(column) for name, column in columns.items()}
    costs = {"ms_per_query": milliseconds, "llm_calls": 0, "llm_tokens": 0}
    return {"n": len(per_question), **figures, **intervals, **costs, "per_question": dict(per_question)}


def measure(retriever: BaseRetriever, questions: Sequence[Mapping[str, Any]]) -> Row:
    """All measures of one system on one set of questions."""
    found, milliseconds = timed_retrieval(retriever, questions)
    return row_of({question["id"]: measures(found[question["id"]], question["gold"]) for question in questions}, milliseconds)


def tuned_rows(cases: Mapping[str, tuple[Systems, Sequence[Mapping[str, Any]]]]) -> tuple[list[Row], Row]:
    """The graph with numbers that other questions chose, as a row for each set, and what was chosen."""
    retrievers = {name: systems.index.as_retriever("graph", similarity_top_k=TOP_K) for name, (systems, _) in cases.items()}
    asked = [(name, question) for name, (_, questions) in cases.items() for question in questions]
    tuning = [
        TuningCase(retrievers[name], [LabelledQuestion(question["question"], frozenset(question["gold"])) for question in questions])  # type: ignore[arg-type]
        for name, (_, questions) in cases.items()
    ]
    report = tune_together(tuning, grid=WALK_GRID, measure=_recall_and_all(), show_progress=True)
    print(report)
    fold_of = np.random.default_rng(0).permutation(len(asked)) % len(report.chosen)  # as `tune_together` deals them
    found = {
        (name, question["id"]): retrievers[name].with_parameters(**report.chosen[fold]).retrieve(question["question"])  # type: ignore[attr-defined]
        for (name, question), fold in zip(asked, fold_of.tolist(), strict=True)
    }
    rows = [
        {
            "dataset": name,
            "system": TUNED,
            **row_of({question["id"]: measures(found[name, question["id"]], question["gold"]) for question in questions}, None),
        }
        for name, (_, questions) in cases.items()
    ]
    chosen = {"before": report.before, "after": report.after, "interval": list(report.interval), "best": report.parameters, "folds": list(report.chosen)}
    return rows, chosen


def _recall_and_all() -> Callable[[Sequence[frozenset[str]], frozenset[str]], float]:
    """Recall@5 and all-gold@8, half each."""
    recall_5, recall_8 = recall_at(5), recall_at(8)
    return lambda ranked, gold: (recall_5(ranked, gold) + float(recall_8(ranked, gold) == 1.0)) / 2


def pooled_gains(rows: Sequence[Row], wanted: Sequence[str] = ("R@5", "all@8")) -> list[Row]:
    """Each system against the simple system that is best over all questions of the sets it was run on, pooled and by set."""
    merged: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for row in rows:
        merged.setdefault(row["system"], {})[row["dataset"]] = {f"{row['dataset']}/{key}": values for key, values in row["per_question"].items()}
    gains: list[Row] = []
    for system, by_set in merged.items():
        if system in SIMPLE:
            continue
        for sets in ([*by_set], *([name] for name in by_set if len(by_set) > 1)):
            for name in wanted:
                base = best_simple(merged, sets, name)
                if base is not None:
                    gains.append(_gain(system, by_set, base, merged[base], sets, name))
        if system.startswith("graph-triples") and HIPPORAG in merged:
            gains += [_gain(system, by_set, HIPPORAG, merged[HIPPORAG], [*by_set], name) for name in wanted]
    return gains


def best_simple(merged: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]], sets: Sequence[str], measure_name: str) -> str | None:
    """The simple system with the best mean over these sets."""
    candidates = [name for name in SIMPLE if name in merged and all(item in merged[name] for item in sets)]
    means = {name: np.mean([values[measure_name] for item in sets for values in merged[name][item].values()]) for name in candidates}
    return max(means, key=lambda name: means[name], default=None)


def _gain(system: str, ours: Mapping[str, Any], base: str, theirs: Mapping[str, Any], sets: Sequence[str], name: str) -> Row:
    first = {key: values[name] for item in sets for key, values in ours[item].items()}
    second = {key: values[name] for item in sets for key, values in theirs[item].items()}
    return {"system": system, "against": base, "on": "+".join(sets), "measure": name, "n": len(first), **gain(first, second)}


def main() -> None:
    arguments = parser(__doc__ or "", "../shared/data/multihop")
    arguments.add_argument("--questions", nargs="*", default=[], metavar="NAME=FILE", help="other questions for a data set; only the sets named are run")
    arguments.add_argument("--systems", nargs="*", default=[*SYSTEMS, TUNED], choices=[*SYSTEMS, TUNED])
    options = arguments.parse_args()
    chosen = dict(item.split("=", 1) for item in options.questions)
    rows: list[Row] = []
    data: dict[str, Path] = {}
    cases: dict[str, tuple[Systems, Sequence[Mapping[str, Any]]]] = {}
    for dataset in chosen or DATASETS:
        folder, question_file = options.data / dataset, Path(chosen.get(dataset, options.data / dataset / "questions.jsonl"))
        data |= {f"{dataset}/corpus": folder / "corpus.jsonl", f"{dataset}/questions": question_file}
        corpus, questions = read_jsonl(folder / "corpus.jsonl"), read_jsonl(question_file)
        systems = Systems(folder, corpus, options.cache)
        cases[dataset] = (systems, questions)
        for system in options.systems:
            if system == TUNED or (system.removesuffix(RERANK) in OF_TRIPLES and not (folder / TRIPLES).exists()):
                continue
            rows.append({"dataset": dataset, "system": system, **measure(systems.retriever(system), questions)})
            print_table(rows[-1:], COLUMNS)
    extra: dict[str, Any] = {}
    if TUNED in options.systems:
        more, extra["tuning"] = tuned_rows(cases)
        rows += more
    extra["pooled_gains"] = pooled_gains(rows)
    for systems, _ in cases.values():
        systems.index.close()
    print_table(rows, COLUMNS)
    print_table(extra["pooled_gains"], ("system", "against", "on", "measure", "n", "points", "interval"))
    write_result(options.json, benchmark="multihop", data=data, rows=rows, extra=extra)


if __name__ == "__main__":
    main()
