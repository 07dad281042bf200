"""Nodes of all levels of real filings: true offsets, a tree, nothing lost, and sizes that the embedding model reads."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import get_leaf_nodes, get_root_nodes
from llama_index.core.schema import MetadataMode, TextNode

from llama_index_advanced_rag.embeddings.default import resolve_embed_model
from llama_index_advanced_rag.embeddings.window import EmbeddingWindow, embedding_window
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.reading.folder import read_folder
from llama_index_advanced_rag.text.outline import Bookmark, recover_outline

pytestmark = [pytest.mark.data, pytest.mark.offline_model, pytest.mark.timeout(900)]

Parsed = list[tuple[Document, list[TextNode]]]


@pytest.fixture(scope="module")
def window() -> EmbeddingWindow:
    return embedding_window(resolve_embed_model("packaged"))


@pytest.fixture(scope="module")
def filings(data_root: Path) -> Parsed:
    documents = read_folder(data_root / "sec-10-q" / "docs").documents
    parser = HierarchicalNodeParser.for_model(resolve_embed_model("packaged"))
    return [(document, parser.get_nodes_from_documents([document])) for document in documents]


def test_every_node_is_a_slice_of_its_filing(filings: Parsed) -> None:
    assert len(filings) == 20
    for document, nodes in filings:
        assert all(document.text[node.start_char_idx : node.end_char_idx] == node.text for node in nodes)
        assert all(node.ref_doc_id == document.id_ for node in nodes)
        assert (nodes[0].text, get_root_nodes(nodes)) == (document.text, [nodes[0]])
    assert len({node.node_id for _, nodes in filings for node in nodes}) == sum(len(nodes) for _, nodes in filings)


def test_the_nodes_of_a_filing_are_a_tree(filings: Parsed) -> None:
    for _, nodes in filings:
        by_id = {node.node_id: node for node in nodes}
        for node in nodes:
            children = [by_id[child.node_id] for child in node.child_nodes or []]
            assert all(child.parent_node.node_id == node.node_id for child in children)
            assert all(node.start_char_idx <= child.start_char_idx and child.end_char_idx <= node.end_char_idx for child in children)
            in_order(children)
            linked([child for child in children if child.child_nodes])
        leaves = get_leaf_nodes(nodes)
        in_order(leaves)
        linked(leaves)
        assert len(leaves) + len([node for node in nodes if node.child_nodes]) == len(nodes)


def in_order(nodes: Sequence[TextNode]) -> None:
    assert all(before.start_char_idx < after.start_char_idx and before.end_char_idx < after.end_char_idx for before, after in pairwise(nodes))


def linked(nodes: Sequence[TextNode]) -> None:
    assert all(before.next_node.node_id == after.node_id and after.prev_node.node_id == before.node_id for before, after in pairwise(nodes))


def test_the_chunks_hold_every_visible_character(filings: Parsed) -> None:
    for document, nodes in filings:
        covered = bytearray(len(document.text))
        for leaf in get_leaf_nodes(nodes):
            covered[leaf.start_char_idx : leaf.end_char_idx] = b"\1" * len(leaf.text)
        assert all(covered[place] or character.isspace() for place, character in enumerate(document.text))


def test_prefixes_and_chunks_fit(filings: Parsed, window: EmbeddingWindow) -> None:
    for document, nodes in filings:
        leaves = get_leaf_nodes(nodes)
        embedded = [leaf.get_content(metadata_mode=MetadataMode.EMBED) for leaf in leaves]
        prefixes = [window.count_tokens(text.removesuffix(leaf.text)) for text, leaf in zip(embedded, leaves, strict=True)]
        assert max(prefixes) <= 48, document.id_
        assert max(map(window.count_tokens, embedded)) <= 256, document.id_
        assert max(window.count_tokens(leaf.metadata.get("heading", "")) for leaf in leaves) <= 16, document.id_


def test_most_chunks_say_where_they_stand(filings: Parsed) -> None:
    for document, nodes in filings:
        leaves = get_leaf_nodes(nodes)
        placed = [leaf for leaf in leaves if "section_path" in leaf.metadata]
        assert len(placed) > 0.7 * len(leaves), document.id_
        assert len({leaf.metadata["section_path"] for leaf in placed}) >= 10, document.id_
        assert sum("table_header" in leaf.metadata for leaf in leaves) >= 5, document.id_


def test_section_paths_are_whole_and_headings_their_ends(filings: Parsed) -> None:
    for document, nodes in filings:
        layout = document.metadata
        bookmarks = [Bookmark(*entry) for entry in layout.get("bookmarks", ())]
        titles = {heading.title for heading in recover_outline(document.text, page_starts=layout.get("page_starts", ()), bookmarks=bookmarks).headings}
        by_id = {node.node_id: node for node in nodes}
        for node in nodes[1:]:
            above = by_id[node.parent_node.node_id].metadata.get("section_path")
            path, heading = node.metadata.get("section_path"), node.metadata.get("heading")
            if path is None:
                assert (above, heading) == (None, None)
                continue
            assert any(path == title or path.endswith(f" > {title}") for title in titles), document.id_
            assert above is None or path == above or path.startswith(f"{above} > "), document.id_
            assert (path not in node.get_content(metadata_mode=MetadataMode.EMBED).removesuffix(node.text)) or path == heading
            assert heading is None or heading.endswith(" …") or path.endswith(heading.removeprefix("… > ")), document.id_
