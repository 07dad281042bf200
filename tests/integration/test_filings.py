"""The main job on real filings: the figure asked for stands in a cited passage, and the next question embeds nothing."""

import json
import shutil
from pathlib import Path

import pytest
from llama_index.core.query_engine import RetrieverQueryEngine
from typer.testing import CliRunner

from llama_index_advanced_rag import CorpusIndex, cli
from llama_index_advanced_rag.testing import ScriptedLLM

QUESTION = "What were Apple's total net sales in the quarter ended July 1, 2023?"
FIGURE = "81,797"
FILINGS = ("2022 Q3 AAPL.pdf", "2023 Q3 AAPL.pdf", "2023 Q3 MSFT.pdf")
pytestmark = [pytest.mark.data, pytest.mark.offline_model, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def filings(data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filings")
    for name in FILINGS:
        shutil.copy(data_root / "sec-10-q" / "docs" / name, folder / name)
    return folder


def ask(filings: Path) -> tuple[dict, str]:
    result = CliRunner().invoke(cli.app, ["ask", "--docs", str(filings), "--embed-model", "packaged", "--json", QUESTION])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def test_ask_cites_the_figure_and_does_not_embed_twice(filings: Path) -> None:
    answer, _ = ask(filings)
    assert any(FIGURE in citation["passage"] for citation in answer["citations"]), answer["answer"]
    again, progress = ask(filings)
    assert "0 texts embedded" in progress
    assert again["answer"] == answer["answer"]


def test_the_same_index_in_a_plain_query_engine(filings: Path) -> None:
    ask(filings)
    llm = ScriptedLLM([f"{FIGURE} million dollars."])
    with CorpusIndex.load(filings / ".advanced-rag", read_only=True) as index:
        response = RetrieverQueryEngine.from_args(index.as_retriever("hybrid", similarity_top_k=10), llm=llm).query(QUESTION)
    assert FIGURE in str(response)
    assert any(FIGURE in item.node.get_content() for item in response.source_nodes)
