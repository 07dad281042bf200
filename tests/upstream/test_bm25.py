"""What the stock BM25 retriever gets wrong, each beside ours doing it right."""

import time

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.retrievers.bm25 import BM25Retriever

from llama_index_advanced_rag.errors import NodeSourceError
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.testing import stock_fault

GOLD = {
    "gold": "Le cours de l'or monte, or il est rare.",
    "oil": "Le cours du pétrole baisse.",
    "wheat": "Les prix du blé sont stables.",
    "corn": "La récolte de maïs est bonne.",
}
MIXED = {
    "a": ("food", "Apple pie with apple sauce"),
    "b": ("agri", "Apple trees on the farm"),
    "c": ("food", "Pears are sweet"),
    "d": ("fin", "Shares of the bank fell"),
}


class TextStore(SimpleVectorStore):
    """Keeps the text itself, as Chroma does, so that the docstore of its index stays empty."""

    stores_text: bool = True
    _kept: dict = PrivateAttr(default_factory=dict)

    def add(self, nodes, **kwargs):
        self._kept.update({node.node_id: node for node in nodes})
        return super().add(nodes, **kwargs)

    def get_nodes(self, node_ids=None, filters=None):
        return list(self._kept.values())


class MuteTextStore(TextStore):
    """Keeps the text and hands none out."""

    def get_nodes(self, node_ids=None, filters=None):
        raise NotImplementedError("get_nodes not implemented")


def nodes_of(texts):
    return [TextNode(id_=node_id, text=text) for node_id, text in texts.items()]


def mixed_nodes():
    return [TextNode(id_=key, text=text, metadata={"cat": cat}, excluded_embed_metadata_keys=["cat"]) for key, (cat, text) in MIXED.items()]


def cat(value):
    return MetadataFilters(filters=[MetadataFilter(key="cat", value=value)])


def ours(**options):
    return LexicalRetriever.from_defaults(**options)


def stock(**options):
    return BM25Retriever.from_defaults(**options)


def check_only_matching_nodes(make):
    hits = make(nodes=mixed_nodes(), similarity_top_k=4, filters=cat("food")).retrieve("apple")
    assert [hit.node_id for hit in hits] == ["a"]


def test_filtered_out_nodes_are_not_returned():
    check_only_matching_nodes(ours)
    assert [hit.node_id for hit in ours(nodes=mixed_nodes()).with_filters(cat("agri")).retrieve("apple")] == ["b"]
    assert ours(nodes=mixed_nodes(), filters=cat("nothing")).retrieve("apple") == []


@stock_fault("retrievers-bm25 0.8: nodes outside the filter come back with score 0 [3a], issues/14959")
def test_filtered_out_nodes_are_not_returned_by_stock():
    check_only_matching_nodes(stock)


def check_unknown_word(make):
    assert make(nodes=mixed_nodes(), similarity_top_k=4).retrieve("zebra") == []


def test_an_unknown_word_finds_nothing():
    check_unknown_word(ours)


@stock_fault("retrievers-bm25 0.8: nodes without any word of the query come back with score 0 [3b]")
def test_an_unknown_word_finds_nothing_in_stock():
    check_unknown_word(stock)


def check_french_gold(make):
    hits = make(nodes=nodes_of(GOLD), language="fr", similarity_top_k=2).retrieve("or")
    assert [hit.node_id for hit in hits] == ["gold"]
    assert hits[0].score > 0


def test_french_or_is_gold():
    check_french_gold(ours)


@stock_fault("retrievers-bm25 0.8: queries lose English stop words whatever the language [16b]")
def test_french_or_is_gold_in_stock():
    check_french_gold(stock)


def check_german_function_words(make):
    texts = {"hund": "Der Hund schläft im Garten", "katze": "Die Katze will fressen", "was": "Was war das"}
    hits = make(nodes=nodes_of(texts), language="de", similarity_top_k=3).retrieve("Was will die Katze?")
    assert [hit.node_id for hit in hits if hit.score] == ["katze"]
    assert all(hit.score for hit in hits)


