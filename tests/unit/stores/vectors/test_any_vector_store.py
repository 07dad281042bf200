"""What foreign vector stores differ in: missing clients, collections that come later, methods they leave out."""

import pytest
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery, VectorStoreQueryResult
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.vectors.any_vector_store import aquery_store, check_writable, deletes_nodes, holds_nothing, query_store

QUERY = VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=1)


class Server:
    """Says whether a collection exists, and counts how often it is asked."""

    def __init__(self, *collections: str) -> None:
        self.collections, self.asked = set(collections), 0

    def collection_exists(self, name: str) -> bool:
        self.asked += 1
        return name in self.collections


class LateStore(SimpleVectorStore):
    """Has clients as Qdrant's store has them, makes its collection at the first `add`, and refuses every question before."""

    collection_name: str = "mine"
    _client: Server | None = PrivateAttr()
    _aclient: object = PrivateAttr()
    _collection_initialized: bool = PrivateAttr(default=False)
    _awaited: int = PrivateAttr(default=0)

    def __init__(self, client: Server | None, aclient: object = None) -> None:
        super().__init__()
        self._client, self._aclient = client, aclient

    @property
    def client(self) -> Server | None:
        return self._client

    def add(self, nodes, **kwargs):
        assert self._client is not None
        self._client.collections.add(self.collection_name)
        self._collection_initialized = True
        return super().add(nodes, **kwargs)

    def query(self, query, **kwargs):
        if self._client is None or self.collection_name not in self._client.collections:
            raise ValueError("Collection not found")
        return super().query(query, **kwargs)

    async def aquery(self, query, **kwargs):
        if self._aclient is None:
            raise ValueError("Async client is not initialized!")
        self._awaited += 1
        return super().query(query, **kwargs)


def filled(store: LateStore) -> LateStore:
    store.add([TextNode(id_="a", text="a", embedding=[1.0, 0.0])])
    return store


def test_a_collection_that_is_not_made_yet_holds_nothing():
    server = Server("another")
    store = LateStore(server)
    assert holds_nothing(store)
    assert query_store(store, QUERY) == VectorStoreQueryResult(nodes=[], similarities=[], ids=[])
    server.collections.add("mine")  # by another process
    assert not holds_nothing(store)
    filled(store)
    asked = server.asked
    assert not holds_nothing(store)
    assert query_store(store, QUERY).ids == ["a"]
    assert server.asked == asked  # the server is asked only as long as the store does not know


async def test_async_questions_go_where_they_can_be_answered():
    store = LateStore(Server())
    assert (await aquery_store(store, QUERY)).ids == []
    filled(store)
    assert (await aquery_store(store, QUERY)).ids == ["a"]
    assert store._awaited == 0  # it has no client for it, so a thread asks
    awaiting = filled(LateStore(Server(), aclient=object()))
    assert (await aquery_store(awaiting, QUERY)).ids == ["a"]
    assert awaiting._awaited == 1
    unmade = LateStore(Server(), aclient=object())
    assert (await aquery_store(unmade, QUERY)).ids == []
    assert unmade._awaited == 0


def test_a_store_without_a_client_to_write_with_is_refused():
    alone = LateStore(None, aclient=object())
    assert not holds_nothing(alone)  # nobody can say
    with pytest.raises(ConfigurationError, match=r"LateStore was given an async client only.*client=\.\.\."):
        check_writable(alone)
    for store in (LateStore(Server()), LateStore(Server(), aclient=object()), SimpleVectorStore()):
        check_writable(store)


def test_who_deletes_single_nodes():
    class DocumentsOnly(SimpleVectorStore):
        delete_nodes = BasePydanticVectorStore.delete_nodes

    assert deletes_nodes(SimpleVectorStore())
    assert not deletes_nodes(DocumentsOnly())
