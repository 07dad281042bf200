"""How well routers tell the five routes apart: the questions of tests/data/routing.jsonl, the half for tuning and the half held out.

A doubt (no route named) is counted as wrong in `accuracy` and as the default route, "moderate", in `with_default`.

usage: python benchmarks/routing.py [--routers rules embedding] [--embed-model multilingual] [--halves tuned held-out] [--json OUT]
"""

import argparse
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import Row, interval, percent, print_table, read_jsonl, write_result
from llama_index.core.llms import LLM
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag.routing.route import COMPLEX, MODERATE, NONE, SIMPLE, STRUCTURAL, known_route
from llama_index_advanced_rag.routing.router import Router

QUESTIONS = Path(__file__).parent.parent / "tests" / "data" / "routing.jsonl"
ROUTES = [known_route(name) for name in (NONE, SIMPLE, MODERATE, COMPLEX, STRUCTURAL)]
DEFAULT, DOUBT = MODERATE, "doubt"
HALVES = ("tuned", "held-out")
COLUMNS = ("router", "half", "language", "n", "accuracy", "interval", "with_default", "default_interval", "doubts", "ms_per_question")


def half_of(identifier: str) -> str:
    """The half of a question, by the hash of its id."""
    return HALVES[int(hashlib.sha256(identifier.encode()).hexdigest(), 16) % 2]


def rule_router(_options: argparse.Namespace) -> Router:
    from llama_index_advanced_rag.routing.rules import RuleRouter

    return RuleRouter()


def embedding_router(options: argparse.Namespace) -> Router:
    from llama_index_advanced_rag.embeddings.multilingual import MultilingualE5Embedding
    from llama_index_advanced_rag.embeddings.packaged import load_packaged_embedding
    from llama_index_advanced_rag.routing.embedding import EmbeddingRouter

    return EmbeddingRouter({"packaged": load_packaged_embedding, "multilingual": MultilingualE5Embedding}[options.embed_model]())


def llm_router(options: argparse.Namespace) -> Router:
    """A hook: whoever has an LLM sets `options.llm` and calls `measure`."""
    from llama_index_advanced_rag.routing.llm import LLMRouter

    llm: LLM | None = getattr(options, "llm", None)
    if llm is None:
        raise SystemExit("The router 'llm' needs an LLM: set `options.llm` to one and call `measure(llm_router(options), ...)`.")
    return LLMRouter(llm)


ROUTERS: dict[str, Callable[[argparse.Namespace], Router]] = {"rules": rule_router, "embedding": embedding_router, "llm": llm_router}


def choices(router: Router, questions: Sequence[Row]) -> tuple[list[str], float]:
    """The first route named for each question, or "doubt", and the mean milliseconds of a question."""
    router.choose(QueryBundle("What is a warm-up?"), ROUTES)
    started = time.perf_counter()
    chosen = [router.choose(QueryBundle(question["question"]), ROUTES).names for question in questions]
    elapsed = (time.perf_counter() - started) * 1000
    return [names[0] if names else DOUBT for names in chosen], round(elapsed / max(1, len(questions)), 3)


def scores(questions: Sequence[Row], chosen: Sequence[str]) -> Row:
    """Accuracy with and without the default route for doubts, in percent, and their 95 % intervals."""
    right = [float(question["route"] == name) for question, name in zip(questions, chosen, strict=True)]
    ended = [float(question["route"] == (DEFAULT if name == DOUBT else name)) for question, name in zip(questions, chosen, strict=True)]
    return {
        "n": len(questions),
        "accuracy": percent(right),
        "interval": interval(right),
        "with_default": percent(ended),
        "default_interval": interval(ended),
        "doubts": sum(name == DOUBT for name in chosen),
    }


def confusion(questions: Sequence[Row], chosen: Sequence[str]) -> dict[str, dict[str, int]]:
    """How often each route was taken for each, doubts apart."""
    counts = Counter((question["route"], name) for question, name in zip(questions, chosen, strict=True))
    return {label.name: {name: counts[label.name, name] for name in (*(route.name for route in ROUTES), DOUBT)} for label in ROUTES}


def measure(router: Router, questions: Sequence[Row], half: str) -> list[Row]:
    """Rows for one half: over all, with the confusion matrix, and for each language."""
    ours = [question for question in questions if half_of(question["id"]) == half]
    chosen, milliseconds = choices(router, ours)
    about: Row = {"router": router.name, "half": half}
    rows = [{**about, "language": "all", **scores(ours, chosen), "ms_per_question": milliseconds, "confusion": confusion(ours, chosen)}]
    for language in sorted({question["language"] for question in ours}):
        pairs = [(question, name) for question, name in zip(ours, chosen, strict=True) if question["language"] == language]
        rows.append({**about, "language": language, **scores([question for question, _ in pairs], [name for _, name in pairs])})
    return rows


def print_confusion(row: Row) -> None:
    print(f"\n{row['router']}, {row['half']}: rows are labels, columns what was chosen")
    print_table([{"label": label, **counts} for label, counts in row["confusion"].items()], ("label", *next(iter(row["confusion"].values()))))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, default=QUESTIONS, help="the questions")
    arguments.add_argument("--json", type=Path, default=None, help="write the rows to this file")
    arguments.add_argument("--routers", nargs="+", choices=list(ROUTERS), default=["rules"])
    arguments.add_argument("--halves", nargs="+", choices=HALVES, default=list(HALVES))
    arguments.add_argument("--embed-model", choices=("packaged", "multilingual"), default="multilingual")
    options = arguments.parse_args()
    questions = read_jsonl(options.data)
    rows: list[dict[str, Any]] = []
    for name in options.routers:
        router = ROUTERS[name](options)
        for half in options.halves:
            rows.extend(measure(router, questions, half))
    print_table(rows, COLUMNS)
    for row in rows:
        if "confusion" in row:
            print_confusion(row)
    write_result(options.json, benchmark="routing", data={"questions": options.data}, rows=rows, extra={"embed_model": options.embed_model})


if __name__ == "__main__":
    main()
