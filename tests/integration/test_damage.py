"""Files of an index that are cut, changed or gone: said by name, never answered from, and mended with what is still sound."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.errors import IndexFormatError, ReadOnlyIndexError
from llama_index_advanced_rag.stores.rows.row_compaction import write_order
from llama_index_advanced_rag.testing import DeterministicEmbedding

MODES = ("lexical", "dense", "hybrid")
KINDS = ("rows", "lengths", "vectors", "postings", "order")
GONE, CHANGED = "d1", "d2"


def document(number: int, version: int = 0) -> Document:
    return Document(text=f"word{number} has version{version} of it.", id_=f"d{number}")


def model() -> DeterministicEmbedding:
    return DeterministicEmbedding(dimensions=16)


def contents() -> list[Document]:
    return [document(number, int(f"d{number}" == CHANGED)) for number in range(10) if f"d{number}" != GONE]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of several appends and segments, with dead rows, and with an order that is noted: nine living rows of eleven."""
    folder = tmp_path_factory.mktemp("sound") / "index"
    with CorpusIndex.from_documents([document(number) for number in range(6)], persist_dir=folder, embed_model=model()) as index:
        for number in range(6, 10):
            index.insert(document(number))
        index.delete_ref_doc(GONE)
        index.update_ref_doc(document(2, 1))
        rows = index.corpus.rows
        with rows.change():
            write_order(rows, rows.manifest, index.corpus.state().row_ids)
        assert len(rows.segments) > 2
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "index"))


def cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) * 2 // 3])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-5] ^= 4
    file.unlink()  # a process that has the old file open keeps it
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {"cut": cut, "flipped": flip, "gone": Path.unlink}


def file_of(folder: Path, kind: str) -> Path:
    return min(folder.glob(f"{kind}-*.bin"))


def answers(index: CorpusIndex) -> list[list[tuple[str, float]]]:
    retrievers = [index.as_retriever(mode, similarity_top_k=20) for mode in MODES]
    questions = ["version0 of it", *(f"word{number}" for number in range(10))]
    hits = [retriever.retrieve(question) for retriever in retrievers for question in questions]
    return [[(hit.node.get_content(), pytest.approx(hit.score, abs=1e-6)) for hit in one] for one in hits]


def assert_as_fresh(index: CorpusIndex) -> None:
    with CorpusIndex.from_documents(contents(), embed_model=model()) as fresh:
        assert answers(index) == answers(fresh)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_named_and_repaired_and_only_lost_vectors_are_embedded_again(folder: Path, kind: str, damage: str) -> None:
    file = file_of(folder, kind)
    DAMAGES[damage](file)
    if kind.startswith("vectors"):
        with CorpusIndex.load(folder, embed_model=model()) as index:  # words are searched without the vectors
            assert index.as_retriever("lexical").retrieve("word3")[0].node.ref_doc_id == "d3"
            for _ in range(2):  # not only the first time
                with pytest.raises(IndexFormatError, match=rf"{file.name}.*Restore.*verify\(repair=True\)"):
                    index.as_retriever("dense").retrieve("word3")
            assert not index.verify().ok
    else:
        with pytest.raises(IndexFormatError, match=rf"{file.name}.*Restore.*verify\(repair=True\)"):
            CorpusIndex.load(folder)
    again = model()
    report = CorpusIndex.repair(folder, embed_model=again)
    assert not report.ok
    assert all(file.name in problem for problem in report.problems)
    assert len(report.repaired) == 1
    lost = {"cut": 4, "flipped": 1, "gone": 9}[damage] if kind.startswith("vectors") else 0
    assert len(again.texts) == lost
    assert f" {lost} vectors were made again" in str(report)
    with CorpusIndex.load(folder, embed_model=model()) as index:
        assert index.verify().ok
        assert_as_fresh(index)
        index.insert(document(77))
        assert index.as_retriever("dense").retrieve("word77")
        assert index.verify().ok


