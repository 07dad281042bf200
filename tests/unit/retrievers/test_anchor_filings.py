"""AnchorRetriever on real reports: a question finds its section by lines and headings, and an arbiter's choice is read in its place."""

import json
import shutil
from pathlib import Path

import pytest
from llama_index.core.schema import BaseNode

from llama_index_advanced_rag.hierarchy.keys import SECTION_PATH
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.reading.folder import read_folder
from llama_index_advanced_rag.retrievers.anchor import AnchorRetriever
from llama_index_advanced_rag.testing import ScriptedLLM

FILINGS = ("2023 Q1 MSFT.pdf", "2023 Q3 AAPL.pdf")
pytestmark = [pytest.mark.data, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def nodes(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[BaseNode]:
    folder = tmp_path_factory.mktemp("filings")
    for name in FILINGS:
        shutil.copy(data_root / "sec-10-q" / "docs" / name, folder / name)
    return HierarchicalNodeParser(chunk_size=256).get_nodes_from_documents(read_folder(folder).documents)


@pytest.mark.parametrize(
    ("question", "document", "heading"),
    [
        ("What is the effective tax rate of Microsoft and why did it change?", "2023 Q1 MSFT.pdf", "effective tax rate"),
        ("Which legal proceedings is Apple involved in?", "2023 Q3 AAPL.pdf", "legal proceedings"),
        ("Does Apple evaluate its disclosure controls and procedures?", "2023 Q3 AAPL.pdf", "controls and procedures"),
    ],
)
def test_a_question_finds_its_section(nodes, question, document, heading):
    best = AnchorRetriever.from_defaults(nodes=nodes, language="en").retrieve(question)[0].node
    assert best.ref_doc_id == document
    assert heading in str(best.metadata[SECTION_PATH]).casefold()


def test_the_outline_of_reports_is_complete_enough_for_an_arbiter_and_bounded(nodes):
    def choose(prompt: str) -> str:
        outline = prompt.split("<outline>\n")[1].split("\n</outline>")[0].splitlines()
        numbers = [int(line[1 : line.index("]")]) for line in outline if "risk factors" in line.casefold()]
        return json.dumps({"units": [{"number": number, "reason": "It lists what may go wrong."} for number in numbers]})

    llm = ScriptedLLM([choose])
    hits = AnchorRetriever.from_defaults(nodes=nodes, language="en", llm=llm).retrieve("What could go wrong?")
    assert {hit.node.ref_doc_id for hit in hits[:4]} == set(FILINGS)
    assert all("risk factors" in str(hit.node.metadata[SECTION_PATH]).casefold() for hit in hits[:2])
    assert len(llm.prompts) == 1
    assert len(llm.prompts[0]) < 40_000
