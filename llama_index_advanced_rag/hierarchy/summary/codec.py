"""A tree of summaries as JSON values, and back."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llama_index_advanced_rag.errors import IndexFormatError
from llama_index_advanced_rag.hierarchy.summaries import Summary
from llama_index_advanced_rag.hierarchy.summary.growth import Held
from llama_index_advanced_rag.hierarchy.summary.node import SummaryNode

FORMAT = 1
_LITTLE_ENDIAN = np.dtype("<f4")


def encode_tree(nodes: Sequence[SummaryNode], held: Mapping[str, Held], *, embedding: str) -> dict[str, Any]:
    """Nodes, and their vectors as base64 of little-endian float32.

    Args:
        nodes: of the tree.
        held: summaries and vectors by digest.
        embedding: identity of the model of the vectors.
    """
    vectors = [held[node.digest].vector for node in nodes]
    matrix = np.array(vectors, dtype=_LITTLE_ENDIAN) if nodes else np.zeros((0, 0), dtype=_LITTLE_ENDIAN)
    return {
        "format": FORMAT,
        "embedding": embedding,
        "dimension": int(matrix.shape[1]),
        "nodes": [_encoded(node, held[node.digest].summary) for node in nodes],
        "vectors": base64.b64encode(matrix.tobytes()).decode("ascii"),
    }


def decode_tree(data: Mapping[str, Any]) -> tuple[list[SummaryNode], dict[str, Held]]:
    """What `encode_tree` was given.

    Raises:
        IndexFormatError: another format version, or damaged.
    """
    if data.get("format") != FORMAT:
        raise IndexFormatError(f"The summaries have format {data.get('format')!r}. This version reads format {FORMAT}. Build them again.")
    try:
        rows = [_decoded(row) for row in data["nodes"]]
        shape = (len(rows), int(data["dimension"]))
        matrix = np.frombuffer(base64.b64decode(data["vectors"], validate=True), dtype=_LITTLE_ENDIAN).reshape(shape).astype(np.float32)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise IndexFormatError(f"The summaries are damaged: {type(error).__name__}: {error}. Build them again.") from error
    held = {node.digest: Held(summary, vector) for (node, summary), vector in zip(rows, matrix, strict=True)}
    return [node for node, _ in rows], held


def _encoded(node: SummaryNode, summary: Summary) -> dict[str, Any]:
    return {
        "id": node.node_id,
        "title": node.title,
        "level": node.level,
        "summary": node.summary,
        "digest": node.digest,
        "ref_doc_id": node.ref_doc_id,
        "members": list(node.members),
        "is_fallback": summary.is_fallback,
    }


def _decoded(row: Mapping[str, Any]) -> tuple[SummaryNode, Summary]:
    node = SummaryNode(row["id"], row["title"], row["level"], row["summary"], row["digest"], row["ref_doc_id"], tuple(row["members"]))
    return node, Summary(node.summary, row["is_fallback"])
