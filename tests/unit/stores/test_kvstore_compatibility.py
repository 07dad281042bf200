"""LlamaIndex's stores, caches and pipelines give on `SQLiteKVStore` what they give on `SimpleKVStore`, also after reopening."""

from collections import defaultdict
from itertools import count
from pathlib import Path

import pytest
from llama_index.core import Document, MockEmbedding, StorageContext, SummaryIndex, VectorStoreIndex, load_index_from_storage
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.vector_stores import SimpleVectorStore

from llama_index_advanced_rag import SQLiteKVStore
from llama_index_advanced_rag.testing import DeterministicEmbedding

DOCUMENTS = [
    Document(text=f"{animal.capitalize()} live here. " * 60, id_=animal, metadata={"n": number, "tags": ["é", None], "x": 0.1})
    for number, animal in enumerate(["foxes", "whales", "owls"])
]
CHANGED = [DOCUMENTS[0], Document(text="Whales sing. " * 60, id_="whales"), Document(text="Bees hum. " * 60, id_="bees")]


class DerivedIds(SentenceSplitter):
    """Ids that are the same in every run."""

    def _postprocess_parsed_nodes(self, nodes, parent_doc_map):
        nodes = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        numbers = defaultdict(count)
        for node in nodes:
            node.id_ = f"{node.ref_doc_id}-{next(numbers[node.ref_doc_id])}"
        for node in nodes:
            node.relationships = {kind: value for kind, value in node.relationships.items() if kind.name == "SOURCE"}
        return nodes


def split(documents):
    return DerivedIds(chunk_size=80, chunk_overlap=0).get_nodes_from_documents(documents)


def use_docstore(kvstore: BaseKVStore, batch_size: int = 1) -> KVDocumentStore:
    docstore = KVDocumentStore(kvstore, namespace="animals", batch_size=batch_size)
    docstore.add_documents(DOCUMENTS)
    docstore.add_documents(split(DOCUMENTS))
    docstore.set_document_hashes({"a": "1", "b": "2"})
    docstore.delete_document("owls-0")
    docstore.delete_ref_doc("foxes")
    return docstore


async def ause_docstore(kvstore: BaseKVStore, batch_size: int = 1) -> KVDocumentStore:
    docstore = KVDocumentStore(kvstore, namespace="animals", batch_size=batch_size)
    await docstore.async_add_documents(DOCUMENTS)
    await docstore.async_add_documents(split(DOCUMENTS))
    await docstore.aset_document_hashes({"a": "1", "b": "2"})
    await docstore.adelete_document("owls-0")
    await docstore.adelete_ref_doc("foxes")
    return docstore


def seen(docstore: KVDocumentStore):
    return (
        docstore.docs,
        docstore.get_all_ref_doc_info(),
        docstore.get_all_document_hashes(),
        [docstore.document_exists(name) for name in ("foxes-0", "owls-1")],
    )


def test_docstore(tmp_path):
    expected = use_docstore(simple := SimpleKVStore())
    with SQLiteKVStore(tmp_path / "kv") as store:
        assert seen(use_docstore(store, batch_size=3)) == seen(expected)
    with SQLiteKVStore(tmp_path / "kv", read_only=True) as store:
        assert seen(KVDocumentStore(store, namespace="animals")) == seen(expected)
        assert store.to_dict() == {name: pairs for name, pairs in simple.to_dict().items() if pairs}


async def test_docstore_async(tmp_path):
    expected = await ause_docstore(simple := SimpleKVStore())
    with SQLiteKVStore(tmp_path / "kv") as store:
        assert seen(await ause_docstore(store, batch_size=3)) == seen(expected)
        assert store.to_dict() == {name: pairs for name, pairs in simple.to_dict().items() if pairs}


async def test_a_docstore_update_in_a_transaction_is_all_or_nothing(tmp_path):
    async def fail_in_the_middle(store):
        with store.transaction():
            await ause_docstore(store)
            raise KeyError

    with SQLiteKVStore(tmp_path / "kv") as store:
        with pytest.raises(KeyError):
            await fail_in_the_middle(store)
        assert store.to_dict() == {}


def test_index_store(tmp_path):
    with SQLiteKVStore(tmp_path / "kv") as store:
        context = StorageContext.from_defaults(docstore=KVDocumentStore(store), index_store=KVIndexStore(store))
        index = SummaryIndex(split(DOCUMENTS), storage_context=context)
        index.set_index_id("summary")
        context.persist(str(tmp_path / "rest"))
    with SQLiteKVStore(tmp_path / "kv") as store:
        context = StorageContext.from_defaults(docstore=KVDocumentStore(store), index_store=KVIndexStore(store))
        again = load_index_from_storage(context, index_id="summary")
        assert again.index_struct == index.index_struct
        assert [node.text for node in again.docstore.get_nodes(again.index_struct.nodes)] == [node.text for node in split(DOCUMENTS)]
        again.delete_nodes([again.index_struct.nodes[0]])
        context.index_store.delete_index_struct("summary")
        assert context.index_store.index_structs() == []


