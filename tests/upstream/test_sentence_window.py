"""What stock sentence windows get wrong, each beside small chunks with ContextExpander doing it right."""

import pytest
from llama_index.core.node_parser import SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor, SimilarityPostprocessor
from llama_index.core.schema import Document, NodeWithScore, TextNode

from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
from llama_index_advanced_rag.postprocessors.context_expander import ContextExpander
from llama_index_advanced_rag.testing import stock_fault

WINDOWS = (1, 3, 5)


def document():
    return Document(text=" ".join(f"Sentence number {number} says a bit of what there is to say about its own topic." for number in range(60)), id_="doc")


def our_nodes(window):
    return SentenceChunkParser(chunk_size=20, chunk_overlap=0, language="en").get_nodes_from_documents([document()])


def stock_nodes(window):
    return SentenceWindowNodeParser(window_size=window).get_nodes_from_documents([document()])


def our_window(nodes, window):
    return ContextExpander(nodes, window=window)


def stock_window(nodes, window):
    return MetadataReplacementPostProcessor("window")


def both(ours, stock, reason):
    return pytest.mark.parametrize("make", [pytest.param(ours, id="ours"), pytest.param(stock, id="stock", marks=stock_fault(reason))])


@both((our_nodes, our_window), (stock_nodes, stock_window), "core 0.14.25: MetadataReplacementPostProcessor overwrites the text of the caller's node")
def test_the_callers_node_keeps_its_text(make):
    parse, window = make
    nodes = parse(1)
    held = nodes[5]
    before = held.text
    (result,) = window(nodes, 1).postprocess_nodes([NodeWithScore(node=held, score=0.5)])
    assert result.text.startswith(nodes[4].text)
    assert before in result.text
    assert held.text == before


@both(our_nodes, stock_nodes, "core 0.14.25: each neighbour's window is copied into the relations: 25, 37 and 49 times the text [4d]")
def test_a_wider_window_is_not_stored(make):
    sizes = [sum(len(node.to_json()) for node in make(window)) for window in WINDOWS]
    assert max(sizes) <= 1.2 * min(sizes)


def our_postprocessor():
    return ContextExpander([])


def stock_postprocessor():
    return SimilarityPostprocessor(similarity_cutoff=0.1)


@both(our_postprocessor, stock_postprocessor, "core 0.14.25: SimilarityPostprocessor drops nodes without a score silently [4e]")
def test_nodes_without_a_score_stay(make):
    nodes = [NodeWithScore(node=TextNode(id_="a", text="One."), score=0.5), NodeWithScore(node=TextNode(id_="b", text="Two."), score=None)]
    assert [hit.node_id for hit in make().postprocess_nodes(nodes)] == ["a", "b"]
