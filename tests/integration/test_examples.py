"""The documents that the repository ships: readable, named in SOURCES.md, and holding what the questions ask."""

import json
from pathlib import Path

import pytest

from llama_index_advanced_rag.reading.folder import read_folder

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTIONS = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def documents():
    reading = read_folder(EXAMPLES / "docs")
    assert (reading.skipped, reading.warnings) == ([], [])
    return {document.id_: document for document in reading.documents}


def test_each_document_has_its_source_and_licence(documents):
    sources = (EXAMPLES / "SOURCES.md").read_text(encoding="utf-8")
    assert [name for name in documents if f"`{name}`" not in sources] == []
    assert sum(len(document.text) for document in documents.values()) < 300_000


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["id"])
def test_each_question_is_answered_in_its_document(documents, question):
    assert question["phrase"] in documents[question["file"]].text


def test_questions_in_both_languages():
    assert sorted(question["language"] for question in QUESTIONS) == ["en"] * 5 + ["fr"] * 5