def test_vector_index_over_docstore_and_index_store():
    with SQLiteKVStore() as store:
        context = StorageContext.from_defaults(docstore=KVDocumentStore(store), index_store=KVIndexStore(store))
        model = DeterministicEmbedding()
        index = VectorStoreIndex(split(DOCUMENTS), storage_context=context, embed_model=model)
        plain = VectorStoreIndex(split(DOCUMENTS), embed_model=model)
        ours, stock = (each.as_retriever(similarity_top_k=3).retrieve("Whales live here") for each in (index, plain))
        assert [(hit.node_id, hit.score) for hit in ours] == [(hit.node_id, hit.score) for hit in stock]


def pipeline(kvstore: BaseKVStore, vector_store: SimpleVectorStore, model: MockEmbedding) -> IngestionPipeline:
    return IngestionPipeline(
        transformations=[DerivedIds(chunk_size=80, chunk_overlap=0), model],
        docstore=KVDocumentStore(kvstore),
        vector_store=vector_store,
        cache=IngestionCache(cache=kvstore, collection="ingestion"),
        docstore_strategy="upserts_and_delete",
    )


def as_dicts(nodes):
    return [node.to_dict() for node in nodes]


def run_twice(store_of, again_of):
    vectors, model = SimpleVectorStore(), DeterministicEmbedding()
    results = [as_dicts(pipeline(store_of, vectors, model).run(documents=DOCUMENTS))]
    second = again_of()
    results += [as_dicts(pipeline(second, vectors, model).run(documents=documents)) for documents in (DOCUMENTS, CHANGED)]
    return results, vectors.to_dict(), model.texts, second.to_dict()


async def arun_twice(store_of, again_of):
    vectors, model = SimpleVectorStore(), DeterministicEmbedding()
    results = [as_dicts(await pipeline(store_of, vectors, model).arun(documents=DOCUMENTS))]
    second = again_of()
    results += [as_dicts(await pipeline(second, vectors, model).arun(documents=documents)) for documents in (DOCUMENTS, CHANGED)]
    return results, vectors.to_dict(), model.texts, second.to_dict()


def filled(collections):
    return {name: pairs for name, pairs in collections.items() if pairs}


def check(tmp_path: Path, ours, stock):
    assert ours[:3] == stock[:3]
    assert filled(ours[3]) == filled(stock[3])
    assert [len(result) > 0 for result in ours[0]] == [True, False, True]
    assert (tmp_path / "kv").is_file()


def reopen(store: SQLiteKVStore) -> SQLiteKVStore:
    store.close()
    return SQLiteKVStore(store.path)


def test_ingestion_pipeline(tmp_path):
    stock = run_twice(simple := SimpleKVStore(), lambda: simple)
    ours = run_twice(store := SQLiteKVStore(tmp_path / "kv"), lambda: reopen(store))
    check(tmp_path, ours, stock)


async def test_ingestion_pipeline_async(tmp_path):
    stock = await arun_twice(simple := SimpleKVStore(), lambda: simple)
    ours = await arun_twice(store := SQLiteKVStore(tmp_path / "kv"), lambda: reopen(store))
    check(tmp_path, ours, stock)


def test_the_cache_answers_after_reopening_and_is_cleared(tmp_path):
    first, second = DeterministicEmbedding(), DeterministicEmbedding()
    with SQLiteKVStore(tmp_path / "kv") as store:
        IngestionPipeline(transformations=[DerivedIds(chunk_size=80, chunk_overlap=0), first], cache=IngestionCache(cache=store)).run(documents=DOCUMENTS)
    with SQLiteKVStore(tmp_path / "kv") as store:
        cache = IngestionCache(cache=store)
        nodes = IngestionPipeline(transformations=[DerivedIds(chunk_size=80, chunk_overlap=0), second], cache=cache).run(documents=DOCUMENTS)
        assert first.texts
        assert second.texts == []
        assert all(isinstance(node, TextNode) and node.embedding for node in nodes)
        cache.clear()
        assert store.to_dict() == {}


def test_workers_in_other_processes_share_the_cache(tmp_path):
    with SQLiteKVStore(tmp_path / "kv") as store:
        pipeline = IngestionPipeline(transformations=[MockEmbedding(embed_dim=3)], cache=IngestionCache(cache=store))
        nodes = pipeline.run(documents=DOCUMENTS[:2], num_workers=2)
        assert [node.embedding for node in nodes] == [[0.5] * 3] * 2
        assert len(store.get_all("llama_cache")) == 2  # one for each worker's batch
