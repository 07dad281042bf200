"""The command line end to end: a real folder, a real index, no network; the embedding is a test double set in Settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from llama_index.core import Settings
from typer.testing import CliRunner

from llama_index_advanced_rag import cli
from llama_index_advanced_rag.modes import RetrievalMode
from llama_index_advanced_rag.testing import DeterministicEmbedding, ScriptedLLM

EXAMPLES = Path(__file__).parents[2] / "examples"
FOX = "# Foxes\n\nThe red fox eats mice and berries. A fox lives about 4 years in the wild.\n"
CATS = "Cats sleep 16 hours a day. They hunt at dusk.\n"
runner = CliRunner()


@pytest.fixture
def embedding(monkeypatch):
    model = DeterministicEmbedding()
    monkeypatch.setattr(Settings, "_embed_model", model)
    return model


@pytest.fixture
def docs(tmp_path, embedding):
    folder = tmp_path / "my docs"
    folder.mkdir()
    (folder / "foxes été.md").write_text(FOX, encoding="utf-8")
    (folder / "cats.txt").write_text(CATS, encoding="utf-8")
    return folder


def call(*arguments):
    return runner.invoke(cli.app, [str(argument) for argument in arguments])


def call_json(*arguments):
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_ask_answers_with_file_and_highlighted_passage(docs):
    result = call("ask", "What does the red fox eat?", "--docs", docs)
    assert result.exit_code == 0, result.stderr
    assert "The red fox eats mice and berries. [1]" in result.stdout
    assert "[1] foxes été.md  (score " in result.stdout
    assert "»The red fox eats mice and berries.« A fox lives" in result.stdout
    assert "2 added" in result.stderr
    assert "2 added" not in result.stdout


def test_passages_of_one_node_are_shown_in_one_block(tmp_path, embedding):
    (tmp_path / "trial.txt").write_text("The trial period lasts at most:\n1. Two months for workers;\n2. Four months for managers.\n", encoding="utf-8")
    result = call("ask", "How long does the trial period last?", "--docs", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert "The trial period lasts at most: [1]\n  1. Two months for workers [2]\n  2. Four months for managers. [3]\n" in result.stdout
    assert "[1][2][3] trial.txt  (score " in result.stdout
    assert "»1. Two months for workers;«\n    »2. Four months for managers.«" in result.stdout


def test_a_second_ask_embeds_only_the_question(docs, embedding):
    call_json("ask", "What does the red fox eat?", "--docs", docs)
    assert (docs / ".advanced-rag" / "corpus.sqlite").exists()
    embedding.texts.clear()
    again = call_json("ask", "How long do cats sleep?", "--docs", docs)
    assert again["index"]["report"]["unchanged"] == ["cats.txt", "foxes été.md"]
    assert again["index"]["report"]["embedded"] == 0
    assert not any(text.startswith("Foxes\n\n") for text in embedding.texts)  # chunks carry their title; quoting embeds sentences
    assert again["citations"][0]["file"] == "cats.txt"


def test_ask_notices_what_changed_and_what_is_gone(docs):
    call_json("ask", "fox?", "--docs", docs)
    (docs / "cats.txt").write_text("Cats sleep 18 hours a day.", encoding="utf-8")
    (docs / "foxes été.md").unlink()
    (docs / "dogs.txt").write_text("Dogs bark at strangers.", encoding="utf-8")
    answer = call_json("ask", "How many hours do cats sleep?", "--docs", docs)
    report = answer["index"]["report"]
    assert (report["added"], report["updated"], report["deleted"]) == (["dogs.txt"], ["cats.txt"], ["foxes été.md"])
    assert "18 hours" in answer["answer"]


def test_json_is_one_document_and_holds_exact_spans(docs):
    answer = call_json("ask", "What does the red fox eat?", "--docs", docs)
    (citation, *_) = answer["citations"]
    assert citation["number"] == 1
    assert FOX.rstrip()[citation["document_start"] : citation["document_end"]] == citation["passage"]
    source = next(source for source in answer["sources"] if source["node_id"] == citation["node_id"])
    assert source["text"][citation["start"] : citation["end"]] == citation["passage"]
    assert answer["usage"]["llm_calls"] == 0


def test_an_index_elsewhere(docs, tmp_path):
    place = tmp_path / "elsewhere" / "index"
    assert call_json("index", docs, "--index-dir", place)["report"]["added"] == ["cats.txt", "foxes été.md"]
    assert not (docs / ".advanced-rag").exists()
    assert "mice" in call_json("ask", "What does the red fox eat?", "--index-dir", place)["answer"]
    assert call_json("info", "--index-dir", place)["index"]["documents"] == 2


def test_an_index_inside_the_documents_is_not_read_as_documents(docs):
    place = docs / "index"
    call_json("index", docs, "--index-dir", place)
    assert call_json("index", docs, "--index-dir", place)["skipped_files"] == []


def test_update_needs_an_index(docs):
    result = call("update", "--docs", docs)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: There is no index in the folder")
    call_json("index", docs)
    (docs / "cats.txt").unlink()
    assert call_json("update", "--docs", docs)["report"]["deleted"] == ["cats.txt"]


def test_explain_says_why_for_each_stage(docs):
    result = call("explain", "red fox mice", "--docs", docs)
    assert result.exit_code == 0, result.stderr
    assert "1. foxes été.md" in result.stdout
    assert "lexical: rank 1" in result.stdout
    assert "dense: rank 1" in result.stdout
    facts = call_json("explain", "red fox mice", "--docs", docs, "--top-k", 1)
    assert len(facts["nodes"]) == 1
    assert {"lexical", "dense", "hybrid"} <= {item["stage"] for item in facts["nodes"][0]["evidence"]}
    assert all(item["why"] for item in facts["nodes"][0]["evidence"])


@pytest.mark.parametrize("mode", ["graph", "vote"])
def test_the_entity_graph_answers_and_says_why(tmp_path, embedding, mode):
    (tmp_path / "acme.txt").write_text("The anvils of Acme are made in Rome. The anvils weigh 70 pounds.\n", encoding="utf-8")
    (tmp_path / "beta.txt").write_text("The boats of Beta are made in Oslo.\n", encoding="utf-8")
    question = "What do the anvils of Acme weigh?"
    assert "70 pounds" in call_json("ask", question, "--docs", tmp_path, "--mode", mode)["answer"]
    facts = call_json("explain", question, "--docs", tmp_path, "--mode", mode)
    first = facts["nodes"][0]
    assert first["file"] == "acme.txt"
    assert {mode, "hybrid"} <= {item["stage"] for item in first["evidence"]}
    assert any(item["stage"] == mode and item["why"] for item in first["evidence"])
    result = call("explain", question, "--index-dir", tmp_path / ".advanced-rag", "--mode", mode)
    assert result.exit_code == 0, result.stderr
    assert "1. acme.txt" in result.stdout
    assert f"{mode}: rank 1" in result.stdout


def test_names_are_embedded_at_the_first_question_only(tmp_path, embedding):
    (tmp_path / "acme.txt").write_text("The anvils of Acme are made in Rome.\n", encoding="utf-8")
    for names in ({"Rome - Acme"}, set()):
        since = len(embedding.texts)
        call_json("ask", "What does Acme make?", "--docs", tmp_path, "--mode", "vote")
        assert {text for text in embedding.texts[since:] if " - " in text} == names


def test_info_lists_documents(docs):
    call_json("index", docs)
    result = call("info", "--docs", docs)
    assert result.exit_code == 0, result.stderr
    assert "foxes été.md" in result.stdout
    assert call_json("info", "--docs", docs)["documents"][0]["ref_doc_id"] == "cats.txt"


def test_an_llm_writes_the_answer(docs, monkeypatch):
    llm = ScriptedLLM(["Mice and berries [1]."])
    monkeypatch.setattr("llama_index_advanced_rag.openai_compatible.resolve_llm_name", lambda name, api_base: llm)
    answer = call_json("ask", "What does the red fox eat?", "--docs", docs, "--llm", "openai:any")
    assert (answer["answer"], answer["usage"]["llm_calls"], answer["fallback"]) == ("Mice and berries [1].", 1, None)
    streamed = call("ask", "What does the red fox eat?", "--docs", docs, "--llm", "openai:any", "--stream")
    assert streamed.stdout.startswith("Mice and berries [1].\n\nSources\n[1] ")


def test_an_llm_that_fails_is_said_and_the_answer_quotes(docs, monkeypatch):
    llm = ScriptedLLM([ConnectionError("the server is down")])
    monkeypatch.setattr("llama_index_advanced_rag.openai_compatible.resolve_llm_name", lambda name, api_base: llm)
    result = call("ask", "What does the red fox eat?", "--docs", docs, "--llm", "openai:any")
    assert result.exit_code == 3
    assert "mice and berries. [1]" in result.stdout
    assert "the server is down" in result.stderr


def test_files_that_cannot_be_read_are_listed_and_the_code_says_partly(docs):
    (docs / "empty.txt").touch()
    (docs / "binary.md").write_bytes(b"\x00\x01")
    (docs / "photo.jpg").write_bytes(b"\xff\xd8")
    result = call("index", docs)
    assert result.exit_code == 3
    assert "2 added" in result.stdout
    assert "skipped: empty.txt: is empty" in result.stdout
    assert "skipped: photo.jpg: is of the unknown type '.jpg'" in result.stdout
    (docs / "empty.txt").unlink()
    (docs / "binary.md").unlink()
    assert call("index", docs).exit_code == 0


def test_a_file_that_cannot_be_read_any_more_keeps_its_indexed_version(docs):
    call_json("index", docs)
    (docs / "cats.txt").write_bytes(b"\x00\x01")
    result = call("update", "--docs", docs)
    assert result.exit_code == 3
    assert "cats.txt: cannot be read now; the version indexed before is kept" in result.stdout
    assert call_json("ask", "How long do cats sleep?", "--docs", docs)["citations"][0]["file"] == "cats.txt"


def test_files_with_the_same_content_are_said(docs):
    (docs / "copy.txt").write_text(CATS, encoding="utf-8")
    assert "copy.txt: same content as cats.txt; both are kept" in call_json("index", docs)["warnings"]


def test_a_question_of_20000_characters_is_answered_and_what_was_done_is_said(docs):
    result = call("ask", "What does the red fox eat? " * 750, "--docs", docs)
    assert result.exit_code == 0
    assert "mice" in result.stdout
    assert "characters" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask", " ", "--docs", "."],
        ["ask", "why?", "--docs", ".", "--mode", "fastest"],
        ["ask", "why?", "--docs", ".", "--top-k", "0"],
        ["ask", "why?"],
        ["ask", "why?", "--index-dir", "x", "--language", "fr"],
        ["info"],
        ["index"],
        ["no-such-command"],
    ],
)
def test_wrong_usage_is_code_2(arguments):
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


def test_errors_take_one_line_and_code_1(docs, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "a.txt").touch()
    cases = {
        "is neither a folder nor a file": ["ask", "why?", "--docs", tmp_path / "none"],
        "holds no documents": ["ask", "why?", "--docs", tmp_path / "empty"],
        "'a.txt' is empty": ["ask", "why?", "--docs", tmp_path / "only"],
        "There is no index in the folder": ["ask", "why?", "--index-dir", tmp_path / "none"],
        "not built yet": ["ask", "why?", "--docs", docs, "--mode", "community"],
        "Expected 'openai:MODEL'": ["ask", "why?", "--docs", docs, "--llm", "gpt"],
        "no --llm says which model": ["ask", "why?", "--docs", docs, "--api-base", "http://127.0.0.1:9"],
        "names no model": ["index", docs, "--index-dir", tmp_path / "new", "--embed-model", "openai:x"],
    }
    for message, arguments in cases.items():
        result = call(*arguments)
        last = result.stderr.splitlines()[-1]
        assert (result.exit_code, result.stdout) == (1, ""), message
        assert last.startswith("error: "), message
        assert message in last
        assert "Traceback" not in result.stderr
    assert not (tmp_path / "new").exists()


def test_debug_shows_the_traceback(tmp_path):
    result = call("ask", "why?", "--docs", tmp_path / "none", "--debug")
    assert result.exit_code == 1
    assert type(result.exception).__name__ == "DocumentReadError"


def test_another_language_or_embedding_than_the_index_was_built_with_is_refused(docs, monkeypatch):
    call_json("index", docs, "--language", "fr")
    result = call("ask", "fox?", "--docs", docs, "--language", "en")
    assert result.exit_code == 1
    assert "was built with language='fr', not 'en'" in result.stderr
    monkeypatch.setattr(Settings, "_embed_model", DeterministicEmbedding(dimensions=7, model_name="another"))
    result = call("ask", "fox?", "--docs", docs)
    assert result.exit_code == 1
    assert "error: " in result.stderr.splitlines()[-1]


def test_a_folder_that_cannot_be_written_names_the_option(docs, monkeypatch):
    monkeypatch.setattr("llama_index_advanced_rag.folder_index.may_write", lambda folder: False)
    result = call("ask", "fox?", "--docs", docs)
    assert result.exit_code == 1
    assert "Name another folder with --index-dir" in result.stderr


def test_an_index_that_cannot_be_written_still_answers_and_says_what_it_misses(docs, monkeypatch):
    call_json("index", docs)
    (docs / "dogs.txt").write_text("Dogs bark.", encoding="utf-8")
    monkeypatch.setattr("llama_index_advanced_rag.folder_index.may_write", lambda folder: False)
    answer = call_json("ask", "What does the red fox eat?", "--docs", docs)
    assert "mice" in answer["answer"]
    assert answer["index"]["warnings"] == ["The index cannot be written: 1 new or changed and 0 deleted file(s) are not taken in."]


def test_the_modes_are_those_of_python():
    assert tuple(mode.value for mode in RetrievalMode) == cli.MODES


def test_help_names_commands_and_exit_codes():
    result = call("--help")
    assert all(name in result.stdout for name in ("index", "ask", "update", "explain", "info", "Exit codes"))


@pytest.fixture(scope="module")
def example_index(tmp_path_factory):
    """The index of the shipped documents, made by the command in a process of its own with the packaged model."""
    place = tmp_path_factory.mktemp("example") / "index"
    command = [sys.executable, "-c", "from llama_index_advanced_rag.cli import main; main()"]
    arguments = ["index", EXAMPLES / "docs", "--index-dir", place, "--embed-model", "packaged", "--json"]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=280, check=False, env={**os.environ, "PYTHONUTF8": "1"})
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["report"]["added"]) == 11
    return place


@pytest.mark.offline_model
@pytest.mark.parametrize("line", (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines())
def test_each_example_question_is_answered_from_the_right_passage(example_index, line):
    question = json.loads(line)
    answer = call_json("ask", question["question"], "--index-dir", example_index)
    assert any(question["phrase"] in citation["passage"] and citation["file"] == question["file"] for citation in answer["citations"]), answer["answer"]


def test_verify_says_what_is_damaged_and_repairs_it(docs, embedding):
    call_json("index", docs)
    assert "The index is sound." in call("verify", docs).stdout
    file = docs / ".advanced-rag" / "vectors-1.bin"
    file.write_bytes(bytes(len(file.read_bytes())))
    for folder in (docs, docs / ".advanced-rag"):
        result = call("verify", folder)
        assert (result.exit_code, "Traceback" in result.stderr) == (3, False)
        assert "wrong: The file 'vectors-1.bin' is damaged at rows 0 to 1." in result.stdout
    facts = json.loads(call("verify", docs, "--json").stdout)
    assert (facts["ok"], len(facts["problems"]), facts["repaired"]) == (False, 1, [])
    embedding.texts.clear()
    result = call("verify", docs, "--repair")
    assert result.exit_code == 0, result.stderr
    assert "2 vectors were made again" in result.stdout
    assert len(embedding.texts) == 2
    assert call_json("verify", docs)["ok"]
    assert call_json("ask", "What does the red fox eat?", "--docs", docs)["citations"]


def test_verify_of_a_file_without_which_nothing_opens(docs):
    call_json("index", docs)
    (docs / ".advanced-rag" / "rows-1.bin").unlink()
    result = call("verify", docs)
    assert (result.exit_code, "'rows-1.bin' of this index is missing" in result.stdout) == (3, True)
    assert call("verify", docs, "--repair").exit_code == 0
    assert call_json("verify", docs)["ok"]


def test_compact_gives_space_back(docs):
    call_json("index", docs)
    (docs / "cats.txt").unlink()
    call_json("update", "--docs", docs)
    facts = call_json("compact", docs)
    assert (facts["before"]["dead_rows"], facts["after"]["dead_rows"], facts["after"]["rows"]) == (1, 0, 1)
    assert facts["after"]["vector_bytes"] < facts["before"]["vector_bytes"]
    assert "0 dead rows removed, 1 rows kept; vectors 256 -> 256 bytes" in call("compact", docs).stdout
    assert "mice" in call_json("ask", "What does the red fox eat?", "--docs", docs)["answer"]


def test_looking_after_what_is_no_index_is_an_error(tmp_path):
    for command in ("verify", "compact"):
        result = call(command, tmp_path)
        assert result.exit_code == 1
        assert "There is no index in the folder" in result.stderr.splitlines()[-1]
