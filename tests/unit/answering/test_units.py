from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.answering.context import number_sentences
from llama_index_advanced_rag.answering.units import Role, Unit, read_units


def units_of(*texts: str, title: str = "") -> list[Unit]:
    nodes = [NodeWithScore(node=TextNode(id_=f"n{number}", text=text, metadata={"title": title})) for number, text in enumerate(texts)]
    return read_units(number_sentences(nodes).sentences, lambda text: frozenset(text.lower().replace(":", "").split()))


def roles(*texts: str) -> list[str]:
    return [unit.role.value for unit in units_of(*texts)]


def test_roles() -> None:
    assert roles("# Title\nThe company sold more phones than ever before.") == ["heading", "prose"]
    assert roles("Risk Factors\nThe company sold more phones than ever before.") == ["heading", "prose"]
    assert roles("Is it so? It is.") == ["heading", "prose"]
    assert roles("July 1, 2023 June 25, 2022\nPhones 10 20") == ["heading", "row"]
    assert roles("The table shows sales:") == ["heading"]
    assert roles("26 août 1789") == ["fragment"]
    assert roles("Capital | Reykjavik\nArea | 103,000 sq km") == ["fragment", "fragment"]


def test_an_announcement_has_its_items_and_they_have_it() -> None:
    announcement, first, second, after = units_of(
        "The trial lasts at most:\n1° Two months for workers;\n2° Four months for managers.\n\nIt may be renewed once."
    )
    assert announcement.role is Role.ANNOUNCEMENT
    assert [item.text for item in announcement.items] == [first.sentence.text, second.sentence.text]
    assert first.lead is second.lead is announcement.sentence
    assert (after.role, after.lead) == (Role.PROSE, None)


def test_items_of_items_stand_under_their_own_parent() -> None:
    units = units_of("- **Capital**\n  - **name**: Paris\n  - **time**: UTC+1\n- **Anthem**: La Marseillaise")
    assert [None if unit.lead is None else unit.lead.number for unit in units] == [None, 1, 1, None]
    assert units[0].role is Role.ANNOUNCEMENT
    assert units[1].label == {"name"}


def test_a_row_hears_both_its_heads_and_the_announcement_above() -> None:
    text = (
        "The following table shows net sales by category for the periods below (in millions):\nJuly 1, 2023\nJune 25, 2022\nPhones 10 20\nCosts:\nParts 3 4\n"
    )
    row = units_of(text)[-1]
    assert row.lead is not None
    assert row.lead.text.startswith("July 1, 2023")
    assert {"2023", "costs", "category"} <= row.heard
    assert row.label == {"parts"}


def test_nodes_that_follow_each_other_are_one_passage() -> None:
    document = "July 1, 2023 June 25, 2022\nPhones 10 20\nTotal 30 40"
    nodes = [TextNode(id_=name, text=document[start:end], start_char_idx=start, end_char_idx=end) for name, start, end in (("b", 40, 51), ("a", 0, 39))]
    for node in nodes:
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="d")
    context = number_sentences([NodeWithScore(node=node) for node in nodes])
    assert [(sentence.node_id, sentence.passage, sentence.node_rank) for sentence in context.sentences] == [("a", 1, 2), ("a", 1, 2), ("b", 1, 1)]
    total = read_units(context.sentences, lambda text: frozenset(text.split()))[-1]
    assert total.lead is context.sentences[0]


def test_the_title_is_heard_and_the_first_sentence_opens() -> None:
    first, second = units_of("Foxes are red. Hens are not.", title="Animals")
    assert "animals" in first.heard & second.heard
    assert (first.opens, second.opens) == (True, False)


def test_no_sentences_no_units() -> None:
    assert read_units([], lambda text: frozenset(text.split())) == []
