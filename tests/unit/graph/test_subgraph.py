"""What lies around and between entities: ways over facts before chunks, facts nearest first, hubs, filters, and odd graphs."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.connections import Connections
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.name_fold import ChunkText
from llama_index_advanced_rag.graph.records import NAME, ExtractionRecord, Mention, Relation
from llama_index_advanced_rag.graph.subgraph import SubGraph, subgraph

COURSE = [
    ("Google", "a créé", "BERT"),
    ("OpenAI", "a créé", "GPT-4"),
    ("BERT", "est un", "modèle de langage"),
    ("GPT-4", "est un", "modèle de langage"),
    ("Anthropic", "a créé", "Claude"),
    ("Claude", "utilise", "Transformer"),
    ("Vaswani", "a proposé", "Transformer"),
]


def of_triples(triples):
    return EntityGraph.from_triples({f"t{number}": [triple] for number, triple in enumerate(triples)})


def of_names(chunks, *, aliases=None, titles=None):
    """Chunks that name entities and say nothing else."""
    titles = titles or {}
    records = {
        chunk: ChunkText("", ExtractionRecord(tuple(Mention(name, NAME, -1, -1) for name in names), (), (titles[chunk],) if chunk in titles else ()))
        for chunk, names in chunks.items()
    }
    return EntityGraph.from_records(records, aliases=aliases)


def places(graph, *names):
    return [graph.names.index(name) for name in names]


def around(graph, *names, **options):
    return subgraph(graph, places(graph, *names), **options)


def told(found):
    return [(fact.subject, fact.object) for fact in found.facts]


def passed(found):
    return [[step.start for step in path] + [path[-1].end] for path in found.paths]


def test_the_course_graph_leads_from_anthropic_to_vaswani():
    found = around(of_triples(COURSE), "Anthropic")
    assert told(found) == [("Anthropic", "Claude"), ("Claude", "Transformer"), ("Vaswani", "Transformer")]
    assert found.entities == ("Anthropic", "Claude", "Transformer", "Vaswani")
    assert found.fact_chunks == (("t4",), ("t5",), ("t6",))
    assert told(around(of_triples(COURSE), "Anthropic", max_hops=2)) == [("Anthropic", "Claude"), ("Claude", "Transformer")]


def test_two_entities_are_connected_by_the_shortest_way_and_told_in_its_order():
    found = around(of_triples(COURSE), "Anthropic", "Vaswani")
    assert passed(found) == [["Anthropic", "Claude", "Transformer", "Vaswani"]]
    assert found.path_chunks == (("t4", "t5", "t6"),)
    assert found.text("fr").splitlines()[1:] == ["- Anthropic a créé Claude ; Claude utilise Transformer ; Vaswani a proposé Transformer."]


def test_more_than_three_steps_are_no_connection():
    chain = of_triples([("A1", "knows", "B1"), ("B1", "knows", "C1"), ("C1", "knows", "D1"), ("D1", "knows", "E1")])
    assert passed(around(chain, "A1", "D1")) == [["A1", "B1", "C1", "D1"]]
    assert around(chain, "A1", "E1").paths == ()
    assert around(chain, "A1", "D1", max_hops=2).paths == ()


def test_chunks_join_what_no_fact_joins_each_step_one_hop():
    graph = of_names({"c1": ["A1", "B1"], "c2": ["B1", "C1"], "c3": ["C1", "D1"], "c4": ["D1", "E1"]}, titles={"c2": "Second"})
    found = around(graph, "A1", "D1")
    assert passed(found) == [["A1", "B1", "C1", "D1"]]
    assert [step.source for step in found.paths[0]] == ["c1", "Second", "c3"]
    assert found.path_chunks == (("c1", "c2", "c3"),)
    assert around(graph, "A1", "E1").paths == ()
    assert found.facts == ()


def test_facts_come_before_chunks_even_where_the_chunk_is_nearer():
    facts = (Relation("A1", "knows", "B1"), Relation("B1", "knows", "C1"))
    said = {
        "c1": ChunkText("", ExtractionRecord((), facts[:1])),
        "c2": ChunkText("", ExtractionRecord((), facts[1:])),
        "c3": ChunkText("A1 and C1.", ExtractionRecord()),
    }
    found = around(EntityGraph.from_records(said), "A1", "C1")
    assert [step.fact for step in found.paths[0]] == list(facts)


def test_facts_and_chunks_make_a_way_together():
    said = {
        "c1": ChunkText("", ExtractionRecord((), (Relation("A1", "knows", "B1"),))),
        "c2": ChunkText("B1 met C1.", ExtractionRecord((Mention("C1", NAME, 7, 9),))),
    }
    steps = around(EntityGraph.from_records(said), "A1", "C1").paths[0]
    assert [(step.start, step.end, step.fact is None, step.source) for step in steps] == [("A1", "B1", False, None), ("B1", "C1", True, "c2")]


def test_aliases_connect():
    found = around(of_names({"c1": ["GPT4"], "c2": ["GPT-4"]}, aliases={("gpt4", "gpt 4"): 0.9}), "GPT4", "GPT-4")
    assert [(step.start, step.end, step.fact, step.source) for step in found.paths[0]] == [("GPT4", "GPT-4", None, None)]
    assert "connected" in found.text()


def test_a_way_through_a_third_entity_that_was_asked_for_is_told_by_its_parts():
    found = around(of_triples([("A1", "knows", "B1"), ("B1", "knows", "C1")]), "A1", "B1", "C1")
    assert passed(found) == [["A1", "B1"], ["B1", "C1"]]


def test_hubs_are_not_passed_through_but_may_be_asked_for():
    hub = [(f"N{number}", "is in", "France") for number in range(300)]
    graph = of_triples([*hub, ("Paris", "capital of", "France")])
    assert around(graph, "N1", "N2").paths == ()
    assert told(around(graph, "N1")) == [("N1", "France")]
    of_hub = around(graph, "France", max_facts=7)
    assert len(of_hub.facts) == 7
    assert passed(around(graph, "France", "Paris")) == [["France", "Paris"]]


def test_nearer_facts_come_first_then_the_more_fitting_ones_else_those_of_entities_with_fewer_connections():
    graph = of_triples([("A1", "knows", "B1"), ("A1", "likes", "C1"), ("B1", "knows", "D1")])
    assert told(around(graph, "A1")) == [("A1", "C1"), ("A1", "B1"), ("B1", "D1")]
    ranked = around(graph, "A1", relevance=lambda facts: [{"B1": 1.0, "C1": 0.0, "D1": 9.0}[fact.object] for fact in facts])
    assert told(ranked) == [("A1", "B1"), ("A1", "C1"), ("B1", "D1")]
    assert told(around(graph, "A1", max_facts=0)) == []


def test_the_same_fact_in_many_chunks_is_told_once_with_all_its_chunks():
    said = {f"c{number}": [("A1", "knows", "B1"), ("A1", "is", "A1")] for number in range(700)}
    found = around(EntityGraph.from_triples({**said, "z": [("A1", "likes", "C1")]}), "A1")
    assert sorted(told(found)) == [("A1", "B1"), ("A1", "C1")]
    assert sorted(len(chunks) for chunks in found.fact_chunks) == [1, 700]


def test_only_allowed_chunks_are_heard():
    graph = of_triples([("A1", "knows", "B1"), ("B1", "knows", "C1"), ("A1", "likes", "D1")])
    allowed = np.array([True, False, True])
    found = around(graph, "A1", "C1", allowed=allowed)
    assert found.paths == ()
    assert sorted(told(found)) == [("A1", "B1"), ("A1", "D1")]


def test_aliases_of_names_that_only_other_chunks_say_are_not_heard():
    graph = of_names({"c1": ["A1"], "c2": ["B1"], "c3": ["C1"]}, aliases={("a1", "b1"): 0.9, ("b1", "c1"): 0.9})
    assert passed(around(graph, "A1", "C1")) == [["A1", "B1", "C1"]]
    assert around(graph, "A1", "C1", allowed=np.array([True, False, True])).paths == ()


def test_chunks_behind_a_text_are_those_of_the_lines_that_found_room():
    found = around(of_triples(COURSE), "Anthropic")
    whole, short = found.text(), found.text(max_tokens=12)
    assert found.chunks_behind(whole) == ["t4", "t5", "t6"]
    assert found.chunks_behind(short) == ["t4"]
    assert found.chunks_behind("") == []


def test_nothing_known_is_nothing_told():
    empty = EntityGraph.from_triples({})
    assert subgraph(empty, []) == SubGraph()
    lonely = of_names({"c1": ["A1"], "c2": ["B1"]})
    found = around(lonely, "A1", "B1")
    assert (found.entities, found.facts, found.paths, found.text()) == (("A1", "B1"), (), (), "")


def test_wrong_arguments_say_so():
    graph = of_triples(COURSE)
    with pytest.raises(ConfigurationError, match="max_hops is 4"):
        subgraph(graph, [0], max_hops=4)
    with pytest.raises(ConfigurationError, match="max_facts is -1"):
        subgraph(graph, [0], max_facts=-1)
    with pytest.raises(ConfigurationError, match="A seed is 99"):
        subgraph(graph, [99])
    with pytest.raises(ConfigurationError, match="Connections.of"):
        subgraph(Connections.of(graph), [0], allowed=np.ones(graph.n_chunks, dtype=bool))


def test_many_entities_in_a_large_graph_take_no_time():
    rng = np.random.default_rng(0)
    ends = rng.zipf(1.3, size=(40_000, 2)) % 5_000
    graph = EntityGraph.from_triples({f"c{number}": [(f"E{one}", "knows", f"E{other}")] for number, (one, other) in enumerate(ends.tolist())})
    ready = Connections.of(graph)
    began = time.perf_counter()
    found = subgraph(ready, list(range(1_000)))
    assert len(found.paths) <= 10
    assert time.perf_counter() - began < 10


TRIPLE = st.tuples(st.integers(0, 9), st.integers(0, 9))


@settings(max_examples=60, deadline=None)
@given(st.lists(TRIPLE, max_size=25), st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6), st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_ways_are_as_short_as_a_search_finds_them(triples, together, wanted):
    said = {f"t{number}": ChunkText("", ExtractionRecord((), (Relation(f"E{one}", "knows", f"E{other}"),))) for number, (one, other) in enumerate(triples)}
    for number, names in enumerate(together):
        said[f"n{number}"] = ChunkText("", ExtractionRecord(tuple(Mention(f"E{name}", NAME, -1, -1) for name in names)))
    graph = EntityGraph.from_records(said)
    seeds = list(dict.fromkeys(number % graph.n_entities for number in wanted)) if graph.n_entities else []
    found = subgraph(graph, seeds)
    by_facts = {frozenset((f"E{one}", f"E{other}")) for one, other in triples if one != other}
    by_chunks = by_facts | {frozenset((f"E{one}", f"E{other}")) for names in together for one in names for other in names if one != other}
    named = [graph.names[seed] for seed in seeds]
    for nodes, path in zip(passed(found), found.paths, strict=True):
        assert {nodes[0], nodes[-1]} <= set(named)
        edges = by_facts if all(step.fact for step in path) else by_chunks
        assert all(frozenset(pair) in edges for pair in pairwise(nodes))
        assert len(path) == hops(edges, nodes[0], nodes[-1]) <= 3
    joined = {frozenset((nodes[0], nodes[-1])) for nodes in passed(found)}
    for number, one in enumerate(named):
        for other in named[number + 1 :]:
            apart = hops(by_chunks, one, other)
            assert apart is None or apart > 3 or frozenset((one, other)) in joined or len(named) > 2


def hops(edges, one, other):
    reached, count = {one}, 0
    while other not in reached:
        more = {end for edge in edges if edge & reached for end in edge}
        if more <= reached:
            return None
        reached, count = reached | more, count + 1
    return count
