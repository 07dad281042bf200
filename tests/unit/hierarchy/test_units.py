"""The table of documents and sections: what is above and below each, whatever the nodes say."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.node_parser import HierarchicalNodeParser as StockParser
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.hierarchy.units import UnitRecord, UnitTable

TITLES = {"a": "Report", "b": "Letter"}
TEXT = "# Foxes\n\n" + "\n\n".join(
    f"## Part {part}\n\n" + " ".join(f"Sentence {number} of part {part} says what there is to say." for number in range(12)) for part in range(3)
)


def record(node_id: str, parent: str | None = None, start: int = 0, end: int = 100, path: str = "x", *, of: str = "a", page: str | None = None) -> UnitRecord:
    return UnitRecord(node_id, of, parent, start, end, path, page)


def shown(table: UnitTable) -> list[tuple[str, int, str, int | None]]:
    return [(unit.unit_id, unit.level, unit.title, unit.parent) for unit in table.units]


def check_order(table: UnitTable) -> None:
    """By document, parents first, one document each, every unit once."""
    assert [unit.ref_doc_id for unit in table.units] == sorted(unit.ref_doc_id for unit in table.units)
    assert len({unit.unit_id for unit in table.units}) == len(table.units)
    for place, unit in enumerate(table.units):
        assert table.place_of_unit(unit.unit_id) == place
        if unit.parent is None:
            assert (unit.level, table.place_of_document(unit.ref_doc_id)) == (0, place)
        else:
            above = table.units[unit.parent]
            assert unit.parent < place
            assert (above.ref_doc_id, above.level) == (unit.ref_doc_id, unit.level - 1)
            assert place in table.children(unit.parent)
    assert table.parents.tolist() == [-1 if unit.parent is None else unit.parent for unit in table.units]


def test_parents_come_first_and_the_rest_in_the_order_of_the_text() -> None:
    table = UnitTable.build(
        [
            record("s2", None, 50, 90, "Two"),
            record("s11", "s1", 5, 20, "One > Sub"),
            record("s12", "s1", 20, 40, "One > Other"),
            record("s1", None, 0, 50, "One"),
        ],
        TITLES,
    )
    assert shown(table) == [
        ("a", 0, "Report", None),
        ("s1", 1, "One", 0),
        ("s11", 2, "Sub", 1),
        ("s12", 2, "Other", 1),
        ("s2", 1, "Two", 0),
        ("b", 0, "Letter", None),
    ]
    check_order(table)
    assert (table.ancestors(3), table.children(0), table.children(5)) == ([3, 1, 0], [1, 4], [])
    assert (table.units[0].start, table.units[0].end) == (0, 90)


def test_a_node_without_a_heading_stands_for_its_document() -> None:
    table = UnitTable.build([record("own", None, 0, 99, "", page="1-3"), record("s", "own", 10, 20, "Costs")], TITLES)
    assert shown(table)[:2] == [("own", 0, "Report", None), ("s", 1, "Costs", 0)]
    assert (table.units[0].page, table.place_of_document("a"), table.place_of("unknown", "a")) == ("1-3", 0, 0)


@pytest.mark.parametrize("paths", [("Only",), ("", ""), ("", "Two")])
def test_other_tops_stand_in_a_document_without_a_node(paths: Sequence[str]) -> None:
    table = UnitTable.build([record(f"t{number}", None, number, 50, path) for number, path in enumerate(paths)], TITLES)
    assert shown(table)[0] == ("a", 0, "Report", None)
    assert [unit.level for unit in table.units[1 : len(paths) + 1]] == [1] * len(paths)
    check_order(table)


def test_parents_that_cannot_be_do_not_count() -> None:
    table = UnitTable.build([record("s", "missing", path="S"), record("t", "u", path="T"), record("u", None, path="U", of="b")], TITLES)
    assert shown(table) == [("a", 0, "Report", None), ("s", 1, "S", 0), ("t", 1, "T", 0), ("b", 0, "Letter", None), ("u", 1, "U", 3)]


def test_a_passage_stands_in_its_own_document() -> None:
    table = UnitTable.build([record("s", None, path="S"), record("u", None, path="U", of="b")], TITLES)
    assert [table.place_of("u", of) for of in ("a", "b", "c")] == [0, 3, None]
    passage = TextNode(
        text="x",
        relationships={NodeRelationship.PARENT: RelatedNodeInfo(node_id="u"), NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a")},
    )
    assert table.index_of(passage) == 0


def test_circles_end_and_lose_nothing() -> None:
    table = UnitTable.build([record("x", "y", 0), record("y", "x", 1), record("self", "self", 2), record("below", "x", 3), record("top", None, 4)], TITLES)
    check_order(table)
    assert {unit.unit_id for unit in table.units} == {"a", "x", "y", "self", "below", "top", "b"}
    assert table.units[table.ancestors(table.place_of_unit("below") or 0)[1]].unit_id == "x"


def test_documents_without_a_title_or_a_record_are_there() -> None:
    table = UnitTable.build([record("s", None, of="c", path="S")], {"b": "Letter"})
    assert shown(table) == [("b", 0, "Letter", None), ("c", 0, "c", None), ("s", 1, "S", 1)]
    assert UnitTable.build([], {}).units == UnitTable().units == ()
    assert UnitTable().parents.tolist() == []


def test_a_heading_with_the_separator_in_it_keeps_its_whole_title() -> None:
    table = UnitTable.build(
        [record("s", None, 0, 9, "Assets > 5 years"), record("t", "s", 1, 5, "Assets > 5 years > Notes"), record("o", "s", 6, 7, "… > Deep")], TITLES
    )
    assert [unit.title for unit in table.units[1:4]] == ["Assets > 5 years", "Notes", "Deep"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.none() | st.integers(0, 11),
            st.integers(0, 20),
            st.integers(0, 20),
            st.sampled_from(["", "A", "A > B"]),
            st.sampled_from("abc"),
        ),
        unique_by=lambda drawn: drawn[0],
        max_size=10,
    )
)
def test_whatever_the_nodes_say_it_is_a_forest(drawn: list[tuple[int, int | None, int, int, str, str]]) -> None:
    records = [record(f"n{number}", None if up is None else f"n{up}", start, end, path, of=of) for number, up, start, end, path, of in drawn]
    table = UnitTable.build(records, TITLES)
    check_order(table)
    assert {one.node_id for one in records} <= {unit.unit_id for unit in table.units}
    assert UnitTable.build(reversed(records), TITLES).units == table.units or len({(one.start, one.end) for one in records}) < len(records) or circular(records)


def circular(records: Sequence[UnitRecord]) -> bool:
    up = {one.node_id: one.parent_id for one in records}
    for node_id in up:
        seen: set[str] = set()
        at: str | None = node_id
        while at in up and at not in seen:
            seen.add(at)
            at = up[at]
        if at in seen:
            return True
    return False


def test_nodes_of_our_parser() -> None:
    document = Document(text=TEXT, id_="fox.md", metadata={"title": "About foxes"})
    nodes = HierarchicalNodeParser(chunk_size=100, chunk_overlap=0).get_nodes_from_documents([document])
    table = UnitTable.from_nodes(nodes)
    check_order(table)
    assert [(unit.level, unit.title) for unit in table.units] == [(0, "About foxes"), (1, "Foxes"), (2, "Part 0"), (2, "Part 1"), (2, "Part 2")]
    assert table.units[0].unit_id == nodes[0].node_id
    assert all(f"## {unit.title}\n" in TEXT[unit.start : unit.end] for unit in table.units[2:])
    for node in nodes:
        place = table.index_of(node)
        assert place is not None
        if not node.child_nodes:
            assert node.parent_node is not None
            assert table.units[place].unit_id == node.parent_node.node_id
    assert UnitTable.from_nodes(list(reversed(nodes))).units == table.units


def test_nodes_of_llama_index() -> None:
    document = Document(text=TEXT * 4, id_="fox.md", metadata={"file_name": "fox.md"})
    nodes = StockParser.from_defaults(chunk_sizes=[512, 128, 64], chunk_overlap=0).get_nodes_from_documents([document])
    table = UnitTable.from_nodes(nodes)
    check_order(table)
    split = {node.node_id for node in nodes if node.child_nodes}
    assert {unit.unit_id for unit in table.units} in (split, split | {"fox.md"})
    assert (table.units[0].title, {unit.level for unit in table.units}) == ("fox.md", {0, 1, 2})
    assert all(table.index_of(node) is not None for node in nodes)


def test_flat_nodes_are_documents_only() -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a")}
    nodes = [TextNode(id_="p1", text="one", relationships=source), TextNode(id_="p2", text="two", relationships=source), TextNode(id_="alone", text="three")]
    table = UnitTable.from_nodes(nodes)
    assert shown(table) == [("a", 0, "a", None), ("alone", 0, "alone", None)]
    assert [table.index_of(node) for node in nodes] == [0, 0, 1]
    assert table.index_of(TextNode(id_="stranger", text="x")) is None


def test_a_document_among_the_nodes_is_no_section() -> None:
    whole = Document(text="one two", id_="a", metadata={"title": "Whole"}, relationships={NodeRelationship.CHILD: [RelatedNodeInfo(node_id="p1")]})
    part = TextNode(
        id_="p1", text="one", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a"), NodeRelationship.PARENT: RelatedNodeInfo(node_id="a")}
    )
    table = UnitTable.from_nodes([whole, part])
    assert shown(table) == [("a", 0, "Whole", None)]
    assert table.index_of(part) == 0


def test_ten_thousand_sections_one_in_the_other_and_beside_each_other() -> None:
    deep = [record(f"n{number:05}", f"n{number - 1:05}" if number else None, number, 20_000 - number, "S") for number in range(10_000)]
    assert UnitTable.build(deep, TITLES).units[10_000].level == 10_000
    wide = [record(f"n{number:05}", None, number, number + 1, f"S{number}") for number in range(10_000)]
    table = UnitTable.build(wide, TITLES)
    assert table.children(0) == list(range(1, 10_001))
