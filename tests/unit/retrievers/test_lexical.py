import asyncio
import copy
import json

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import Document, NodeRelationship, QueryBundle, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.testing import check_retriever_contract
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.trace import capture_trace

TEXTS = {
    "apple": ("food", "Apple revenue grew, apple pie sales too."),
    "pear": ("food", "Pears are sweet."),
    "bank": ("finance", "The revenue of the bank grew."),
    "farm": ("agri", "Apple trees grow on the farm."),
}


def make_nodes():
    nodes = []
    for node_id, (category, text) in TEXTS.items():
        node = TextNode(id_=node_id, text=text, metadata={"cat": category}, excluded_embed_metadata_keys=["cat"])
        node.relationships[NodeRelationship.SOURCE] = Document(id_=f"doc {category}", text="").as_related_node_info()
        nodes.append(node)
    return nodes


def lexical(**kwargs):
    return LexicalRetriever.from_defaults(**{"nodes": make_nodes(), "language": "en", **kwargs})


def ids(hits):
    return [hit.node_id for hit in hits]


def where(key, value, operator="=="):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=FilterOperator(operator))])


def test_best_first_plain_floats_and_nothing_without_a_word_of_the_query():
    hits = lexical().retrieve("apple revenue")
    assert ids(hits) == ["apple", "bank", "farm"]
    assert all(type(hit.score) is float and hit.score > 0 for hit in hits)
    assert lexical().retrieve("zebra") == lexical().retrieve("") == lexical().retrieve("the of") == []


def test_the_contract_of_a_retriever(tmp_path):
    def reload(retriever):
        retriever.persist(tmp_path)
        return LexicalRetriever.from_persist_dir(tmp_path)

    nodes = make_nodes()
    check_retriever_contract(
        lambda **options: lexical(nodes=nodes, **options),
        queries=["apple revenue", "zebra"],
        filters=where("cat", "food"),
        nodes=nodes,
        make_empty=lambda: lexical(nodes=[]),
        reload=reload,
    )


def test_top_k_and_filters_for_one_query_leave_the_retriever_as_it_is():
    retriever = lexical(similarity_top_k=2)
    assert ids(retriever.retrieve("apple revenue")) == ["apple", "bank"]
    assert ids(retriever.with_top_k(1).retrieve("apple revenue")) == ["apple"]
    assert ids(retriever.with_filters(where("cat", "agri")).retrieve("apple revenue")) == ["farm"]
    assert ids(retriever.with_filters(where("doc_id", "doc finance")).retrieve("apple revenue")) == ["bank"]
    assert ids(retriever.retrieve("apple revenue")) == ["apple", "bank"]


def test_a_filter_reaches_nodes_far_below_the_cut():
    nodes = [TextNode(id_=f"n{number:04d}", text="same words", metadata={"n": number}) for number in range(500)]
    retriever = LexicalRetriever.from_defaults(nodes=nodes, similarity_top_k=3, filters=where("n", 490, ">="))
    assert ids(retriever.retrieve("words")) == ["n0490", "n0491", "n0492"]


def test_filtered_scores_are_those_of_the_whole_corpus():
    everything = {hit.node_id: hit.score for hit in lexical().retrieve("apple revenue")}
    assert [(hit.node_id, hit.score) for hit in lexical(filters=where("cat", "agri")).retrieve("apple revenue")] == [("farm", everything["farm"])]


def test_inputs_are_left_alone():
    nodes, bundle = make_nodes(), QueryBundle("apple revenue", embedding=[1.0])
    before = copy.deepcopy((nodes, bundle))
    hits = LexicalRetriever.from_defaults(nodes=nodes).retrieve(bundle)
    hits[0].score = -1.0
    assert (nodes, bundle) == before


def test_metadata_that_the_embedding_sees_are_searched():
    node = TextNode(id_="n", text="body", metadata={"title": "Quarterly", "secret": "hidden"}, excluded_embed_metadata_keys=["secret"])
    retriever = LexicalRetriever.from_defaults(nodes=[node])
    assert ids(retriever.retrieve("quarterly")) == ["n"]
    assert retriever.retrieve("hidden") == []


