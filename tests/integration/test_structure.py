"""Structure of real filings in an index: what it costs to store, and sections that are found by what they are called."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import Document
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.reading.folder import read_folder
from llama_index_advanced_rag.testing import DeterministicEmbedding

FILINGS = ("2022 Q3 AAPL.pdf", "2023 Q2 MSFT.pdf", "2023 Q3 INTC.pdf")
MOST_BYTES = 2.0  # of records, text included, for each byte of text
pytestmark = [pytest.mark.data, pytest.mark.timeout(900)]


class OneDirection(BaseEmbedding):
    """Costs nothing: what is stored beside the vectors is measured."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [1.0, 0.0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return [1.0, 0.0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return [1.0, 0.0]


@pytest.fixture(scope="module")
def filings(data_root: Path) -> list[Document]:
    return read_folder(data_root / "sec-10-q" / "docs").documents


@pytest.fixture(scope="module")
def index(filings: list[Document]) -> CorpusIndex:
    few = [document for document in filings if document.metadata["file_name"] in FILINGS]
    return CorpusIndex.from_documents(few, embed_model=DeterministicEmbedding(dimensions=32))


def sections(index: CorpusIndex, mode: str, question: str, company: str, **options: Any) -> list[str]:
    """Heading paths of the first hits, which must all be of one company's report."""
    found = index.as_retriever(mode, similarity_top_k=5, **options).retrieve(question)
    assert found
    assert company in str(found[0].node.metadata["file_name"]), [hit.node.metadata["file_name"] for hit in found]
    return [str(hit.node.metadata.get("section_path", "")).lower() for hit in found]


def test_records_of_twenty_filings_take_little_more_than_their_text(filings: list[Document]) -> None:
    texts = [Document(text=document.text, id_=document.id_, metadata={"file_name": document.metadata["file_name"]}) for document in filings]
    with CorpusIndex.from_documents(texts, embed_model=OneDirection()) as index:
        info = index.info()
        assert info["documents"] == 20
        assert info["outline_nodes"] > 20 * 10
        assert info["nodes"] > info["outline_nodes"]
        assert info["record_bytes"] <= MOST_BYTES * info["text_bytes"], info["record_bytes"] / info["text_bytes"]


def test_every_filing_has_sections(index: CorpusIndex) -> None:
    for document in index.list_documents():
        nodes = index.docstore.get_nodes(index.ref_doc_info[document.ref_doc_id].node_ids)
        assert sum(bool(node.child_nodes) for node in nodes) >= 10, document.title


@pytest.mark.parametrize(
    ("question", "company", "heading"),
    [
        ("According to the section on controls and procedures, were Apple's disclosure controls effective?", "AAPL", "controls and procedures"),
        ("Which legal proceedings does Microsoft report?", "MSFT", "legal proceedings"),
        ("What does the section on unregistered sales of equity securities of Apple say about share repurchases?", "AAPL", "unregistered sales"),
        ("What does Intel say in its section on controls and procedures?", "INTC", "controls and procedures"),
    ],
)
def test_a_section_that_is_named_is_found_by_its_heading(index: CorpusIndex, question: str, company: str, heading: str) -> None:
    assert any(heading in path for path in sections(index, "anchor", question, company))


def test_the_report_that_is_asked_for_comes_first(index: CorpusIndex) -> None:
    for company, name in (("AAPL", "Apple"), ("MSFT", "Microsoft"), ("INTC", "Intel")):
        found = index.as_retriever("hierarchical", similarity_top_k=5).retrieve(f"What risks of foreign currency does {name} describe?")
        assert sum(company in str(hit.node.metadata["file_name"]) for hit in found) >= 3, [hit.node.metadata["file_name"] for hit in found]


@pytest.mark.parametrize("mode", ["hierarchical", "anchor"])
def test_filters_hold_on_real_filings(index: CorpusIndex, mode: str) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="file_name", value=FILINGS[1])])
    found = index.as_retriever(mode, filters=filters, similarity_top_k=20).retrieve("controls and procedures of Apple and Intel")
    assert {hit.node.metadata["file_name"] for hit in found} == {FILINGS[1]}


def test_a_section_is_given_whole_where_its_parts_are_found(index: CorpusIndex) -> None:
    found = index.as_retriever("hierarchical", strategy="merge_up", similarity_top_k=30).retrieve("evaluation of disclosure controls and procedures")
    whole = [hit.node for hit in found if hit.node.child_nodes]
    assert whole
    for node in whole:
        document = index.docstore.get_document(str(node.ref_doc_id))
        assert document is not None
        assert node.get_content() == document.get_content()[node.start_char_idx : node.end_char_idx]
