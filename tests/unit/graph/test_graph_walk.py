"""Walking the entity graph: what the course's questions reach, hubs, strangers, and passages that may not be walked through."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.graph_walk import GraphWalk, Reached, entity_weights, fact_counts
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights

TRIPLES = {
    "bert": [("BERT", "est un", "modèle de langage")],
    "gpt": [("GPT-4", "est un", "modèle de langage")],
    "google": [("BERT", "créé par", "Google")],
    "openai": [("GPT-4", "créé par", "OpenAI")],
    "claude": [("Claude", "créé par", "Anthropic")],
    "transformer": [("Claude", "utilise", "Transformer")],
    "vaswani": [("Transformer", "proposé par", "Vaswani")],
    "tour": [("tour Eiffel", "construite à", "Paris")],
    "lyon": [],
}
GRAPH = EntityGraph.from_triples(TRIPLES)


def walk_from(question: str, found: Iterable[str] = (), *, graph: EntityGraph = GRAPH, allowed: Iterable[str] | None = None, **options: Any) -> Reached:
    mask = None if allowed is None else np.array([chunk in set(allowed) for chunk in graph.chunk_ids])
    passages = [graph.place_of_chunk[chunk] for chunk in found]
    return GraphWalk.of(graph, allowed=mask).reach(entity_weights(graph, graph.link(question)), passages, **options)


def order(reached: Reached, graph: EntityGraph = GRAPH) -> list[str]:
    ranked = np.argsort(-np.round(reached.chunks, 12), kind="stable")
    return [graph.chunk_ids[place] for place in ranked.tolist() if reached.chunks[place] > 1e-9]


def at(reached: Reached, name: str, graph: EntityGraph = GRAPH) -> float:
    return float(reached.values[graph.n_chunks + graph.names.index(name)])


def test_from_the_kind_of_model_to_who_made_them() -> None:
    reached = walk_from("modèle de langage")
    assert order(reached)[:4] == ["bert", "gpt", "google", "openai"]
    assert at(reached, "Google") > 0
    assert at(reached, "OpenAI") > 0
    assert at(reached, "Vaswani") == at(reached, "Paris") == 0


def test_from_the_maker_to_who_proposed_what_its_model_uses() -> None:
    reached = walk_from("Anthropic")
    assert order(reached) == ["claude", "transformer", "vaswani"]
    assert at(reached, "Claude") > at(reached, "Transformer") > at(reached, "Vaswani") > 0


def test_shares_add_up_and_passages_get_theirs() -> None:
    reached = walk_from("Anthropic", ["tour", "gpt"], prior_share=0.4)
    assert reached.values.sum() == pytest.approx(1, abs=1e-4)
    assert reached.amounts.sum() == pytest.approx(1)
    starts = {GRAPH.chunk_ids[node]: amount for node, amount in zip(reached.nodes.tolist(), reached.amounts.tolist(), strict=True) if node < GRAPH.n_chunks}
    assert starts == {"gpt": pytest.approx(0.4 / 3), "tour": pytest.approx(0.8 / 3)}, "the second starts half of what the first does"
    assert set(order(reached)) == set(TRIPLES) - {"lyon"}


def test_a_larger_share_for_the_passages_brings_them_forward() -> None:
    shares = [dict(zip(GRAPH.chunk_ids, walk_from("Anthropic", ["tour"], prior_share=share).chunks.tolist(), strict=True))["tour"] for share in (0.0, 0.3, 0.9)]
    assert shares == sorted(shares)
    assert shares[0] == 0


def test_seeds_that_no_edge_joins_are_both_walked_from() -> None:
    reached = walk_from("Anthropic and the tour Eiffel")
    assert {"tour", "claude", "vaswani"} <= set(order(reached))
    assert not {"bert", "gpt"} & set(order(reached))


def test_no_entity_leaves_the_passages_alone() -> None:
    assert order(walk_from("nothing known", ["lyon", "vaswani"]))[:2] == ["lyon", "vaswani"]
    assert walk_from("nothing known").chunks.tolist() == [0.0] * GRAPH.n_chunks
    assert len(walk_from("nothing known").nodes) == 0


def test_a_passage_found_twice_counts_twice_and_one_without_names_keeps_its_share() -> None:
    assert walk_from("", ["lyon", "lyon"]).amounts.tolist() == [1.0]
    assert walk_from("", ["lyon"]).chunks[GRAPH.place_of_chunk["lyon"]] == pytest.approx(1)


def test_a_name_all_over_the_corpus_hardly_counts() -> None:
    graph = EntityGraph.from_triples({**{f"c{number}": [("Hub", "names", f"Leaf {number}")] for number in range(50)}, "rare": [("Rare", "and", "Other")]})
    weights = {graph.names[entity]: weight for entity, weight in entity_weights(graph, graph.link("Hub and Rare")).items()}
    assert weights == {"Hub": pytest.approx(1 / 50), "Rare": 1.0}
    assert order(walk_from("Hub and Rare", graph=graph), graph)[0] == "rare"
    assert entity_weights(graph, []) == {}


def test_passages_that_are_not_allowed_are_neither_reached_nor_walked_through() -> None:
    reached = walk_from("Anthropic", allowed=set(TRIPLES) - {"transformer"})
    assert order(reached) == ["claude"]
    assert at(reached, "Transformer") == at(reached, "Vaswani") == 0
    assert walk_from("Anthropic", allowed=()).values.sum() == 0


@given(st.sets(st.sampled_from(sorted(TRIPLES))), st.sampled_from(["Anthropic", "modèle de langage", "Google and Paris", "Transformer"]))
def test_under_any_filter_a_walk_is_that_on_the_graph_of_what_is_left(allowed: set[str], question: str) -> None:
    reached = walk_from(question, allowed=allowed)
    assert set(order(reached)) <= allowed
    smaller = EntityGraph.from_triples({chunk: triples for chunk, triples in TRIPLES.items() if chunk in allowed})
    weights = {
        smaller.keys.index(GRAPH.keys[entity]): weight
        for entity, weight in entity_weights(GRAPH, GRAPH.link(question)).items()
        if GRAPH.keys[entity] in smaller.keys
    }
    alone = GraphWalk.of(smaller).reach(weights)
    np.testing.assert_allclose([reached.chunks[GRAPH.place_of_chunk[chunk]] for chunk in smaller.chunk_ids], alone.chunks, atol=1e-5)


def test_facts_are_counted_in_both_directions_and_of_allowed_passages() -> None:
    graph = EntityGraph.from_triples({"a": [("X", "made", "Y"), ("Y", "made", "X")], "b": [("X", "knows", "Y"), ("X", "is", "X")]})
    assert fact_counts(graph).toarray().tolist() == [[2.0, 3.0], [3.0, 0.0]]
    assert fact_counts(graph, np.array([False, True])).toarray().tolist() == [[2.0, 1.0], [1.0, 0.0]]


def test_a_fact_of_a_thing_and_itself_and_the_same_fact_often() -> None:
    graph = EntityGraph.from_triples({"a": [("X", "is", "X")] * 1000, "b": [("X", "made", "Y")]})
    assert order(walk_from("X", graph=graph), graph) == ["a", "b"]


def test_without_the_edges_of_facts_the_walk_goes_through_passages() -> None:
    graph = EntityGraph.from_triples({"a": [("X", "made", "Y")], "b": [("Y", "made", "Z")]})
    walk = GraphWalk.of(graph, weights=EdgeWeights(relations=0.0))
    assert order(walk.reach(entity_weights(graph, graph.link("X"))), graph) == ["a", "b"]


@given(st.permutations(sorted(TRIPLES)))
def test_the_order_of_the_chunks_changes_ties_only(chunks: list[str]) -> None:
    graph = EntityGraph.from_triples({chunk: TRIPLES[chunk] for chunk in chunks})
    reached: Mapping[str, float] = dict(zip(graph.chunk_ids, walk_from("Anthropic", graph=graph).chunks.tolist(), strict=True))
    expected = dict(zip(GRAPH.chunk_ids, walk_from("Anthropic").chunks.tolist(), strict=True))
    assert reached == {chunk: pytest.approx(value, abs=1e-9) for chunk, value in expected.items()}


def test_the_same_walk_twice_is_equal_and_changes_nothing() -> None:
    walk = GraphWalk.of(GRAPH)
    before = GRAPH.mentions.data.copy(), walk.walk.edges.data.copy()
    first, second = (walk.reach(entity_weights(GRAPH, GRAPH.link("Anthropic")), [1, 2]) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(before[0], GRAPH.mentions.data)
    np.testing.assert_array_equal(before[1], walk.walk.edges.data)
