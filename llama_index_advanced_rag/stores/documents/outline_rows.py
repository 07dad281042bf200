"""What stands in what: documents, sections and passages of a corpus, read without their text."""

from typing import NamedTuple

from llama_index_advanced_rag.stores.documents.metadata_codec import MetadataBase, node_metadata
from llama_index_advanced_rag.stores.documents.node_codec import metadata_base
from llama_index_advanced_rag.stores.documents.node_fields import JsonDict
from llama_index_advanced_rag.stores.documents.relation_codec import PARENT, related_id
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_AT = f"""'$.relationships."{PARENT}""" + '"'
_PARENT = f"""coalesce(json_extract(body, {_AT}[0]'), json_extract(body, {_AT}'))"""
_OUTLINE = f"""SELECT node_id, ref_doc_id, {_PARENT}, coalesce(start_char, 0), coalesce(end_char, 0), body FROM nodes
    WHERE embed_hash IS NULL AND row IS NULL AND body IS NOT NULL AND ref_doc_id IS NOT NULL"""  # noqa: S608 - our own words
_PASSAGES = f"SELECT row, coalesce(ref_doc_id, node_id), {_PARENT} FROM nodes WHERE row IS NOT NULL ORDER BY row"  # noqa: S608 - our own words

_LEADING = "SELECT row FROM nodes WHERE row IS NOT NULL AND json_extract(body, '$.class') = 'IndexNode'"

_NOTHING = MetadataBase()


class OutlineNode(NamedTuple):
    """A node that was split into others, without its text."""

    node_id: str
    ref_doc_id: str
    parent_id: str | None
    start: int
    end: int
    metadata: JsonDict


class Passage(NamedTuple):
    """A searchable row, its document (or itself, where it has none) and the node it names as its parent."""

    row: int
    ref_doc_id: str
    parent_id: str | None


class OutlineRows(NamedTuple):
    """All of it as of one commit; `documents` are metadata by id, `passages` ascend by row."""

    documents: dict[str, JsonDict]
    nodes: list[OutlineNode]
    passages: list[Passage]


def read_outline(database: CorpusDatabase) -> OutlineRows:
    """Read what stands in what, in three queries."""
    with database.snapshot():
        bases = {row[0]: metadata_base(*row[1:]) for row in database.query("SELECT ref_doc_id, metadata, body FROM documents")}
        nodes = [
            OutlineNode(node_id, ref_doc_id, related_id(parent), start, end, node_metadata(body, bases.get(ref_doc_id, _NOTHING)))
            for node_id, ref_doc_id, parent, start, end, body in database.query(_OUTLINE)
        ]
        passages = [Passage(row, ref_doc_id, related_id(parent)) for row, ref_doc_id, parent in database.query(_PASSAGES)]
        return OutlineRows({ref_doc_id: base.metadata for ref_doc_id, base in bases.items()}, nodes, passages)


def leading_rows(database: CorpusDatabase) -> list[int]:
    """The searchable rows of `IndexNode`s, which may lead to something else."""
    return [row[0] for row in database.query(_LEADING)]
