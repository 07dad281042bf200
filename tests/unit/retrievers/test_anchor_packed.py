"""Headings that share a passage: read from the text once more, with what the document says of its pages where that can be read."""

import pytest
from llama_index.core import Document
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.hierarchy.units import UnitTable
from llama_index_advanced_rag.retrievers.anchors.outline import read_outline
from llama_index_advanced_rag.retrievers.anchors.packed import packed_sections
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM

PARTS = {
    "Notice": "Each party may end this agreement at the end of a year.\nIt says so three months before.",
    "Penalties": "Who leaves before the term owes a fifth of what is left to pay.\nThe provider sends the bill.",
    "Secrets": "Both parties keep to themselves what they learn of each other.\nThis has no end.",
    "Courts": "Those of the seat of the provider hear all that is in dispute.\nThe law is that of the land.",
}
RUNNING = "Fox and Sons Ltd"


def on_pages(**metadata: str) -> Document:
    """Parts whose headings show by their looks only, one a page, under a running head."""
    pages = [f"{RUNNING}\n\n{heading}\n\n{text}\n\n{number}\n\n" for number, (heading, text) in enumerate(PARTS.items(), start=1)]
    starts = [sum(map(len, pages[:number])) for number in range(len(pages))]
    return Document(id_="d", text="".join(pages), metadata={"page_starts": starts, **metadata})


def parsed(document: Document) -> tuple[list[TextNode], list[TextNode], UnitTable]:
    nodes = HierarchicalNodeParser(chunk_size=256, chunk_overlap=0).get_nodes_from_documents([document])
    return nodes, [node for node in nodes if not node.child_nodes], UnitTable.from_nodes(nodes)  # type: ignore[return-value]


def test_on_pages_looks_count_where_it_is_known_where_these_begin():
    document = on_pages()
    nodes, leaves, table = parsed(document)
    assert len(leaves) == 1
    assert packed_sections(nodes[0], leaves, table) == []
    assert [one.region.title for one in packed_sections(nodes[0], leaves, table, source=document)] == list(PARTS)


def test_a_source_of_another_text_says_nothing():
    nodes, leaves, table = parsed(on_pages())
    other = Document(id_="d", text="Another text.", metadata={"page_starts": [0, 3]})
    assert packed_sections(nodes[0], leaves, table, source=other) == []


def test_the_documents_of_a_source_are_asked_for_their_pages():
    document = on_pages()
    nodes, _, table = parsed(document)
    assert [one.region.title for one in read_outline(table, ["d"], DictNodeSource(nodes), None)] == ["d"]
    assert [one.region.title for one in read_outline(table, ["d"], DictNodeSource([*nodes, document]), None)] == ["d", *PARTS]


@pytest.mark.parametrize("acl", ["all", "board"])
def test_an_index_shows_the_headings_of_pages_to_the_arbiter(acl):
    llm = ScriptedLLM(['{"units": []}'])
    allowed = MetadataFilters(filters=[MetadataFilter(key="acl", value="all")])
    with CorpusIndex.from_documents([on_pages(acl=acl)], embed_model=DeterministicEmbedding(), chunk_size=256) as index:
        index.as_retriever("anchor", llm=llm, filters=allowed, embeddings=False).retrieve("What about leaving early?")
    assert RUNNING not in "".join(llm.prompts).split("<candidates>")[0]
    assert all((heading in "".join(llm.prompts)) == (acl == "all") for heading in PARTS)
