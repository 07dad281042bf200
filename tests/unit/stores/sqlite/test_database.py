import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import (
    ConfigurationError,
    IndexClosedError,
    IndexFormatError,
    IndexNotFoundError,
    ReadOnlyIndexError,
    StorageError,
)
from llama_index_advanced_rag.stores.sqlite.database import FILE_NAME, CorpusDatabase
from llama_index_advanced_rag.stores.sqlite.lossless_text import escape_text, is_plain_text, unescape_text


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "an index é?#%"
    with CorpusDatabase(path, create=True) as database:
        database.set_meta("language", "fr")
    return path


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_string_survives_utf8(text):
    escaped = escape_text(text)
    assert escaped.encode().decode() == escaped
    assert unescape_text(escaped) == text
    assert is_plain_text(text) == (escaped == text)


@pytest.mark.parametrize("text", ["\ud800", "a\udcffb", "\U0010ffff", "\U0010ffff\ud800", "\0", "e\u0301", "😀"])
def test_any_string_is_a_key(text):
    with CorpusDatabase(None) as database:
        database.set_meta(text, text)
        assert database.query("SELECT key FROM meta WHERE key = ?", (text,)) == [(text,)]
        assert database.get_meta(text) == text


def test_reopened_with_what_was_written(folder):
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    with CorpusDatabase(folder) as database:
        assert database.get_meta("language") == "fr"
        assert database.get_meta("none", 5) == 5
        assert database.query("PRAGMA journal_mode") == [("wal",)]
        assert database.query("PRAGMA foreign_keys") == [(1,)]
        assert database.integrity_problems() == []


def test_missing_index(tmp_path):
    with pytest.raises(IndexNotFoundError, match="no index in the folder"):
        CorpusDatabase(tmp_path)
    with pytest.raises(IndexNotFoundError):
        CorpusDatabase(tmp_path / "none", read_only=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FILE_NAME).touch()
    with pytest.raises(IndexNotFoundError):
        CorpusDatabase(tmp_path)
    CorpusDatabase(tmp_path, create=True).close()
    with pytest.raises(StorageError, match="could not be made"):
        CorpusDatabase(tmp_path / FILE_NAME, create=True)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_that_is_no_database(tmp_path, read_only):
    (tmp_path / FILE_NAME).write_bytes(b"hello world" * 1000)
    with pytest.raises(IndexFormatError, match=r"not an index.*build the index again"):
        CorpusDatabase(tmp_path, read_only=read_only)


@pytest.mark.parametrize("create", [True, False])
def test_a_database_of_another_application_is_left_alone(tmp_path, create):
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    connection.close()
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(IndexFormatError, match="belongs to another application"):
        CorpusDatabase(tmp_path, create=create)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_another_format_version(folder):
    with CorpusDatabase(folder) as database:
        database.set_meta("format_version", 99)
    with pytest.raises(IndexFormatError, match=r"format version 99.*reads version 3.*build the index again"):
        CorpusDatabase(folder)


