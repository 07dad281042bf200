"""What is written into a corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, Document, MetadataMode
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.record_codec import encode_record
from llama_index_advanced_rag.graph.records import ExtractionRecord
from llama_index_advanced_rag.stores.documents.node_writer import NewDocument

Vector = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class ReadyNodes:
    """Nodes ready to be stored.

    Attributes:
        nodes: those that are searched.
        texts: in the same order, the text that is embedded and searched of each.
        embed_hashes: in the same order, the hash of that text.
        term_counts: in the same order, how often it holds each term.
        outline: the documents and sections that were split into other nodes: stored, and not searched by themselves.
        records: in the order of `nodes`, the names and facts in each; empty when none are kept.
    """

    nodes: Sequence[BaseNode]
    texts: Sequence[str]
    embed_hashes: Sequence[str]
    term_counts: Sequence[Mapping[str, int]]
    outline: Sequence[BaseNode] = ()
    records: Sequence[ExtractionRecord] = ()

    def record_bodies(self) -> list[bytes]:
        """The records as they are stored.

        Raises:
            ConfigurationError: something in one is not JSON.
        """
        return encode_records(self.records, self.nodes)


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """One document ready to be stored: its hash, and the nodes it is cut into."""

    document: Document
    digest: str
    ready: ReadyNodes

    def with_outline(self) -> NewDocument:
        """The document with all its nodes; those that are not searched by themselves have no embedding hash."""
        ready = self.ready
        return NewDocument(self.document, self.digest, [*ready.outline, *ready.nodes], [*[None] * len(ready.outline), *ready.embed_hashes])


def encode_records(records: Sequence[ExtractionRecord], nodes: Sequence[BaseNode]) -> list[bytes]:
    """The records of nodes as they are stored; none when there are no records.

    Raises:
        ConfigurationError: something in one is not JSON.
    """
    return [encode_record(record, node.get_content(MetadataMode.NONE)) for record, node in zip(records, nodes, strict=bool(records))]
