"""DenseRetriever over stores with and without text, with and without doc_ids, sync and async."""

import asyncio
import threading
from typing import Any

import pytest
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import IndexNode, NodeRelationship, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterCondition, MetadataFilter, MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult

from llama_index_advanced_rag.errors import ConfigurationError, NodeSourceError
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.dense import DenseRetriever
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.node_source import DictNodeSource
from llama_index_advanced_rag.testing import DeterministicEmbedding, check_retriever_contract
from llama_index_advanced_rag.trace import capture_trace

TEXTS = ["red fox", "red fox runs", "red sea", "blue sea", "green field", "red field at dawn"]


def make_node(number: int, text: str, document: str) -> TextNode:
    node = TextNode(id_=f"n{number}", text=text, metadata={"document": document, "number": number}, start_char_idx=number * 10)
    node.excluded_embed_metadata_keys = ["document", "number"]
    node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=document)
    return node


def make_nodes() -> list[TextNode]:
    return [make_node(number, text, f"doc{number % 3}") for number, text in enumerate(TEXTS)]


def simple_store(nodes: list[TextNode], model: DeterministicEmbedding | None = None) -> SimpleVectorStore:
    return VectorStoreIndex(nodes, embed_model=model or DeterministicEmbedding()).vector_store


def make_retriever(nodes: list[TextNode] | None = None, model: Any = None, **options: Any) -> DenseRetriever:
    nodes = make_nodes() if nodes is None else nodes
    return DenseRetriever(simple_store(nodes), model or DeterministicEmbedding(), nodes=DictNodeSource(nodes), **options)


class TextStore(BasePydanticVectorStore):
    """Keeps text, answers nodes, ignores doc_ids and node_ids as some stores do."""

    stores_text: bool = True
    answer_similarities: bool = True
    _nodes: list[Any] = PrivateAttr(default_factory=list)
    _asked: list[int] = PrivateAttr(default_factory=list)
    _awaited: int = PrivateAttr(default=0)
    _threads: set[int] = PrivateAttr(default_factory=set)

    @property
    def client(self) -> None:
        return None

    def add(self, nodes, **kwargs):
        self._nodes += list(nodes)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id, **kwargs):
        self._nodes = [node for node in self._nodes if node.ref_doc_id != ref_doc_id]

    def query(self, query: VectorStoreQuery, **kwargs) -> VectorStoreQueryResult:
        self._asked.append(query.similarity_top_k)
        self._threads.add(threading.get_ident())
        best = self._nodes[: query.similarity_top_k]
        scores = [1.0 - place / 1000 for place in range(len(best))] if self.answer_similarities else None
        return VectorStoreQueryResult(nodes=best, similarities=scores, ids=[node.node_id for node in best])


class AsyncTextStore(TextStore):
    async def aquery(self, query, **kwargs):
        self._awaited += 1
        await asyncio.sleep(0)
        return self.query(query)


def text_store(count: int = 60, cls: type[TextStore] = TextStore, **options: Any) -> TextStore:
    store = cls(**options)
    store.add([make_node(number, f"text {number}", f"doc{number // 20}") for number in range(count)])
    return store


def test_contract():
    nodes = make_nodes()
    check_retriever_contract(
        lambda **options: make_retriever(nodes, **options),
        queries=["red fox", "blue sea at dawn"],
        filters=MetadataFilters(filters=[MetadataFilter(key="document", value="doc0")]),
        nodes=nodes,
        make_empty=lambda: DenseRetriever(SimpleVectorStore(), DeterministicEmbedding(), nodes=DictNodeSource()),
        make_with_embedding=lambda model: make_retriever(nodes, model),
    )


def test_the_query_is_embedded_once_and_the_bundle_is_not_written_to():
    model = DeterministicEmbedding()
    bundle = QueryBundle("red fox")
    make_retriever(model=model).retrieve(bundle)
    assert model.texts == ["red fox"]
    assert bundle == QueryBundle("red fox")


def test_custom_embedding_strings_are_embedded_instead():
    model = DeterministicEmbedding()
    found = make_retriever(model=model, similarity_top_k=1).retrieve(QueryBundle("green field", custom_embedding_strs=["blue sea"]))
    assert (model.texts, found[0].node_id) == (["blue sea"], "n3")


async def test_an_embedding_set_by_the_caller_is_used_as_given():
    model = DeterministicEmbedding()
    bundle = QueryBundle("green field", embedding=DeterministicEmbedding().get_query_embedding("blue sea"))
    retriever = make_retriever(model=model, similarity_top_k=1)
    assert [retriever.retrieve(bundle)[0].node_id, (await retriever.aretrieve(bundle))[0].node_id] == ["n3", "n3"]
    assert model.texts == []


