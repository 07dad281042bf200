"""What the stock hierarchy gets wrong (parser, AutoMergingRetriever, RecursiveRetriever), each beside ours doing it right."""

import asyncio
import threading

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import HierarchicalNodeParser as StockParser
from llama_index.core.node_parser import get_leaf_nodes
from llama_index.core.retrievers import AutoMergingRetriever, RecursiveRetriever
from llama_index.core.schema import Document, IndexNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.hierarchy.node_parser import HierarchicalNodeParser
from llama_index_advanced_rag.postprocessors.context_expander import ContextExpander
from llama_index_advanced_rag.retrievers.merging import ParentMerger, node_source_of
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.testing import DeterministicEmbedding, stock_fault

UP, DOWN, NEXT, PREVIOUS = NodeRelationship.PARENT, NodeRelationship.CHILD, NodeRelationship.NEXT, NodeRelationship.PREVIOUS


def both(ours, stock, reason):
    return pytest.mark.parametrize("make", [pytest.param(ours, id="ours"), pytest.param(stock, id="stock", marks=stock_fault(reason))])


def report(sections=8, sentences=40):
    """A document with headings and running text."""
    parts = []
    for section in range(sections):
        body = " ".join(f"Sentence {number} of part {section} says what there is to say about topic {number % 7}." for number in range(sentences))
        parts.append(f"# Part {section}\n\n{body}")
    return Document(text="\n\n".join(parts), id_="report", metadata={"title": "A report", "author": "Somebody with a rather long name"})


def our_parser():
    return HierarchicalNodeParser(chunk_size=128, chunk_overlap=0)


def stock_parser():
    return StockParser.from_defaults(chunk_sizes=[2048, 512, 128], chunk_overlap=0)


@both(our_parser, stock_parser, "core 0.14.25: the async call and pipeline.arun do not split [16a]")
async def test_async_parsing_splits_too(make):
    texts = sorted(node.get_content() for node in make().get_nodes_from_documents([report()]))
    assert len(texts) > 20
    assert sorted(node.get_content() for node in await make().aget_nodes_from_documents([report()])) == texts
    assert sorted(node.get_content() for node in await IngestionPipeline(transformations=[make()]).arun(documents=[report()])) == texts


@both(our_parser, stock_parser, "core 0.14.25: leaves have no NEXT, and a part of PREVIOUS [p06b]")
def test_leaves_are_linked_from_first_to_last(make):
    leaves = get_leaf_nodes(make().get_nodes_from_documents([report()]))
    assert [leaf.next_node.node_id for leaf in leaves[:-1] if leaf.next_node] == [leaf.node_id for leaf in leaves[1:]]
    assert [leaf.prev_node.node_id for leaf in leaves[1:] if leaf.prev_node] == [leaf.node_id for leaf in leaves[:-1]]


@both(our_parser, stock_parser, "core 0.14.25: offsets of a leaf are those in its parent: 120 of 123 do not slice the document [6a]")
def test_leaves_are_slices_of_their_document(make):
    text = report().text
    leaves = get_leaf_nodes(make().get_nodes_from_documents([report()]))
    assert all(text[leaf.start_char_idx : leaf.end_char_idx] == leaf.text for leaf in leaves)


def stored_json(nodes):
    """Bytes of the docstore that LlamaIndex writes."""
    return sum(len(node.to_json()) for node in nodes)


def stored_rows(nodes):
    """Bytes of our tables, with the document itself and all that is empty."""
    database = CorpusDatabase(None)
    SQLDocumentStore(database).put_document(report(sections=30), nodes)
    return database.query("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")[0][0]


@both((our_parser, stored_rows), (stock_parser, stored_json), "core 0.14.25: JSON of 9 to 10 times the document, relations copy metadata [6c]")
def test_a_tree_is_stored_in_a_few_times_its_text(make):
    parser, stored = make
    nodes = parser().get_nodes_from_documents([report(sections=30)])
    assert stored(nodes) < 5 * len(report(sections=30).text)


class Fixed(BaseRetriever):
    """Finds what it was told."""

    def __init__(self, hits):
        self.hits = hits
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle):
        return [NodeWithScore(node=hit.node, score=hit.score) for hit in self.hits]


def ours(docstore, hits, min_share=0.5, **options):
    return lambda: ParentMerger(docstore, min_share=min_share, count_tokens=lambda text: len(text.split()), **options).merge(hits)


def stock(docstore, hits, min_share=0.5, **_):
    retriever = AutoMergingRetriever(Fixed(hits), StorageContext.from_defaults(docstore=docstore), simple_ratio_thresh=min_share)
    return lambda: retriever.retrieve("anything")


def node(node_id, parent=None, children=(), text=None):
    relationships = {DOWN: [RelatedNodeInfo(node_id=child) for child in children]} if children else {}
    if parent is not None:
        relationships[UP] = RelatedNodeInfo(node_id=parent)
    return TextNode(id_=node_id, text=text or f"text of {node_id}", relationships=relationships)


