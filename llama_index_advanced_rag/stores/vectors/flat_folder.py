"""Where a flat vector store lies on a disk or in a file system of fsspec, and how a copy takes the place of an older one."""

import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llama_index.core.vector_stores.types import DEFAULT_PERSIST_FNAME

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores.sqlite.database import FILE_NAME


def persist_file(persist_dir: str, namespace: str = "default") -> str:
    """Where LlamaIndex's `StorageContext.persist` puts a vector store. Ours is a folder of that name.

    Example:
        >>> persist_file("storage")
        'storage/default__vector_store.json'
    """
    return str(Path(persist_dir) / f"{namespace}__{DEFAULT_PERSIST_FNAME}")


def is_local(fs: Any) -> bool:
    """True for this machine's own file system; `fs` is one of fsspec, or None."""
    return fs is None or "file" in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol)


def write_folder(path: str, fs: Any, write: Callable[[Path], None]) -> None:
    """Write a folder, which takes the place of an older one when it is complete.

    Args:
        path: of the folder.
        fs: a file system of fsspec; None = this machine's.
        write: fills a new folder on this machine.

    Raises:
        ConfigurationError: the path is a folder that holds no index.
        StorageError: the disk refused; what was there stays.
    """
    if is_local(fs):
        _replace(Path(path), write)
        return
    with tempfile.TemporaryDirectory() as place:
        local = Path(place) / "store"
        write(local)
        if fs.exists(path):
            fs.rm(path, recursive=True)
        fs.makedirs(path, exist_ok=True)
        for file in sorted(local.iterdir()):
            fs.put_file(str(file), f"{path}/{file.name}")


def _replace(target: Path, write: Callable[[Path], None]) -> None:
    if target.is_dir() and not is_free(target) and not (target / FILE_NAME).is_file():
        raise ConfigurationError(f"The folder {str(target)!r} holds other files. Give a path that is free, or that of an older copy.")
    draft, old = (target.with_name(f"{target.name}.{os.getpid()}.{kind}") for kind in ("tmp", "old"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write(draft)
        if target.exists():
            target.rename(old)
        draft.rename(target)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"The vectors could not be written to {str(target)!r}: {error.strerror or error}. Give a place that can be written.") from error
    finally:
        _remove(draft)
        if target.exists():
            _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


@contextmanager
def local_folder(path: str, fs: Any) -> Generator[Path, None, None]:
    """A stored folder on this machine: itself, or a copy that is removed again if the block fails and is the caller's if not.

    Raises:
        IndexNotFoundError: there is nothing at the path.
        IndexFormatError: there is a file, or a folder without an index.
    """
    if is_local(fs):
        check_folder(Path(path))
        yield Path(path)
        return
    copied = Path(tempfile.mkdtemp(prefix="flat-vectors-"))
    try:
        _check_remote(path, fs)
        for name in fs.ls(path, detail=False):
            fs.get_file(name, str(copied / Path(name).name))
        check_folder(copied)
        yield copied
    except BaseException:
        shutil.rmtree(copied, ignore_errors=True)
        raise


def _check_remote(path: str, fs: Any) -> None:
    if not fs.exists(path):
        raise not_found(path)
    if not fs.isdir(path):
        raise no_store(path)


def is_free(path: Path) -> bool:
    """True where a new store may be made: there is nothing, or an empty folder."""
    return not path.exists() or (path.is_dir() and not any(path.iterdir()))


def check_folder(path: Path) -> None:
    """Refuse what cannot be a stored folder.

    Raises:
        IndexNotFoundError: there is nothing.
        IndexFormatError: it is a file, or a folder without an index.
    """
    if not path.exists():
        raise not_found(str(path))
    if not (path / FILE_NAME).is_file():
        raise no_store(str(path))


def not_found(path: str) -> IndexNotFoundError:
    """The error for a path where there is nothing."""
    return IndexNotFoundError(f"There is no folder {path!r}. Check the path, or persist a FlatVectorStore there first.")


def no_store(path: str) -> IndexFormatError:
    """The error for a path where there is something else."""
    return IndexFormatError(f"{path!r} holds no FlatVectorStore. Check the path, or persist the store again.")
