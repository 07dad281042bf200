"""Ready nodes: what is embedded and searched of them, and their vectors."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.corpus_writes import ReadyNodes, Vector
from llama_index_advanced_rag.embeddings.requests import checked, embed
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.extraction import read_records
from llama_index_advanced_rag.graph.extractor import Extractor

REQUEST_TEXTS = 256


def embedding_text(node: BaseNode) -> str:
    """The text of a node that is embedded and searched by words: its embed-visible metadata in front of its content."""
    return node.get_content(metadata_mode=MetadataMode.EMBED)


def content_hash(text: str) -> str:
    """The key under which the vector of a text is stored: 128 bits, which no two texts of a corpus have in common."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def embed_nodes(corpus: Corpus, model: BaseEmbedding, ready: ReadyNodes, *, use_embeddings: bool = False) -> dict[str, Vector]:
    """Vectors of ready nodes by embedding hash; known texts are not embedded again.

    Args:
        corpus: knows the texts it holds.
        model: embeds the others.
        ready: the nodes.
        use_embeddings: take the embeddings that nodes carry as the model's own.

    Raises:
        ConfigurationError: the model gave unusable vectors.
        Exception: that of the model, as it was.
    """
    vectors = dict[str, Vector]()
    if use_embeddings:
        vectors = {digest: _carried(node) for node, digest in zip(ready.nodes, ready.embed_hashes, strict=True) if node.embedding is not None}
    vectors.update(corpus.vectors_by_hash(ready.embed_hashes))
    missing = {digest: text for text, digest in zip(ready.texts, ready.embed_hashes, strict=True) if digest not in vectors}
    vectors.update(zip(missing, embed_all(model, list(missing.values())), strict=True))
    return vectors


def ready_nodes(corpus: Corpus, nodes: Sequence[BaseNode]) -> ReadyNodes:
    """The nodes with what is embedded and searched of them: of those that were split into others (they name children) nothing."""
    searched = [node for node in nodes if not node.child_nodes]
    texts = [embedding_text(node) for node in searched]
    hashes, counts = [content_hash(text) for text in texts], [corpus.postings.term_counts(text) for text in texts]
    return ReadyNodes(searched, texts, hashes, counts, [node for node in nodes if node.child_nodes])


def with_records(ready: ReadyNodes, extractor: Extractor | None) -> ReadyNodes:
    """The nodes with the names and facts in them; as they are where no extractor reads them.

    Raises:
        ConfigurationError: the extractor gave another number of records than texts.
        Exception: that of the extractor, as it was.
    """
    return ready if extractor is None else replace(ready, records=read_records(extractor, ready.nodes))


def _carried(node: BaseNode) -> Vector:
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite and is refused
        vector = np.asarray(node.embedding, dtype=np.float32).reshape(-1)
    if not 0.0 < float(vector @ vector) < np.inf and not (np.isfinite(vector).all() and vector.any()):
        what = "is zero, which has no direction" if np.isfinite(vector).all() else "has NaN or infinite values"
        raise ConfigurationError(f"The embedding that the node {node.node_id!r} carries {what}. Embed it again, or remove it: node.embedding = None.")
    return vector


def embed_all(model: BaseEmbedding, texts: Sequence[str]) -> list[Vector]:
    """Vectors of texts, a bounded number a call.

    Raises:
        ConfigurationError: the model gave unusable vectors.
        Exception: that of the model, as it was.
    """
    vectors: list[Vector] = []
    for start in range(0, len(texts), REQUEST_TEXTS):
        asked = list(texts[start : start + REQUEST_TEXTS])
        answer = checked(embed(model, asked), len(asked))
        if isinstance(answer, Exception):
            raise answer
        vectors += answer
    return vectors