def tree():
    """Three parts, of which the last has one child."""
    parents = {"p": "abcd", "q": "ef", "r": "g"}
    nodes = [node(parent, None, children, text=" ".join(["word"] * 100)) for parent, children in parents.items()]
    return {held.node_id: held for held in nodes + [node(child, parent) for parent, children in parents.items() for child in children]}


def docstore_of(nodes, kind=SimpleDocumentStore):
    docstore = kind()
    docstore.add_documents(list(nodes.values()))
    return docstore


def hits_of(nodes, **scores):
    return [NodeWithScore(node=nodes[node_id], score=score) for node_id, score in scores.items()]


def shown(result):
    return [(hit.node_id, hit.score) for hit in result]


class Counting(SimpleDocumentStore):
    """Counts how often it is asked."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.calls = 0

    def get_document(self, *args, **kwargs):
        self.calls += 1
        return super().get_document(*args, **kwargs)

    def get_nodes(self, node_ids, raise_error=True):
        self.calls += 1
        return [found for node_id in node_ids if (found := super(Counting, self).get_document(node_id, raise_error)) is not None]


@both(ours, stock, "core 0.14.25: the docstore is asked for each parent: 38 calls for 30 hits [6i]")
def test_parents_are_read_in_one_batch_a_level(make):
    nodes = {}
    for number in range(30):
        nodes |= {f"p{number}": node(f"p{number}", None, [f"c{number}", f"d{number}", f"e{number}"]), f"c{number}": node(f"c{number}", f"p{number}")}
    docstore = docstore_of(nodes, Counting)
    make(docstore, hits_of(nodes, **{f"c{number}": 0.5 for number in range(30)}))()
    assert docstore.calls <= 2


@both(ours, stock, "core 0.14.25: a missing parent raises ValueError, all hits are lost [6f]")
def test_a_missing_parent_loses_no_hit(make):
    nodes = tree()
    docstore = docstore_of({node_id: held for node_id, held in nodes.items() if node_id != "q"})
    assert shown(make(docstore, hits_of(nodes, a=0.9, e=0.8))()) == [("a", 0.9), ("e", 0.8)]


@both(ours, stock, "core 0.14.25: the share must be more than the threshold, so that a half of the children is not a half [6g]")
def test_a_share_that_reaches_the_bound_is_enough(make):
    nodes = tree()
    assert [found.node_id for found in make(docstore_of(nodes), hits_of(nodes, a=0.9, b=0.8))()] == ["p"]


@both(ours, stock, "core 0.14.25: a parent with one child takes its place at any threshold below 1 [6g]")
def test_an_only_child_is_not_replaced(make):
    nodes = tree()
    assert shown(make(docstore_of(nodes), hits_of(nodes, g=0.9))()) == [("g", 0.9)]


@both(ours, stock, "core 0.14.25: the mean of the children's scores puts the best hit below a weak one [6g]")
def test_the_best_hit_stays_the_best(make):
    nodes = tree()
    assert shown(make(docstore_of(nodes), hits_of(nodes, a=0.95, e=0.5, b=0.1, c=0.1))()) == [("p", 0.95), ("e", 0.5)]


def stock_before_its_last_sort(docstore, hits, **_):
    """What the stock retriever has before `retrieve` removes duplicates by their content."""
    retriever = AutoMergingRetriever(Fixed(hits), StorageContext.from_defaults(docstore=docstore))
    return lambda: retriever._retrieve(QueryBundle("anything"))


@both(ours, stock_before_its_last_sort, "core 0.14.25: a parent among the hits is added once more [6d]")
def test_a_parent_among_the_hits_comes_once(make):
    nodes = tree()
    result = make(docstore_of(nodes), hits_of(nodes, p=0.7, a=0.6, b=0.5, c=0.4))()
    assert [found.node_id for found in result] == ["p"]


@both(ours, stock, "core 0.14.25: no limit of tokens: two of three small leaves become a parent of any length [6h]")
def test_a_parent_has_a_size_that_was_allowed(make):
    nodes = tree()
    result = make(docstore_of(nodes), hits_of(nodes, a=0.6, b=0.5, c=0.4), max_tokens=50)()
    assert sum(len(found.text.split()) for found in result) <= 50


class Meeting(SimpleDocumentStore):
    """Answers when two ask at the same time."""

    barrier = threading.Barrier(2, timeout=1.0)

    def get_nodes(self, node_ids, raise_error=True):
        self.barrier.wait()
        return super().get_nodes(node_ids, raise_error)

    def get_document(self, doc_id, raise_error=True):
        if threading.current_thread() is threading.main_thread():
            self.barrier.wait()
        return super().get_document(doc_id, raise_error)


def ours_async(docstore, hits):
    return ParentMerger(docstore).amerge(hits)


def stock_async(docstore, hits):
    return AutoMergingRetriever(Fixed(hits), StorageContext.from_defaults(docstore=docstore)).aretrieve("anything")


@both(ours_async, stock_async, "core 0.14.25: no _aretrieve: five concurrent calls take five times as long [6j]")
async def test_concurrent_calls_overlap(make):
    nodes = tree()
    docstore = docstore_of(nodes, Meeting)
    Meeting.barrier.reset()
    first, second = await asyncio.gather(make(docstore, hits_of(nodes, a=0.5, e=0.4)), make(docstore, hits_of(nodes, b=0.5, f=0.4)))
    assert (shown(first), shown(second)) == ([("a", 0.5), ("e", 0.4)], [("b", 0.5), ("f", 0.4)])


def gap_filled_by_ours(leaves, nodes, first, last):
    return ContextExpander(nodes, mode="neighbours", window=1, max_tokens=None).postprocess_nodes(
        [NodeWithScore(node=leaves[i], score=0.5) for i in (first, last)]
    )


def gap_filled_by_stock(leaves, nodes, first, last):
    docstore = docstore_of({held.node_id: held for held in nodes})
    return stock(docstore, [NodeWithScore(node=leaves[i], score=0.5) for i in (first, last)], min_share=1.0)()


@both((our_parser, gap_filled_by_ours), (stock_parser, gap_filled_by_stock), "core 0.14.25: without NEXT the gap between two hits is never filled [6e]")
def test_what_stands_between_two_hits_is_given(make):
    parser, fill = make
    nodes = parser().get_nodes_from_documents([report()])
    leaves = get_leaf_nodes(nodes)
    between = leaves[1].text
    assert any(between in found.text for found in fill(leaves, nodes, 0, 2))


def our_index(document):
    index = CorpusIndex.from_documents([document], embed_model=DeterministicEmbedding(), transformations=[our_parser()])
    assert index.as_retriever("lexical").retrieve("topic")
    index.delete_ref_doc("report", delete_from_docstore=True)
    return index


def stock_index(document):
    nodes = stock_parser().get_nodes_from_documents([document])
    context = StorageContext.from_defaults(docstore=docstore_of({held.node_id: held for held in nodes}))
    index = VectorStoreIndex(get_leaf_nodes(nodes), storage_context=context, embed_model=MockEmbedding(4))
    index.delete_ref_doc("report", delete_from_docstore=True)
    return index


@both(our_index, stock_index, "core 0.14.25: KeyError after the vectors are gone; the docstore keeps all 176 nodes [6l]")
def test_a_document_is_deleted_with_its_tree(make):
    assert not make(report(sections=2)).docstore.docs


def ours_on_circle():
    circle = {"a": node("a", "b", "b"), "b": node("b", "a", "a")}
    circle["a"].relationships[NEXT] = RelatedNodeInfo(node_id="b")
    circle["b"].relationships[NEXT] = RelatedNodeInfo(node_id="a")
    merged = ParentMerger(docstore_of(circle)).merge(hits_of(circle, a=0.5))
    return ContextExpander(docstore_of(circle), mode="neighbours", window=5).postprocess_nodes(merged)


def stock_on_circle():
    one, other = (Fixed([NodeWithScore(node=IndexNode(id_=f"to {name}", text=name, index_id=name), score=0.5)]) for name in ("other", "one"))
    return RecursiveRetriever("one", retriever_dict={"one": one, "other": other}).retrieve("anything")


@both(ours_on_circle, stock_on_circle, "core 0.14.25: RecursiveRetriever follows a circle until RecursionError [6k]")
def test_relations_that_go_round_in_a_circle_end(make):
    assert len(make()) == 1


def ours_with_unknown_id():
    nodes = tree()
    hits = [*hits_of(nodes, a=0.9), NodeWithScore(node=node("lost", "nowhere"), score=0.5)]
    hits[1].node.relationships[NEXT] = RelatedNodeInfo(node_id="gone")
    source = node_source_of(docstore_of(nodes))
    return ContextExpander(source, mode="section", max_tokens=10).postprocess_nodes(ParentMerger(source).merge(hits))


def stock_with_unknown_id():
    good = NodeWithScore(node=TextNode(id_="a", text="a"), score=0.9)
    bad = NodeWithScore(node=IndexNode(id_="lost", text="lost", index_id="nowhere"), score=0.5)
    return RecursiveRetriever("root", retriever_dict={"root": Fixed([good, bad])}).retrieve("anything")


@both(ours_with_unknown_id, stock_with_unknown_id, "core 0.14.25: one unknown id raises ValueError, good hits are lost [6k]")
def test_one_unknown_id_loses_no_hit(make):
    assert "a" in [found.node_id for found in make()]
