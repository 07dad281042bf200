"""The folder of a lexical retriever: postings, nodes (one JSON line each) and settings, complete or not there at all.

The two large files carry the start of their SHA-256 in their name; `lexical.json` names them and is replaced last, so that
a crash leaves the folder as it was before.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.utils import doc_to_json, json_to_doc

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores.postings_store import PostingsStore

FORMAT_VERSION = 2
_MANIFEST = "lexical.json"


def write_lexical_folder(path: Path, postings: PostingsStore, nodes: Iterable[BaseNode], settings: dict[str, Any]) -> None:
    """Write everything that decides the results.

    Raises:
        StorageError: the disk refused.
        ConfigurationError: a node has metadata that JSON cannot hold.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path) as unfinished:
            folder = Path(unfinished)
            postings.save(folder / "postings.arrays")
            with (folder / "nodes.jsonl").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(map(_line, nodes))
                file.flush()
                os.fsync(file.fileno())
            files = {kind: _placed(folder / kind, path) for kind in ("postings.arrays", "nodes.jsonl")}
            manifest = folder / _MANIFEST
            manifest.write_text(json.dumps({"version": FORMAT_VERSION, "files": files, "settings": settings}, indent=2), encoding="utf-8")
            manifest.replace(path / _MANIFEST)
        for kind, name in files.items():
            _remove_others(path, kind, name)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"The retriever could not be written to {str(path)!r}: {error}. Free space or choose another folder.") from error


def read_lexical_folder(path: Path) -> tuple[PostingsStore, list[BaseNode], dict[str, Any]]:
    """Postings, nodes and settings that `write_lexical_folder` wrote.

    Raises:
        IndexNotFoundError: no such folder.
        IndexFormatError: it is damaged or of another version.
    """
    manifest = _manifest(path)
    files: dict[str, str] = manifest["files"]
    for kind, name in files.items():
        if not (path / name).is_file() or name != _named(kind, _digest(path / name)):
            raise IndexFormatError(f"{str(path / name)!r} is missing or damaged. Persist the retriever again.")
    with (path / files["nodes.jsonl"]).open(encoding="utf-8", newline="\n") as file:
        nodes = [json_to_doc(json.loads(line)) for line in file]
    return PostingsStore.load(path / files["postings.arrays"]), nodes, manifest["settings"]


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest: object = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IndexNotFoundError(f"There is no lexical retriever in {str(path)!r}. Expected the folder that persist() wrote.") from error
    except ValueError as error:
        raise IndexFormatError(f"{str(path / _MANIFEST)!r} is damaged: {error}. Persist the retriever again.") from error
    found = cast("dict[str, Any]", manifest) if isinstance(manifest, dict) else {}
    if found.get("version") != FORMAT_VERSION:
        raise IndexFormatError(f"{str(path)!r} has format version {found.get('version')!r}. This version reads {FORMAT_VERSION}. Build the retriever again.")
    return found


def _line(node: BaseNode) -> str:
    try:
        return json.dumps(doc_to_json(node)) + "\n"
    except TypeError as error:
        raise ConfigurationError(f"Node {node.node_id!r} cannot be written as JSON: {error}. Keep only JSON values in its metadata.") from error


def _placed(file: Path, folder: Path) -> str:
    name = _named(file.name, _digest(file))
    file.replace(folder / name)
    return name


def _named(kind: str, digest: str) -> str:
    stem, suffix = kind.split(".")
    return f"{stem}-{digest[:16]}.{suffix}"


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _remove_others(folder: Path, kind: str, kept: str) -> None:
    for old in folder.glob(_named(kind, "*")):
        if old.name != kept:
            old.unlink()
