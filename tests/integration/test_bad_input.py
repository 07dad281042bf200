"""What users give by mistake: files, names, questions, folders and options; through the command and through Python.

A clear error or one report line for each, nothing lost, no traceback, and with `--json` nothing but JSON on stdout.
"""

import json
import math
import os
import time
import unicodedata

import pytest
from llama_index.core import Settings
from llama_index.core.schema import Document, ImageNode, IndexNode, TextNode
from typer.testing import CliRunner

from llama_index_advanced_rag import CorpusIndex, cli
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.reading.html_text import read_html
from llama_index_advanced_rag.testing import DeterministicEmbedding

FOX = "The red fox eats mice and berries."
QUESTION = "What does the red fox eat?"
runner = CliRunner()


@pytest.fixture(autouse=True)
def embedding(monkeypatch):
    model = DeterministicEmbedding()
    monkeypatch.setattr(Settings, "_embed_model", model)
    return model


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "fox.txt").write_text(FOX, encoding="utf-8")
    return folder


def call(*arguments):
    """The exit code, and the JSON that is all of stdout (None when there is none); stderr holds no traceback and an error is its last line."""
    result = runner.invoke(cli.app, [*map(str, arguments), "--json"])
    assert "Traceback" not in result.stderr
    facts = json.loads(result.stdout, parse_constant=pytest.fail) if result.stdout else None
    if result.exit_code == 1:
        assert result.stderr.splitlines()[-1] == f"error: {facts['error']['message']}"
    return result.exit_code, facts


def error_of(*arguments):
    code, facts = call(*arguments)
    assert code == 1
    return facts["error"]["message"]


def skipped(facts):
    return {item["path"]: item["reason"] for item in facts["skipped_files"]}


def in_memory(*documents):
    return CorpusIndex.from_documents([Document(text=FOX, id_="fox"), *documents], embed_model=DeterministicEmbedding())