def test_it_can_start_empty_and_follow_changes():
    retriever = lexical(nodes=[])
    assert retriever.retrieve("apple") == []
    retriever.add_nodes(make_nodes())
    fresh = lexical()
    assert [(hit.node_id, hit.score) for hit in retriever.retrieve("apple")] == [(hit.node_id, hit.score) for hit in fresh.retrieve("apple")]
    retriever.add_nodes([TextNode(id_="apple", text="Nothing of the kind.")])
    assert ids(retriever.retrieve("apple")) == ["farm"]
    retriever.delete_nodes(["farm", "unknown"])
    retriever.delete_ref_doc("doc finance")
    retriever.delete_ref_doc("doc")
    assert retriever.retrieve("apple revenue") == []
    assert len(retriever) == 2


def test_nodes_from_a_docstore_and_from_an_index():
    docstore = SimpleDocumentStore()
    docstore.add_documents(make_nodes())
    index = VectorStoreIndex(make_nodes(), embed_model=MockEmbedding(embed_dim=2))
    for options in ({"docstore": docstore}, {"index": index}):
        assert ids(LexicalRetriever.from_defaults(language="en", **options).retrieve("apple revenue")) == ["apple", "bank", "farm"]


def test_a_node_that_left_the_source_makes_room_and_is_reported():
    docstore = SimpleDocumentStore()
    docstore.add_documents(make_nodes())
    retriever = LexicalRetriever.from_defaults(docstore=docstore, language="en", similarity_top_k=2)
    docstore.delete_document("apple")
    with capture_trace() as trace:
        assert ids(retriever.retrieve("apple revenue")) == ["bank", "farm"]
    assert "1 nodes of the word index are gone" in trace.all_notes()[0].message


def test_exactly_one_source_of_nodes_and_of_the_language():
    with pytest.raises(ConfigurationError, match=r"exactly one of nodes=, index= and docstore="):
        LexicalRetriever.from_defaults()
    with pytest.raises(ConfigurationError, match="exactly one"):
        lexical(docstore=SimpleDocumentStore())
    with pytest.raises(ConfigurationError, match=r"language is 'fr' and analyzer is"):
        lexical(language="fr", analyzer=TextAnalyzer("fr"))


def test_evidence_names_the_words_that_matched():
    with capture_trace() as trace:
        lexical().retrieve("Apple revenues?")
    best = trace.for_node("apple")[0]
    assert (best.stage, best.rank) == ("lexical", 1)
    assert best.why == f"matches: apple ({best.details['appl']:.2f}), revenues ({best.details['revenu']:.2f})"
    assert sum(best.details.values()) == pytest.approx(best.score)
    json.dumps(trace.to_dict())


def test_long_evidence_is_cut():
    with capture_trace() as trace:
        LexicalRetriever.from_defaults(nodes=[TextNode(id_="n", text="a1 b1 c1 d1 e1 f1 g1")]).retrieve("a1 b1 c1 d1 e1 f1 g1")
    assert trace.for_node("n")[0].why.endswith(" and 2 more")


