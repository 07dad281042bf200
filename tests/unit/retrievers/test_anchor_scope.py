"""The scope of a question: chosen documents, headings with its words, and what metadata filters leave of both."""

from llama_index.core import Document
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.retrievers.anchors.scope import Scope, open_scope
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer

PROSE = " ".join(f"Sentence {number} says something else about the matter." for number in range(12))


def document(doc_id: str, *headings: str, **metadata: str) -> Document:
    text = "# Report\n\n" + "\n\n".join(f"## {heading}\n\n{PROSE}" for heading in headings)
    return Document(id_=doc_id, text=text, metadata={"title": doc_id, **metadata})


def scope(query: str, *documents: Document, lang: str | None = None) -> Scope:
    nodes = HierarchicalNodeParser(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(list(documents))
    filters = None if lang is None else MetadataFilters(filters=[MetadataFilter(key="lang", value=lang)])
    return open_scope(UnitScorer.of_nodes(nodes, language="en").scores(query, filters=filters))


def titles(found: Scope) -> list[tuple[str, str]]:
    return [(found.table.units[place].ref_doc_id, found.table.units[place].title) for place in found.titles]


def test_documents_with_words_are_chosen_and_headings_with_words_are_named() -> None:
    found = scope("fees", document("a", "Fees", "Courts"), document("b", "Courts"))
    assert dict(found.documents) == {"a": 1.0}
    assert titles(found)[0] == ("a", "Fees")
    assert found.outline_documents == ("a", "b")


def test_with_filters_only_what_holds_a_match_is_looked_at() -> None:
    documents = (document("a", "Fees", lang="en"), document("b", "Fees", lang="fr"), document("c", "Courts", lang="fr"))
    found = scope("fees", *documents, lang="fr")
    assert set(found.documents) == {"b"}
    assert {name for name, _ in titles(found)} == {"b"}
    assert found.outline_documents == ("b", "c")
    nothing = scope("fees", *documents, lang="de")
    assert (dict(nothing.documents), nothing.titles, nothing.outline_documents) == ({}, (), ())
    assert nothing.document_filters is None


def test_passages_are_asked_of_the_chosen_documents_where_others_hold_words_too() -> None:
    assert scope("fees", document("a", "Fees"), document("b", "Courts")).document_filters is None
    many = [document(f"d{number:02}", *(["Fees"] if number < 20 else ["Fees", *["Courts"] * 40])) for number in range(30)]
    found = scope("fees", *many)
    named = found.document_filters
    assert 5 <= len(found.documents) < 30
    assert named is not None
    assert named == found.scores.only(found.documents)


def test_without_nodes_there_is_nothing() -> None:
    found = open_scope(UnitScorer.of_nodes(list[TextNode]()).scores("fees"))
    assert (dict(found.documents), found.titles, found.outline_documents, found.document_filters) == ({}, (), (), None)
