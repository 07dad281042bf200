"""What stands in what: documents, sections and passages of a corpus, read without their text."""

import json
from typing import NamedTuple

from llama_index.core.schema import NodeRelationship

from llama_index_advanced_rag.stores.documents.node_codec import JsonDict, node_metadata
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_PARENT = f"""json_extract(body, '$.relationships."{NodeRelationship.PARENT.value}"[0]')"""
_OUTLINE = f"""SELECT node_id, ref_doc_id, {_PARENT}, coalesce(start_char, 0), coalesce(end_char, 0), body FROM nodes
    WHERE embed_hash IS NULL AND row IS NULL AND body IS NOT NULL AND ref_doc_id IS NOT NULL"""  # noqa: S608 - our own words
_PASSAGES = f"SELECT row, coalesce(ref_doc_id, node_id), {_PARENT} FROM nodes WHERE row IS NOT NULL ORDER BY row"  # noqa: S608 - our own words


class OutlineNode(NamedTuple):
    """A node that was split into others; `metadata` are those it does not share with its document."""

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
        documents = {ref_doc_id: json.loads(metadata) for ref_doc_id, metadata in database.query("SELECT ref_doc_id, metadata FROM documents")}
        nodes = [OutlineNode(*row[:-1], metadata=node_metadata(row[-1], {})) for row in database.query(_OUTLINE)]
        return OutlineRows(documents, nodes, [Passage(*row) for row in database.query(_PASSAGES)])
