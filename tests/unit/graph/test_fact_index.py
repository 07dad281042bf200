"""Facts by their words, and by their meaning too where something embeds them."""

import numpy as np
import pytest

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.fact_index import FactIndex
from llama_index_advanced_rag.graph.text_vectors import TextVectors
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

GRAPH = EntityGraph.from_triples(
    {
        "a": [("BERT", "créé_par", "Google"), ("GPT-4", "estUn", "modèle de langage")],
        "b": [("Claude", "CREATED_BY", "Anthropic")],
    }
)


def index(graph: EntityGraph = GRAPH, *, language: str = "fr", vectors: TextVectors | None = None) -> FactIndex:
    return FactIndex(graph.facts, TextAnalyzer(language), vectors)


def test_facts_in_their_own_words() -> None:
    assert index().texts == ["BERT créé par Google", "GPT-4 est un modèle de langage", "Claude created by Anthropic"]


def test_by_words_the_best_has_1_and_what_shares_none_has_0() -> None:
    assert index().scores("Quels modèles de langage ?").tolist() == [0.0, 1.0, 0.0]
    scores = index().scores("Qui a créé BERT ?")
    assert scores.argmax() == 0
    assert scores[0] == 1.0
    assert index().scores("rien de tout cela").tolist() == index().scores("").tolist() == [0.0, 0.0, 0.0]


def test_by_words_and_meaning_the_mean_of_both() -> None:
    model = DeterministicEmbedding()
    vectors = TextVectors(model)
    facts, query = index(vectors=vectors), "Qui a créé BERT ?"
    vector = model.get_query_embedding(query)
    cosines = np.clip(vectors.similarities(facts.texts, vector), 0, 1)
    np.testing.assert_allclose(facts.scores(query, vector), (index().scores(query) + cosines) / 2)
    assert facts.scores(query).tolist() == index().scores(query).tolist(), "without an embedding by words only"


def test_no_facts() -> None:
    assert index(EntityGraph.from_triples({})).scores("anything").shape == (0,)
    assert index(EntityGraph.from_triples({}), vectors=TextVectors(DeterministicEmbedding())).scores("anything", [1.0]).shape == (0,)


def test_long_facts_are_cut_and_the_same_fact_twice_is_scored_twice() -> None:
    graph = EntityGraph.from_triples({"a": [("X" * 10_000, "is " * 3000, "Long"), ("BERT", "by", "Google"), ("BERT", "by", "Google")]})
    facts = index(graph, vectors=TextVectors(DeterministicEmbedding()))
    assert max(map(len, facts.texts)) == 1000
    scores = facts.scores("Google", [1.0] + [0.0] * 63)
    assert scores[1] == scores[2] == pytest.approx(float(scores.max()))


def test_a_question_of_a_megabyte() -> None:
    assert index().scores("Qui a créé BERT ? " * 60_000).argmax() == 0
