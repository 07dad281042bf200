"""Tuning: what it reports by hand, what it asks for, and both retrievers it tunes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.evaluation.tuning import VOTE_GRID, WALK_GRID, LabelledQuestion, TuningCase, recall_at, tune, tune_together
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.retrievers.entity_graph import EntityGraphRetriever
from llama_index_advanced_rag.retrievers.entity_vote import EntityVoteRetriever
from llama_index_advanced_rag.testing import DeterministicEmbedding


class Known:
    """Plays a retriever with one number, whose first hit for each question and value is written beforehand."""

    def __init__(self, first: Mapping[str, Mapping[int, str]], *, own: int = 0) -> None:
        self.first, self.own, self.asked = first, own, list[str]()

    @property
    def parameters(self) -> dict[str, Any]:
        return {"guard": self.own, "top_n": 7}

    def rankings(self, query: str, settings: Sequence[Mapping[str, Any]]) -> list[list[frozenset[str]]]:
        self.asked.append(query)
        return [[frozenset({self.first[query].get(setting["guard"], "nothing")})] for setting in settings]


def right_where(*of_each: set[int]) -> tuple[Any, list[LabelledQuestion]]:
    """A retriever that is right for question i under the values in `of_each[i]`, and the questions."""
    retriever = Known({f"q{number}": dict.fromkeys(values, "gold") for number, values in enumerate(of_each)})
    return retriever, [LabelledQuestion(f"q{number}", frozenset({"gold"})) for number in range(len(of_each))]


GRID = {"guard": (0, 1, 2)}


def test_a_better_setting_is_found_and_its_gain_measured() -> None:
    retriever, questions = right_where(*[{1}] * 3, *[{0, 1}] * 3)
    report = tune(retriever, questions, grid=GRID, folds=3)
    assert report.parameters == {"guard": 1}
    assert (report.before, report.after, report.best, report.gain) == (0.5, 1.0, 1.0, 0.5)
    assert list(report.chosen) == [{"guard": 1}] * 3
    assert list(report.scores) == [(0.0, 1.0)] * 3 + [(1.0, 1.0)] * 3
    low, high = report.interval
    assert 0 <= low <= 0.17
    assert 0.83 <= high <= 1


def test_a_setting_that_only_one_question_likes_is_not_what_it_is_scored_with() -> None:
    """Each question alone is right under a setting of its own: what the others choose is wrong for it."""
    retriever, questions = right_where({1}, {2}, {3})
    report = tune(retriever, questions, grid={"guard": (0, 1, 2, 3)}, folds=3)
    assert (report.before, report.after) == (0.0, 0.0)
    assert report.best == pytest.approx(1 / 3), "on all questions one of the settings is right once"
    assert report.parameters == {"guard": 1}
    assert report.interval == (0.0, 0.0)


def test_what_tuning_loses_is_said_too() -> None:
    retriever, questions = right_where({0}, {1}, {1})
    report = tune(retriever, questions, grid={"guard": (0, 1)}, folds=3)
    assert report.best == pytest.approx(2 / 3)
    assert (report.before, report.after, report.gain) == (pytest.approx(1 / 3), 0.0, pytest.approx(-1 / 3))


def test_the_own_setting_stays_where_none_is_better() -> None:
    retriever, questions = right_where({0, 1, 2}, {0, 1, 2}, {5})
    for own, grid in ((0, (1, 2, 0)), (2, (0, 1)), (1, (0, 1, 2))):
        retriever.own = own
        report = tune(retriever, questions, grid={"guard": grid}, folds=2)
        assert report.parameters == {"guard": own}
        assert list(report.chosen) == [{"guard": own}] * 2
        assert report.gain == 0


def test_the_own_setting_is_tried_even_where_it_is_not_in_the_grid() -> None:
    retriever, questions = right_where({7}, {7})
    retriever.own = 7
    assert tune(retriever, questions, grid={"guard": (0, 1)}, folds=2).parameters == {"guard": 7}


def test_every_question_is_asked_once_and_scored_in_its_order() -> None:
    retriever, questions = right_where({0}, {1}, {2}, {0})
    report = tune(retriever, questions, grid={**GRID, "top_n": (1, 2)}, folds=2, show_progress=True)
    assert retriever.asked == ["q0", "q1", "q2", "q3"]
    assert [before for before, _ in report.scores] == [1.0, 0.0, 0.0, 1.0]


def test_the_same_in_every_run_and_other_folds_with_another_seed() -> None:
    retriever, questions = right_where(*[{number % 3} for number in range(20)])
    reports = [tune(retriever, questions, grid=GRID, seed=seed) for seed in (0, 0, 1, 2, 3)]
    assert reports[0] == reports[1]
    assert len({str(report) for report in reports}) > 1
    assert len({report.best for report in reports}) == 1, "what is best on all questions does not depend on the folds"


def test_several_cases_get_one_setting() -> None:
    (one, ones), (other, others) = right_where({1}, {1}), right_where({2}, {1, 2})
    report = tune_together([TuningCase(one, ones), TuningCase(other, others)], grid=GRID, folds=2)
    assert report.parameters == {"guard": 1}
    assert report.best == 0.75
    assert (one.asked, other.asked) == (["q0", "q1"], ["q0", "q1"])


def test_what_the_report_says() -> None:
    retriever, questions = right_where(*[{1}] * 4)
    assert str(tune(retriever, questions, grid={"guard": (0, 1)}, folds=2)) == (
        "4 questions: 0.000 before, 1.000 after tuning (cross-validated),\n"
        "gain +1.000 [+1.000, +1.000]; 1.000 on the questions that chose.\n"
        "best: {'guard': 1}\nfold 1: {'guard': 1}\nfold 2: {'guard': 1}"
    )
    assert "scores" not in repr(tune(retriever, questions, grid=GRID, folds=2))


def test_another_measure() -> None:
    retriever, questions = right_where({0}, {0})
    report = tune(retriever, questions, grid=GRID, folds=2, measure=lambda ranked, gold: 0.0 if ranked[0] & gold else 2.5)
    assert (report.before, report.best, report.parameters) == (0.0, 2.5, {"guard": 1})


def test_recall() -> None:
    ranked = [frozenset({"n1", "d1"}), frozenset({"n2", "d1"}), frozenset({"n3", "d2"})]
    assert recall_at(2)(ranked, frozenset({"d1", "n3"})) == 0.5
    assert recall_at(3)(ranked, frozenset({"d1", "n3"})) == 1.0
    assert recall_at(5)([], frozenset({"d1"})) == 0.0
    assert recall_at(1)(ranked, frozenset()) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "folds is 1"),
        ({"folds": 4}, "There are 3 questions for 4 folds"),
        ({"grid": {"guard": ()}}, "The grid has 0 settings"),
        ({"grid": {"guard": range(100), "top_n": range(1, 100)}}, "The grid has 9900 settings. Expected 1 to 1000"),
    ],
)
def test_what_cannot_be_tuned(options: dict[str, Any], message: str) -> None:
    retriever, questions = right_where({0}, {0}, {0})
    with pytest.raises(ConfigurationError, match=message):
        tune(retriever, questions, **{"grid": GRID, **options})
    assert retriever.asked == []


@pytest.mark.parametrize(("gold", "message"), [(frozenset(), "'q' has no gold"), ("doc", r"gold of the question 'q' is 'doc'. It must be a set of ids")])
def test_gold_that_is_none(gold: Any, message: str) -> None:
    retriever, questions = right_where({0}, {0})
    with pytest.raises(ConfigurationError, match=message):
        tune(retriever, [*questions, LabelledQuestion("q", gold)], grid=GRID, folds=2)
    assert retriever.asked == []


def test_no_cases_and_a_measure_of_nothing() -> None:
    with pytest.raises(ConfigurationError, match="There are no cases to tune"):
        tune_together([])
    with pytest.raises(ConfigurationError, match="k is 0"):
        recall_at(0)


class Counted(BaseRetriever):
    """Gives the same nodes for every question, and counts."""

    def __init__(self, nodes: Sequence[TextNode]) -> None:
        self.nodes, self.asked = nodes, list[str]()
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.asked.append(query_bundle.query_str)
        return [NodeWithScore(node=node, score=1.0) for node in self.nodes]


TEXTS = {
    "rain": "Nothing is named.",
    "acme": "Acme sells anvils.",
    "beta": "Beta sells boats.",
    "delta": "Delta sells doors.",
}
TRIPLES = {
    "rain": [],
    "acme": [("Acme", "sells", "anvils")],
    "beta": [("Beta", "sells", "boats")],
    "delta": [("Delta", "sells", "doors")],
}
QUESTIONS = [
    LabelledQuestion("What are the anvils of Acme?", frozenset({"acme"})),
    LabelledQuestion("What are the boats of Beta?", frozenset({"beta"})),
    LabelledQuestion("What are the doors of Delta?", frozenset({"delta"})),
]


def walks(child: Counted) -> EntityGraphRetriever:
    return EntityGraphRetriever(child, EntityGraph.from_triples(TRIPLES), nodes=child.nodes, language="en", guard=1)


def votes(child: Counted) -> EntityVoteRetriever:
    return EntityVoteRetriever(child, EntityGraph.from_triples(TRIPLES), nodes=child.nodes, vectors=TextVectors(DeterministicEmbedding()), top_n=2, guard=1)


@pytest.mark.parametrize("make", [walks, votes])
def test_a_guard_that_keeps_what_is_wrong_in_front_is_tuned_away(make: Any) -> None:
    child = Counted([TextNode(id_=key, text=text) for key, text in TEXTS.items()])
    retriever = make(child)
    before = retriever.parameters
    report = tune(retriever, QUESTIONS, grid={"guard": (0, 1, 2)}, measure=recall_at(1), folds=3)
    assert (report.before, report.after, report.best) == (0.0, 1.0, 1.0)
    assert report.parameters == {"guard": 0}
    assert child.asked == [question.question for question in QUESTIONS], "once a question, whatever the number of settings"
    assert retriever.parameters == before
    tuned = retriever.with_parameters(**report.parameters)
    assert [tuned.retrieve(question.question)[0].node_id for question in QUESTIONS] == ["acme", "beta", "delta"]
    assert retriever.retrieve(QUESTIONS[0].question)[0].node_id == "rain"


@pytest.mark.parametrize(("make", "grid"), [(walks, WALK_GRID), (votes, VOTE_GRID)])
def test_the_grid_of_each_retriever(make: Any, grid: Mapping[str, Sequence[Any]]) -> None:
    child = Counted([TextNode(id_=key, text=text) for key, text in TEXTS.items()])
    report = tune(make(child), QUESTIONS, measure=recall_at(1), folds=2)
    assert set(report.parameters) == set(grid)
    assert report.parameters["guard"] == 0
    assert (len(child.asked), report.best) == (3, 1.0)


@pytest.mark.parametrize("make", [walks, votes])
def test_rankings_are_what_retrieve_finds(make: Any) -> None:
    retriever = make(Counted([TextNode(id_=key, text=text) for key, text in TEXTS.items()]))
    tried = [{}, {"guard": 0}, {"guard": 3}, {"guard": 100}]
    for question in [question.question for question in QUESTIONS] + ["zzz", "", "   "]:
        found = [[hit.node_id for hit in retriever.with_parameters(**setting).retrieve(question)] for setting in tried]
        assert [[*map(min, ranking)] for ranking in retriever.rankings(question, tried)] == found, question
    assert retriever.rankings("Acme", []) == []


@pytest.mark.parametrize(("make", "grid"), [(walks, {"share_weight": (0.1,)}), (votes, {"damping": (0.5,)}), (votes, {"top_n": (0,)})])
def test_a_grid_of_another_retriever_is_refused_before_anything_is_asked(make: Any, grid: dict[str, Any]) -> None:
    child = Counted([TextNode(id_=key, text=text) for key, text in TEXTS.items()])
    with pytest.raises(ConfigurationError, match=r"There are no options|top_n is 0"):
        tune(make(child), QUESTIONS, grid=grid, folds=2)
    assert child.asked == []


def test_gold_may_be_documents() -> None:
    node = TextNode(id_="n1", text="Acme sells anvils.", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="catalogue")})
    retriever = walks(Counted([node]))
    report = tune(retriever, [LabelledQuestion("Acme?", frozenset({"catalogue"}))] * 2, grid={"guard": (0, 1)}, folds=2)
    assert report.before == 1.0


def test_many_questions_fit_in_memory() -> None:
    retriever, _ = right_where({1})
    questions = [LabelledQuestion("q0", frozenset({"gold"}))] * 20_000
    report = tune(retriever, questions, grid={"guard": (0, 1)})
    assert report.interval == (1.0, 1.0)
    assert np.isfinite(report.after)
