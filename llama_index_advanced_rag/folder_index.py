"""A folder of documents and its index, kept in step."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from llama_index.core.base.embeddings.base import BaseEmbedding
from platformdirs import user_cache_dir

from llama_index_advanced_rag.embeddings.default import resolve_embed_model
from llama_index_advanced_rag.errors import ConfigurationError, DocumentReadError
from llama_index_advanced_rag.index import CorpusIndex
from llama_index_advanced_rag.reading.folder import FolderReading, read_folder
from llama_index_advanced_rag.reading.formats import FORMATS
from llama_index_advanced_rag.storage_view import holds_index
from llama_index_advanced_rag.update_report import Skipped, UpdateReport

INDEX_FOLDER = ".advanced-rag"


@dataclass(frozen=True, slots=True)
class FolderUpdate:
    """An open index that is in step with its folder, and what that took.

    Attributes:
        index: the index, open; close it.
        index_dir: where it lives.
        reading: the documents read, the files left out and why.
        report: what changed in the index.
    """

    index: CorpusIndex
    index_dir: Path
    reading: FolderReading
    report: UpdateReport

    @property
    def warnings(self) -> list[str]:
        """What the user should know, about files first."""
        return [*self.reading.warnings, *self.report.warnings]

    @property
    def failures(self) -> list[str]:
        """Files of a known type that could not be read, and documents that could not be indexed, each with the reason."""
        unread = [f"{item.path}: {item.reason}" for item in self.reading.skipped if is_known_type(item.path)]
        return unread + [f"{item.ref_doc_id}: {item.reason}" for item in self.report.skipped]


def is_known_type(path: str) -> bool:
    """True when there is a reader for files of this name.

    Example:
        >>> is_known_type("a/Report.PDF"), is_known_type("photo.jpg")
        (True, False)
    """
    return Path(path).suffix.lower() in FORMATS


def default_index_dir(docs: Path) -> Path:
    """Where the index of a folder lives when nobody says otherwise: inside it, or in the user's cache when it cannot be written.

    That of a single file lives beside the file.
    """
    single = docs.is_file()
    usual = docs.with_name(f".{docs.name}{INDEX_FOLDER}") if single else docs / INDEX_FOLDER
    if usual.exists() or may_write(usual.parent) or not docs.exists():
        return usual
    name = hashlib.sha256(str(docs.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return Path(user_cache_dir("advanced-rag", appauthor=False)) / f"{docs.resolve().name}-{name}"


def may_write(folder: Path) -> bool:
    """True when files can be made in a folder, as far as permissions and the file system say."""
    return os.access(folder, os.W_OK)


def sync_folder(
    docs: Path, *, index_dir: Path | None = None, embed_model: str | BaseEmbedding | None = None, language: str | None = None, show_progress: bool = False
) -> FolderUpdate:
    """Open the index of a folder (or of one file), or build it, and bring in what is new, changed or gone; unchanged text is not embedded again.

    A file that was indexed before and cannot be read now keeps its indexed version; a file that is gone is removed.

    Args:
        docs: the folder of documents, or one document.
        index_dir: folder of the index; None is `.advanced-rag` inside `docs` (or beside a single document), or a folder in the
            user's cache if that cannot be written, which is said in the report.
        embed_model: as in `CorpusIndex`; an existing index must have been built with it.
        language: ISO code or "auto"; None is that of the existing index, "auto" for a new one.
        show_progress: draw progress bars on stderr.

    Raises:
        DocumentReadError: there is no such folder or file, or nothing in it can be read.
        ConfigurationError: the place of the index cannot be written, or the language is not that of the index.
    """
    place = index_dir if index_dir is not None else default_index_dir(docs)
    reading = read_folder(docs, exclude=[place], show_progress=show_progress)
    if not reading.documents:
        raise DocumentReadError(_nothing_readable(docs, reading))
    index = (_open if holds_index(place) else _create)(place, embed_model, language, show_progress)
    try:
        report = _bring_in(index, reading, writable=may_write(place))
    except BaseException:
        index.close()
        raise
    if index_dir is None and place.parent not in (docs, docs.parent):
        report.warnings.append(f"{str(docs)!r} cannot be written, so its index is kept in {str(place)!r}; --index-dir names another folder")
    return FolderUpdate(index, place, reading, report)


def _open(place: Path, embed_model: str | BaseEmbedding | None, language: str | None, show_progress: bool) -> CorpusIndex:
    index = CorpusIndex.load(place, embed_model=embed_model, read_only=not may_write(place), show_progress=show_progress)
    built_with = index.info()["language"]
    if language is not None and language != built_with:
        index.close()
        raise ConfigurationError(
            f"The index in {str(place)!r} was built with language={built_with!r}, not {language!r}. Leave the language out, or delete the folder to build anew."
        )
    return index


def _create(place: Path, embed_model: str | BaseEmbedding | None, language: str | None, show_progress: bool) -> CorpusIndex:
    existing = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
    if not may_write(existing):
        raise ConfigurationError(f"The index cannot be kept in {str(place)!r}: {str(existing)!r} may not be written. Name another folder with --index-dir.")
    model = resolve_embed_model(embed_model)  # before the folder is made: a model that cannot be loaded leaves nothing behind
    return CorpusIndex(persist_dir=place, embed_model=model, language=language or "auto", show_progress=show_progress)


def _bring_in(index: CorpusIndex, reading: FolderReading, *, writable: bool) -> UpdateReport:
    stored = {info.ref_doc_id: info.hash for info in index.list_documents()}
    unread = {item.path for item in reading.skipped}
    present = {document.id_: document.hash for document in reading.documents}
    absent = [ref_doc_id for ref_doc_id in stored if ref_doc_id not in present]
    kept = [ref_doc_id for ref_doc_id in absent if not unread.isdisjoint(_place_and_folders(ref_doc_id))]
    gone = [ref_doc_id for ref_doc_id in absent if unread.isdisjoint(_place_and_folders(ref_doc_id))]
    if not writable:
        unchanged = [ref_doc_id for ref_doc_id, digest in present.items() if stored.get(ref_doc_id) == digest]
        waiting = [ref_doc_id for ref_doc_id, digest in present.items() if stored.get(ref_doc_id) != digest]
        report = UpdateReport(unchanged=unchanged, skipped=[Skipped(ref_doc_id, "new or changed, but the index cannot be written") for ref_doc_id in waiting])
        if gone or waiting:
            report.warnings.append(f"The index cannot be written: {len(waiting)} new or changed and {len(gone)} deleted file(s) are not taken in.")
        return report
    report = index.apply(updated=reading.documents, deleted=gone)
    report.warnings.extend(f"{ref_doc_id}: cannot be read now; the version indexed before is kept" for ref_doc_id in kept)
    return report


def _place_and_folders(ref_doc_id: str) -> set[str]:
    """The id and the folders it lies in: a folder that cannot be listed says nothing about its files."""
    place = PurePosixPath(ref_doc_id)
    return {ref_doc_id, *map(str, place.parents)}


def _nothing_readable(docs: Path, reading: FolderReading) -> str:
    known = ", ".join(FORMATS)
    if not reading.skipped:
        return f"The folder {str(docs)!r} holds no documents. Known types are {known}."
    first = reading.skipped[0]
    if docs.is_file():
        return f"The file {str(docs)!r} {first.reason}."
    return f"None of the {len(reading.skipped)} file(s) in {str(docs)!r} can be read; for example {first.path!r} {first.reason}. Known types are {known}."
