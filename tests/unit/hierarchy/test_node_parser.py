import asyncio
import copy
import logging
import pickle
import time
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import Document
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import get_leaf_nodes, get_root_nodes
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, TextNode

from llama_index_advanced_rag.embeddings.window import EmbeddingWindow
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.testing import DeterministicEmbedding

FOX = "The fox {0} sleeps in den number {0} below the roots of an old tree. "
MANUAL = (
    "A manual about foxes and hens, for beginners and for those who know them.\n\n"
    "# Foxes\n\n## Food\n\n"
    + "".join(FOX.format(number) for number in range(12))
    + "\n\n## Dens\n\n"
    + "".join(FOX.format(number) for number in range(20, 26))
    + "\n\n"
    "# Hens\n\n## One\n\nShort.\n\n## Two\n\nShort too.\n\n## Three\n\nAs short.\n"
)


def count_words(text: str) -> int:
    return len(text.split())


def word_parser(count=count_words, **kwargs) -> HierarchicalNodeParser:
    parser = HierarchicalNodeParser(**{"language": "en", "chunk_size": 60, "chunk_overlap": 0, **kwargs})
    parser._window = EmbeddingWindow(None, count)
    return parser


def document(text: str = MANUAL, **kwargs) -> Document:
    return Document(**{"text": text, "id_": "manual.md", "metadata": {"title": "Manual"}, "metadata_template": "{value}", **kwargs})


def parse(text: str = MANUAL, *, metadata: dict | None = None, **kwargs) -> list[TextNode]:
    return word_parser(**kwargs).get_nodes_from_documents([document(text, metadata={"title": "Manual"} if metadata is None else metadata)])


def kind(node: BaseNode) -> str:
    return "document" if node.parent_node is None else "section" if node.child_nodes else "chunk"


def ids(related: Sequence) -> list[str]:
    return [one.node_id for one in related]


