"""Our personalised PageRank gives the shares of networkx, the reference, on random graphs."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from llama_index_advanced_rag.ranking import pagerank
from llama_index_advanced_rag.ranking.pagerank import local_pagerank, personalized_pagerank
from llama_index_advanced_rag.ranking.walk_matrix import WalkMatrix

N_MOST = 14
edges_of = st.dictionaries(st.tuples(st.integers(0, N_MOST - 1), st.integers(0, N_MOST - 1)), st.floats(0.01, 100.0), max_size=40)
seeds_of = st.dictionaries(st.integers(0, N_MOST - 1), st.floats(0.01, 10.0), min_size=1, max_size=6)


def graph_of(edges, n_nodes):
    graph = nx.Graph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_weighted_edges_from((first % n_nodes, second % n_nodes, weight) for (first, second), weight in edges.items())
    return graph


def reference(graph, seeds, damping):
    shares = nx.pagerank(graph, alpha=damping, personalization=seeds, tol=1e-12, max_iter=2000)
    return np.array([shares[node] for node in range(len(graph))])


def ours(graph, seeds, damping, function=personalized_pagerank, **options):
    walk = WalkMatrix.of(csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), dtype=float)))
    return function(walk, list(seeds), list(seeds.values()), damping=damping, **options)


@given(edges_of, seeds_of, st.integers(1, N_MOST), st.sampled_from([0.5, 0.85]))
@settings(max_examples=150, deadline=None)
def test_shares_equal_those_of_networkx(edges, seeds, n_nodes, damping):
    graph = graph_of(edges, n_nodes)  # often in several parts, with self loops and nodes without edges
    kept = {node % n_nodes: weight for node, weight in seeds.items()}
    assert np.abs(ours(graph, kept, damping) - reference(graph, kept, damping)).sum() <= 1e-6


@pytest.mark.parametrize("damping", [0.5, 0.85])
@pytest.mark.parametrize(
    ("graph", "seeds"),
    [
        (graph_of({}, 1), {0: 1.0}),
        (graph_of({(0, 0): 2.0}, 1), {0: 1.0}),
        (graph_of({}, 3), {0: 1.0, 2: 3.0}),
        (graph_of({(0, 1): 1.0}, 3), {2: 1.0}),
        (graph_of({(0, 1): 1.0, (2, 3): 5.0, (4, 4): 0.5}, 6), {0: 1.0, 2: 1.0, 4: 2.0, 5: 0.5}),
        (nx.star_graph(50), {3: 1.0}),
        (nx.path_graph(30), {0: 1.0, 29: 0.1}),
        (nx.karate_club_graph(), {0: 1.0, 33: 2.0}),
    ],
    ids=["one node", "one self loop", "no edges", "seed without edges", "parts", "star", "path", "karate club"],
)
def test_graphs_with_a_twist(graph, seeds, damping):
    assert np.abs(ours(graph, seeds, damping) - reference(graph, seeds, damping)).sum() <= 1e-6


@pytest.mark.parametrize("damping", [0.5, 0.85])
@pytest.mark.parametrize("small", [0, 10**9], ids=["pushed first", "solved at once"])
def test_both_methods_on_a_graph_with_a_hub(monkeypatch, damping, small):
    monkeypatch.setattr(pagerank, "_SMALL", small)
    graph = nx.compose(nx.barabasi_albert_graph(2000, 3, seed=7), nx.star_graph(1000))
    rng = np.random.default_rng(5)
    nx.set_edge_attributes(
        graph, {edge: float(weight) for edge, weight in zip(graph.edges, rng.uniform(0.1, 3, graph.number_of_edges()), strict=True)}, "weight"
    )
    seeds = {int(node): float(weight) for node, weight in zip(rng.choice(2000, 20, replace=False), rng.random(20), strict=True)}
    expected = reference(graph, seeds, damping)
    assert np.abs(ours(graph, seeds, damping) - expected).sum() <= 1e-6
    degrees = np.array([value for _, value in sorted(graph.degree(weight="weight"))])
    found = ours(graph, seeds, damping, local_pagerank, tolerance=1e-5)
    assert (np.abs(found - expected) / degrees).max() * degrees.mean() <= 1e-5
