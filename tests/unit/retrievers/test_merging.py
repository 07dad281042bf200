"""ParentMerger: parents read in batches, put in place of their parts, and explained."""

import asyncio

import pytest
from llama_index.core.node_parser import HierarchicalNodeParser, get_leaf_nodes
from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.retrievers.merging import ParentMerger, child_ids, node_source_of
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing.observing import snapshot
from llama_index_advanced_rag.trace import capture_trace

UP, DOWN = NodeRelationship.PARENT, NodeRelationship.CHILD


class Watched(DictNodeSource):
    """Remembers what was asked for."""

    def __init__(self, nodes):
        super().__init__(nodes)
        self.asked = []

    def get_nodes(self, node_ids):
        self.asked.append(list(node_ids))
        return super().get_nodes(node_ids)


def node(node_id, text="", parent=None, children=(), **metadata):
    relationships = {DOWN: [RelatedNodeInfo(node_id=child) for child in children]} if children else {}
    if parent is not None:
        relationships[UP] = RelatedNodeInfo(node_id=parent)
    return TextNode(id_=node_id, text=text or node_id, metadata=metadata, relationships=relationships)


def tree():
    return [
        node("doc", "a b c d e", children=["s1", "s2"]),
        node("s1", "a b c", "doc", ["a", "b", "c"], section_path="Item 2 > Liquidity"),
        node("s2", "d e", "doc", ["d", "e"]),
        *(node(part, parent="s1") for part in "abc"),
        *(node(part, parent="s2") for part in "de"),
    ]


def hits_of(nodes, **scores):
    by_id = {held.node_id: held for held in nodes}
    return [NodeWithScore(node=by_id[node_id], score=score) for node_id, score in scores.items()]


def words(text):
    return len(text.split())


def shown(hits):
    return [(hit.node_id, hit.score) for hit in hits]


def test_parts_become_their_section_and_sections_the_document():
    nodes = tree()
    assert shown(ParentMerger(nodes).merge(hits_of(nodes, d=0.9, a=0.8, c=0.7))) == [("d", 0.9), ("s1", 0.8)]
    assert shown(ParentMerger(nodes).merge(hits_of(nodes, d=0.9, a=0.8, c=0.7, e=0.1))) == [("doc", 0.9)]


def test_one_batch_a_level_and_no_level_that_is_not_needed():
    nodes = tree()
    source = Watched(nodes)
    ParentMerger(source).merge(hits_of(nodes, d=0.9, a=0.8))
    assert source.asked == [["s2", "s1"]]
    source.asked.clear()
    ParentMerger(source).merge(hits_of(nodes, d=0.9, a=0.8, c=0.7, e=0.1))
    assert source.asked == [["s2", "s1"], ["doc"]]


def test_a_hit_far_above_absorbs_its_parts():
    nodes = tree()
    assert shown(ParentMerger(nodes, min_share=1.0).merge(hits_of(nodes, a=0.9, doc=0.5))) == [("doc", 0.9)]


def test_limits_are_kept():
    nodes = tree()
    four = {"d": 0.9, "a": 0.8, "c": 0.7, "e": 0.1}
    assert shown(ParentMerger(nodes, max_tokens=3, count_tokens=words).merge(hits_of(nodes, **four))) == [("s2", 0.9), ("s1", 0.8)]
    assert shown(ParentMerger(nodes, budget=4, count_tokens=words).merge(hits_of(nodes, **four))) == [("s2", 0.9), ("a", 0.8), ("c", 0.7)]


def test_a_document_that_is_far_too_long_is_not_counted():
    counted = []
    nodes = [node("doc", "word " * 100_000, children=["a", "b"]), node("a", parent="doc"), node("b", parent="doc")]
    merger = ParentMerger(nodes, max_tokens=100, count_tokens=lambda text: counted.append(len(text)) or words(text))
    assert shown(merger.merge(hits_of(nodes, a=0.9, b=0.8))) == [("a", 0.9), ("b", 0.8)]
    assert not counted


