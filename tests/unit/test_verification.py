"""Reports on what an index stores: read-only checks, other processes that write meanwhile, a damaged database."""

from contextlib import suppress
from pathlib import Path

import pytest
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex, verification
from llama_index_advanced_rag.errors import IndexFormatError, IndexNotFoundError
from llama_index_advanced_rag.stores.rows.row_checks import file_problems
from llama_index_advanced_rag.stores.rows.row_compaction import compact
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.testing import DeterministicEmbedding
from llama_index_advanced_rag.verification import VerifyReport, check_folder, verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = [Document(text=f"word{number} sleeps", id_=f"d{number}") for number in range(4)]
    CorpusIndex.from_documents(documents, persist_dir=tmp_path / "i", embed_model=DeterministicEmbedding()).close()
    return tmp_path / "i"


def test_the_report_in_words() -> None:
    assert str(VerifyReport()) == "The index is sound."
    report = VerifyReport(["a.bin is damaged."], ["It was written anew."], ["The store cannot be asked."])
    assert str(report) == "wrong: a.bin is damaged.\nrepaired: It was written anew.\nnot checked: The store cannot be asked."
    assert not report.ok
    assert VerifyReport(unchecked=["x"]).ok


def test_a_check_opens_what_an_index_would_not_and_changes_nothing(folder: Path) -> None:
    assert check_folder(folder).ok
    (folder / "rows-1.bin").unlink()
    before = {path.name: path.read_bytes() for path in folder.glob("*.bin")}
    with pytest.raises(IndexFormatError):
        CorpusIndex.load(folder)
    assert check_folder(folder).problems == [
        "The file 'rows-1.bin' of this index is missing. Restore a copy of the folder, or repair it with verify(repair=True)."
    ]
    assert {path.name: path.read_bytes() for path in folder.glob("*.bin")} == before
    with pytest.raises(IndexNotFoundError):
        check_folder(folder / "none")


def test_files_that_another_process_replaces_meanwhile_are_no_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = DeterministicEmbedding()
    with CorpusIndex.load(folder, embed_model=model) as writer, CorpusIndex.load(folder, embed_model=model, read_only=True) as reader:
        looks: list[list[str]] = []

        def replaced_before(rows: RowFiles) -> list[str]:
            rows.table.read()  # the snapshot is of this commit
            if len(looks) < 2:
                with writer.corpus.rows.change():
                    compact(writer.corpus.rows)
            looks.append(file_problems(rows))
            return looks[-1]

        monkeypatch.setattr(verification, "file_problems", replaced_before)
        assert verify(reader.corpus).ok
        assert [bool(found) for found in looks] == [True, True, False]


def test_an_integrity_check_that_fails_is_a_problem_and_not_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with CorpusIndex.load(folder, embed_model=DeterministicEmbedding()) as index:

        def malformed() -> list[str]:
            raise IndexFormatError("The file of this index is damaged.")

        monkeypatch.setattr(index.corpus.database, "integrity_problems", malformed)
        report = index.verify(repair=True)
        assert (report.problems, report.repaired, len(report.unchecked)) == (["The file of this index is damaged."], [], 1)
        monkeypatch.setattr(index.corpus.database, "integrity_problems", lambda: ["a row of nodes refers to a missing row of documents"])
        assert index.verify().problems == ["The file 'corpus.sqlite' is damaged: a row of nodes refers to a missing row of documents."]


def test_in_memory() -> None:
    with CorpusIndex.from_documents([Document(text="one", id_="1")], embed_model=DeterministicEmbedding()) as index:
        assert index.verify(repair=True).ok
        with suppress(KeyError), index.corpus.rows.change():
            compact(index.corpus.rows)
            raise KeyError
        assert index.verify().ok, "a compaction that was taken back has left no trace"
