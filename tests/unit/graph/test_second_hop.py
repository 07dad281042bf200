"""What stands near the question's words, in passages that name the question's entities."""

import time

import pytest

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.second_hop import near_question_words

GRAPH = EntityGraph.from_triples({"c": [("Knott", "near", "Wainwright"), ("Lake District", "has", "Keswick"), ("Zoé", "à", "Paris")]})
TEXT = "Knott is a fell whose district is the Lake District" + " and so on" * 8 + ", and it was visited by Wainwright."


def near(query: str, passages: dict[str, str], *, language: str = "en", **options: int) -> dict[str, float]:
    found = near_question_words(GRAPH, query, GRAPH.link(query), passages, language=language, **options)
    return {GRAPH.names[entity]: score for entity, score in found.items()}


def test_within_the_window_and_not_beyond() -> None:
    assert near("Who visited the fell of Knott?", {"c": TEXT}, window=8) == {"Lake District": 0.5, "Wainwright": 0.5}
    assert near("Who visited Knott?", {"c": TEXT}, window=8) == {"Wainwright": 1.0}
    assert near("Who visited Knott?", {"c": TEXT}, window=2) == {"Wainwright": 1.0}
    assert near("Who visited Knott?", {"c": TEXT}, window=1) == {}


def test_rare_words_count_more() -> None:
    passages = {"a": "Knott: visited by Wainwright.", "b": "Knott: a fell.", "c": "Knott: a fell of Keswick."}
    scores = near("Which fell was visited, Knott?", passages)
    assert scores["Wainwright"] > scores["Keswick"] > 0
    assert all(0 < score <= 1 for score in scores.values())


def test_the_best_of_several_mentions_counts() -> None:
    text = "Wainwright. " + "Nothing to see here at all. " * 4 + "He visited Knott: Wainwright."
    assert near("Who visited Knott?", {"c": text}) == {"Wainwright": 1.0}


def test_words_are_compared_by_their_stems_in_the_language_of_the_question() -> None:
    assert near("Qui visitera Knott ?", {"c": "Zoé visitait Knott."}, language="fr") == {"Zoé": 1.0}
    assert near("Who is visiting Knott?", {"c": "Zoé visited Knott."}, language="auto") == {"Zoé": 1.0}
    assert near("Who visited Knott?", {"c": "Zoé visited Knott."}, language="none") == {"Zoé": 1.0}


@pytest.mark.parametrize("query", ["", "Knott", "the of and", "— ?", "Who was it?"])
def test_a_question_without_words_of_its_own(query: str) -> None:
    assert near(query, {"c": TEXT}) == {}


def test_names_in_lower_case_are_no_words_of_the_question_either() -> None:
    passages = {"a": TEXT, "b": "A fell called Knott, beside Keswick."}
    assert near("who visited knott?", passages) == near("Who visited Knott?", passages) == {"Wainwright": 1.0}


def test_nothing_to_read() -> None:
    assert near("Who visited Knott?", {}) == near("Who visited Knott?", {"c": ""}) == near("Who visited Knott?", {"c": "nobody"}) == {}


def test_the_entities_of_the_question_are_not_their_own_neighbours() -> None:
    assert near("Was Wainwright visited by Knott?", {"c": "Knott was visited by Wainwright."}) == {}


def test_a_paragraph_of_five_megabytes_takes_seconds() -> None:
    text = "Knott was visited by Wainwright, who lived in Keswick near the lake. " * 75_000
    start = time.perf_counter()
    assert near("Who visited Knott?", {"c": text}) == {"Wainwright": 1.0, "Keswick": 1.0}
    assert time.perf_counter() - start < 60.0


def test_nothing_is_changed() -> None:
    passages = {"c": TEXT}
    assert near("Who visited Knott?", passages) == near("Who visited Knott?", passages)
    assert passages == {"c": TEXT}
