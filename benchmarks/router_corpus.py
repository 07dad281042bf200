"""Several indexes as one: their nodes and vectors in one corpus, nothing embedded again."""

from collections.abc import Sequence
from pathlib import Path

from llama_index_advanced_rag import CorpusIndex


def one_corpus(indexes: Sequence[CorpusIndex], folder: Path | None) -> CorpusIndex:
    """One index over the nodes of all; kept in the folder, and read from it the next time."""
    if folder is not None and (folder / "corpus.sqlite").exists():
        return CorpusIndex.load(folder)
    whole = CorpusIndex(persist_dir=folder, embed_model=indexes[0].embed_model, language="en")
    for index in indexes:
        nodes = list(index.docstore.docs.values())
        searched = [node for node in nodes if not node.child_nodes]
        for node, vector in zip(searched, index.corpus.vectors_of_nodes([node.node_id for node in searched]), strict=True):
            node.embedding = [float(value) for value in vector]
        whole.insert_nodes(nodes, use_embeddings=True)
    return whole
