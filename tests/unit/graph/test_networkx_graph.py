"""The graph as networkx sees it: the same nodes and edges, and a message where networkx is missing."""

import sys

import networkx as nx
import pytest

from llama_index_advanced_rag.errors import MissingExtraError
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.name_fold import ChunkText
from llama_index_advanced_rag.graph.records import ExtractionRecord, Relation


@pytest.fixture
def graph():
    deal = Relation("Acme", "signed", "GlobalTech", {"date": "2026-01-15", "kind": "contract", "weight": 9})
    again = Relation("GlobalTech", "paid", "Acme")
    chunks = {"c1": ChunkText("Acme and GlobalTech. Acme again.", ExtractionRecord((), (deal, again))), "c2": ChunkText("Nothing.", ExtractionRecord())}
    return EntityGraph.from_records(chunks, aliases={("acme", "globaltech"): 0.5})


def test_nodes_and_edges_are_those_of_the_graph(graph):
    made = graph.to_networkx()
    assert isinstance(made, nx.MultiGraph)
    assert list(made.nodes(data=True)) == [
        (("chunk", "c1"), {}),
        (("chunk", "c2"), {}),
        (("entity", "acme"), {"name": "Acme"}),
        (("entity", "globaltech"), {"name": "GlobalTech"}),
    ]
    weights = {(one, other): edge["weight"] for one, other, edge in made.edges(data=True) if edge["kind"] == "mention"}
    assert weights == {(("chunk", "c1"), ("entity", "acme")): 2.0, (("chunk", "c1"), ("entity", "globaltech")): 1.0}
    assert [edge["weight"] for *_, edge in made.edges(data=True) if edge["kind"] == "alias"] == [0.5]


def test_each_fact_is_an_edge_that_knows_its_direction_its_chunk_and_its_properties(graph):
    told = [edge for *_, edge in graph.to_networkx().edges(data=True) if edge["kind"] == "fact"]
    assert [(edge["subject"], edge["predicate"], edge["object"], edge["chunk"], edge["weight"]) for edge in told] == [
        ("acme", "signed", "globaltech", "c1", 1.0),
        ("globaltech", "paid", "acme", "c1", 1.0),
    ]
    assert told[0]["date"] == "2026-01-15"
    assert told[0]["properties"] == {"date": "2026-01-15", "kind": "contract", "weight": 9}


def test_its_algorithms_work_and_what_they_change_is_a_copy(graph):
    made = graph.to_networkx()
    assert nx.number_connected_components(made) == 2
    made.clear()
    assert graph.facts.relations[0].properties["date"] == "2026-01-15"
    assert graph.to_networkx().number_of_nodes() == 4


def test_an_empty_graph_is_an_empty_graph():
    assert EntityGraph.from_triples({}).to_networkx().number_of_nodes() == 0


def test_without_networkx_the_message_says_how_to_get_it(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r"advanced-rag\[graph\]"):
        graph.to_networkx()