@pytest.mark.parametrize("filters", [None, where("cat", "food")])
def test_persisted_and_loaded_answers_are_equal(tmp_path, filters):
    analyzer = TextAnalyzer("fr", stop_words=frozenset({"les"}))
    nodes = [TextNode(id_="é", text="Les avions, l'été", metadata={"cat": "food"}), TextNode(id_="b", text="les les")]
    retriever = LexicalRetriever.from_defaults(nodes=nodes, analyzer=analyzer, similarity_top_k=3, filters=filters, k1=1.2, b=0.3)
    retriever.add_nodes([TextNode(id_="c", text="un avion\u2028de plus", metadata={"cat": "other"})])
    for _ in range(2):
        retriever.persist(tmp_path / "kept")
    loaded = LexicalRetriever.from_persist_dir(tmp_path / "kept")
    assert (loaded.analyzer, loaded.similarity_top_k, loaded.filters) == (analyzer, 3, filters)
    for query in ("avion été", "les", "plus"):
        assert loaded.retrieve(query) == retriever.retrieve(query)
    assert sorted(path.name.split("-")[0] for path in (tmp_path / "kept").iterdir()) == ["lexical.json", "nodes", "postings"]
    assert LexicalRetriever.from_persist_dir(tmp_path / "kept", similarity_top_k=1).similarity_top_k == 1
    loaded.delete_nodes(["é"])
    loaded.add_nodes([TextNode(id_="d", text="avions", metadata={"cat": "food"})])
    loaded.persist(tmp_path / "kept")
    assert ids(LexicalRetriever.from_persist_dir(tmp_path / "kept").retrieve("avion")) == ids(loaded.retrieve("avion"))
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_missing_damaged_and_foreign_folders_are_told_apart(tmp_path):
    with pytest.raises(IndexNotFoundError, match="no lexical retriever"):
        LexicalRetriever.from_persist_dir(tmp_path)
    lexical().persist(tmp_path)
    nodes = next(tmp_path.glob("nodes-*"))
    content = nodes.read_bytes()
    nodes.write_bytes(content[:-5])
    with pytest.raises(IndexFormatError, match=r"nodes-.*missing or damaged"):
        LexicalRetriever.from_persist_dir(tmp_path)
    (tmp_path / "lexical.json").write_text('{"version": 7}')
    with pytest.raises(IndexFormatError, match=r"version 7.*reads 2"):
        LexicalRetriever.from_persist_dir(tmp_path)
    (tmp_path / "lexical.json").write_text("{")
    with pytest.raises(IndexFormatError, match="damaged"):
        LexicalRetriever.from_persist_dir(tmp_path)


def test_what_cannot_be_persisted_is_said_and_the_old_state_stays(tmp_path):
    lexical().persist(tmp_path / "kept")
    odd = LexicalRetriever.from_defaults(nodes=[TextNode(id_="odd", text="a", metadata={"when": object()})])
    with pytest.raises(ConfigurationError, match=r"Node 'odd' cannot be written as JSON"):
        odd.persist(tmp_path / "kept")
    assert len(LexicalRetriever.from_persist_dir(tmp_path / "kept")) == 4
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="could not be written"):
        lexical().persist(tmp_path / "file")


async def test_async_is_the_same_and_leaves_the_loop_free():
    retriever = lexical()
    beats = 0

    async def beat():
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0)

    heart = asyncio.create_task(beat())
    hits = await asyncio.gather(*(retriever.aretrieve("apple revenue") for _ in range(5)))
    heart.cancel()
    assert all(found == retriever.retrieve("apple revenue") for found in hits)
    assert beats > 1


def test_it_fits_into_a_plain_query_engine():
    engine = RetrieverQueryEngine.from_args(lexical(), llm=MockLLM())
    assert ids(engine.query("apple revenue").source_nodes) == ["apple", "bank", "farm"]


def test_the_parts_can_be_given_one_by_one():
    postings = PostingsStore(TextAnalyzer("en"))
    nodes = make_nodes()
    postings.add([node.node_id for node in nodes], [node.get_content() for node in nodes])
    assert "apple" in ids(LexicalRetriever(postings, DictNodeSource(nodes), similarity_top_k=1).retrieve("apples"))
    assert repr(LexicalRetriever(postings, DictNodeSource(nodes))) == "LexicalRetriever(4 nodes, language='en', similarity_top_k=10)"


def test_an_index_in_a_store_that_keeps_text_elsewhere_is_an_error_that_helps():
    context = StorageContext.from_defaults()
    VectorStoreIndex(make_nodes(), storage_context=context, embed_model=MockEmbedding(embed_dim=2))
    orphan = VectorStoreIndex([], storage_context=StorageContext.from_defaults(vector_store=context.vector_store), embed_model=MockEmbedding(embed_dim=2))
    with pytest.raises(ValueError, match=r"nodes=.*docstore="):
        LexicalRetriever.from_defaults(index=orphan)
