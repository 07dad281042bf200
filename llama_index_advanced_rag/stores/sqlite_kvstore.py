"""A key-value store in one SQLite file, for LlamaIndex's document stores, index stores and caches."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE, DEFAULT_COLLECTION, BaseKVStore
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.errors import ConfigurationError, IndexNotCopiedError
from llama_index_advanced_rag.stores.sqlite.json_value import checksum_of, decode_object, encode_object
from llama_index_advanced_rag.stores.sqlite.kvstore_file import KVSTORE, KVStoreFile
from llama_index_advanced_rag.stores.sqlite.sqlite_file import damage_reported

P = ParamSpec("P")
T = TypeVar("T")
_PUT = """
INSERT INTO pairs (collection, key, value, checksum) VALUES (?, ?, ?, ?)
ON CONFLICT (collection, key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum
"""


class SQLiteKVStore(BaseKVStore):
    """Dicts of JSON values by collection and key, in one SQLite file or in memory.

    `KVDocumentStore(store)`, `KVIndexStore(store)` and `IngestionCache(cache=store)` work on it; one file serves several of
    them. Each write is committed when it returns. Any thread, task and process may use the same file: reads go on beside one
    writer (write-ahead log), a second writer waits for the first, and 10 s for one in another process.

    The async methods run in a worker thread; in the caller's own `transaction()` they run at once.

    A pickled or deep-copied store is the same file opened again, which `IngestionPipeline(num_workers=...)` relies on; a
    store in memory refuses.

    Args:
        path: the file, made where it is missing; None keeps everything in memory.
        read_only: the file must exist and is not changed. Works in a folder that cannot be written.

    Raises:
        ConfigurationError: the path is a folder, or `read_only` without a path.
        IndexNotFoundError: no such file, and `read_only`.
        IndexFormatError: the file is damaged, no key-value store, or one of another format version.
        StorageError: the disk refused: full, locked, no permission.

    Example:
        >>> with SQLiteKVStore() as store:
        ...     store.put("a", {"text": "déjà vu"})
        ...     store.put_all([("b", {"n": 1}), ("c", {"n": 2})], collection="numbers")
        ...     store.get("a"), store.get_all("numbers"), store.delete("b"), store.delete("b", "numbers")
        ({'text': 'déjà vu'}, {'b': {'n': 1}, 'c': {'n': 2}}, False, True)
    """

    def __init__(self, path: Path | str | None = None, *, read_only: bool = False) -> None:
        if read_only and path is None:
            raise ConfigurationError("read_only=True cannot go with path=None; it needs an existing file.")
        self._file = KVStoreFile(None if path is None else Path(path).absolute(), read_only=read_only)
        # Of the tasks of a loop that wait for their turn to write, one waits in a worker thread: many would leave none to others.
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @classmethod
    def from_persist_path(cls, persist_path: str) -> Self:
        """The store in a file that exists, open for writing.

        Raises:
            IndexNotFoundError: no such file.
        """
        cls(persist_path, read_only=True).close()
        return cls(persist_path)

    @property
    def path(self) -> Path | None:
        """The file as an absolute path, or None for memory."""
        return self._file.path

    @property
    def read_only(self) -> bool:
        """True when writes are refused."""
        return self._file.read_only

    @property
    def closed(self) -> bool:
        """True after `close()`."""
        return self._file.closed

    def transaction(self) -> AbstractContextManager[None]:
        """A unit of work: everything written in the block is committed at its end, or nothing when it raises.

        Re-entrant: an inner block that fails takes back its own writes only, and the outer one goes on if it catches the
        exception. It belongs to the thread or task that opened it, with the threads and tasks of ours started inside; other
        writers wait for its end, other readers see what was committed before.

        Raises:
            ReadOnlyIndexError: the store was opened with `read_only=True`.
            StorageError: the disk refused, another process writes, or another task of this thread has a transaction open.

        Example:
            >>> store = SQLiteKVStore()
            >>> with store.transaction():
            ...     store.put("a", {"n": 1})
            ...     store.put("b", {"n": 2}, "other")
            >>> store.to_dict()
            {'data': {'a': {'n': 1}}, 'other': {'b': {'n': 2}}}
        """
        return self._file.transaction()

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Store a dict under a key; an older one is replaced and keeps its place in the order.

        Raises:
            ConfigurationError: the value is no dict of JSON values, or a name is no string.
        """
        self.put_all([(key, val)], collection)

    async def aput(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """The async twin of `put`."""
        await self._write(self.put, key, val, collection)

    def put_all(self, kv_pairs: Iterable[tuple[str, dict[str, Any]]], collection: str = DEFAULT_COLLECTION, batch_size: int = DEFAULT_BATCH_SIZE) -> None:
        """Store all pairs in one transaction, whatever `batch_size` is; of a key given twice the last value stays.

        Raises:
            ConfigurationError: a value is no dict of JSON values, or a name is no string; nothing is stored.
        """
        rows = [_row(_name(collection, "collection"), _name(key, "key"), value) for key, value in kv_pairs]
        if rows:
            self._file.write(_PUT, rows)

    async def aput_all(
        self, kv_pairs: Iterable[tuple[str, dict[str, Any]]], collection: str = DEFAULT_COLLECTION, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> None:
        """The async twin of `put_all`."""
        await self._write(self.put_all, kv_pairs, collection, batch_size)

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """The dict under a key, a new one each time, or None."""
        names = (_name(collection, "collection"), _name(key, "key"))
        with damage_reported(KVSTORE):
            rows = self._file.read("SELECT value, checksum FROM pairs WHERE collection = ? AND key = ?", names)
            return decode_object(*names, *rows[0]) if rows else None

    async def aget(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """The async twin of `get`."""
        return await self._read(self.get, key, collection)

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """All pairs of a collection as of one instant, in the order in which the keys were first put."""
        name = _name(collection, "collection")
        with damage_reported(KVSTORE):
            rows = self._file.read("SELECT key, value, checksum FROM pairs WHERE collection = ? ORDER BY number", (name,))
            return {key: decode_object(name, key, value, checksum) for key, value, checksum in rows}

    async def aget_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """The async twin of `get_all`."""
        return await self._read(self.get_all, collection)

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Remove a key; False when it was not there."""
        names = (_name(collection, "collection"), _name(key, "key"))
        return self._file.write("DELETE FROM pairs WHERE collection = ? AND key = ?", [names]) > 0

    async def adelete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """The async twin of `delete`."""
        return await self._write(self.delete, key, collection)

    def to_dict(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Everything as of one instant, by collection and key: what `SimpleKVStore.from_dict` takes."""
        collections: dict[str, dict[str, dict[str, Any]]] = {}
        with damage_reported(KVSTORE):
            for collection, key, value, checksum in self._file.read("SELECT collection, key, value, checksum FROM pairs ORDER BY number"):
                collections.setdefault(collection, {})[key] = decode_object(collection, key, value, checksum)
        return collections

    def persist(self, persist_path: str) -> None:
        """Copy the store into another file, replacing a key-value store that is there; its own file is always up to date.

        Raises:
            ConfigurationError: called in a transaction.
            IndexFormatError: there is a file that is no key-value store.
        """
        if self.path is None or Path(persist_path).resolve() != self.path.resolve():
            self._file.backup_to(Path(persist_path))

    def close(self) -> None:
        """Close the file; the caller's open transaction is rolled back. A second call does nothing."""
        self._file.close()

    async def _read(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.path is None:  # one connection: a read waits like a write
            return await self._write(method, *args, **kwargs)
        return method(*args, **kwargs) if self._file.in_transaction else await in_thread(method, *args, **kwargs)

    async def _write(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._file.in_transaction:  # its owner may hold, in the thread of this loop, what a worker thread would wait for
            return method(*args, **kwargs)
        async with self._gates.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            return await in_thread(method, *args, **kwargs)

    def __repr__(self) -> str:
        options = "".join([", read_only=True" if self.read_only else "", ", closed" if self.closed else ""])
        return f"SQLiteKVStore({None if self.path is None else str(self.path)!r}{options})"

    def __reduce__(self) -> tuple[Callable[..., "SQLiteKVStore"], tuple[Path, bool]]:
        if self.path is None:
            raise IndexNotCopiedError("A key-value store in memory cannot be pickled or deep-copied. Give it a path, and every copy opens the same file.")
        return (_open, (self.path, self.read_only))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _open(path: Path, read_only: bool) -> SQLiteKVStore:
    return SQLiteKVStore(path, read_only=read_only)


def _row(collection: str, key: str, value: object) -> tuple[str, str, str, int]:
    text = encode_object(key, value)
    return (collection, key, text, checksum_of(collection, key, text))


def _name(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"The {what} {value!r} is of type {type(value).__name__}, expected a string.")
    return value
