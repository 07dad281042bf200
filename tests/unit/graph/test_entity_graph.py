"""The entity graph: the same arrays whatever the history, names with several meanings, ready triples of every kind."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.fold_arrays import MOST_NAMESAKES
from llama_index_advanced_rag.graph.graph_walk import GraphWalk, entity_weights
from llama_index_advanced_rag.graph.name_fold import ChunkText, NameFold
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention, Relation
from llama_index_advanced_rag.trace import capture_trace

NAMES = (
    *("Lake", "Lake District", "Lake District National Park", "District", "The Lake", "LAKE", "Star (film)", "Star (film) (1990)"),
    *("Star", "Star film", "Star (book)", "Q3 2022", "Q3 2023", "Q3", "Élan", "elan", "日本", "日", "日本 (国)", "GPT-4", "GPT", "C++", "—", "", "ﷺ"),
)
names = st.sampled_from(NAMES)
records = st.builds(
    ExtractionRecord,
    st.lists(st.builds(Mention, names, st.just("name"), st.sampled_from([-1, 0]), st.just(1)), max_size=3).map(tuple),
    st.lists(st.builds(Relation, names, st.sampled_from(["made", "uses"]), names), max_size=2).map(tuple),
    st.lists(names, max_size=2).map(tuple),
)
chunks = st.builds(ChunkText, st.lists(names, max_size=8).map(" ".join), records)
corpora = st.dictionaries(st.sampled_from([f"c{number}" for number in range(8)]), chunks, max_size=6)
ALIASES = {("lake", "lake district"): 0.9, ("elan", "star"): 0.8, ("unknown", "gpt"): 1.0}


def assert_equal_matrices(one: Any, other: Any) -> None:
    """To the last bit, and in the same order."""
    assert one.shape == other.shape
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part))


def assert_equal_graphs(one: EntityGraph, other: EntityGraph) -> None:
    assert (one.chunk_ids, one.keys, one.names, dict(one.namesakes)) == (other.chunk_ids, other.keys, other.names, dict(other.namesakes))
    for part in ("mentions", "own", "aliases", "chunks_of"):
        assert_equal_matrices(getattr(one, part), getattr(other, part))
    for place in range(3):
        np.testing.assert_array_equal(one.facts[place], other.facts[place])
    assert list(one.facts.relations) == list(other.facts.relations)
    np.testing.assert_array_equal(one.titles, other.titles)
    np.testing.assert_array_equal(one.document_frequency, other.document_frequency)
    assert [one.link(name) for name in NAMES] == [other.link(name) for name in NAMES]


def walk_values(graph: EntityGraph) -> list[Any]:
    """What is reached from each entity, with a prior."""
    walk = GraphWalk.of(graph)
    return [walk.reach(entity_weights(graph, [entity]), range(min(2, graph.n_chunks))).values for entity in range(graph.n_entities)]


def assert_equal_walks(one: EntityGraph, other: EntityGraph) -> None:
    for left, right in zip(walk_values(one), walk_values(other), strict=True):
        np.testing.assert_array_equal(left, right)


def said_by(*surfaces: str, title: str | None = None, facts: Sequence[Relation] = ()) -> ExtractionRecord:
    return ExtractionRecord(tuple(Mention(name, "name", 0, 1) for name in surfaces), tuple(facts), () if title is None else (title,))


def named(graph: EntityGraph, chunk: str) -> Mapping[str, float]:
    row = graph.mentions[[graph.place_of_chunk[chunk]]].toarray()[0]
    return {graph.names[entity]: float(row[entity]) for entity in np.flatnonzero(row)}


@settings(max_examples=80, deadline=None)
@given(corpora, corpora, st.randoms(use_true_random=False))
def test_a_and_b_without_b_is_a_to_the_last_bit(left: dict[str, ChunkText], right: dict[str, ChunkText], random: Any) -> None:
    added = [("left", chunk_id) for chunk_id in left] + [("right", chunk_id) for chunk_id in right]
    said = {number: (left if side == "left" else right)[chunk_id] for number, (side, chunk_id) in enumerate(added)}
    gone = [number for number, (side, _) in enumerate(added) if side == "right"]
    order, fold = list(said), NameFold()
    random.shuffle(order), random.shuffle(gone)
    for number in order:
        fold.add(number, said[number])
        if random.random() < 0.4:
            fold.settle(lambda numbers: {number: said[number].text for number in numbers})
    for number in gone:
        fold.remove(number)
        if random.random() < 0.3:
            fold.settle(lambda numbers: {number: said[number].text for number in numbers})
    fold.settle(lambda numbers: {number: said[number].text for number in numbers})
    folded = EntityGraph.from_fold(fold, dict(enumerate(left)), aliases=ALIASES)
    fresh = EntityGraph.from_records(left, aliases=ALIASES)
    assert_equal_graphs(folded, fresh)
    assert_equal_walks(folded, fresh)


@settings(max_examples=60, deadline=None)
@given(corpora)
def test_what_always_holds(said: dict[str, ChunkText]) -> None:
    graph = EntityGraph.from_records(said, aliases=ALIASES)
    assert graph.keys == sorted(set(graph.keys))
    assert graph.mentions.shape == graph.own.shape == (len(said), graph.n_entities)
    assert np.all(graph.mentions.data > 0)
    assert set(graph.own.data.tolist()) <= {1.0}
    assert np.all(graph.document_frequency >= 1), "an entity is named somewhere"
    aliases: Any = graph.aliases
    assert (aliases != aliases.T).nnz == 0
    assert all(0 <= entity < graph.n_entities for meant in graph.namesakes.values() for entity in meant)
    for value in walk_values(graph):
        assert np.isfinite(value).all()


def test_a_name_with_several_meanings_is_shared_among_them() -> None:
    said = {
        "film": ChunkText("It was directed by Spielberg.", said_by("Spielberg", title="Jurassic Park (film)")),
        "book": ChunkText("It was written by Crichton.", said_by("Crichton", title="Jurassic Park (book)")),
        "other": ChunkText("Jurassic Park has dinosaurs. Jurassic Park is a film by Spielberg.", ExtractionRecord()),
    }
    graph = EntityGraph.from_records(said)
    assert named(graph, "other") == {"Jurassic Park (book)": 1.0, "Jurassic Park (film)": 1.0, "Spielberg": 1.0}
    assert named(graph, "film") == {"Jurassic Park (film)": 1.0, "Spielberg": 1.0}
    assert [graph.names[entity] for entity in graph.link("Who wrote Jurassic Park?")] == ["Jurassic Park (book)", "Jurassic Park (film)"]
    assert [graph.names[entity] for entity in graph.link("Who directed Jurassic Park (film)?")] == ["Jurassic Park (film)"]


@pytest.mark.parametrize("titles", [("Star (film)", "Star film (1990)"), ("Star (A) (B)", "Star (A)"), ("Star (A) (B)", "Star (A)", "Star")])
def test_a_title_that_is_the_plain_name_of_another(titles: tuple[str, ...]) -> None:
    graph = EntityGraph.from_triples({}, titles={title: title for title in titles})
    assert sorted(graph.names) == sorted(titles)
    assert all(named(graph, title) == {title: 1.0} for title in titles)
    assert all(graph.names.index(title) in graph.link(title) for title in titles)


def test_two_quarters_stay_two() -> None:
    facts = {"a": [("Revenue in Q3 2022", "was", "4 million")], "b": [("Revenue in Q3 2023", "was", "5 million")]}
    graph = EntityGraph.from_triples(facts)
    assert len([name for name in graph.names if "Q3" in name]) == 2
    assert [graph.names[entity] for entity in graph.link("What was the revenue in Q3 2023?")] == ["Revenue in Q3 2023"]


def test_links_in_order_each_once_and_in_lower_case_only_where_all_is() -> None:
    graph = EntityGraph.from_triples({"c": [("Apple", "made", "Lisa"), ("Lake District", "is in", "England")]})

    def linked(query: str) -> list[str]:
        return [graph.names[entity] for entity in graph.link(query)]

    assert linked("Lisa, Apple and Lisa") == ["Lisa", "Apple"]
    assert linked("did apple make lisa in 1983?") == ["Apple", "Lisa"]
    assert linked("Is an apple sold in England?") == ["England"], "a fruit, where other names have capitals"
    assert linked("the lake district of England") == ["Lake District", "England"]
    assert linked("") == linked("nothing known") == []


def test_ready_triples_that_say_nothing_are_counted_in_one_warning() -> None:
    long = "Very long name " * 700
    triples: dict[str, Any] = {
        "a": [("BERT", "by", "Google"), ("", "by", "Google"), ("BERT", "by", " — "), ("BERT", "by"), (), ("a", "b", "c", "d")],
        "b": iter([(long, "is " * 5000, long + "ended"), ("GPT-4", None, "OpenAI"), ("x",), (None, "by", "Google")]),
        "c": [],
    }
    with capture_trace() as trace:
        graph = EntityGraph.from_triples(triples)
    assert [note.message for note in trace.all_notes() if note.level == "warning"] == [
        "7 of 10 triples are left out: they do not have three parts, or a subject or object without a word."
    ]
    assert graph.chunk_ids == ["a", "b", "c"]
    assert [relation.predicate for relation in graph.facts.relations][::2] == ["by", ""]
    assert all(len(key) <= 1000 for key in graph.keys)
    assert named(graph, "c") == {}


def test_good_triples_make_no_warning() -> None:
    with capture_trace() as trace:
        EntityGraph.from_triples({"a": [("BERT", "by", "Google")]}, titles={"b": "BERT"}, texts={"c": "Google again"})
    assert trace.all_notes() == []


def test_titles_and_texts_of_chunks_without_triples() -> None:
    graph = EntityGraph.from_triples({"a": [("BERT", "by", "Google")]}, titles={"b": "Models (2023)", "a": "—"}, texts={"c": "Google and google and BERT"})
    assert graph.chunk_ids == ["a", "b", "c"]
    assert named(graph, "c") == {"BERT": 1.0, "Google": 1.0}
    assert named(graph, "b") == {"Models (2023)": 1.0}
    assert graph.titles.tolist() == [-1, graph.keys.index("models 2023"), -1]


def test_an_empty_graph() -> None:
    for graph in (EntityGraph.from_triples({}), EntityGraph.from_records({}), EntityGraph.from_triples({"a": []})):
        assert graph.n_entities == 0
        assert graph.link("Anything at all") == []
        assert graph.entities_of("anything") == ()
        assert graph.to_networkx().number_of_edges() == 0
        assert len(GraphWalk.of(graph).reach({}).chunks) == graph.n_chunks


def test_aliases_are_symmetric_and_of_known_names_only() -> None:
    graph = EntityGraph.from_records(
        {"a": ChunkText("ACME and Acme Corp", said_by("ACME", "Acme Corp"))}, aliases={("acme", "acme corp"): 0.9, ("acme", "x"): 1.0}
    )
    assert graph.aliases.toarray().tolist() == [[0.0, 0.9], [0.9, 0.0]]


def test_for_networkx() -> None:
    fact = Relation("BERT", "by", "Google", {"year": 2018})
    graph = EntityGraph.from_records({"a": ChunkText("BERT by Google", said_by("Google", title="BERT", facts=[fact]))}, aliases={("bert", "google"): 0.5})
    drawn = graph.to_networkx()
    assert isinstance(drawn, nx.MultiGraph)
    assert drawn.nodes[("entity", "bert")]["name"] == "BERT"
    kinds = sorted((edge["kind"], edge["weight"]) for *_, edge in drawn.edges(data=True))
    assert kinds == [("alias", 0.5), ("fact", 1.0), ("mention", 1.0), ("mention", 2.0)]
    told = next(edge for *_, edge in drawn.edges(data=True) if edge["kind"] == "fact")
    assert (told["predicate"], told["chunk"], told["year"]) == ("by", "a", 2018)


def test_a_hub_of_100_000_mentions_is_built_and_walked_in_seconds() -> None:
    many = {f"c{number}": ChunkText("Knott again.", said_by("Knott")) for number in range(100_000)}
    many["c7"] = ChunkText("Knott and Wainwright.", said_by("Knott", "Wainwright"))
    many["c8"] = ChunkText("Wainwright again.", said_by("Wainwright"))
    start = time.perf_counter()
    graph = EntityGraph.from_records(many)
    walk = GraphWalk.of(graph)
    reached = walk.reach(entity_weights(graph, graph.link("Knott and Wainwright")))
    assert time.perf_counter() - start < 60.0
    assert graph.document_frequency.tolist() == [99_999, 2]
    assert sorted(np.argsort(-reached.chunks, kind="stable")[:2].tolist()) == [7, 8]


def test_a_name_that_many_titles_have_is_one_of_its_own() -> None:
    def invoices(count: int) -> EntityGraph:
        chunks = [f"c{number}" for number in range(count)]
        titles = {chunk: f"Invoice ({number})" for number, chunk in enumerate(chunks)}
        return EntityGraph.from_triples({}, titles=titles, texts=dict.fromkeys(chunks, "Invoice is paid. The Invoice came."))

    few, many = invoices(MOST_NAMESAKES), invoices(3000)
    assert len(few.link("Which Invoice?")) == MOST_NAMESAKES
    assert [many.names[entity] for entity in many.link("Which Invoice?")] == ["Invoice"]
    assert [many.names[entity] for entity in many.link("When was Invoice 7 paid?")] == ["Invoice (7)"]
    assert many.mentions.nnz == 2 * many.n_chunks
