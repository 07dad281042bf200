"""Names that metadata give: titles and headings, and none of the ids, digests and numbers that stand in their place."""

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.graph.node_names import names_of


def node(source: str | None = None, **metadata: object) -> TextNode:
    relationships = {} if source is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
    return TextNode(text="text", metadata=metadata, relationships=relationships)


@pytest.mark.parametrize(
    ("metadata", "names"),
    [
        ({}, ()),
        ({"title": "Marie Curie"}, ("Marie Curie",)),
        ({"title": "  Two\n lines "}, ("Two lines",)),
        ({"title": "U2", "file_name": "band.txt"}, ("U2",)),
        ({"title": "居里夫人"}, ("居里夫人",)),
        ({"title": "1984", "file_name": "orwell-1984.txt"}, ("orwell 1984",)),
        ({"title": 7}, ()),
        ({"title": ["a", "list"]}, ()),
        ({"title": "9f86d081884c7d659a2feaa0c55ad015"}, ()),
        ({"title": "6f0b2f5c-5a0e-5d8b-9a55-6c1d2c1f7f10", "file_name": "6f0b2f5c-5a0e-5d8b-9a55-6c1d2c1f7f10.pdf"}, ()),
        ({"title": "x" * 201}, ()),
        ({"title": "Untitled"}, ()),
        ({"file_name": "2023 Q1 AAPL.pdf"}, ("2023 Q1 AAPL",)),
        ({"file_name": "reports/annual_report-2023.final.docx"}, ("annual report 2023.final",)),
        ({"file_name": "README"}, ()),
    ],
)
def test_titles(metadata: dict[str, object], names: tuple[str, ...]) -> None:
    assert names_of(node(**metadata)) == names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("docs/Marie Curie.md", ("Marie Curie",)),
        ("doc-17", ()),
        ("6f0b2f5c-5a0e-5d8b-9a55-6c1d2c1f7f10", ()),
        ("v1.2", ()),
        ("https://a.org/big_cats.html", ("big cats",)),
    ],
)
def test_an_id_is_a_name_where_it_names_a_file(source: str, names: tuple[str, ...]) -> None:
    assert names_of(node(source)) == names


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("Part I > Item 1A. Risk Factors", ("Risk Factors",)),
        ("Item 2.", ()),
        ("PART I", ()),
        ("Table of Contents", ()),
        ("Sommaire", ()),
        ("3.2 Net sales", ("Net sales",)),
        ("Chapitre 3 - La chasse", ("La chasse",)),
        ("J. K. Rowling", ("J. K. Rowling",)),
        ("Apple v. Samsung", ("Apple v. Samsung",)),
        ("2023", ()),
        ("…", ()),
    ],
)
def test_headings(path: str, names: tuple[str, ...]) -> None:
    assert names_of(node(section_path=path)) == names
    assert names_of(node(heading=path)) == names


def test_the_whole_heading_comes_before_the_one_cut_to_fit_and_equal_names_come_once() -> None:
    assert names_of(node(section_path="A report > A long heading", heading="… > A long …")) == ("A long heading",)
    assert names_of(node(title="Leases", section_path="Leases")) == ("Leases",)


def test_long_values_take_no_time() -> None:
    assert names_of(node(title="a/" * 500_000, file_name="a." * 500_000, section_path=" > ".join(["x y"] * 200_000))) == ("x y",)