@pytest.mark.parametrize("query", ["", "   ", QueryBundle("", custom_embedding_strs=[]), QueryBundle(" \n")])
async def test_an_empty_query_finds_nothing_and_embeds_nothing(query):
    model = DeterministicEmbedding()
    retriever = make_retriever(model=model)
    assert retriever.retrieve(query) == await retriever.aretrieve(query) == []
    assert model.texts == []


class TestDocumentsAndNodes:
    async def test_doc_ids_on_the_simple_store(self):
        retriever = make_retriever(doc_ids=["doc1"], similarity_top_k=2)
        found = [hit.node_id for hit in retriever.retrieve("red fox")]
        assert sorted(found) == ["n1", "n4"]
        assert [hit.node_id for hit in await retriever.aretrieve("red fox")] == found

    @pytest.mark.parametrize("option", ["doc_ids", "node_ids"])
    def test_an_empty_list_means_nothing(self, option):
        assert make_retriever(**{option: []}).retrieve("red fox") == []

    @pytest.mark.parametrize("option", ["doc_ids", "node_ids"])
    def test_an_unknown_id_means_nothing(self, option):
        assert make_retriever(**{option: ["unknown"]}).retrieve("red fox") == []

    def test_doc_ids_node_ids_and_filters_together(self):
        filters = MetadataFilters(filters=[MetadataFilter(key="number", value=0, operator=">")])
        retriever = make_retriever(doc_ids=["doc0", "doc1"], node_ids=["n0", "n1", "n2", "n3"], filters=filters)
        assert sorted(hit.node_id for hit in retriever.retrieve("red fox")) == ["n1", "n3"]

    async def test_doc_ids_on_a_store_that_ignores_them(self):
        store = text_store()
        retriever = DenseRetriever(store, DeterministicEmbedding(), doc_ids=["doc2"], similarity_top_k=5)
        with capture_trace() as trace:
            found = [hit.node_id for hit in retriever.retrieve("text")]
        assert found == ["n40", "n41", "n42", "n43", "n44"]
        assert store._asked == [5, 50]
        assert "TextStore ignores doc_ids" in trace.all_notes()[0].message
        assert [hit.node_id for hit in await retriever.aretrieve("text")] == found

    def test_no_second_query_when_enough_came(self):
        store = text_store()
        DenseRetriever(store, DeterministicEmbedding(), doc_ids=["doc0"], similarity_top_k=5).retrieve("text")
        assert store._asked == [5]


def test_nested_filters_on_the_simple_store():
    even = MetadataFilters(
        filters=[MetadataFilter(key="number", value=0), MetadataFilter(key="number", value=2), MetadataFilter(key="number", value=4)],
        condition=FilterCondition.OR,
    )
    filters = MetadataFilters(filters=[even, MetadataFilter(key="document", value="doc1", operator="!=")], condition=FilterCondition.AND)
    assert sorted(hit.node_id for hit in make_retriever(filters=filters).retrieve("red fox")) == ["n0", "n2"]


def test_filters_on_a_simple_store_without_metadata_say_so():
    retriever = make_retriever(filters=MetadataFilters(filters=[MetadataFilter(key="document", value="doc0")]))
    retriever._vector_store.data.metadata_dict.clear()
    with pytest.raises(ValueError, match="persisted without metadata"):
        retriever.retrieve("red fox")


class TestNodes:
    def test_a_store_of_ids_needs_a_node_source(self):
        retriever = DenseRetriever(simple_store(make_nodes()), DeterministicEmbedding())
        with pytest.raises(NodeSourceError, match=r"Pass nodes=DocstoreNodeSource"):
            retriever.retrieve("red fox")

    def test_vectors_without_a_node_are_left_out_and_said(self):
        nodes = make_nodes()
        retriever = DenseRetriever(simple_store(nodes), DeterministicEmbedding(), nodes=DictNodeSource(nodes[2:]))
        with capture_trace() as trace:
            found = retriever.retrieve("red fox")
        assert {hit.node_id for hit in found} == {"n2", "n3", "n4", "n5"}
        assert "2 of 6 vectors" in trace.all_notes()[0].message

    def test_a_store_with_text_needs_none(self):
        found = DenseRetriever(text_store(), DeterministicEmbedding(), similarity_top_k=2).retrieve("text")
        assert [(hit.node_id, hit.score) for hit in found] == [("n0", 1.0), ("n1", 0.999)]

    def test_nodes_that_are_not_text_come_from_the_source(self):
        stored, full = IndexNode(id_="i", text="stub", index_id="t"), IndexNode(id_="i", text="the whole table", index_id="t")
        store = TextStore()
        store.add([stored, TextNode(id_="n", text="from the store")])
        found = DenseRetriever(store, DeterministicEmbedding(), nodes=DictNodeSource([full, TextNode(id_="n", text="elsewhere")])).retrieve("text")
        assert [hit.node.text for hit in found] == ["the whole table", "from the store"]

    def test_new_scored_nodes_each_time(self):
        retriever = make_retriever()
        one, two = retriever.retrieve("red fox"), retriever.retrieve("red fox")
        one[0].score = -1.0
        assert two[0].score != -1.0
        assert retriever.retrieve("red fox")[0].score == two[0].score


