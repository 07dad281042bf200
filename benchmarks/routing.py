"""How well routers tell the five routes apart: the questions of tests/data/routing.jsonl, the half for tuning and the half held out.

A doubt (no route named) is counted as wrong in `accuracy` and as the default route, "moderate", in `with_default`.

usage: python benchmarks/routing.py [--routers rules "embedding, multilingual" llm ...] [--halves tuned held-out] [--json OUT]
       [--llm NAME --api-base URL --most N]
"""

import argparse
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from common import Row, interval, percent, print_table, read_jsonl, write_result
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag.routing.route import COMPLEX, MODERATE, NONE, SIMPLE, STRUCTURAL, known_route
from llama_index_advanced_rag.routing.router import Router
from llama_index_advanced_rag.usage import capture_usage

QUESTIONS = Path(__file__).parent.parent / "tests" / "data" / "routing.jsonl"
ROUTES = [known_route(name) for name in (NONE, SIMPLE, MODERATE, COMPLEX, STRUCTURAL)]
DEFAULT, DOUBT = MODERATE, "doubt"
HALVES = ("tuned", "held-out")
COLUMNS = (
    "router",
    "half",
    "language",
    "n",
    "accuracy",
    "accuracy_interval",
    "with_default",
    "doubts",
    "wrong_none",
    "ms_per_question",
    "llm_calls",
    "llm_tokens",
)


def half_of(identifier: str) -> str:
    """The half of a question, by the hash of its id."""
    return HALVES[int(hashlib.sha256(identifier.encode()).hexdigest(), 16) % 2]


def rule_router(_options: argparse.Namespace) -> Router:
    from llama_index_advanced_rag.routing.rules import RuleRouter

    return RuleRouter()


def packaged_router(_options: argparse.Namespace) -> Router:
    from llama_index_advanced_rag.embeddings.packaged import load_packaged_embedding
    from llama_index_advanced_rag.routing.embedding import EmbeddingRouter

    return EmbeddingRouter(load_packaged_embedding())


def multilingual_router(_options: argparse.Namespace) -> Router:
    from llama_index_advanced_rag.embeddings.multilingual import MultilingualE5Embedding
    from llama_index_advanced_rag.routing.embedding import EmbeddingRouter

    return EmbeddingRouter(MultilingualE5Embedding())


def llm_router(options: argparse.Namespace) -> Router:
    from llama_index_advanced_rag.openai_compatible import resolve_llm_name
    from llama_index_advanced_rag.routing.llm import LLMRouter

    if options.llm is None:
        raise SystemExit("The router 'llm' needs --llm openai:MODEL, and for a server of your own --api-base URL.")
    return LLMRouter(resolve_llm_name(options.llm, api_base=options.api_base))


ROUTERS: dict[str, Callable[[argparse.Namespace], Router]] = {
    "rules": rule_router,
    "embedding, packaged": packaged_router,
    "embedding, multilingual": multilingual_router,
    "llm": llm_router,
}


def choices(router: Router, questions: Sequence[Row]) -> tuple[list[str], Row]:
    """The first route named for each question, or "doubt", and what a question cost on average."""
    router.choose(QueryBundle("What is a warm-up?"), ROUTES)
    started = time.perf_counter()
    with capture_usage() as usage:
        chosen = [router.choose(QueryBundle(question["question"]), ROUTES).names for question in questions]
    n = max(1, len(questions))
    costs = {"ms_per_question": round((time.perf_counter() - started) * 1000 / n, 3), "llm_calls": round(usage.calls / n, 2)}
    return [names[0] if names else DOUBT for names in chosen], {**costs, "llm_tokens": round(usage.total_tokens / n)}


def scores(questions: Sequence[Row], chosen: Sequence[str]) -> Row:
    """Accuracy with and without the default route for doubts, in percent, and their 95 % intervals."""
    right = [float(question["route"] == name) for question, name in zip(questions, chosen, strict=True)]
    ended = [float(question["route"] == (DEFAULT if name == DOUBT else name)) for question, name in zip(questions, chosen, strict=True)]
    return {
        "n": len(questions),
        "accuracy": percent(right),
        "accuracy_interval": interval(right),
        "with_default": percent(ended),
        "with_default_interval": interval(ended),
        "doubts": sum(name == DOUBT for name in chosen),
        "wrong_none": sum(name == NONE != question["route"] for question, name in zip(questions, chosen, strict=True)),
    }


def confusion(questions: Sequence[Row], chosen: Sequence[str]) -> dict[str, dict[str, int]]:
    """How often each route was taken for each, doubts apart."""
    counts = Counter((question["route"], name) for question, name in zip(questions, chosen, strict=True))
    return {label.name: {name: counts[label.name, name] for name in (*(route.name for route in ROUTES), DOUBT)} for label in ROUTES}


def measure(name: str, router: Router, questions: Sequence[Row], half: str, most: int | None) -> tuple[list[Row], list[Row]]:
    """Rows for one half, over all and for each language, and its confusion matrix; of the first so many questions of the half, if `most` says so."""
    ours = [question for question in questions if half_of(question["id"]) == half][:most]
    chosen, costs = choices(router, ours)
    about: Row = {"router": name, "half": half}
    rows = [{**about, "language": "both", **scores(ours, chosen), **costs}]
    for language in sorted({question["language"] for question in ours}):
        pairs = [(question, route) for question, route in zip(ours, chosen, strict=True) if question["language"] == language]
        rows.append({**about, "language": language, **scores([question for question, _ in pairs], [route for _, route in pairs])})
    return rows, [{**about, "label": label, **counts} for label, counts in confusion(ours, chosen).items()]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, default=QUESTIONS, help="the questions")
    arguments.add_argument("--json", type=Path, default=None, help="write the rows to this file")
    arguments.add_argument("--routers", nargs="+", choices=list(ROUTERS), default=["rules"])
    arguments.add_argument("--halves", nargs="+", choices=HALVES, default=list(HALVES))
    arguments.add_argument("--llm", help="LLM of the router 'llm', as openai:MODEL")
    arguments.add_argument("--api-base", help="address of an OpenAI-compatible server for it")
    arguments.add_argument("--most", type=int, help="only so many questions of each half for the router 'llm', which takes its time")
    options = arguments.parse_args()
    questions = read_jsonl(options.data)
    rows, confusions = list[Row](), list[Row]()
    for name in options.routers:
        router = ROUTERS[name](options)
        for half in options.halves:
            measured, confused = measure(name, router, questions, half, options.most if name == "llm" else None)
            rows, confusions = rows + measured, confusions + confused
    print_table(rows, COLUMNS)
    print_table(confusions, tuple(confusions[0]))
    write_result(
        options.json,
        benchmark="routing_llm" if options.llm else "routing",
        data={"questions": options.data},
        rows=rows,
        extra={"confusions": confusions, "llm": options.llm},
    )


if __name__ == "__main__":
    main()