def test_truncated_file(folder):
    with CorpusDatabase(folder) as database, database.transaction():
        for number in range(200):
            database.set_meta(str(number), "x" * 1000)
    data = (folder / FILE_NAME).read_bytes()
    (folder / FILE_NAME).write_bytes(data[: len(data) // 2 // 4096 * 4096])
    with pytest.raises(IndexFormatError, match="damaged"):
        CorpusDatabase(folder)


def fail_after_writing(database, *keys):
    with database.transaction():
        for key in keys:
            database.set_meta(key, "x" * 1000)
        raise KeyError


def test_transaction_is_all_or_nothing():
    with CorpusDatabase(None) as database:
        with pytest.raises(KeyError):
            fail_after_writing(database, "a")
        assert database.get_meta("a") is None
        with database.transaction():
            database.set_meta("a", 1)
            with pytest.raises(KeyError):
                fail_after_writing(database, "a", "b")
            with database.transaction():
                database.set_meta("c", 3)
        assert [database.get_meta(key) for key in "abc"] == [1, None, 3]


def test_disk_full_keeps_the_old_state(folder):
    with CorpusDatabase(folder) as database:
        database.query("PRAGMA max_page_count = 30")
        with pytest.raises(StorageError, match=r"disk is full.*Free some space"):
            fail_after_writing(database, "language", *map(str, range(1000)))
        assert database.get_meta("language") == "fr"
        assert database.get_meta("1") is None
        database.set_meta("language", "de")
        assert database.get_meta("language") == "de"


def test_a_transaction_that_sqlite_took_back_accepts_nothing_more(folder):
    with CorpusDatabase(folder) as database, pytest.raises(StorageError, match="taken back"), database.transaction():
        database.query("ROLLBACK")
    with CorpusDatabase(folder) as database:
        assert database.get_meta("language") == "fr"


def test_reader_sees_commits_and_snapshots_hold(folder):
    with CorpusDatabase(folder) as writer, CorpusDatabase(folder, read_only=True) as reader:
        version = reader.data_version()
        assert reader.data_version() == version
        with reader.snapshot():
            assert reader.get_meta("language") == "fr"
            writer.set_meta("language", "en")
            assert reader.get_meta("language") == "fr"
        assert reader.get_meta("language") == "en"
        assert reader.data_version() != version
        own = writer.data_version()
        writer.set_meta("language", "de")
        assert writer.data_version() == own


def test_second_writer_gets_a_clear_error(folder):
    with CorpusDatabase(folder) as one, CorpusDatabase(folder) as two:
        two.query("PRAGMA busy_timeout = 50")
        with one.transaction():
            with pytest.raises(StorageError, match="Another process is writing"), two.transaction():
                pass
            assert two.get_meta("language") == "fr"
        with two.transaction():
            two.set_meta("language", "en")


def test_read_only_refuses_writes(folder):
    with CorpusDatabase(folder, read_only=True) as database:
        assert database.read_only
        with pytest.raises(ReadOnlyIndexError, match="read_only=True"):
            database.set_meta("a", 1)
        with pytest.raises(ReadOnlyIndexError), database.transaction():
            pass
        with pytest.raises(ReadOnlyIndexError):
            database.executemany("INSERT INTO meta VALUES (?, ?)", [("a", "1")])
    with pytest.raises(ConfigurationError, match="needs an existing folder"):
        CorpusDatabase(folder, read_only=True, create=True)
    with pytest.raises(ConfigurationError):
        CorpusDatabase(None, read_only=True)


@pytest.fixture
def locked_folder():
    """A folder that this process may not write, even when it runs as root."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    index = path / "index"
    with CorpusDatabase(index, create=True) as database:
        database.set_meta("language", "fr")

    def lock():
        for file in index.iterdir():
            file.chmod(0o444)
        index.chmod(0o555)
        if os.geteuid() == 0:
            os.seteuid(65534)

    yield index, lock
    if os.getuid() == 0:
        os.seteuid(0)
    index.chmod(0o755)
    shutil.rmtree(path)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise on Windows")
def test_read_only_folder(locked_folder):
    index, lock = locked_folder
    lock()
    with CorpusDatabase(index, read_only=True) as database:
        assert database.get_meta("language") == "fr"
    with pytest.raises(StorageError, match=r"cannot be written|could not be opened"):
        CorpusDatabase(index)
    with pytest.raises(StorageError):
        CorpusDatabase(index, create=True)
    with pytest.raises(StorageError):
        CorpusDatabase(index / "below", create=True)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions work otherwise on Windows")
def test_read_only_folder_with_unmerged_writes_is_never_read_stale(locked_folder):
    index, lock = locked_folder
    script = f"""
import os
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
database = CorpusDatabase({str(index)!r})
database.set_meta("language", "en")
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert (index / (FILE_NAME + "-wal")).stat().st_size
    shared = index / (FILE_NAME + "-shm")
    shared.unlink()
    lock()
    with pytest.raises(StorageError, match=r"cannot be written|could not be opened"):
        CorpusDatabase(index, read_only=True)


def test_killed_writer_leaves_the_last_commit(folder):
    script = f"""
import os
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
database = CorpusDatabase({str(folder)!r})
database.set_meta("kept", 1)
with database.transaction():
    database.set_meta("lost", 1)
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    with CorpusDatabase(folder) as database:
        assert (database.get_meta("kept"), database.get_meta("lost")) == (1, None)
        assert database.integrity_problems() == []


def test_deleted_while_open(folder):
    with CorpusDatabase(folder) as database:
        shutil.rmtree(folder)
        with pytest.raises(StorageError, match="deleted or replaced"), database.transaction():
            database.set_meta("a", 1)


def test_closed(folder):
    database = CorpusDatabase(folder)
    database.close()
    database.close()
    assert database.closed
    for use in (database.data_version, lambda: database.query("SELECT 1"), lambda: database.set_meta("a", 1), database.transaction().__enter__):
        with pytest.raises(IndexClosedError, match="closed"):
            use()


def test_backup(tmp_path, folder):
    with CorpusDatabase(None) as database:
        database.set_meta("language", "de")
        database.backup_to(tmp_path / "new")
        database.backup_to(folder)
        with database.transaction(), pytest.raises(ConfigurationError, match="inside a transaction"):
            database.backup_to(folder)
    for path in (tmp_path / "new", folder):
        with CorpusDatabase(path) as copy:
            assert copy.get_meta("language") == "de"
            assert copy.query("PRAGMA journal_mode") == [("wal",)]
            with pytest.raises(ConfigurationError, match="overwrite the index itself"):
                copy.backup_to(path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE_NAME).write_bytes(b"x" * 5000)
    with CorpusDatabase(folder) as database, pytest.raises(IndexFormatError):
        database.backup_to(tmp_path / "other")


def test_threads_take_turns():
    with CorpusDatabase(None) as database:
        database.set_meta("count", 0)

        def work():
            for _ in range(50):
                with database.transaction():
                    database.set_meta("count", database.get_meta("count") + 1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert database.get_meta("count") == 200


def test_an_index_of_the_first_release_is_refused_with_what_to_do(folder):
    with CorpusDatabase(folder) as database:
        database.set_meta("format_version", 1)
    before = (folder / FILE_NAME).read_bytes()
    with pytest.raises(IndexFormatError, match=r"format version 1, and this release reads version 3\. .*delete this one and build the index again"):
        CorpusDatabase(folder, read_only=True)
    assert (folder / FILE_NAME).read_bytes() == before


def test_deleting_a_document_takes_its_nodes_along_and_marks_their_rows_dead():
    with CorpusDatabase(None) as database:
        database.execute("INSERT INTO documents (ref_doc_id) VALUES ('d')")
        database.execute("INSERT INTO nodes (node_id, ref_doc_id, ordinal, row) VALUES ('n', 'd', 0, 7)")
        database.execute("INSERT INTO nodes (node_id, ref_doc_id, ordinal) VALUES ('m', 'd', 1)")
        assert database.execute("DELETE FROM documents WHERE ref_doc_id = 'd'") == 1
        assert database.query("SELECT * FROM nodes") == []
        assert database.query("SELECT row FROM dead") == [(7,)]
        with pytest.raises(StorageError, match="FOREIGN KEY"):
            database.execute("INSERT INTO nodes (node_id, ref_doc_id, ordinal) VALUES ('n', 'none', 0)")


def test_query_in_batches():
    with CorpusDatabase(None) as database:
        database.executemany("INSERT INTO meta VALUES (?, '1')", [(str(number),) for number in range(1200)])
        assert len(database.query_in("SELECT key FROM meta WHERE key IN ({})", [str(number) for number in range(1200)])) == 1200
        assert database.query_in("SELECT key FROM meta WHERE key IN ({})", []) == []


def test_an_open_database_is_never_opened_as_a_plain_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Closing a file takes away all locks that a process has on it, SQLite's too, and then two writers can meet."""
    with CorpusDatabase(tmp_path, create=True):
        monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("opened as a plain file"))
        CorpusDatabase(tmp_path).close()
        CorpusDatabase(tmp_path, read_only=True).close()