class TestScores:
    def test_order_without_similarities_is_the_stores(self):
        found = DenseRetriever(text_store(answer_similarities=False), DeterministicEmbedding(), similarity_top_k=3).retrieve("text")
        assert [(hit.node_id, hit.score) for hit in found] == [("n0", None), ("n1", None), ("n2", None)]

    def test_equal_scores_in_document_order(self):
        nodes = [make_node(number, "same words", document) for number, document in [(3, "b"), (1, "b"), (2, "a")]]
        assert [hit.node_id for hit in make_retriever(nodes).retrieve("same words")] == ["n2", "n1", "n3"]

    def test_a_vector_without_direction_scores_zero(self):
        nodes = make_nodes()
        retriever = make_retriever(nodes)
        retriever._vector_store.data.embedding_dict["n4"] = [0.0] * 64
        with pytest.warns(RuntimeWarning):
            found = retriever.retrieve("red fox")
        assert {hit.node_id: hit.score for hit in found}["n4"] == 0.0

    def test_evidence(self):
        with capture_trace() as trace:
            make_retriever(similarity_top_k=1).retrieve("red fox")
        assert [(item.stage, item.rank, item.why) for item in trace.for_node("n0")] == [("dense", 1, "cosine 1.00")]
        with capture_trace() as trace:
            DenseRetriever(text_store(), DeterministicEmbedding(), similarity_top_k=1).retrieve("text")
        assert trace.for_node("n0")[0].why == "similarity 1.00"


class TestAsync:
    async def test_a_store_that_can_await_is_awaited(self):
        store = text_store(cls=AsyncTextStore)
        await DenseRetriever(store, DeterministicEmbedding()).aretrieve("text")
        assert store._awaited == 1

    async def test_a_blocking_store_is_asked_in_a_thread(self):
        store = text_store()
        await DenseRetriever(store, DeterministicEmbedding()).aretrieve("text")
        assert store._threads.isdisjoint({threading.get_ident()})


@pytest.mark.parametrize("keep_nodes", [True, False])
def test_contract_on_the_flat_store(keep_nodes):
    nodes, model = make_nodes(), DeterministicEmbedding()
    store = FlatVectorStore(keep_nodes=keep_nodes)
    store.add([node.model_copy(update={"embedding": model.get_text_embedding(node.text)}) for node in nodes])
    check_retriever_contract(
        lambda **options: DenseRetriever(store, DeterministicEmbedding(), nodes=DictNodeSource(nodes), **options),
        queries=["red fox", "blue sea at dawn"],
        filters=MetadataFilters(filters=[MetadataFilter(key="document", value="doc0")]),
        nodes=nodes,
    )
    assert sorted(hit.node_id for hit in DenseRetriever(store, model, nodes=DictNodeSource(nodes), doc_ids=["doc1"]).retrieve("red fox")) == ["n1", "n4"]


@pytest.mark.parametrize(("metric", "known"), [("cosine", ScoreRange(0.0, 1.0)), ("dot", None)])
def test_the_score_range_is_known_for_a_cosine(metric, known):
    assert DenseRetriever(FlatVectorStore(metric=metric), DeterministicEmbedding()).score_range == known


def test_errors_come_as_they_are():
    with pytest.raises(ConnectionError, match="embedding service is down"):
        make_retriever(model=DeterministicEmbedding(fail_on="fox")).retrieve("red fox")
    with pytest.raises(ConfigurationError, match="similarity_top_k is 0"):
        make_retriever(similarity_top_k=0)


def test_options_by_copy():
    retriever = make_retriever()
    assert (len(retriever.with_top_k(2).retrieve("red fox")), len(retriever.retrieve("red fox"))) == (2, 6)
    filters = MetadataFilters(filters=[MetadataFilter(key="document", value="doc0")])
    assert (len(retriever.with_filters(filters).retrieve("red fox")), retriever.filters) == (2, None)


def test_repr():
    assert repr(make_retriever()) == "DenseRetriever(SimpleVectorStore, 'deterministic', similarity_top_k=10)"


def test_an_index_built_from_documents():
    index = VectorStoreIndex.from_documents(
        [Document(text="red fox", id_="d1"), Document(text="deep sea", id_="d2")],
        storage_context=StorageContext.from_defaults(),
        embed_model=DeterministicEmbedding(),
    )
    retriever = DenseRetriever(index.vector_store, DeterministicEmbedding(), nodes=DictNodeSource(index.docstore.docs.values()), doc_ids=["d2"])
    assert [hit.node.text for hit in retriever.retrieve("red fox")] == ["deep sea"]