class TestFiles:
    def test_no_folder_and_no_documents(self, tmp_path):
        (tmp_path / "empty").mkdir()
        assert "is neither a folder nor a file" in error_of("ask", QUESTION, "--docs", tmp_path / "none")
        assert "holds no documents" in error_of("ask", QUESTION, "--docs", tmp_path / "empty")
        assert list((tmp_path / "empty").iterdir()) == []

    def test_one_file_is_enough(self, docs):
        (docs / "cats.txt").write_text("Cats sleep.", encoding="utf-8")
        for added in (["fox.txt"], []):
            code, answer = call("ask", QUESTION, "--docs", docs / "fox.txt")
            assert (code, answer["index"]["report"]["added"], answer["citations"][0]["file"]) == (0, added, "fox.txt")
        assert call("info", "--docs", docs / "fox.txt")[1]["index"]["documents"] == 1
        assert call("index", docs)[1]["report"]["added"] == ["cats.txt", "fox.txt"], "the index of a file is no document of its folder"
        (docs / "photo.jpg").touch()
        assert "is of the unknown type '.jpg'" in error_of("index", docs / "photo.jpg")

    def test_each_file_that_cannot_be_read_has_its_line_and_the_others_are_indexed(self, docs):
        binary = bytes(range(256)) * 8
        for name in ("a.txt", "a.md", "a.html", "a.pdf", "a.docx"):
            (docs / name).write_bytes(binary)
            (docs / f"empty-{name}").touch()
        os.mkfifo(docs / "pipe.txt")
        (docs / "gone.md").symlink_to("nowhere.md")
        (docs / "loop.txt").symlink_to("loop.txt")
        (docs / "marked.html").write_bytes(b"<![<![>")
        code, facts = call("index", docs)
        assert code == 3
        assert facts["report"]["added"] == ["fox.txt"]
        reasons = skipped(facts)
        assert {name: reason for name, reason in reasons.items() if name.startswith("empty")} == dict.fromkeys(
            ["empty-a.docx", "empty-a.html", "empty-a.md", "empty-a.pdf", "empty-a.txt"], "is empty"
        )
        for name, words in {"a.txt": "binary", "a.pdf": "not a readable PDF", "a.docx": "not a readable .docx", "pipe.txt": "not a regular file"}.items():
            assert words in reasons[name]
        assert {"gone.md", "loop.txt", "marked.html", "a.html", "a.md"} <= set(reasons)
        assert call("ask", QUESTION, "--docs", docs)[1]["citations"][0]["file"] == "fox.txt"

    def test_damaged_and_locked_office_files(self, docs):
        docx = pytest.importorskip("docx")
        document = docx.Document()
        document.add_paragraph("Whales sing.")
        document.save(str(docs / "whale.docx"))
        whole = (docs / "whale.docx").read_bytes()
        for size in (10, len(whole) // 2, len(whole) - 1):
            (docs / f"cut{size}.docx").write_bytes(whole[:size])
        head = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n"
        locked = b"3 0 obj<</Filter/Standard/V 1/R 2/P -4/O<" + b"ab" * 32 + b">/U<" + b"cd" * 32 + b">>>endobj\n"
        (docs / "cut.pdf").write_bytes(head)
        (docs / "no pages.pdf").write_bytes(head + b"trailer<</Root 1 0 R>>\n%%EOF")
        (docs / "locked.pdf").write_bytes(head + locked + b"trailer<</Root 1 0 R/Encrypt 3 0 R/ID[<00><00>]>>\n%%EOF")
        code, facts = call("index", docs)
        assert (code, facts["report"]["added"]) == (3, ["fox.txt", "whale.docx"])
        assert len(skipped(facts)) == 6
        assert "password" in skipped(facts)["locked.pdf"]

    def test_encodings_are_read_or_the_file_is_named(self, docs):
        (docs / "windows.txt").write_bytes("Le thé est prêt, déjà.".encode("cp1252"))
        (docs / "mixed.txt").write_bytes("Été ".encode() + "à la mer".encode("latin-1"))
        (docs / "utf16.txt").write_bytes("Zebras run.".encode("utf-16"))
        (docs / "koi8.txt").write_bytes("Привет, это длинный текст".encode("koi8-r"))
        code, facts = call("index", docs)
        assert (code, list(skipped(facts))) == (3, ["koi8.txt"])
        assert sum("read as Windows-1252" in warning for warning in facts["warnings"]) == 2
        assert call("ask", "Is the thé prêt?", "--docs", docs)[1]["citations"][0]["file"] == "windows.txt"

    def test_names_of_every_kind_are_one_line_of_valid_text(self, docs):
        composed = "été à.txt"
        names = {"name with spaces.txt": "spaces", "[bold]x.txt": "brackets", "emoji 😀.txt": "smile", "new\nline.txt": "newline", "red\x1b[31m.txt": "colour"}
        for name, word in names.items():
            (docs / name).write_text(f"The {word} animal sleeps.", encoding="utf-8")
        (docs / composed).write_text("Composed accents sleep.", encoding="utf-8")
        bytes_name = os.fsencode(docs) + b"/caf\xe9.txt"
        with open(bytes_name, "w", encoding="utf-8") as file:  # noqa: PTH123 - a name that is no text
            file.write("The zebra sleeps.")
        code, facts = call("index", docs)
        assert code == 0
        assert "caf\\xe9.txt" in facts["report"]["added"]
        assert composed in facts["report"]["added"]
        assert all(name.isprintable() for name in facts["report"]["added"])
        assert call("ask", "Where does the zebra sleep?", "--docs", docs)[1]["citations"][0]["file"] == "caf\\xe9.txt"
        assert call("ask", "the newline animal", "--docs", docs)[1]["citations"][0]["file"] == "new\\x0aline.txt"

    def test_two_names_that_differ_only_in_the_form_of_accents(self, docs):
        for form in ("NFC", "NFD"):
            (docs / unicodedata.normalize(form, "été.txt")).write_text(f"The owl of {form}.", encoding="utf-8")
        for _ in range(2):
            code, facts = call("index", docs)
            assert code == 3
            assert list(skipped(facts).values()) == ["has the same name as another file (they differ only in how accents are encoded)"]
            assert facts["warnings"] == []

    def test_copies_are_said_and_kept(self, docs):
        (docs / "copy.txt").write_text(FOX, encoding="utf-8")
        assert call("index", docs)[1]["warnings"] == ["fox.txt: same content as copy.txt; both are kept"]
        (docs / "fox.txt").unlink()
        assert call("ask", QUESTION, "--docs", docs)[1]["citations"][0]["file"] == "copy.txt"

    @pytest.mark.parametrize(
        "text", ["word " * 100_000, "x" * 500_000, "a" + " " * 2_000_000 + "b", "0123456789," * 45_000, "." * 500_000], ids=lambda text: repr(text[:8])
    )
    def test_one_line_of_half_a_megabyte_or_more(self, docs, text, embedding):
        (docs / "long.txt").write_text(text, encoding="utf-8")
        started = time.perf_counter()
        assert call("index", docs)[0] == 0
        assert time.perf_counter() - started < 60
        assert max(map(len, embedding.texts)) < 20_000
        assert call("ask", QUESTION, "--docs", docs)[1]["citations"][0]["file"] == "fox.txt"

    @pytest.mark.parametrize("opened", ["<!--", "<!-- --", "<a b='", '<a b="', "<a x", "<a", "<!", "<?", "</a", "<![CDATA[", "<table><tr><td>", "<div>", "&a"])
    def test_markup_that_is_never_closed_is_read_in_linear_time(self, opened):
        started = time.perf_counter()
        read_html(("<p>before</p>" + opened * 20_000).encode())
        assert time.perf_counter() - started < 20


class TestQuestions:
    @pytest.mark.parametrize("question", ["", "   ", "\t\n"])
    def test_an_empty_question_is_wrong_usage(self, docs, question):
        assert call("ask", question, "--docs", docs) == (2, None)
        assert not (docs / ".advanced-rag").exists()

    @pytest.mark.parametrize(
        "question", ["the of and", "?!.,;:", "😀", "\x01\x1b[31m", "\udce9", "'; DROP TABLE nodes; --", '"a" OR NOT NEAR(b*', "(((", "%s %d {x}", "x" * 20_000]
    )
    def test_a_question_without_words_of_the_documents_is_answered_so(self, docs, question):
        for command in ("ask", "explain"):
            assert call(command, question, "--docs", docs)[0] == 0
        code, answer = call("ask", question, "--docs", docs)
        assert (code, answer["citations"]) == (0, [])
        assert "No passage" in answer["answer"]

    def test_words_among_rubbish_are_found(self, docs):
        for question in ("fox* AND (mice OR", "fox\x00mice", "fox \udce9 mice", "fox " * 5000):
            assert call("ask", question, "--docs", docs)[1]["citations"][0]["file"] == "fox.txt"


class TestOptions:
    @pytest.mark.parametrize("value", ["0", "-1", "x", "1.5"])
    def test_top_k_is_a_positive_number(self, docs, value):
        assert call("ask", QUESTION, "--docs", docs, "--top-k", value) == (2, None)
        with pytest.raises(ConfigurationError, match="at least 1"):
            in_memory().as_retriever(similarity_top_k=-1)

    def test_more_passages_than_there_are(self, docs):
        assert len(call("explain", QUESTION, "--docs", docs, "--top-k", "10000")[1]["nodes"]) == 1

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--mode", "community"], "This version runs: auto, lexical, dense, hybrid, hierarchical, anchor, graph, vote."),
            (["--llm", "nonsense"], "Expected 'openai:MODEL'"),
            (["--llm", "openai:any", "--api-base", "localhost"], "Expected one with http:// or https://"),
            (["--language", "xx"], "one of the codes de, en"),
            (["--embed-model", "no/such model"], "could not be loaded"),
        ],
    )
    def test_a_wrong_value_lists_the_right_ones_and_leaves_nothing_behind(self, docs, options, words):
        assert words in error_of("ask", QUESTION, "--docs", docs, *options)
        assert [file.name for file in docs.iterdir()] == ["fox.txt"]

    def test_a_server_that_refuses_is_said_and_the_documents_answer(self, docs):
        code, answer = call("ask", QUESTION, "--docs", docs, "--llm", "openai:any", "--api-base", "http://127.0.0.1:9/v1")
        assert (code, answer["citations"][0]["file"]) == (3, "fox.txt")
        assert "the LLM failed" in answer["fallback"]


