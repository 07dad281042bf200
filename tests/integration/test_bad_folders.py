"""Persist folders that are not what they should be: another's, damaged, half made, gone; nothing in them is changed."""

import json
import shutil
import sqlite3

import pytest
from llama_index.core import Settings, VectorStoreIndex, load_index_from_storage
from llama_index.core.schema import Document
from llama_index.core.storage.storage_context import StorageContext
from typer.testing import CliRunner

from llama_index_advanced_rag import CorpusIndex, cli
from llama_index_advanced_rag.errors import ConfigurationError, IndexClosedError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.testing import DeterministicEmbedding

FOX = "The red fox eats mice and berries."
QUESTION = "What does the red fox eat?"
runner = CliRunner()


@pytest.fixture(autouse=True)
def _embedding(monkeypatch):
    monkeypatch.setattr(Settings, "_embed_model", DeterministicEmbedding())


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "fox.txt").write_text(FOX, encoding="utf-8")
    return folder


@pytest.fixture
def file(docs):
    assert call("index", docs) == 0
    return docs / ".advanced-rag" / "corpus.sqlite"


def call(*arguments):
    return runner.invoke(cli.app, [*map(str, arguments), "--json"]).exit_code


def error_of(*arguments):
    """The message of a command that fails: the last line on stderr, the same as JSON on stdout."""
    result = runner.invoke(cli.app, [*map(str, arguments), "--json"])
    message = json.loads(result.stdout)["error"]["message"]
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, f"error: {message}")
    return message


def opens(folder):
    with CorpusIndex.load(folder, embed_model=DeterministicEmbedding()) as index:
        return index.as_retriever("lexical").retrieve("fox")[0].node.get_content()


def test_an_index_of_llamaindex_is_not_touched(docs, tmp_path):
    place = tmp_path / "stock"
    VectorStoreIndex.from_documents([Document(text="hello")]).storage_context.persist(str(place))
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert "holds an index of LlamaIndex's own" in error_of("index", docs, "--index-dir", place)
    assert "Open it with load_index_from_storage" in error_of("ask", QUESTION, "--index-dir", place)
    with pytest.raises(ConfigurationError, match="would be overwritten"):
        CorpusIndex(persist_dir=place)
    with pytest.raises(ConfigurationError, match="would be overwritten"):
        CorpusIndex(embed_model=DeterministicEmbedding()).persist(place)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert load_index_from_storage(StorageContext.from_defaults(persist_dir=str(place)))


@pytest.mark.parametrize("size", [100, 5000, 20_000, -4096, -1])
def test_a_file_that_is_cut_off(docs, file, size):
    file.write_bytes(file.read_bytes()[:size])
    assert "damaged" in error_of("ask", QUESTION, "--docs", docs)
    with pytest.raises(IndexFormatError, match="damaged"):
        CorpusIndex.load(file.parent)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE meta SET value = '99' WHERE key = 'format_version'", "format version 99, and this release reads version"),
        ("UPDATE meta SET value = '{' WHERE key = 'format_version'", "damaged"),
        ("UPDATE meta SET value = '{\"odd\": 1}' WHERE key = 'settings'", "damaged"),
        ("DELETE FROM meta WHERE key = 'settings'", "damaged"),
        ("UPDATE meta SET value = '1' WHERE key = 'format_version'", "format version 1, and this release reads version"),
        ("UPDATE meta SET value = '{\"odd\": 1}' WHERE key = 'rows'", "damaged"),
        ("UPDATE blocks SET crc = crc + 1", "damaged"),
        ("UPDATE segments SET crc = crc + 1", "damaged"),
        ("UPDATE segments SET name = 'postings-9-9.bin'", "is missing"),
        ("DROP TABLE segments", "lacks a table"),
        ("PRAGMA application_id = 7", "another application"),
    ],
)
def test_rows_that_are_not_ours(docs, file, sql, words):
    connection = sqlite3.connect(file)
    connection.execute(sql)
    connection.commit()
    connection.close()
    before = file.read_bytes()
    assert words in error_of("ask", QUESTION, "--docs", docs)
    assert words in error_of("update", "--docs", docs)
    assert file.read_bytes() == before


def test_files_that_only_have_the_name(docs, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "corpus.sqlite").write_text("I am a text.\n" * 100, encoding="utf-8")
    assert "is not an index" in error_of("index", docs, "--index-dir", tmp_path / "text")
    (tmp_path / "folder" / "corpus.sqlite").mkdir(parents=True)
    assert "could not be opened or made" in error_of("index", docs, "--index-dir", tmp_path / "folder")
    assert "could not be made" in error_of("index", docs, "--index-dir", docs / "fox.txt" / "below")


def test_an_index_that_was_only_begun_is_none_and_is_made(docs, tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "corpus.sqlite").touch()
    assert "There is no index" in error_of("ask", QUESTION, "--index-dir", tmp_path / "begun")
    assert call("index", docs, "--index-dir", tmp_path / "begun") == 0
    assert opens(tmp_path / "begun") == FOX


def test_another_embedding_model(docs, file, monkeypatch):
    monkeypatch.setattr(Settings, "_embed_model", DeterministicEmbedding(model_name="another"))
    assert "was built with the embedding model" in error_of("ask", QUESTION, "--docs", docs)
    assert opens(file.parent) == FOX


def test_a_folder_deleted_while_the_index_is_open(docs, file):
    index = CorpusIndex.load(file.parent, embed_model=DeterministicEmbedding())
    shutil.rmtree(file.parent)
    with pytest.raises(StorageError, match="deleted or replaced while it was open"):
        index.insert(Document(text="new"))
    index.close()
    with pytest.raises(IndexNotFoundError):
        CorpusIndex.load(file.parent)


def test_a_closed_index_says_so(file):
    index = CorpusIndex.load(file.parent, embed_model=DeterministicEmbedding())
    engine, retriever = index.as_query_engine(), index.as_retriever("lexical")
    index.close()
    for use in (lambda: engine.query("fox"), lambda: retriever.retrieve("fox"), index.info, lambda: index.insert(Document(text="x")), index.list_documents):
        with pytest.raises(IndexClosedError, match="is closed"):
            use()
    assert repr(index) == "CorpusIndex(closed)"


@pytest.mark.parametrize("place", ["", " "])
def test_an_empty_name_is_not_the_current_folder(place):
    with pytest.raises(ConfigurationError, match="persist_dir is"):
        CorpusIndex(persist_dir=place)