def test_german_function_words_are_dropped_from_the_query_too():
    check_german_function_words(ours)


@stock_fault("retrievers-bm25 0.8: the query keeps what the German corpus drops, and loses English words [3c], issues/16333")
def test_german_function_words_in_stock():
    check_german_function_words(stock)


def check_reload(make, load, tmp_path, **options):
    texts = {"run": "He runs daily", "c": "plain c programs", "other": "nothing at all here", "more": "something else again"}
    retriever = make(nodes=nodes_of(texts), similarity_top_k=2, **options)
    before = {query: [(hit.node_id, hit.score) for hit in retriever.retrieve(query)] for query in ("runs", "c")}
    retriever.persist(str(tmp_path))
    loaded = load(str(tmp_path))
    assert {query: [(hit.node_id, hit.score) for hit in loaded.retrieve(query)] for query in before} == before


def test_a_reloaded_retriever_answers_the_same(tmp_path):
    from llama_index_advanced_rag.text.analyzer import TextAnalyzer

    check_reload(ours, LexicalRetriever.from_persist_dir, tmp_path, analyzer=TextAnalyzer("none", token_pattern=r"(?u)\b\w+\b"))


@stock_fault("retrievers-bm25 0.8: stemmer, stop words and token pattern are lost on persist [3d], pull/22978")
def test_a_reloaded_stock_retriever_answers_the_same(tmp_path):
    check_reload(stock, BM25Retriever.from_persist_dir, tmp_path, skip_stemming=True, token_pattern=r"(?u)\b\w+\b")


@pytest.mark.parametrize("texts", [[], [""], ["the of and"]])
def test_an_empty_corpus_finds_nothing(texts):
    assert ours(nodes=[TextNode(text=text) for text in texts], language="en").retrieve("apple") == []


@stock_fault("retrievers-bm25 0.8: max() arg is an empty sequence [3f]")
def test_an_empty_corpus_finds_nothing_in_stock():
    assert stock(nodes=[TextNode(text="the of and")], similarity_top_k=1).retrieve("apple") == []


def check_cjk(make):
    texts = {"tokyo": "東京都の天気は晴れです。", "osaka": "大阪の料理は美味しい。", "seoul": "서울의 날씨는 맑습니다.", "beijing": "北京是中国的首都。"}
    retriever = make(nodes=nodes_of(texts), similarity_top_k=1)
    for query, expected in (("東京", "tokyo"), ("料理", "osaka"), ("날씨", "seoul"), ("中国首都", "beijing"), ("阪", "osaka")):
        hits = retriever.retrieve(query)
        assert [hit.node_id for hit in hits] == [expected]
        assert hits[0].score > 0


def test_cjk_queries_find_their_documents():
    check_cjk(ours)


@stock_fault("retrievers-bm25 0.8: the token pattern takes a CJK sentence for one word [3g], issues/13866, issues/17461")
def test_cjk_queries_in_stock():
    check_cjk(stock)


def test_nodes_come_and_go_without_a_rebuild():
    retriever = ours(nodes=mixed_nodes(), language="en")
    retriever.add_nodes([TextNode(id_="e", text="Apple, apple and apple")])
    assert retriever.retrieve("apple")[0].node_id == "e"
    retriever.add_nodes([TextNode(id_="e", text="Pears")])
    retriever.delete_nodes(["a"])
    fresh = ours(nodes=[*mixed_nodes()[1:], TextNode(id_="e", text="Pears")], language="en")
    for query in ("apple", "pear"):
        assert [(hit.node_id, hit.score) for hit in retriever.retrieve(query)] == [(hit.node_id, hit.score) for hit in fresh.retrieve(query)]