def check_tree(nodes: Sequence[TextNode], text: str) -> None:
    """What holds of the nodes of every document."""
    by_id = {node.node_id: node for node in nodes}
    assert len(by_id) == len(nodes)
    assert all(text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
    assert [kind(node) for node in nodes].count("document") == 1
    assert (nodes[0].start_char_idx, nodes[0].end_char_idx) == (0, len(text))
    leaves, places = get_leaf_nodes(list(nodes)), {node.node_id: place for place, node in enumerate(nodes)}
    assert get_root_nodes(list(nodes)) == [nodes[0]]
    assert [kind(node) for node in leaves] == ["chunk"] * len(leaves)
    for node in nodes:
        children = [by_id[child.node_id] for child in node.child_nodes or []]
        assert all(child.parent_node.node_id == node.node_id for child in children)
        assert [places[child.node_id] for child in children] == sorted(places[child.node_id] for child in children)
        assert all(places[child.node_id] > places[node.node_id] for child in children)
        assert all(node.start_char_idx <= child.start_char_idx < child.end_char_idx <= node.end_char_idx for child in children)
        if node.parent_node is not None:
            assert node.node_id in ids(by_id[node.parent_node.node_id].child_nodes)
        check_links([child for child in children if kind(child) == "section"])
        related = [one for name, one in node.relationships.items() if name != NodeRelationship.SOURCE]
        assert all(one.hash is None and one.metadata == {} for some in related for one in (some if isinstance(some, list) else [some]))
    check_links(leaves)
    covered = bytearray(len(text))
    for leaf in leaves:
        covered[leaf.start_char_idx : leaf.end_char_idx] = b"\1" * len(leaf.text)
    assert all(covered[place] or character.isspace() for place, character in enumerate(text))


def check_links(row: Sequence[TextNode]) -> None:
    starts = [node.start_char_idx for node in row]
    assert starts == sorted(starts)
    assert all(before.next_node.node_id == after.node_id and after.prev_node.node_id == before.node_id for before, after in pairwise(row))
    assert not row or (row[0].prev_node is None and row[-1].next_node is None)


def shown(nodes: Sequence[TextNode]) -> list[tuple[str, str | None, str]]:
    return [(kind(node), node.metadata.get("section_path"), " ".join(node.text.split()[:3])) for node in nodes]


def test_document_sections_and_chunks_as_one_walk() -> None:
    nodes = parse()
    check_tree(nodes, MANUAL)
    assert shown(nodes) == [
        ("document", None, "A manual about"),
        ("chunk", None, "A manual about"),
        ("section", "Foxes", "# Foxes ##"),
        ("section", "Foxes > Food", "# Foxes ##"),
        ("chunk", "Foxes > Food", "# Foxes ##"),
        ("chunk", "Foxes > Food", "The fox 3"),
        ("chunk", "Foxes > Food", "The fox 6"),
        ("chunk", "Foxes > Food", "The fox 9"),
        ("section", "Foxes > Dens", "## Dens The"),
        ("chunk", "Foxes > Dens", "## Dens The"),
        ("chunk", "Foxes > Dens", "The fox 23"),
        ("section", "Hens", "# Hens ##"),
        ("chunk", "Hens", "# Hens ##"),
    ]


def test_the_prefix_is_title_path_and_table_header() -> None:
    rows = "".join(f"| Fox {number} | {number},000 |\n" for number in range(20))
    nodes = parse(f"# Prices\n\n## Foxes\n\n| Name | Price |\n|---|---|\n{rows}\n# End\n\nNo more.")
    chunks = [node for node in nodes if node.metadata.get("section_path") == "Prices > Foxes" and kind(node) == "chunk"]
    assert [node.metadata.get("table_header") for node in chunks] == [None, "| Name | Price |", "| Name | Price |"]
    assert chunks[1].get_content(metadata_mode=MetadataMode.EMBED).startswith("Manual\nPrices > Foxes\n| Name | Price |\n\n| Fox")
    assert chunks[1].get_content(metadata_mode=MetadataMode.LLM).startswith("Manual\nPrices > Foxes\n| Name | Price |\n\n| Fox")
    assert all("table_header" not in node.metadata for node in nodes if kind(node) != "chunk")


def test_the_whole_path_is_for_filters_and_its_end_for_models() -> None:
    outer = "Obligations of the company and of those who stand surety for it"
    nodes = parse(f"# {outer}\n\n## Leases of plants and offices\n\n{FOX.format(1) * 8}\n\n## Sales of plants and offices\n\n{FOX.format(2) * 8}")
    for node in nodes[1:]:
        path = node.metadata["section_path"]
        assert node.metadata["heading"] == (path if path == outer else f"… > {path.removeprefix(outer + ' > ')}")
        for mode in (MetadataMode.EMBED, MetadataMode.LLM):
            shown_text = node.get_content(metadata_mode=mode)
            assert shown_text.startswith(f"Manual\n{node.metadata['heading']}\n\n")
            assert path == outer or path not in shown_text
    assert f"{outer} > Leases of plants and offices" in {node.metadata.get("section_path") for node in nodes}
    assert not {"section_path", "heading"} & nodes[0].metadata.keys()


def test_of_a_very_deep_path_the_inner_headings_are_named() -> None:
    parts = [f"Part {depth}\n\n{FOX.format(depth)}\n\n" for depth in range(20)]
    text = "".join(parts)
    bookmarks = [[f"Part {depth}", depth + 1, text.index(parts[depth])] for depth in range(20)]
    paths = {node.metadata.get("section_path") for node in parse(text, metadata={"bookmarks": bookmarks}, chunk_size=30)}
    assert " > ".join(f"Part {depth}" for depth in range(16)) in paths
    assert " > ".join(["…", *(f"Part {depth}" for depth in range(4, 20))]) in paths


def test_a_header_is_not_torn_from_its_first_row() -> None:
    text = "# Sales\n\n" + FOX.format(1) * 3 + "\n\nThree Months Ended\nJuly 1, 2023 July 2, 2022\n(in millions)\nPhones 10 20\nMacs 30 40\n"
    starts = [node.text for node in get_leaf_nodes(parse(text, chunk_size=60))]
    assert starts[-1].startswith("Three Months Ended\nJuly 1, 2023 July 2, 2022\n(in millions)\nPhones 10 20")


def test_code_is_whole_and_longer_code_is_cut_at_line_ends() -> None:
    code = "```\n" + "\n".join(f"a = {number}.  # Add. Then go." for number in range(5)) + "\n```"
    [leaf] = [node for node in get_leaf_nodes(parse(f"# One\n\n{FOX.format(1) * 2}\n\n{code}\n\n# Two\n\nEnd.", chunk_size=120)) if "```" in node.text]
    assert code in leaf.text
    long_code = "```\n" + "\n".join(f"a = {number}.  # Add. Then go." for number in range(50)) + "\n```"
    leaves = [node.text for node in get_leaf_nodes(parse(f"# One\n\n{long_code}\n\n# Two\n\nEnd.")) if "Then" in node.text]
    assert len(leaves) > 5
    assert all(text.endswith("Then go.") for text in leaves[:-1])


def test_pages_and_layout_keys() -> None:
    source = document(
        metadata={"title": "Manual", "page_starts": [0, 900], "bookmarks": [["Foxes", 1, 0]]}, excluded_embed_metadata_keys=["page_starts", "bookmarks"]
    )
    before = copy.deepcopy(source)
    nodes = word_parser().get_nodes_from_documents([source])
    assert source == before
    check_tree(nodes, MANUAL)
    assert "page_label" not in nodes[0].metadata
    assert {node.metadata["page_label"] for node in nodes[1:]} == {"1", "1-2", "2"}
    assert not any({"page_starts", "bookmarks"} & {*node.metadata, *node.source_node.metadata} for node in nodes)
    assert all("1-2" not in node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes)


def test_bookmarks_of_the_reader_are_headings() -> None:
    first, second = FOX.format(1) * 8, FOX.format(2) * 8
    text = f"All About Dens\n{first}\n\nWhat They Eat\n{second}"
    bookmarks = [["What They Eat", 1, text.index("What They Eat")], ["bad"], ["All About Dens", 1, 0], "worse"]
    nodes = parse(text, metadata={"title": "T", "bookmarks": bookmarks})
    check_tree(nodes, text)
    assert {node.metadata.get("section_path") for node in nodes} == {None, "All About Dens", "What They Eat"}


@pytest.mark.parametrize("name", ["section_path", "heading", "page_label"])
def test_the_users_own_metadata_stay(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        nodes = parse(metadata={"title": "Manual", name: "mine", "page_starts": [0]})
    assert {node.metadata[name] for node in nodes} == {"mine"}
    assert caplog.text.count(f"have '{name}' already") == caplog.text.count("already: it is kept") == 1
    assert all("mine" in node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes)


def test_odd_outlines_are_noted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        parse("# One\n\nText.\n\n### Three\n\nText.\n")
    assert "'manual.md': " in caplog.text


def test_without_the_outline_the_chunks_are_the_flat_ones() -> None:
    flat = SentenceChunkParser(chunk_size=60, chunk_overlap=0, language="en")
    flat._window = EmbeddingWindow(None, count_words)
    assert parse(include_outline=False) == flat.get_nodes_from_documents([document()])


def test_a_document_of_one_chunk_or_without_headings() -> None:
    nodes = parse("Hello there.")
    assert shown(nodes) == [("document", None, "Hello there."), ("chunk", None, "Hello there.")]
    assert nodes[0].node_id != nodes[1].node_id
    nodes = parse(FOX.format(1) * 20)
    assert {kind(node) for node in nodes[1:]} == {"chunk"}
    check_tree(nodes, FOX.format(1) * 20)


@pytest.mark.parametrize("text", ["", " \n\t\n "])
def test_empty_documents_give_no_nodes(text: str) -> None:
    assert parse(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "# One\n\n### Three\n\nText.\n\n# One\n\n### Three\n\nText.\n\n# One\n\nText.\n",
        "# A\n# B\n## C\n### D\n# E\n",
        "# الفصل الأول\n\n" + "ينام الثعلب في جحره تحت جذور الشجرة القديمة. " * 30 + "\n\n# الفصل الثاني\n\nقصير.\n",
        "# 第一章 总则\n\n" + "狐狸睡在老树根下的洞穴里。" * 60 + "\n\n# 第二章 分则\n\n母鸡整夜不睡。\n",
        "same words " * 200,
        "# Same\n\n" + "Same words here. " * 60 + "\n\n# Same\n\n" + "Same words here. " * 60,
        "# A\r\n\r\nText one.\r\n\r\n## B\r\n\r\n" + "Text two.\r\n" * 60,
        "x" * 3000,
    ],
)
@pytest.mark.parametrize("count", [count_words, lambda text: (len(text) + 1) // 2])
def test_odd_texts(text: str, count) -> None:
    nodes = parse(text, count=count, chunk_overlap=10)
    check_tree(nodes, text)
    assert [node.node_id for node in parse(text, count=count, chunk_overlap=10)] == [node.node_id for node in nodes]


def test_nodes_of_another_parser_keep_their_source_and_offsets() -> None:
    source = document()
    sections = [node for node in word_parser().get_nodes_from_documents([source]) if kind(node) == "section"]
    finer = word_parser(chunk_size=30).get_nodes_from_documents(sections)
    assert len(finer) > len(sections)
    assert all(node.ref_doc_id == source.id_ and source.text[node.start_char_idx : node.end_char_idx] == node.text for node in finer)
    assert word_parser().get_nodes_from_documents([TextNode(text="Alone.", id_="n")])[0].ref_doc_id == "n"


def test_sync_async_pipeline_and_another_run_give_the_same_nodes() -> None:
    parser = word_parser(chunk_overlap=10)
    documents = [document(), document(id_="other.md")]

    def plain(nodes: Sequence[BaseNode]) -> list[dict]:
        return [node.to_dict() for node in nodes]

    expected = plain(parser.get_nodes_from_documents(documents, show_progress=False))
    assert plain(asyncio.run(parser.aget_nodes_from_documents(documents))) == expected
    assert plain(IngestionPipeline(transformations=[parser], disable_cache=True).run(documents=documents)) == expected
    assert plain(asyncio.run(IngestionPipeline(transformations=[parser], disable_cache=True).arun(documents=documents))) == expected
    assert plain(pickle.loads(pickle.dumps(parser)).get_nodes_from_documents(documents)) == expected
    assert len({node["id_"] for node in expected}) == len(expected)


def test_an_edit_changes_only_what_it_touches() -> None:
    before = {node.node_id: kind(node) for node in parse()}
    after = {node.node_id: kind(node) for node in parse(MANUAL.replace("The fox 24 sleeps", "The fox 24 wakes"))}
    assert sorted(before[node_id] for node_id in before.keys() - after.keys()) == ["chunk", "document", "section", "section"]
    assert len(after) == len(before)


def test_links_and_metadata_can_be_left_out() -> None:
    nodes = parse(include_prev_next_rel=False)
    allowed = {NodeRelationship.SOURCE, NodeRelationship.PARENT, NodeRelationship.CHILD}
    assert all(set(node.relationships) <= allowed for node in nodes)
    assert all("title" not in node.metadata for node in parse(include_metadata=False))


def test_serialised_form() -> None:
    plain = HierarchicalNodeParser(chunk_size=99, language="fr", include_outline=False)
    again = HierarchicalNodeParser.from_dict(plain.to_dict())
    assert again.to_dict() == plain.to_dict()
    assert (again.class_name(), again.include_outline, again.chunk_size) == ("HierarchicalNodeParser", False, 99)
    assert "HierarchicalNodeParser" in repr(again)
    model = DeterministicEmbedding(dimensions=8)
    data = HierarchicalNodeParser.for_model(model, chunk_size=50).to_dict()
    with pytest.raises(ConfigurationError, match=r"has not got that model. Make it with HierarchicalNodeParser\.for_model"):
        HierarchicalNodeParser.from_dict(data).get_nodes_from_documents([document()])
    assert HierarchicalNodeParser.from_dict(data, embed_model=model).get_nodes_from_documents([document()])


def test_the_users_own_ids_are_kept() -> None:
    nodes = parse(id_func=lambda place, source: f"{source.node_id}#{place}")
    assert [node.node_id for node in nodes] == [f"manual.md#{place}" for place in range(len(nodes))]
    check_tree(nodes, MANUAL)


def test_long_metadata_leave_no_room_and_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    parser = word_parser(chunk_size=120)
    parser._window = EmbeddingWindow(120, count_words)
    with caplog.at_level(logging.WARNING):
        nodes = parser.get_nodes_from_documents([document(metadata={"title": "word " * 90})])
    assert "takes 90 tokens, 48 are reserved" in caplog.text
    assert all("heading" not in node.metadata for node in nodes)
    assert {node.metadata.get("section_path") for node in nodes} == {None, "Foxes", "Foxes > Food", "Foxes > Dens", "Hens"}


PARTS = st.lists(
    st.sampled_from(
        [
            "# One\n\n",
            "## Two of a rather long heading that goes on and on\n\n",
            "#### Four\n\n",
            "Some words stand here. And more of them, in a second sentence.\n",
            "| Name | Price |\n|---|---|\n",
            "| Fox | 12 |\n",
            "Six Months Ended\n2023 2022\n",
            "Net sales 1,000 2,000\n",
            "```\ncode = 1\n\nmore = 2\n```\n",
            "As follows:\n",
            "- item\n",
            "x" * 90 + "\n",
            "日本。語。\n",
            "\n",
        ]
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(
    parts=PARTS, size=st.integers(1, 80), share=st.floats(0, 0.9), count=st.sampled_from([count_words, len]), title=st.sampled_from(["", "T", "A longer title"])
)
def test_every_node_is_a_slice_and_what_is_embedded_fits(parts: list[str], size: int, share: float, count, title: str) -> None:
    text = "".join(parts)
    parser = word_parser(count=count, chunk_size=size, chunk_overlap=int((size - 1) * share))
    nodes = parser.get_nodes_from_documents([document(text, metadata={"title": title} if title else {})])
    if not text.strip():
        assert nodes == []
        return
    check_tree(nodes, text)
    assert all(text.strip() and node.text == node.text.strip() for node in nodes[1:])
    if count(f"{title}\n\n") <= min(48, size // 2):
        assert all(len(leaf.text) == 1 or count(leaf.get_content(metadata_mode=MetadataMode.EMBED)) <= size for leaf in get_leaf_nodes(nodes))


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{'#' * (number % 6 + 1)} Heading {number}\n\n{FOX.format(number)}\n\n" for number in range(10_000)),
        "".join(f"{'1.' * (number % 300 + 1)}1 Heading\n{FOX.format(number)}\n" for number in range(2_000)),
        FOX.format(1) * 70_000,
        "word " * 400_000,
    ],
    ids=["10,000 headings", "deep numbers", "5 MB in one paragraph", "no sentence ends"],
)
def test_long_texts_take_seconds(text: str) -> None:
    began = time.process_time()
    nodes = parse(text, chunk_size=256, chunk_overlap=32)
    assert time.process_time() - began < 40
    assert all(text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
