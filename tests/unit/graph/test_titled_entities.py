"""Entities by document: which there are, what they are called, which passages name them and which are related."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.titled_entities import TitledEntities

FILINGS = {
    "a1": [("Apple", "reports", "Gross margin")],
    "a2": [("Apple", "sells in", "Europe")],
    "n1": [("Nvidia", "reports", "Gross margin")],
    "n2": [("Nvidia", "sells", "Data Center")],
    "x": [],
}
TITLES = {"a1": "Apple 10-Q", "a2": "Apple 10-Q", "n1": "Nvidia 10-Q", "n2": "Nvidia 10-Q"}
DOCUMENTS = {"a1": "apple", "a2": "apple", "n1": "nvidia", "n2": "nvidia", "x": "x"}


def titled(triples: dict[str, list[tuple[str, str, str]]], titles: dict[str, str], documents: dict[str, str]) -> TitledEntities:
    graph = EntityGraph.from_triples(triples, titles=titles)
    return TitledEntities.of(graph, [documents[chunk] for chunk in graph.chunk_ids])


def named(entities: TitledEntities) -> dict[str, list[str]]:
    """The chunks that name each, by its text."""
    return {
        text: [entities.graph.chunk_ids[chunk] for chunk in entities.naming.indices[entities.naming.indptr[row] : entities.naming.indptr[row + 1]].tolist()]
        for row, text in enumerate(entities.texts)
    }


def related(entities: TitledEntities) -> set[tuple[str, str]]:
    pairs = entities.relations.tocoo()
    return {(entities.texts[one], entities.texts[other]) for one, other in zip(pairs.row.tolist(), pairs.col.tolist(), strict=True)}


def test_a_name_of_two_documents_is_two_entities() -> None:
    assert named(titled(FILINGS, TITLES, DOCUMENTS)) == {
        "Apple - Apple 10-Q": ["a1", "a2"],
        "Apple 10-Q": ["a1", "a2"],
        "Data Center - Nvidia 10-Q": ["n2"],
        "Europe - Apple 10-Q": ["a2"],
        "Gross margin - Apple 10-Q": ["a1"],
        "Gross margin - Nvidia 10-Q": ["n1"],
        "Nvidia - Nvidia 10-Q": ["n1", "n2"],
        "Nvidia 10-Q": ["n1", "n2"],
    }


def test_they_are_related_within_a_document_only() -> None:
    entities = titled(FILINGS, TITLES, DOCUMENTS)
    found = related(entities)
    assert ("Gross margin - Apple 10-Q", "Apple - Apple 10-Q") in found
    assert ("Gross margin - Nvidia 10-Q", "Nvidia - Nvidia 10-Q") in found
    assert found == {(other, one) for one, other in found}
    assert {one.split(" - ")[-1] for one, _ in found} == {"Apple 10-Q", "Nvidia 10-Q"}
    assert all(one.split(" - ")[-1] == other.split(" - ")[-1] for one, other in found)
    assert entities.relations.shape == (8, 8)


def test_without_titles_a_name_is_called_as_it_is() -> None:
    assert titled(FILINGS, {}, DOCUMENTS).texts == ["Apple", "Data Center", "Europe", "Gross margin", "Gross margin", "Nvidia"]


def test_the_title_is_that_of_the_first_chunk_that_has_one() -> None:
    triples = {"c0": [("Zeta", "is", "Theta")], "c1": [("Zeta", "is", "Mu")], "c2": [("Alpha", "is", "Zeta")]}
    entities = titled(triples, {"c1": "First part", "c2": "Second part"}, dict.fromkeys(triples, "d"))
    assert {text.split(" - ")[-1] for text in entities.texts} == {"First part"}


def test_each_chunk_that_has_no_document_is_one() -> None:
    entities = titled(FILINGS, {}, {chunk: chunk for chunk in FILINGS})
    assert entities.texts == ["Apple", "Apple", "Data Center", "Europe", "Gross margin", "Gross margin", "Nvidia", "Nvidia"]
    assert set(entities.naming.sum(axis=1).tolist()) == {1.0}


def test_nothing() -> None:
    for triples in ({}, {"a": []}):
        entities = titled(triples, {}, dict.fromkeys(triples, "d"))
        assert (entities.texts, entities.naming.shape, entities.relations.shape) == ([], (0, len(triples)), (0, 0))


names = st.sampled_from(["Apple", "Nvidia", "Gross margin", "Europe", "Rome"])
facts = st.lists(st.tuples(names, st.just("is"), names), max_size=4)


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(facts, st.sampled_from(["d1", "d2", "d3"])), max_size=6))
@settings(max_examples=60, deadline=None)
def test_every_mention_is_of_one_titled_entity(chunks: dict[str, tuple[list[tuple[str, str, str]], str]]) -> None:
    entities = titled({chunk: said for chunk, (said, _) in chunks.items()}, {}, {chunk: document for chunk, (_, document) in chunks.items()})
    mentions, naming = entities.graph.mentions.tocoo(), entities.naming.tocoo()
    assert sorted(zip(entities.entities[naming.row].tolist(), naming.col.tolist(), strict=True)) == sorted(
        zip(mentions.col.tolist(), mentions.row.tolist(), strict=True)
    )
    of_chunk = [chunks[chunk][1] for chunk in entities.graph.chunk_ids]
    assert all(entities.document_ids[entities.documents[row]] == of_chunk[chunk] for row, chunk in zip(naming.row.tolist(), naming.col.tolist(), strict=True))
    assert len(set(zip(entities.entities.tolist(), entities.documents.tolist(), strict=True))) == len(entities.texts)


def test_a_name_of_5_000_documents_that_is_related_to_one_of_each() -> None:
    triples = {f"c{number}": [("Acme", "sells", f"Thing {number}")] for number in range(5_000)}
    entities = titled(triples, {}, {chunk: chunk for chunk in triples})
    started = time.perf_counter()
    assert entities.relations.nnz == 10_000
    assert time.perf_counter() - started < 5