@pytest.mark.parametrize("damage", ["flipped", "gone"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("read_only", [False, True])
def test_an_open_index_keeps_answering_and_says_what_is_damaged(folder: Path, kind: str, damage: str, read_only: bool) -> None:
    with CorpusIndex.load(folder, embed_model=model(), read_only=read_only) as index:
        before = answers(index)
        file = file_of(folder, kind)
        DAMAGES[damage](file)
        assert answers(index) == before
        problems = index.verify().problems
        assert len(problems) == 1
        assert file.name in problems[0]
        assert answers(index) == before
        if read_only:
            with pytest.raises(ReadOnlyIndexError):
                index.verify(repair=True)
            return
        if kind in ("postings", "order"):  # what is searched is another file
            index.insert(document(77))
            assert index.as_retriever("lexical").retrieve("word77")[0].node.ref_doc_id == "d77"
            index.delete_ref_doc("d77")
        assert answers(index) == before
        assert not index.verify(repair=True).ok
        assert index.verify().ok
        assert_as_fresh(index)


@pytest.mark.parametrize("kind", ["rows", "lengths", "vectors"])
def test_nothing_is_appended_to_a_file_that_is_gone(folder: Path, kind: str) -> None:
    with CorpusIndex.load(folder, embed_model=model()) as index:
        file = file_of(folder, kind)
        file.unlink()
        with pytest.raises(IndexFormatError, match=f"{file.name}.*missing"):
            index.insert(document(77))
        assert not file.exists()
        assert index.verify(repair=True).repaired
        assert_as_fresh(index)


@pytest.mark.parametrize("kind", ["rows", "lengths", "vectors"])
def test_a_file_that_came_in_the_place_of_another_is_checked_as_a_whole(folder: Path, kind: str) -> None:
    with CorpusIndex.load(folder, embed_model=model()) as index:
        assert answers(index)
        file = file_of(folder, kind)
        flip(file)
        if kind == "vectors":
            index.insert(document(77))
            with pytest.raises(IndexFormatError, match=file.name):
                answers(index)
        else:
            with pytest.raises(IndexFormatError, match=file.name):  # of what is committed nothing is lost
                index.insert(document(77))
            with pytest.raises(IndexFormatError, match=file.name):
                answers(index)
        assert index.verify(repair=True).repaired
        index.delete_ref_doc("d77")
        assert_as_fresh(index)


def test_another_process_that_repairs_is_followed_by_an_open_index(folder: Path) -> None:
    with CorpusIndex.load(folder, embed_model=model(), read_only=True) as reader:
        before = answers(reader)
        flip(file_of(folder, "vectors"))
        assert CorpusIndex.repair(folder, embed_model=model()).repaired
        assert answers(reader) == before
        assert reader.verify().ok


def test_several_damaged_files_at_once(folder: Path) -> None:
    for kind in KINDS:
        flip(file_of(folder, kind))
    again = model()
    assert len(CorpusIndex.repair(folder, embed_model=again).problems) == len(KINDS)
    assert len(again.texts) == 1
    with CorpusIndex.load(folder, embed_model=model()) as index:
        assert_as_fresh(index)


def test_a_repair_that_cannot_embed_changes_nothing_and_can_be_repeated(folder: Path) -> None:
    flip(file_of(folder, "vectors"))
    with pytest.raises(ConnectionError):
        CorpusIndex.repair(folder, embed_model=DeterministicEmbedding(dimensions=16, fail_on="word2"))
    assert CorpusIndex.repair(folder, embed_model=model()).repaired
    with CorpusIndex.load(folder, embed_model=model()) as index:
        assert_as_fresh(index)
        assert [path.name for path in sorted(folder.glob("vectors-*.bin"))] == ["vectors-2.bin"]


def test_a_sound_index_is_left_alone_by_repair(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.glob("*.bin")}
    again = model()
    report = CorpusIndex.repair(folder, embed_model=again)
    assert (report.ok, report.repaired, report.unchecked, str(report), again.texts) == (True, [], [], "The index is sound.", [])
    assert {path.name: path.read_bytes() for path in folder.glob("*.bin")} == before


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("DELETE FROM blocks WHERE file = 'vectors-1.bin' AND start = 6", "'vectors-1.bin' do not cover its 11 rows"),
        ("UPDATE blocks SET crc = 7 WHERE file = 'rows-1.bin' AND start = 6", "'rows-1.bin' is damaged at rows 6 to 6"),
        ("DELETE FROM segments WHERE first = 6", "do not hold as many terms"),
        ("UPDATE nodes SET row = NULL WHERE ref_doc_id = 'd3'", "1 nodes cannot be found by any search"),
        ("UPDATE nodes SET row = 900 WHERE ref_doc_id = 'd3' AND row IS NOT NULL", "not the rows that live"),
        ("DELETE FROM dead", "not the rows that live"),
    ],
)
def test_rows_that_do_not_fit_the_files_are_found_and_mended(folder: Path, sql: str, words: str) -> None:
    with sqlite3.connect(folder / "corpus.sqlite") as connection:
        connection.execute(sql)
    connection.close()
    report = CorpusIndex.repair(folder, embed_model=model())
    assert any(words in problem for problem in report.problems)
    with CorpusIndex.load(folder, embed_model=model()) as index:
        assert index.verify().ok
        assert_as_fresh(index)


def test_a_damaged_database_is_said_and_nothing_is_made_from_it(folder: Path) -> None:
    file = folder / "corpus.sqlite"
    data = bytearray(file.read_bytes())
    page = data.index(b"word3 has version0")  # of the table of documents: its rows are lost
    data[page - page % 4096 : page - page % 4096 + 16] = b"\xff" * 16
    file.write_bytes(data)
    before = {path.name: path.read_bytes() for path in folder.glob("*.bin")}
    report = CorpusIndex.repair(folder, embed_model=model())
    assert "damaged" in str(report)
    assert (report.repaired, len(report.unchecked)) == ([], 1)
    assert {path.name: path.read_bytes() for path in folder.glob("*.bin")} == before
