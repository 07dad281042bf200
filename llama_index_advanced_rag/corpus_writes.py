"""What is written into a corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, Document
from numpy.typing import NDArray

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
    """

    nodes: Sequence[BaseNode]
    texts: Sequence[str]
    embed_hashes: Sequence[str]
    term_counts: Sequence[Mapping[str, int]]
    outline: Sequence[BaseNode] = ()


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """One document ready to be stored: its hash, and the nodes it is cut into."""

    document: Document
    digest: str
    ready: ReadyNodes
