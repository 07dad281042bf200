"""LlamaIndex's view of a corpus folder: a storage context, and signposts for its own loader."""

import json
from pathlib import Path
from typing import Any

from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.storage.storage_context import StorageContext

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.errors import AdvancedRagError, ConfigurationError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores.rows.row_generation import ARRAY_FILE
from llama_index_advanced_rag.stores.sqlite.database import FILE_NAME, CorpusDatabase
from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore
from llama_index_advanced_rag.trace import report

_SIGNPOST = "this folder holds a CorpusIndex: open it with CorpusIndex.load(persist_dir), not with load_index_from_storage"
SUMMARY_FILE = "summaries.sqlite"
_DATABASE_ENDINGS = ("", "-wal", "-shm")
_SIGNPOST_FILES = ("docstore.json", "index_store.json")
_NO_NODES = "{}"
_STRUCT = "index_struct"


class CorpusStorageContext(StorageContext):
    """The stores of a corpus; persisting it copies the whole corpus into a folder."""

    _corpus: Corpus

    def persist(self, persist_dir: Any = "./storage", *_: Any, **__: Any) -> None:
        """Copy the corpus into a folder, for `CorpusIndex.load`; an earlier copy is replaced. Its own folder is always up to date.

        Raises:
            ConfigurationError: the folder holds another index, or one of LlamaIndex's own.
        """
        folder, own = Path(persist_dir), self._corpus.database
        if own.path is not None and folder.resolve() == own.path.resolve():
            return
        _refuse_stock_index(folder)
        if holds_index(folder):
            with CorpusDatabase(folder, read_only=True) as there:
                if read_index_struct(there).index_id != read_index_struct(own).index_id:
                    raise ConfigurationError(f"The folder {folder.name!r} already holds another index. Name another folder, or delete this one.")
        self._corpus.persist(folder)
        write_signposts(folder)


def storage_view(corpus: Corpus) -> CorpusStorageContext:
    """The storage context of a corpus."""
    stock = StorageContext.from_defaults(docstore=corpus.documents, vector_store=corpus.vectors)
    view = CorpusStorageContext(docstore=stock.docstore, index_store=stock.index_store, vector_stores=stock.vector_stores, graph_store=stock.graph_store)
    view._corpus = corpus  # noqa: SLF001
    return view


def read_index_struct(database: CorpusDatabase) -> IndexDict:
    """LlamaIndex's struct of the index: its id and summary, made and stored at the first time, and no entry a node."""
    stored = database.get_meta(_STRUCT)
    struct = IndexDict() if stored is None else IndexDict(index_id=stored["index_id"], summary=stored["summary"])
    if stored is None and not database.read_only:
        write_index_struct(database, struct)
    return struct


def write_index_struct(database: CorpusDatabase, struct: IndexDict) -> None:
    """Store id and summary of the index."""
    database.set_meta(_STRUCT, {"index_id": struct.index_id, "summary": struct.summary})


def holds_index(folder: Path) -> bool:
    """True when the folder holds a corpus of this package, of whatever version, whole or damaged; one that was only begun is none.

    Raises:
        StorageError: the folder may not be read.
    """
    try:
        if not (folder / FILE_NAME).exists():
            return False
        CorpusDatabase(folder, read_only=True).close()
    except OSError as error:
        if isinstance(error, AdvancedRagError):
            return not isinstance(error, IndexNotFoundError)
        raise StorageError(f"The folder {str(folder)!r} cannot be read ({error.strerror}). Check its permissions.") from error
    except AdvancedRagError:
        return True  # opening it says what is wrong
    return True


def holds_stock_index(folder: Path) -> bool:
    """True when the folder holds what LlamaIndex's own `persist` writes, and not our signposts."""
    docstore, index_store = (folder / name for name in _SIGNPOST_FILES)
    if docstore.is_file() and docstore.stat().st_size > len(_NO_NODES):
        return True
    stored = index_store.read_bytes() if index_store.is_file() else b""
    return bool(stored) and _SIGNPOST.encode() not in stored


def index_folder(persist_dir: str | Path) -> Path:
    """The folder of an index that exists.

    Raises:
        IndexNotFoundError: there is none.
    """
    folder = Path(persist_dir)
    if not holds_index(folder):
        raise _not_found(folder)
    return folder


def _not_found(folder: Path) -> IndexNotFoundError:
    if holds_stock_index(folder):
        return IndexNotFoundError(
            f"The folder {str(folder)!r} holds an index of LlamaIndex's own, not of this package. Open it with load_index_from_storage, "
            "or build one here with CorpusIndex.from_documents(documents, persist_dir=...) in another folder."
        )
    return IndexNotFoundError(f"There is no index in the folder {str(folder)!r}. Build one with CorpusIndex.from_documents(documents, persist_dir=...).")


def check_new_place(persist_dir: str | Path) -> Path:
    """The folder of a new index, which would replace nothing there.

    Raises:
        ConfigurationError: there is an index already, ours or LlamaIndex's own, or the name is empty.
        StorageError: the folder may not be read.
    """
    if not str(persist_dir).strip():
        raise ConfigurationError(f"persist_dir is {persist_dir!r}. Expected the name of a folder, or None to keep the index in memory.")
    folder = Path(persist_dir)
    if holds_index(folder):
        raise ConfigurationError(f"The folder {folder.name!r} already holds an index. Open it with CorpusIndex.load(persist_dir), or name another folder.")
    _refuse_stock_index(folder)
    return folder


def _refuse_stock_index(folder: Path) -> None:
    if holds_stock_index(folder):
        raise ConfigurationError(
            f"The folder {str(folder)!r} holds an index of LlamaIndex's own, which would be overwritten. Name another folder, "
            "or open that one with load_index_from_storage."
        )


def write_signposts(folder: Path) -> None:
    """Files that make LlamaIndex's own loader fail with the name of ours instead of with a missing file.

    Raises:
        StorageError: the disk refused.
    """
    docstore, index_store = _SIGNPOST_FILES
    struct = {"__type__": _SIGNPOST, "__data__": "{}"}
    try:
        (folder / docstore).write_text(_NO_NODES, encoding="utf-8")
        (folder / index_store).write_text(json.dumps({"index_store/data": {"corpus": struct}}), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"The folder {str(folder)!r} could not be written: {error.strerror}. Free some space or check its permissions.") from error


def open_summaries(folder: Path, *, read_only: bool) -> SQLiteKVStore | None:
    """The file of the summaries, which all can be made again: one that cannot be read is reported, and replaced unless `read_only`.

    Raises:
        StorageError: the disk refused.
    """
    try:
        return SQLiteKVStore(folder / SUMMARY_FILE, read_only=read_only)
    except IndexFormatError as error:
        report("warning", f"The kept summaries cannot be read and are made anew: {error}")
    if read_only:
        return None
    for ending in _DATABASE_ENDINGS:
        (folder / f"{SUMMARY_FILE}{ending}").unlink(missing_ok=True)
    return SQLiteKVStore(folder / SUMMARY_FILE)


def remove_index(folder: Path) -> None:
    """Delete the files of an index from a folder, and the folder if nothing else is in it."""
    arrays = [path.name for path in folder.iterdir() if ARRAY_FILE.fullmatch(path.name)]
    databases = [f"{name}{ending}" for name in (FILE_NAME, SUMMARY_FILE) for ending in _DATABASE_ENDINGS]
    for name in (*databases, *_SIGNPOST_FILES, *arrays):
        (folder / name).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
