"""A folder of files to LlamaIndex documents, with a reason for every file that was left out."""

import hashlib
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llama_index.core.schema import Document

from llama_index_advanced_rag._concurrency import with_progress
from llama_index_advanced_rag.errors import DocumentReadError, MissingExtraError
from llama_index_advanced_rag.reading.file_text import FileText
from llama_index_advanced_rag.reading.formats import FORMATS
from llama_index_advanced_rag.reading.walk import document_id, list_files
from llama_index_advanced_rag.trace import report

PathLike = str | os.PathLike[str]
_JOINTS = re.compile(r"[-_]+")
MAX_TITLE = 200  # characters: the title is embedded and read with every chunk


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file (or folder) that was not read, by its path relative to the folder, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class FolderReading:
    """What reading a folder came to.

    Attributes:
        documents: one a file, ordered by id.
        skipped: files that were not read, ordered by path.
        warnings: one sentence for each thing that was guessed or looks odd, in order.
    """

    documents: list[Document] = field(default_factory=list[Document])
    skipped: list[SkippedFile] = field(default_factory=list[SkippedFile])
    warnings: list[str] = field(default_factory=list[str])


def read_folder(path: PathLike, *, exclude: Collection[PathLike] = (), show_progress: bool = False) -> FolderReading:
    """Read every file below a folder whose suffix is known (`formats.FORMATS`), in the order of their paths, or one file.

    Hidden files and folders (a leading dot) and those in `exclude` are ignored without a word. A file that cannot be
    read never stops the rest: it is in `skipped` with its reason. Files with equal bytes are all kept, with a warning,
    so that deleting one later does not lose the text. Links to folders inside the folder are not followed (their files
    are found anyway), links to folders outside are, once each.

    Args:
        path: the folder, or a single file; ids are relative to the folder.
        exclude: files or folders to leave out, for example where the index lives.
        show_progress: draw a progress bar on stderr.

    Raises:
        DocumentReadError: there is no such folder or file, or the folder cannot be listed.
    """
    root = Path(path)
    single = root.is_file()
    if not single and not root.is_dir():
        raise DocumentReadError(f"{str(root)!r} is neither a folder nor a file. Give the folder that holds the documents, or one of them.")
    reading = FolderReading()
    try:
        files, unlisted = ([root], []) if single else list_files(root, exclude={Path(item).resolve() for item in exclude})
    except OSError as error:
        raise DocumentReadError(f"The folder {str(root)!r} cannot be listed ({error.strerror or error}). Check its permissions.") from error
    root = root.parent if single else root
    reading.skipped.extend(SkippedFile(name, reason) for name, reason in unlisted)
    first_with: dict[str, str] = {}
    for file in with_progress(files, total=len(files), description="Reading", show_progress=show_progress):
        _read_into(reading, root, file, first_with)
    reading.skipped.sort(key=lambda skipped: (skipped.path, skipped.reason))
    return reading


def read_file(path: PathLike, *, root: PathLike | None = None) -> Document:
    """Read one file; what had to be guessed is logged as a warning.

    The document's id is the path relative to `root` (the file's own folder when None) with `/`, in Unicode form NFC.
    Metadata: `title`, `file_name`, `file_path` (= the id), for formats with pages `page_starts` (offset of each page in the
    text), and where the file has an outline of its own `bookmarks` ([title, level, offset], level 1 = top). Only the title
    is embedded; the LLM reads the title and, once a chunk has one, its `page_label`.

    Raises:
        DocumentReadError: the file cannot be read as text; the message says why.
        MissingExtraError: the format needs the extra `files`.
    """
    file = Path(path)
    base = file.parent if root is None else Path(root)
    name = document_id(base, file)
    try:
        _, content = _load(file)
    except DocumentReadError as error:
        raise DocumentReadError(f"{name!r} {error}.") from error
    for warning in content.warnings:
        report("warning", f"{name}: {warning}")
    return _document(name, content)


def _read_into(reading: FolderReading, root: Path, file: Path, first_with: dict[str, str]) -> None:
    name = document_id(root, file)
    try:
        data, content = _load(file)
    except (DocumentReadError, MissingExtraError) as error:
        reading.skipped.append(SkippedFile(name, str(error)))
        return
    if reading.documents and reading.documents[-1].id_ == name:
        reading.skipped.append(SkippedFile(name, "has the same name as another file (they differ only in how accents are encoded)"))
        return
    reading.warnings.extend(f"{name}: {warning}" for warning in content.warnings)
    twin = first_with.setdefault(hashlib.sha256(data).hexdigest(), name)
    if twin != name:
        reading.warnings.append(f"{name}: same content as {twin}; both are kept")
    reading.documents.append(_document(name, content))


def _load(file: Path) -> tuple[bytes, FileText]:
    reader = FORMATS.get(file.suffix.lower())
    if reader is None:
        raise DocumentReadError(f"is of the unknown type {file.suffix!r}; known are {', '.join(FORMATS)}")
    data = _read_bytes(file)
    if not data.strip():
        raise DocumentReadError("holds nothing but white space" if data else "is empty")
    try:
        content = reader(data)
    except (DocumentReadError, MissingExtraError):
        raise
    except Exception as error:  # parsers of damaged files raise anything
        raise DocumentReadError(f"could not be read as {file.suffix.lower()} ({type(error).__name__}: {error})") from error
    if not content.text.strip():
        raise DocumentReadError("holds no text")
    return data, content


def _read_bytes(file: Path) -> bytes:
    try:
        regular = stat.S_ISREG(file.stat().st_mode)
        data = file.read_bytes() if regular else b""
    except FileNotFoundError as error:
        raise DocumentReadError("does not exist (a broken link, or deleted meanwhile)") from error
    except PermissionError as error:
        raise DocumentReadError("may not be read (permission denied)") from error
    except OSError as error:
        raise DocumentReadError(f"cannot be read ({error.strerror or error})") from error
    if not regular:
        raise DocumentReadError("is not a regular file")
    return data


def _title_from(stem: str) -> str:
    return stem if " " in stem else _JOINTS.sub(" ", stem).strip() or stem


def _document(name: str, content: FileText) -> Document:
    file_name = name.rsplit("/", 1)[-1]
    title = (content.title or _title_from(file_name.rsplit(".", 1)[0]))[:MAX_TITLE].rstrip()
    metadata: dict[str, Any] = {"title": title, "file_name": file_name, "file_path": name}
    if content.page_starts is not None:
        metadata["page_starts"] = list(content.page_starts)
    if content.bookmarks:
        metadata["bookmarks"] = [list(bookmark) for bookmark in content.bookmarks]
    hidden = ["file_name", "file_path", "page_starts", *(["bookmarks"] if content.bookmarks else [])]
    return Document(
        id_=name,
        text=content.text,
        metadata=metadata,
        excluded_embed_metadata_keys=[*hidden, "page_label"],
        excluded_llm_metadata_keys=hidden,
        metadata_template="{value}",
    )
