"""What a tree of summaries is made of: texts to summarise, and summaries of them or of clusters of summaries."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

SUMMARY_OF = "summary_of"
TITLE = "title"
LEVEL = "level"
_NAMESPACE = uuid.UUID("0b7d3c52-5c1f-5e0e-8d52-3f0d7a5f6c11")


@dataclass(frozen=True, slots=True)
class UnitText:
    """A document, a section or a chunk to be summarised.

    Attributes:
        unit_id: its node id.
        ref_doc_id: the document it is a part of, or is.
        title: its heading, may be empty.
        level: 0 for a document, more for what is deeper.
        text: its whole text, headings and tables included.
    """

    unit_id: str
    ref_doc_id: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class SummaryNode:
    """A summary of a unit, or of a cluster of summaries.

    Attributes:
        node_id: that of the unit; for a cluster a uuid5 of its members.
        title: that of the unit; for a cluster the titles of its most typical members.
        level: that of the unit; -1, -2, ... for clusters of units, of clusters, and so on.
        summary: the text of the summary.
        digest: stands for what was summarised, and by whom.
        ref_doc_id: the document of the unit; None for a cluster.
        members: ids of the members of a cluster; empty for a unit.
    """

    node_id: str
    title: str
    level: int
    summary: str
    digest: str
    ref_doc_id: str | None = None
    members: tuple[str, ...] = ()

    @property
    def embedded_text(self) -> str:
        r"""Title and summary: what is embedded and searched.

        Example:
            >>> SummaryNode("fox", "Foxes", 1, "They hunt.", "").embedded_text
            'Foxes\nThey hunt.'
        """
        return embedded_text(self.title, self.summary)

    def to_text_node(self) -> TextNode:
        """The summary as a LlamaIndex node: its text is the summary, the title is embedded in front of it."""
        shown = {TITLE: self.title} if self.title else {}
        return TextNode(
            id_=self.node_id,
            text=self.summary,
            metadata={**shown, LEVEL: self.level, SUMMARY_OF: list(self.members) or self.node_id},
            excluded_embed_metadata_keys=[LEVEL, SUMMARY_OF],
            excluded_llm_metadata_keys=[LEVEL, SUMMARY_OF],
            metadata_template="{value}",
            text_template="{metadata_str}\n{content}",
            relationships={} if self.ref_doc_id is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=self.ref_doc_id)},
        )


def embedded_text(title: str, summary: str) -> str:
    """Title and summary on lines of their own; one that is empty leaves no line."""
    return "\n".join(part for part in (" ".join(title.split()), summary) if part)


def cluster_id(members: Sequence[str]) -> str:
    """The id of a cluster, the same for the same members.

    Example:
        >>> cluster_id(["a", "b"]) == cluster_id(["b", "a"]), cluster_id(["a", "b"]) == cluster_id(["a,b"])
        (True, False)
    """
    return str(uuid.uuid5(_NAMESPACE, json.dumps(sorted(members))))


def digest_of(identity: str, title: str, text: str) -> str:
    """SHA-256 of a text, its title and the identity of who summarises it."""
    return hashlib.sha256(json.dumps([identity, title, text]).encode("ascii")).hexdigest()
