"""One SQLite file that holds a corpus: transactions, readers beside a writer, and errors that say what to do."""

import json
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from typing_extensions import Self

from llama_index_advanced_rag.errors import ConfigurationError, IndexClosedError, IndexNotCopiedError, StorageError
from llama_index_advanced_rag.stores.sqlite.database_schema import APPLICATION_ID, FORMAT_VERSION, STATEMENTS, check_format
from llama_index_advanced_rag.stores.sqlite.sqlite_file import (
    bound_parameters,
    connect_file,
    connect_memory,
    damage_reported,
    inode_of,
    no_index,
    read_only_error,
    storage_error,
)
from llama_index_advanced_rag.trace import report

FILE_NAME = "corpus.sqlite"

Row = tuple[Any, ...]
T = TypeVar("T")


class CorpusDatabase:
    """The SQLite file of a corpus: `corpus.sqlite` in a folder, or memory.

    One connection guarded by a re-entrant lock: any thread may call any method, one at a time. A `transaction()` belongs to
    the thread that opened it, and other threads wait for its end; async callers run the whole of it in one worker thread.
    Other processes read beside one writer (WAL); a second writer waits 10 s, then gets a `StorageError`.

    Tables: `documents` (text once, metadata, the rest as JSON; `body` is NULL for a document known only by its nodes),
    `nodes` (`text` is NULL when it is a slice of the document's, `body` is NULL when only id and hash are known, `row` is the
    number of a searchable node), `records` of what those say (by row), what is committed of the array files beside it (`blocks`,
    `segments`, `dead` rows), `pending` changes of an external vector store, and `meta`. Deleting a document deletes its nodes, and
    deleting a node marks its row dead and deletes its record.

    Args:
        path: the folder; None keeps everything in memory.
        read_only: open an existing file and refuse writes. In a folder where SQLite cannot place its side files, the file is
            read as it stands, and changes another process makes meanwhile are not seen.
        create: make folder and file where they are missing.
        first_meta: what `get_meta` gives in a file that is made now; a file that exists keeps its own.

    Raises:
        IndexNotFoundError: no index in this folder, and not `create`.
        IndexFormatError: a file that is no database, is damaged, or is of another application or format version.
        StorageError: the disk refused: full, read-only, locked.

    Example:
        >>> with CorpusDatabase(None) as database:
        ...     with database.transaction():
        ...         database.set_meta("language", "fr")
        ...     database.get_meta("language")
        'fr'
    """

    def __init__(self, path: Path | str | None, *, read_only: bool = False, create: bool = False, first_meta: Mapping[str, Any] | None = None) -> None:
        if read_only and (create or path is None):
            raise ConfigurationError(f"read_only=True cannot go with create={create!r} and path={path!r}; it needs an existing folder.")
        self._path = None if path is None else Path(path)
        self._read_only = read_only
        self._lock = threading.RLock()
        self._depth = 0
        self._changing = False
        self._closed = False
        self._connection = self._connect(create)
        self._finalizer = weakref.finalize(self, self._connection.close)
        self._inode = inode_of(self._file())
        try:
            self._prepare(create=create or path is None, first_meta=first_meta or {})
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path | None:
        """The folder, or None for memory."""
        return self._path

    @property
    def read_only(self) -> bool:
        """True when writes are refused."""
        return self._read_only

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._closed

    @property
    def changing(self) -> bool:
        """True inside a transaction, whose changes are not committed yet."""
        return self._changing

    def _file(self) -> Path:
        return (self._path or Path()) / FILE_NAME

    def _connect(self, create: bool) -> sqlite3.Connection:
        if self._path is None:
            return connect_memory()
        if not create and not self._file().is_file():
            raise no_index(self._path, FILE_NAME)
        return connect_file(self._file(), read_only=self._read_only, create=create)

    def _prepare(self, *, create: bool, first_meta: Mapping[str, Any]) -> None:
        self._run("PRAGMA foreign_keys = ON")
        self._run("PRAGMA cache_size = -16384")
        if self._is_empty():
            if not create:
                raise no_index(self._path, FILE_NAME)
            self._use_write_ahead_log()
            with self.transaction():
                if self._is_empty():
                    self._create_schema(first_meta)
        check_format(self._pragma("application_id"), lambda: self.get_meta("format_version"), FILE_NAME)
        if not self._read_only:
            self._use_write_ahead_log()

    def _is_empty(self) -> bool:
        return self._pragma("application_id") == 0 and self._run("SELECT count(*) FROM sqlite_master")[0][0] == 0

    def _create_schema(self, first_meta: Mapping[str, Any]) -> None:
        for statement in STATEMENTS:
            self._run(statement)
        self._run(f"PRAGMA application_id = {APPLICATION_ID}")
        for key, value in {**first_meta, "format_version": FORMAT_VERSION}.items():
            self.set_meta(key, value)

    def _use_write_ahead_log(self) -> None:
        mode = self._run("PRAGMA journal_mode = WAL")[0][0]
        if self._path is not None and mode != "wal":
            report("warning", f"This disk does not support SQLite's write-ahead log (journal mode {mode!r}): readers wait while the index is being written.")

    @contextmanager
    def transaction(self, *, first: Callable[[], object] = lambda: None) -> Generator[None, None, None]:
        """All writes inside, or none: rolled back on any exception.

        `first` is called when nobody else can write any more and nothing is written yet. Re-entrant: an inner transaction that
        fails takes back its own writes only, and the outer one goes on if it catches the exception.

        Raises:
            ReadOnlyIndexError: the database was opened with `read_only=True`.
            StorageError: the disk refused, another process writes, or the file was deleted while open.
        """
        if self._read_only:
            raise read_only_error()
        with self._scope("BEGIN IMMEDIATE"):
            if self._depth == 1:
                first()
            before, self._changing = self._changing, True
            try:
                yield
            finally:
                self._changing = before

    def alone(self) -> AbstractContextManager[object]:
        """A block in which no other thread of this process reads or writes; transactions in it are committed when they end."""
        return self._lock

    @contextmanager
    def snapshot(self) -> Generator[None, None, None]:
        """All reads inside see one state, whatever other processes commit meanwhile."""
        with self._scope("BEGIN"):
            yield

    @contextmanager
    def _scope(self, begin: str) -> Generator[None, None, None]:
        with self._lock:
            depth = self._depth
            if depth == 0 and begin != "BEGIN":
                self._check_file()
            self._run(begin if depth == 0 else f"SAVEPOINT level_{depth}")
            self._depth = depth + 1
            try:
                yield
                self._run("COMMIT" if depth == 0 else f"RELEASE level_{depth}")
            except BaseException:
                self._undo(depth)
                raise
            finally:
                self._depth = depth

    def _undo(self, depth: int) -> None:
        if self._closed or not self._connection.in_transaction:
            return  # SQLite itself took everything back, as it does when the disk is full
        for statement in ("ROLLBACK",) if depth == 0 else (f"ROLLBACK TO level_{depth}", f"RELEASE level_{depth}"):
            self._run(statement)

    def _check_file(self) -> None:
        if self._path is not None and inode_of(self._file()) != self._inode and not self._closed:
            raise StorageError(f"The {FILE_NAME!r} of this index was deleted or replaced while it was open. Close this index and open it again.")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run one statement; the number of rows it changed."""
        with self._lock:
            return self._guarded(lambda: self._connection.execute(sql, bound_parameters(parameters)).rowcount)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row, in one transaction."""
        with self.transaction():
            self._guarded(lambda: self._connection.executemany(sql, map(bound_parameters, rows)))

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a SELECT."""
        with self._lock:
            return self._run(sql, parameters)

    def query_in(self, sql: str, values: Sequence[Any], *, batch_size: int = 500) -> list[Row]:
        """All rows of a SELECT whose `{}` stands for the values, asked for in batches (`... WHERE node_id IN ({})`)."""
        batches = [values[start : start + batch_size] for start in range(0, len(values), batch_size)]
        with self._lock:
            return [row for batch in batches for row in self._run(sql.format(",".join("?" * len(batch))), batch)]

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._guarded(lambda: self._connection.execute(sql, bound_parameters(parameters)).fetchall())

    def _guarded(self, call: Callable[[], T]) -> T:
        if self._closed:
            raise IndexClosedError("This index is closed. Open it again with CorpusIndex.load(...).")
        if self._depth and not self._connection.in_transaction:
            raise StorageError("The disk refused an earlier write, and this whole transaction was taken back. Nothing of it was kept; run the update again.")
        try:
            return call()
        except sqlite3.Error as error:
            raise storage_error(error, read_only=self._read_only) from error

    def _pragma(self, name: str) -> int:
        return int(self._run(f"PRAGMA {name}")[0][0])

    def data_version(self) -> int:
        """A number that changes when another connection has committed since the last call."""
        with self._lock:
            return self._pragma("data_version")

    @property
    def own_changes(self) -> int:
        """A number that grows with every row this connection changes."""
        return self._connection.total_changes

    def get_meta(self, key: str, default: Any = None) -> Any:
        """A value stored with `set_meta`, or the default."""
        rows = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        with damage_reported():
            return json.loads(rows[0][0]) if rows else default

    def set_meta(self, key: str, value: Any) -> None:
        """Store a JSON value under a name."""
        self.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, json.dumps(value)))

    def integrity_problems(self) -> list[str]:
        """What SQLite finds wrong with the file and its references; empty when sound. Reads the whole file."""
        found = [str(row[0]) for row in self.query("PRAGMA integrity_check") if row[0] != "ok"]
        return found + [f"a row of {row[0]} refers to a missing row of {row[2]}" for row in self.query("PRAGMA foreign_key_check")]

    def backup_to(self, path: Path | str) -> None:
        """Write the whole state into another folder, replacing an index that is there, in one transaction of its own.

        Raises:
            ConfigurationError: the folder is this index's own.
            IndexFormatError: the folder holds a `corpus.sqlite` that is not ours.
        """
        target = Path(path)
        if self._path is not None and target.resolve() == self._path.resolve():
            raise ConfigurationError(f"A copy into {str(path)!r} would overwrite the index itself. Give another folder.")
        with self._lock, CorpusDatabase(target, create=True) as other:
            if self._depth:
                raise ConfigurationError("backup_to() was called inside a transaction. Call it after the transaction has ended.")
            self._guarded(lambda: self._connection.backup(other._connection))

    def size(self) -> int:
        """Bytes in use, without what deletes have freed."""
        pages, free, page_bytes = (int(self.query(f"PRAGMA {name}")[0][0]) for name in ("page_count", "freelist_count", "page_size"))
        return (pages - free) * page_bytes

    def shrink(self) -> None:
        """Give free space back to the disk; outside of a transaction."""
        with self._lock:
            self._run("VACUUM")
            self._run("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file; an open transaction is rolled back. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._finalizer()

    def __reduce__(self) -> NoReturn:
        raise IndexNotCopiedError("An open index cannot be pickled or deep-copied. Open it in each process: CorpusIndex.load(persist_dir, read_only=True).")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
