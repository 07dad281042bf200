"""What the stock index of document summaries gets wrong, each beside ours doing it right (core 0.14.25)."""

from typing import Any

import pytest
from llama_index.core import Document, DocumentSummaryIndex, get_response_synthesizer
from llama_index.core.indices.document_summary import DocumentSummaryIndexEmbeddingRetriever, DocumentSummaryIndexLLMRetriever
from llama_index.core.node_parser import SentenceSplitter

from llama_index_advanced_rag.hierarchy.summaries import Summarizer
from llama_index_advanced_rag.hierarchy.summary.node import UnitText
from llama_index_advanced_rag.hierarchy.summary_tree import SummaryTree
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM, stock_fault

TEXTS = {"foxes": "Foxes hunt at night.", "whales": "Whales swim in the sea.", "crows": "Crows live in trees."}


def stock(answers: Any = ("A summary.",)) -> DocumentSummaryIndex:
    llm = ScriptedLLM(list(answers))
    return DocumentSummaryIndex.from_documents(
        [Document(text=text, id_=name) for name, text in TEXTS.items()],
        llm=llm,
        embed_model=DeterministicEmbedding(),
        response_synthesizer=get_response_synthesizer(llm=llm, response_mode="simple_summarize"),
        transformations=[SentenceSplitter()],
    )


def ours(llm: ScriptedLLM | None = None) -> SummaryTree:
    units = [UnitText(name, name, name.title(), 0, text) for name, text in TEXTS.items()]
    return SummaryTree.build(units, Summarizer(llm), embed_model=DeterministicEmbedding())


def check_silent(capsys: pytest.CaptureFixture[str]) -> None:
    printed = capsys.readouterr()
    assert printed.out == ""


def test_indexing_prints_nothing(capsys: pytest.CaptureFixture[str]):
    ours(ScriptedLLM(["A summary."]))
    check_silent(capsys)


@stock_fault('core 0.14.25: indexing prints "current doc id: ..." [2.5]')
def test_stock_indexing_prints_nothing(capsys: pytest.CaptureFixture[str]):
    stock()
    check_silent(capsys)


def check_scores(scores: list[Any]) -> None:
    assert scores
    assert all(isinstance(score, float) for score in scores)


def test_every_hit_has_a_score():
    check_scores([score for _, score in ours().search("foxes at night", top_k=2)])


@stock_fault("core 0.14.25: the embedding retriever gives score=None [2.5]")
def test_every_stock_hit_has_a_score():
    retriever = DocumentSummaryIndexEmbeddingRetriever(stock(), similarity_top_k=2, embed_model=DeterministicEmbedding())
    check_scores([hit.score for hit in retriever.retrieve("foxes at night")])


@pytest.mark.parametrize("answer", ["Doc: 99, Relevance: 10", "I cannot say.", ""])
def test_an_answer_that_cannot_be_used_loses_nothing(answer: str):
    found = [unit_id for unit_id, _ in ours(ScriptedLLM([answer])).search("foxes hunt at night", top_k=3)]
    assert found[0] == "foxes"


@stock_fault("core 0.14.25: an answer out of range or without a number gives no result [13a]")
@pytest.mark.parametrize("answer", ["Doc: 99, Relevance: 10", "I cannot say."])
def test_a_stock_answer_that_cannot_be_used_loses_nothing(answer: str):
    retriever = DocumentSummaryIndexLLMRetriever(stock(), llm=ScriptedLLM([answer]))
    assert retriever.retrieve("foxes hunt at night")
