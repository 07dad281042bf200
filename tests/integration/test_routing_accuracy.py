"""How many of the questions written for routing get their route: tests/data/routing.jsonl, the half for tuning and the half held out."""

import hashlib
import json
from pathlib import Path

import pytest
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag.routing.route import known_route
from llama_index_advanced_rag.routing.router import Router
from llama_index_advanced_rag.routing.rules import RuleRouter

QUESTIONS = Path(__file__).parent.parent / "data" / "routing.jsonl"
ROUTES = [known_route(name) for name in ("none", "simple", "moderate", "complex", "structural")]


def half(number: int) -> list[dict[str, str]]:
    """Half 0 is for tuning, half 1 is held out; the hash of the id decides."""
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 2 == number]


def first_routes(router: Router, rows: list[dict[str, str]]) -> list[str]:
    return [next(iter(router.choose(QueryBundle(row["question"]), ROUTES).names), "doubt") for row in rows]


def accuracy(rows: list[dict[str, str]], chosen: list[str]) -> float:
    return sum(row["route"] == name for row, name in zip(rows, chosen, strict=True)) / len(rows)


@pytest.mark.parametrize(("number", "floor"), [(0, 0.90), (1, 0.68)])
def test_the_rules_find_the_route(number: int, floor: float) -> None:
    rows = half(number)
    assert accuracy(rows, first_routes(RuleRouter(), rows)) >= floor


@pytest.mark.parametrize("number", [0, 1])
def test_the_rules_never_refuse_to_look(number: int) -> None:
    rows = half(number)
    chosen = first_routes(RuleRouter(), rows)
    assert [row["id"] for row, name in zip(rows, chosen, strict=True) if name == "none" and row["route"] != "none"] == []
