"""Where hits are gathered, and which words of a question stand on which line."""

from typing import Any

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.hierarchy.units import UnitTable
from llama_index_advanced_rag.retrievers.anchors.lines import Keywords, heading_words, read_lines
from llama_index_advanced_rag.retrievers.anchors.regions import region_of, region_of_unit
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

LEASES = "Part I > Note 7 > Leases"


def leaf(**metadata: str) -> TextNode:
    relations: Any = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d"), NodeRelationship.PARENT: RelatedNodeInfo(node_id="s")}
    return TextNode(id_="leaf", text="x", metadata=metadata, relationships=relations, start_char_idx=40)


@pytest.fixture
def table() -> UnitTable:
    relations: Any = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d"), NodeRelationship.CHILD: [RelatedNodeInfo(node_id="leaf")]}
    return UnitTable.from_nodes([TextNode(id_="s", text="x", metadata={"section_path": LEASES}, relationships=relations), leaf()])


@pytest.mark.parametrize("path", [LEASES, ""])
def test_a_passage_belongs_to_the_section_it_hangs_on(table, path):
    region = region_of(leaf(section_path=path, page_label="3"), table)
    assert (region.key, region.kind, region.unit) == ("s", "section", 1)


def test_a_section_that_is_one_passage_is_a_region_below(table):
    region = region_of(leaf(section_path=f"{LEASES} > Costs"), table)
    assert (region.unit, region.title, region.level) == (None, "Costs", 2)
    assert region_of(leaf(section_path="Far below > Costs"), table).title == "Costs"
    assert region_of(leaf(section_path="Leases"), table).unit is None


@pytest.mark.parametrize(("label", "name"), [("3", "page 3"), ("3-4", "page 3"), ("iv", "page iv"), ("A-3", "page A-3")])
def test_without_a_section_the_page_is_the_region(label, name):
    node = TextNode(text="x", metadata={"page_label": label})
    assert region_of(node, UnitTable.from_nodes([node])).name == name


def test_a_node_of_no_known_document_is_a_region_of_its_own():
    node = TextNode(id_="n", text="x")
    region = region_of(node, UnitTable())
    assert (region.kind, region.name, region.ref_doc_id) == ("chunk", "passage", "n")
    assert region.key != region_of_unit(UnitTable.from_nodes([node]), 0).key


def lexical(*texts: str, language: str = "auto") -> LexicalRetriever:
    return LexicalRetriever.from_defaults(nodes=[TextNode(text=text) for text in texts], language=language)


def test_rare_words_weigh_more_and_unknown_ones_nothing():
    retriever = lexical("fees are due", "fees", "fees and penalties", language="en")
    keywords = Keywords.of("fees, penalties and zebras", retriever, retriever.analyzer)
    weights = dict(zip(keywords.surfaces, keywords.weights, strict=True))
    assert weights["penalties"] > weights["fees"] > weights["zebras"] == 0
    assert keywords.named(keywords.in_terms(TextAnalyzer("en").tokens("zebras, fees and penalty"))) == ["penalties", "fees"]
    assert not Keywords.of("zebras", retriever, retriever.analyzer)


def test_deleted_passages_hold_no_words():
    alone = lexical("fees are due", "penalties", language="en")
    both = LexicalRetriever.from_defaults(nodes=[TextNode(id_=text, text=text) for text in ("fees are due", "penalties", "fees", "zebras")], language="en")
    both.delete_nodes(["fees", "zebras"])
    one, other = (Keywords.of("fees, penalties and zebras", retriever, retriever.analyzer) for retriever in (alone, both))
    assert one.weights == other.weights


def test_a_sentence_over_two_lines_is_one_line_and_its_place_is_the_document_s():
    text = "Head\n\nThe parties agree that whoever leaves before the end of\nthe term pays a penalty to the other party.\n\nTotal 10 20"
    node = TextNode(text=text, start_char_idx=1000, metadata={"page_label": "7"})
    retriever = lexical(text, language="en")
    (line,) = read_lines(node, Keywords.of("penalty when leaving", retriever, retriever.analyzer))
    assert line.text.startswith("The parties agree")
    assert line.text.endswith("other party.")
    assert (line.start, line.page) == (1000 + text.index("The parties"), "7")


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        ("Les pénalités de résiliation sont dues par la partie qui se retire.", "Quelle pénalité en cas de résiliation ?", {"pénalité", "résiliation"}),
        ("The penalties of a party that leaves are due to the other.", "Which penalty is due?", {"penalty", "due"}),
        ("Die Kündigung des Vertrags ist nur mit einer Frist von drei Monaten möglich.", "Wie kann man den Vertrag kündigen?", {"vertrag"}),
    ],
)
def test_words_are_found_in_the_language_of_the_passage(text, question, words):
    retriever = lexical(text, "Something else that is long enough to be English.")
    keywords = Keywords.of(question, retriever, retriever.analyzer)
    (line,) = read_lines(TextNode(text=text), keywords)
    assert words <= set(keywords.named(line.words))


def test_headings_are_read_by_the_same_words():
    retriever = lexical("Note 7 on leases", "Other notes", language="en")
    keywords = Keywords.of("lease notes", retriever, retriever.analyzer)
    words, terms = heading_words("Note 7 - Leases", keywords)
    assert (keywords.named(words), terms) == (["lease", "notes"], 3)
    assert heading_words("", keywords) == (frozenset(), 0)
