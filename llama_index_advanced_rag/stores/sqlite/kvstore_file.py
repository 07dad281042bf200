"""The SQLite file of a key-value store: readers beside one writer, and units of work that tasks and threads can share."""

import os
import sqlite3
import threading
import weakref
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from llama_index_advanced_rag.errors import ConfigurationError, IndexClosedError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores.sqlite.sqlite_file import FileKind, bound_parameters, connect_file, connect_memory, read_only_error, sqlite_errors
from llama_index_advanced_rag.trace import report

APPLICATION_ID = 0x41524B56  # "ARKV"
FORMAT_VERSION = 1
KVSTORE = FileKind(
    thing="key-value store",
    a_thing="a key-value store",
    rebuild="Restore a copy, or delete the file and fill the store again.",
    reopen="SQLiteKVStore(path)",
)
# The row number keeps the order of insertion, as a dict does: a value that is replaced stays in its place.
_SCHEMA = """
CREATE TABLE pairs (
    number INTEGER PRIMARY KEY, collection TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, checksum INTEGER NOT NULL, UNIQUE (collection, key))
"""

Row = tuple[Any, ...]
_units: ContextVar[tuple[object, ...]] = ContextVar("advanced_rag_kvstore_units", default=())


class KVStoreFile:
    """One SQLite file with the table `pairs`, or memory.

    Two connections: writes and what is read in a `transaction()` go through one, every other read through the other, so
    that a read never waits for a transaction (in memory there is one connection, and it does). A transaction belongs to the
    context that opened it: its task, and what that task starts in threads of ours; every other writer waits for its end.

    Args:
        path: the file, made where it is missing; None = memory.
        read_only: the file must exist; writes are refused.

    Raises:
        IndexNotFoundError: no such file, and `read_only`.
        IndexFormatError: a file that is no database, is damaged, or is of another application or format version.
        StorageError: the disk refused: full, read-only, locked.

    Example:
        >>> file = KVStoreFile(None)
        >>> with file.transaction():
        ...     file.write("INSERT INTO pairs (collection, key, value, checksum) VALUES (?, ?, ?, ?)", [("data", "a", "{}", 0)])
        1
        >>> file.read("SELECT key FROM pairs")
        [('a',)]
        >>> file.close()
    """

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self.closed = False
        self._process = os.getpid()
        self._turn = threading.Lock()  # held by the writer for as long as its outermost transaction is open
        self._unit: object | None = None
        self._unit_thread = 0
        self._depth = 0
        self._interleaved = False
        self._writing = threading.RLock()  # one statement, or one inner transaction, at a time
        self._writer = self._connect(read_only=read_only)
        self._reader, self._reading = self._writer, self._writing
        self._finalizer = weakref.finalize(self, _close_all, [self._writer])
        self._inode = self._current_inode()
        try:
            self._prepare()
            self._add_reader()
        except BaseException:
            self.close()
            raise

    def _connect(self, *, read_only: bool) -> sqlite3.Connection:
        if self.path is None:
            return connect_memory(KVSTORE)
        if self.read_only and not self.path.is_file():
            raise IndexNotFoundError(f"There is no key-value store at {str(self.path)!r}. Check the path, or open it without read_only to make one.")
        if self.path.is_dir():
            raise ConfigurationError(f"{str(self.path)!r} is a folder, expected the path of a file. Give a path such as {str(self.path / 'cache.sqlite')!r}.")
        return connect_file(self.path, read_only=read_only, create=not self.read_only, kind=KVSTORE)

    def _prepare(self) -> None:
        if self._is_empty():
            if self.read_only:
                raise IndexFormatError(f"The file {str(self.path)!r} is empty, expected a key-value store. Open it without read_only to make one.")
            self._use_write_ahead_log()
            with self.transaction():
                if self._is_empty():
                    self._create()
        self._check_format()
        if not self.read_only:
            self._use_write_ahead_log()

    def _is_empty(self) -> bool:
        return self._number("PRAGMA application_id") == 0 and self._number("SELECT count(*) FROM sqlite_master") == 0

    def _create(self) -> None:
        for statement in (_SCHEMA, f"PRAGMA application_id = {APPLICATION_ID}", f"PRAGMA user_version = {FORMAT_VERSION}"):
            self._on_writer(statement)

    def _check_format(self) -> None:
        application, version = self._number("PRAGMA application_id"), self._number("PRAGMA user_version")
        if application != APPLICATION_ID:
            raise IndexFormatError(
                f"The file {str(self.path)!r} belongs to another application (id {application:#x}, expected {APPLICATION_ID:#x}). Give another file."
            )
        if version != FORMAT_VERSION:
            raise IndexFormatError(
                f"The key-value store {str(self.path)!r} has format version {version}, and this release reads version {FORMAT_VERSION}. {KVSTORE.rebuild}"
            )

    def _use_write_ahead_log(self) -> None:
        mode = self._on_writer("PRAGMA journal_mode = WAL")[0][0]
        if self.path is not None and mode != "wal":
            report("warning", f"This disk does not support SQLite's write-ahead log (journal mode {mode!r}): readers wait while the store is being written.")

    def _add_reader(self) -> None:
        if self.path is None or self.read_only:
            return
        self._finalizer.detach()
        self._reader, self._reading = self._connect(read_only=True), threading.RLock()
        self._finalizer = weakref.finalize(self, _close_all, [self._reader, self._writer])  # the writer last: it merges the log

    @property
    def in_transaction(self) -> bool:
        """True when the caller runs in the context of the transaction that is open."""
        return self._unit is not None and self._unit in _units.get()

    @contextmanager
    def transaction(self) -> Generator[None, None, None]:
        """All writes inside, or none: rolled back on any exception; an inner one takes back its own writes only.

        Raises:
            ReadOnlyIndexError: opened with `read_only=True`.
            StorageError: the disk refused, another process writes, the file was deleted while open, another task of this
                thread has a transaction open, or inner transactions of several tasks did not end in the order of a stack.
        """
        self._check_usable()
        if self.read_only:
            raise read_only_error(KVSTORE)
        with self._inner() if self.in_transaction else self._outer():
            yield

    @contextmanager
    def _outer(self) -> Generator[None, None, None]:
        unit = object()
        with self._own_turn():
            self._check_file()
            self._on_writer("BEGIN IMMEDIATE")
            self._unit, self._unit_thread, self._depth, self._interleaved = unit, threading.get_ident(), 1, False
            _units.set((*_units.get(), unit))
            try:
                yield
                self._check_order(1)
                self._on_writer("COMMIT")
            except BaseException:
                self._undo("ROLLBACK")
                raise
            finally:
                self._unit, self._unit_thread, self._depth = None, 0, 0
                _units.set(tuple(one for one in _units.get() if one is not unit))  # no reset: a generator may end in another context

    @contextmanager
    def _inner(self) -> Generator[None, None, None]:
        with self._writing:
            depth = self._depth
            self._on_writer(f"SAVEPOINT level_{depth}")
            self._depth = depth + 1
            try:
                yield
                self._check_order(depth + 1)
                self._on_writer(f"RELEASE level_{depth}")
            except BaseException:
                if not self._interleaved:
                    self._undo(f"ROLLBACK TO level_{depth}", f"RELEASE level_{depth}")
                raise
            finally:
                self._depth = depth

    def _check_order(self, depth: int) -> None:
        self._interleaved = self._interleaved or self._depth != depth
        if self._interleaved:
            raise StorageError(
                "Inner transactions of several tasks ended in another order than that of a stack, so the whole transaction is taken back. "
                "Open inner transactions one after the other."
            )

    @contextmanager
    def _own_turn(self) -> Generator[None, None, None]:
        if self._unit_thread == threading.get_ident():
            raise StorageError(
                "Another task of this thread has a transaction open, and to wait for it here would block both for ever. "
                "Use the async methods here, or open transactions in a worker thread."
            )
        with self._turn:
            yield

    def _undo(self, *statements: str) -> None:
        if self.closed or not self._writer.in_transaction:
            return  # SQLite itself took everything back, as it does when the disk is full
        for statement in statements:
            self._on_writer(statement)

    def write(self, sql: str, rows: Iterable[Sequence[Any]]) -> int:
        """Run one statement for each row, in a transaction; the number of rows changed."""
        with self.transaction(), self._writing, sqlite_errors(read_only=self.read_only, kind=KVSTORE):
            self._check_kept()
            return self._writer.executemany(sql, map(bound_parameters, rows)).rowcount

    def read(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a SELECT: with what the caller's transaction has written, else as last committed."""
        self._check_usable()
        if self.in_transaction:
            return self._on_writer(sql, parameters)
        if self.path is None:
            with self._own_turn():
                return self._on_writer(sql, parameters)
        with self._reading:
            self._check_usable()
            return self._run(self._reader, sql, parameters)

    def _on_writer(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._writing:
            self._check_kept()
            return self._run(self._writer, sql, parameters)

    def _run(self, connection: sqlite3.Connection, sql: str, parameters: Sequence[Any]) -> list[Row]:
        with sqlite_errors(read_only=self.read_only, kind=KVSTORE):
            return connection.execute(sql, bound_parameters(parameters)).fetchall()

    def _number(self, sql: str) -> int:
        return int(self._on_writer(sql)[0][0])

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise StorageError("This key-value store was opened before the process forked, and SQLite files cannot be shared so. Open it in each process.")
        if self.closed:
            raise IndexClosedError(f"This key-value store is closed. Open it again with {KVSTORE.reopen}.")

    def _check_kept(self) -> None:
        self._check_usable()
        if self._depth and not self._writer.in_transaction:
            raise StorageError("The disk refused an earlier write, and this whole transaction was taken back. Nothing of it was kept; run the update again.")

    def _current_inode(self) -> tuple[int, int] | None:
        try:
            status = None if self.path is None else self.path.stat()
        except OSError:
            return (-1, -1)
        return None if status is None else (status.st_dev, status.st_ino)

    def _check_file(self) -> None:
        if self._current_inode() != self._inode:
            raise StorageError(f"The file {str(self.path)!r} was deleted or replaced while it was open. Close this key-value store and open it again.")

    def backup_to(self, path: Path) -> None:
        """Write the last committed state into another file, replacing a key-value store that is there.

        Raises:
            ConfigurationError: the path is this store's own, or a transaction is open here.
            IndexFormatError: the path holds a file that is no key-value store.
        """
        if self.path is not None and path.resolve() == self.path.resolve():
            raise ConfigurationError(f"A copy into {str(path)!r} would overwrite the key-value store itself. Give another path.")
        if self.in_transaction:
            raise ConfigurationError("The store was copied inside a transaction. Copy it after the transaction has ended.")
        other = KVStoreFile(path)
        try:
            with self._own_turn(), self._reading, sqlite_errors(read_only=self.read_only, kind=KVSTORE):
                self._check_usable()
                self._reader.backup(other._writer)
        finally:
            other.close()

    def close(self) -> None:
        """Close the file; the caller's open transaction is rolled back. A second call does nothing."""
        if self.closed:
            return
        with nullcontext() if self.in_transaction else self._own_turn(), self._writing, self._reading:
            self.closed = True
            self._finalizer()


def _close_all(connections: Sequence[sqlite3.Connection]) -> None:
    for connection in connections:
        connection.close()
