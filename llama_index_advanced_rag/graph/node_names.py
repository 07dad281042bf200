"""The names that a node can be found by and need not hold itself: the title of its document, the heading it stands under."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from llama_index.core.schema import BaseNode

from llama_index_advanced_rag.hierarchy.keys import HEADING, PATH_SEPARATOR, SECTION_PATH
from llama_index_advanced_rag.text.outlines.numbers import read_numbered

_MAX_NAME = 200
_MAX_PATH = 4096
_KNOWN = 1024  # most nodes of a document share its title and few headings
_OPAQUE = re.compile(r"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16,})", re.IGNORECASE)
_FILE = re.compile(r"(?:.*[/\\])?([^/\\]+)\.(?!\d+$)\w{1,5}", re.DOTALL)
_JOINTS = re.compile(r"[-_]+")
_WORD = re.compile(r"[^\W\d_]+")
_LETTER_KINDS = ("letter", "roman")  # "J. K. Rowling" begins with no number
_NO_NAMES = frozenset(
    [
        "contents",
        "table of contents",
        "index",
        "table des matières",
        "sommaire",
        "inhalt",
        "inhaltsverzeichnis",
        "índice",
        "indice",
        "sumário",
        "contenido",
        "page",
        "seite",
        "página",
        "untitled",
        "document",
    ]
)


def names_of(node: BaseNode) -> tuple[str, ...]:
    """The title of its document, and the lowest heading above it without its number; each once, and only what is a name.

    The title is the metadata `title`, else the stem of `file_name`, else that of a document id that is a file's name. Ids, digests and
    numbers are no names, nor are headings of which only a number, or "Contents", would be left.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> names_of(TextNode(text="We lease.", metadata={"file_name": "2023_Q1.pdf", "section_path": "Part I > Item 2. Leases"}))
        ('2023 Q1', 'Leases')
        >>> names_of(TextNode(text="We lease.", metadata={"heading": "Item 2."}))
        ()
    """
    found = (_title(node.metadata, node.ref_doc_id or ""), _heading(node.metadata))
    return tuple(dict.fromkeys(name for name in found if name))


def is_opaque(name: str) -> bool:
    """Whether a name is one that a machine made up: a UUID or a digest.

    Example:
        >>> is_opaque("0f8fad5b-d9cb-469f-a165-70867728950e"), is_opaque("bert")
        (True, False)
    """
    return _OPAQUE.fullmatch(name) is not None


def _title(metadata: Mapping[str, Any], ref_doc_id: str) -> str:
    for given in (metadata.get("title"), _stem(metadata.get("file_name")), _stem(ref_doc_id)):
        if isinstance(given, str) and (name := _name(given)):
            return name
    return ""


def _stem(file_name: object) -> str:
    """The name of a file without folders and ending, in words; "" for what is no name of a file."""
    match = _FILE.fullmatch(file_name) if isinstance(file_name, str) and len(file_name) <= _MAX_PATH else None
    if match is None:
        return ""
    stem = match.group(1)
    return stem if " " in stem or is_opaque(stem) else _JOINTS.sub(" ", stem)


def _heading(metadata: Mapping[str, Any]) -> str:
    path = metadata.get(SECTION_PATH) or metadata.get(HEADING)
    return _lowest(path) if isinstance(path, str) else ""


@lru_cache(maxsize=_KNOWN)
def _lowest(path: str) -> str:
    heading = path.rsplit(PATH_SEPARATOR, 1)[-1].strip()
    numbered = read_numbered(heading)
    return _name(heading if numbered is None or numbered.kind in _LETTER_KINDS else numbered.title)


@lru_cache(maxsize=_KNOWN)
def _name(given: str) -> str:
    """The text in one line; "" when it is no name."""
    if len(given) > _MAX_NAME:
        return ""
    name = " ".join(given.split())
    letters = sum(len(word) for word in _WORD.findall(name))
    known = name.casefold() not in _NO_NAMES and not is_opaque(name)
    return name if known and letters and sum(map(str.isalnum, name)) > 1 else ""