class TestDocuments:
    @pytest.mark.parametrize(
        "document",
        [
            Document(text="x", id_="bad", metadata={"value": object()}),
            Document(text="x", id_="bad", metadata={"value": {1, 2}}),
            Document(text="x", id_="bad", metadata={"value": b"bytes"}),
            Document(text="half \ud800 a pair", id_="bad"),
            Document(text="x", id_="bad", metadata={"a": 1}, metadata_template="{value"),
            Document(text="x", id_="bad", metadata={"a": 1}, text_template="{nothing}"),
        ],
        ids=["object", "set", "bytes", "surrogate", "metadata template", "text template"],
    )
    def test_one_that_cannot_be_stored_is_a_line_and_the_rest_goes_on(self, document):
        index = in_memory(document, Document(text="Whales sing.", id_="whale"))
        assert index.last_report.added == ["fox", "whale"]
        assert [item.ref_doc_id for item in index.last_report.skipped] == ["bad"]
        assert "\n" not in index.last_report.skipped[0].reason
        assert index.last_report.embedded <= 3, "what was embedded before the failure is not embedded again"
        assert index.as_retriever("lexical").retrieve("whales")[0].node.ref_doc_id == "whale"

    def test_one_that_cannot_be_stored_keeps_its_stored_version(self):
        index = in_memory()
        index.apply(updated=[Document(text="new", id_="fox", metadata={"value": object()}), Document(text="Whales sing.", id_="whale")])
        assert index.last_report.added == ["whale"]
        assert index.as_retriever("lexical").retrieve("fox")[0].node.get_content() == FOX

    @pytest.mark.parametrize("ref_doc_id", ["", " ", "a\0b", "x" * 10_000, "'; DROP TABLE nodes; --"])
    def test_odd_ids(self, ref_doc_id):
        index = in_memory(Document(text="Whales sing.", id_=ref_doc_id))
        assert index.as_retriever("lexical").retrieve("whales")[0].node.ref_doc_id == ref_doc_id
        index.delete_ref_doc(ref_doc_id)
        assert index.as_retriever("lexical").retrieve("whales") == []
        assert len(index.list_documents()) == 1

    def test_the_whole_text_is_hashed_a_few_times_whatever_the_number_of_its_chunks(self):
        hashed = []

        class Counted(Document):
            @property
            def hash(self):
                hashed.append(self.id_)
                return super().hash

        index = in_memory(Counted(text="Whales sing. " * 20_000, id_="long"))
        assert index.info()["nodes"] > 200
        assert len(hashed) < 12

    def test_metadata_longer_than_a_chunk_and_no_number(self, tmp_path):
        index = in_memory(Document(text="Whales sing.", id_="whale", metadata={"notes": "word " * 5000, "score": math.nan}))
        assert index.as_retriever("dense").retrieve("whales sing")
        index.persist(tmp_path / "copy")
        assert call("info", "--index-dir", tmp_path / "copy")[1]["documents"][1]["metadata"]["score"] is None

    def test_documents_and_nodes_of_other_kinds(self):
        index = in_memory(Document(text=None, id_="nothing"))
        assert "nothing" in index.last_report.warnings[0]
        index.insert_nodes([ImageNode(id_="image", text="A whale.", image="aGk="), IndexNode(id_="index", text="A shark.", index_id="sub"), TextNode(text="")])
        assert index.as_retriever("lexical").retrieve("whale")[0].node.node_id == "image"
        assert index.as_retriever("lexical").retrieve("shark")[0].node.node_id == "index"
        for wrong in ("text", [None], [{"text": "x"}]):
            with pytest.raises(ConfigurationError, match="is expected"):
                index.apply(added=wrong)