def test_the_trace_says_why():
    nodes = tree()
    with capture_trace() as trace:
        ParentMerger(nodes).merge(hits_of(nodes, d=0.9, a=0.8, c=0.7))
    (stage,) = trace.children
    assert [item.why for item in stage.evidence] == ["retrieved", "2 of 3 parts of 'Item 2 > Liquidity' were found, so the whole is given"]
    assert stage.evidence[1].details == {"hits": ["a", "c"], "children": 3}
    with capture_trace() as trace:
        ParentMerger(nodes, min_share=1.0).merge(hits_of(nodes, a=0.8, s1=0.7))
    assert [item.why for item in trace.children[0].evidence] == ["retrieved, and 1 of its parts with it"]


def test_a_missing_parent_leaves_the_children_and_is_reported():
    nodes = tree()
    with capture_trace() as trace:
        result = ParentMerger([held for held in nodes if held.node_id != "s1"]).merge(hits_of(nodes, a=0.9, b=0.8, d=0.7, e=0.6))
    assert shown(result) == [("a", 0.9), ("b", 0.8), ("s2", 0.7)]
    assert [(note.level, "'s1'" in note.message) for note in trace.all_notes()] == [("info", True)]


def test_parents_must_match_the_filters():
    nodes = tree()
    filters = MetadataFilters(filters=[MetadataFilter(key="section_path", value=None, operator="is_empty")])
    assert shown(ParentMerger(nodes, filters=filters).merge(hits_of(nodes, a=0.9, b=0.8, d=0.7, e=0.6))) == [("a", 0.9), ("b", 0.8), ("s2", 0.7)]


def test_circles_end():
    nodes = [node("a", parent="x"), node("b", parent="x"), node("x", "a b", "y", ["a", "b"]), node("y", "x", "x", ["x"]), node("self", parent="self")]
    with capture_trace() as trace:
        assert shown(ParentMerger(nodes).merge(hits_of(nodes, a=0.9, b=0.8, self=0.1))) == [("x", 0.9), ("self", 0.1)]
    assert any("circle" in note.message for note in trace.all_notes())


def test_nodes_without_a_score_come_last_and_keep_their_order():
    nodes = tree()
    assert shown(ParentMerger(nodes).merge(hits_of(nodes, e=None, a=0.5, d=None))) == [("a", 0.5), ("s2", None)]


def test_nothing_given_is_changed_and_async_is_the_same():
    nodes = tree()
    hits = hits_of(nodes, a=0.9, b=0.8, d=0.7)
    before = snapshot(hits), snapshot(nodes)
    merger = ParentMerger(nodes)
    result = merger.merge(hits)
    assert shown(asyncio.run(merger.amerge(hits))) == shown(result)
    assert (snapshot(hits), snapshot(nodes)) == before
    assert not {id(hit) for hit in hits} & {id(hit) for hit in result}
    assert merger.merge([]) == []


def test_nodes_of_llama_index_in_a_docstore():
    text = " ".join(f"Sentence number {number} says something about topic {number % 7}." for number in range(200))
    nodes = HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128], chunk_overlap=0).get_nodes_from_documents([Document(text=text, id_="d")])
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    parent = nodes[0]
    leaves = {leaf.node_id: leaf for leaf in get_leaf_nodes(nodes)}
    hits = [NodeWithScore(node=leaves[child], score=0.5) for child in child_ids(parent)[:3]]
    assert shown(ParentMerger(docstore).merge(hits)) == [(parent.node_id, 0.5)]


def test_wrong_arguments_are_refused():
    with pytest.raises(ConfigurationError, match=r"min_share is 2\. It must be a number from 0 to 1"):
        ParentMerger([], min_share=2)
    with pytest.raises(ConfigurationError, match=r"budget is 0\. It must be a whole number"):
        ParentMerger([], budget=0)
    with pytest.raises(ConfigurationError, match=r"nodes is 'text'\. It must be a docstore, an index, a list of nodes or a NodeSource"):
        node_source_of("text")
    assert repr(ParentMerger([], budget=9)) == "ParentMerger(min_share=0.5, max_tokens=None, budget=9)"