@stock_fault("retrievers-bm25 0.8: a static snapshot [3h], issues/12851")
def test_stock_nodes_come_and_go():
    assert hasattr(stock(nodes=mixed_nodes(), similarity_top_k=1), "add_nodes")


def index_over(store):
    return VectorStoreIndex(mixed_nodes(), storage_context=StorageContext.from_defaults(vector_store=store), embed_model=MockEmbedding(embed_dim=2))


def test_an_index_whose_store_keeps_the_text_is_read_from_there():
    assert [hit.node_id for hit in ours(index=index_over(TextStore())).retrieve("apple")] == ["a", "b"]


@stock_fault("retrievers-bm25 0.8: max() arg is an empty sequence with Chroma and the like [3f], issues/20601")
def test_stock_over_an_index_whose_store_keeps_the_text():
    assert [hit.node_id for hit in stock(index=index_over(TextStore()), similarity_top_k=2).retrieve("apple")] == ["a", "b"]


def test_an_index_whose_store_hands_nothing_out_names_the_ways_out():
    with pytest.raises(NodeSourceError, match=r"MuteTextStore.*nodes=.*docstore=.*store_nodes_override=True"):
        ours(index=index_over(MuteTextStore()))


def test_a_docstore_is_not_kept_in_memory_and_other_sources_do():
    docstore = SimpleDocumentStore()
    docstore.add_documents(mixed_nodes())
    retriever = ours(docstore=docstore)
    assert not len(retriever._added)
    assert len(retriever.retrieve("apple")) == 2
    assert len(ours(nodes=docstore.docs.values()).retrieve("apple")) == 2


def refuse_json(*_: object, **__: object) -> TextNode:
    raise AssertionError("a node was rebuilt from JSON")


def check_not_rebuilt(retriever: BaseRetriever, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TextNode, "from_json", refuse_json)
    assert retriever.retrieve("apple")[0].node == mixed_nodes()[0]


def test_a_hit_is_not_rebuilt_from_json(monkeypatch: pytest.MonkeyPatch):
    check_not_rebuilt(ours(nodes=mixed_nodes()), monkeypatch)


@stock_fault("retrievers-bm25 0.8: each hit is rebuilt from JSON [16c]")
def test_a_stock_hit_is_not_rebuilt_from_json(monkeypatch: pytest.MonkeyPatch):
    check_not_rebuilt(stock(nodes=mixed_nodes(), similarity_top_k=1), monkeypatch)


def test_what_a_postprocessor_writes_into_a_hit_is_not_found_the_next_time():
    node = TextNode(id_="a", text="apple", metadata={"window": "an apple a day"})
    retriever = ours(nodes=[node])
    MetadataReplacementPostProcessor(target_metadata_key="window").postprocess_nodes(retriever.retrieve("apple"))
    assert retriever.retrieve("apple")[0].node.get_content() == node.get_content() == "apple"


def test_a_small_corpus_needs_no_smaller_top_k():
    retriever = ours(nodes=mixed_nodes(), similarity_top_k=50)
    assert retriever.similarity_top_k == 50
    assert len(retriever.retrieve("apple")) == 2


def test_ten_thousand_nodes_are_searched_in_milliseconds():
    nodes = [TextNode(id_=str(number), text=f"common words and number{number % 100} too") for number in range(10_000)]
    retriever = ours(nodes=nodes, language="en", similarity_top_k=100)
    retriever.retrieve("number7 common words")
    started = time.process_time()
    for _ in range(5):
        retriever.retrieve("number7 common words")
    assert (time.process_time() - started) / 5 < 0.1


def test_async_is_its_own():
    assert "_afind" in dir(LexicalRetriever)
    assert LexicalRetriever._aretrieve is not BM25Retriever._aretrieve


@stock_fault("retrievers-bm25 0.8: aretrieve blocks the loop [3j]")
def test_stock_async_is_its_own():
    from llama_index.core.base.base_retriever import BaseRetriever

    assert BM25Retriever._aretrieve is not BaseRetriever._aretrieve
