"""Opening an SQLite file, also in a read-only folder, and what SQLite's errors mean to somebody who has an index."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from llama_index_advanced_rag.errors import AdvancedRagError, IndexClosedError, IndexFormatError, IndexNotFoundError, ReadOnlyIndexError, StorageError
from llama_index_advanced_rag.stores.sqlite.lossless_text import escape_text, unescape_text


class FileKind(NamedTuple):
    """What a file is to its user, for error messages: its name without and with article, how to get a sound one, how to open it again."""

    thing: str
    a_thing: str
    rebuild: str
    reopen: str


INDEX = FileKind(
    thing="index",
    a_thing="an index",
    rebuild="Restore a copy, or delete the folder and build the index again with CorpusIndex.from_documents(...).",
    reopen="CorpusIndex.load(...)",
)

_MEANINGS: tuple[tuple[str, type[AdvancedRagError], str], ...] = (
    ("not a database", IndexFormatError, "The file in this place is not {a_thing}. {rebuild}"),
    ("malformed", IndexFormatError, "The file of this {thing} is damaged. {rebuild}"),
    ("no such table", IndexFormatError, "The file of this {thing} lacks a table. {rebuild}"),
    ("no such column", IndexFormatError, "The file of this {thing} lacks a column. {rebuild}"),
    ("is full", StorageError, "The disk is full. Free some space and run the update again; what was committed before is kept."),
    (
        "locked",
        StorageError,
        "Another process is writing to this {thing} and did not finish within 10 s. Wait for it and try again; reading with read_only=True works meanwhile.",
    ),
    ("readonly", StorageError, "The folder or file of this {thing} cannot be written. Give it write permission, or open it with read_only=True."),
    (
        "unable to open",
        StorageError,
        "The file of this {thing} could not be opened or made: the folder is missing or does not allow it. Check its permissions.",
    ),
    ("I/O error", StorageError, "The disk failed to read or write the file of this {thing}. Check the disk; what was committed before is kept."),
    ("closed database", IndexClosedError, "This {thing} is closed. Open it again with {reopen}."),
)


def storage_error(error: sqlite3.Error, *, read_only: bool, kind: FileKind = INDEX) -> AdvancedRagError:
    """The error of this package that an SQLite error amounts to; the original text stands at its end.

    Example:
        >>> storage_error(sqlite3.OperationalError("database or disk is full"), read_only=False)
        StorageError('The disk is full. Free some space and run the update again; what was committed before is kept. (SQLite: database or disk is full)')
    """
    reason = str(error)
    if read_only and "readonly" in reason:
        return read_only_error(kind)
    for words, error_class, meaning in _MEANINGS:
        if words in reason:
            return error_class(f"{meaning.format(**kind._asdict())} (SQLite: {reason})")
    return StorageError(f"The {kind.thing} could not read or write its file. Nothing of this update was kept. (SQLite: {reason})")


@contextmanager
def sqlite_errors(*, read_only: bool, kind: FileKind = INDEX) -> Generator[None, None, None]:
    """A block whose SQLite errors are raised as `storage_error` explains them."""
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(error, read_only=read_only, kind=kind) from error


@contextmanager
def damage_reported(kind: FileKind = INDEX) -> Generator[None, None, None]:
    """A block that makes sense of rows; what is not as it was written is damage.

    Raises:
        IndexFormatError: the block raised a `KeyError`, `TypeError` or `ValueError` that is none of this package's.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, AdvancedRagError):
            raise
        raise IndexFormatError(f"The file of this {kind.thing} is damaged: a row cannot be read ({type(error).__name__}: {error}). {kind.rebuild}") from error


def inode_of(file: Path) -> tuple[int, int]:
    """What tells one file from another of the same name; (-1, -1) for one that is not there."""
    try:
        status = file.stat()
    except OSError:
        return (-1, -1)
    return (status.st_dev, status.st_ino)


def no_index(folder: Path | None, file_name: str) -> IndexNotFoundError:
    """The error of a folder without an index."""
    return IndexNotFoundError(
        f"There is no index in the folder {str(folder)!r}: it holds no {file_name!r}. Check the path, or build one with CorpusIndex.from_documents(...)."
    )


def read_only_error(kind: FileKind = INDEX) -> ReadOnlyIndexError:
    """The error of a write to what was opened for reading."""
    return ReadOnlyIndexError(f"This {kind.thing} was opened with read_only=True and cannot be changed. Open it without read_only to write.")


def bound_parameters(parameters: Sequence[Any]) -> list[Any]:
    """The parameters of a statement, with strings in the form in which the file can hold them."""
    return [escape_text(value) if isinstance(value, str) else value for value in parameters]


def connect_memory(kind: FileKind = INDEX) -> sqlite3.Connection:
    """A private database in memory."""
    return _connect(":memory:", kind)


def connect_file(file: Path, *, read_only: bool, create: bool, kind: FileKind = INDEX) -> sqlite3.Connection:
    """A connection in autocommit mode that any thread may use.

    SQLite's write-ahead log needs side files even to read. Where a read-only folder does not allow them and no committed
    write waits in the log, the file is opened as immutable.
    """
    if create:
        _make_folder(file.parent)
    uri = f"{file.absolute().as_uri()}?mode={'ro' if read_only else 'rwc' if create else 'rw'}"
    if read_only and not _readable(uri, kind) and not _has_unmerged_writes(file):
        uri += "&immutable=1"
    connection = _connect(uri, kind)
    if all(_is_cut(connection, file) for _ in range(3)):  # once may be another process that is just moving its log into the file
        connection.close()
        raise IndexFormatError(f"The file of this {kind.thing} is damaged. {kind.rebuild} ({file.name!r} is shorter than what was written.)")
    return connection


def _connect(target: str, kind: FileKind) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(target, timeout=10.0, isolation_level=None, check_same_thread=False, uri=True, cached_statements=256)
    except sqlite3.Error as error:
        raise storage_error(error, read_only=False, kind=kind) from error
    connection.text_factory = _decoded
    return connection


def _decoded(stored: bytes) -> str:
    return unescape_text(stored.decode())


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"The folder {str(path)!r} could not be made: {error.strerror}. Give a folder that can be written.") from error


def _readable(uri: str, kind: FileKind) -> bool:
    """False when SQLite cannot read the file for want of its side files."""
    connection = _connect(uri, kind)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True  # damaged: the caller's first read says so
    finally:
        connection.close()
    return True


def _is_cut(connection: sqlite3.Connection, file: Path) -> bool:
    """True when the file is shorter than it says, which SQLite notices only where it reads what is missing.

    SQLite itself is asked: opening and closing the file here would take away the locks that this process has on it.
    """
    try:
        (n_pages,), (page_bytes,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
        return n_pages * page_bytes > file.stat().st_size and not _has_unmerged_writes(file)
    except (OSError, sqlite3.Error):
        return False  # the caller's first read says what is wrong


def _has_unmerged_writes(file: Path) -> bool:
    logs = (file.with_name(file.name + ending) for ending in ("-wal", "-journal"))
    return any(log.exists() and log.stat().st_size > 0 for log in logs)
