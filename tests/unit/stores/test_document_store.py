import asyncio
import contextlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, ImageDocument, ImageNode, IndexNode, MediaResource, Node, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from llama_index_advanced_rag.errors import ConfigurationError, NodeNotFoundError
from llama_index_advanced_rag.stores.document_store import SQLDocumentStore
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.testing import DeterministicEmbedding

WORDS = ["le", "règlement", "s'applique", "à", "toute", "personne", "dont", "les", "données", "sont", "traitées", "😀", "dans", "l'Union", ""]


def make_document(name="a.txt", words=300, seed=0, **metadata):
    rng = random.Random(seed)
    text = " ".join(rng.choice(WORDS) + rng.choice(["", "", ".", "\n\n"]) for _ in range(words))
    return Document(
        id_=name,
        text=text,
        metadata={"title": name, "page_starts": [0, 10, 20], **metadata},
        excluded_embed_metadata_keys=["page_starts"],
        excluded_llm_metadata_keys=["page_starts", "title"],
        metadata_template="{value}",
        text_template="{metadata_str} | {content}",
    )


def split(document, chunk_size=40):
    return SentenceSplitter(chunk_size=chunk_size, chunk_overlap=5).get_nodes_from_documents([document])


def same(left, right):
    """Equality that also sees the order of metadata, which is part of a node's text."""
    return left == right and type(left) is type(right) and list(left.metadata) == list(right.metadata) and left.hash == right.hash


@pytest.fixture
def database():
    with CorpusDatabase(None) as database:
        yield database


@pytest.fixture
def store(database):
    return SQLDocumentStore(database)


def test_document_and_nodes_come_back_equal_and_text_is_stored_once(store, database):
    document = make_document()
    nodes = split(document)
    assert len(nodes) > 10
    nodes[2].metadata["page_label"] = "3"
    nodes[3].metadata = {"page_label": "3", **nodes[3].metadata}
    nodes[4].excluded_llm_metadata_keys = []
    nodes[5].metadata_template = "{key}: {value}"
    before = [node.model_copy(deep=True) for node in [document, *nodes]]
    store.put_document(document, nodes)
    assert [document, *nodes] == before
    for read in (store.get_nodes([node.node_id for node in nodes]), [store.get_document(node.node_id) for node in nodes], list(store.iter_nodes(batch_size=3))):
        assert all(same(left, right) for left, right in zip(read, nodes, strict=True))
    assert same(store.get_document("a.txt"), document)
    assert database.query("SELECT count(*) FROM nodes WHERE text IS NOT NULL") == [(0,)]
    stored = database.query("SELECT sum(length(body)) FROM nodes")[0][0]
    assert stored < 0.25 * sum(len(node.to_json()) for node in nodes)


def test_what_is_read_shares_nothing(store):
    store.put_document(make_document(), split(make_document()))
    one, two = list(store.iter_nodes())[:2]
    one.metadata["page_starts"].append(99)
    one.relationships[NodeRelationship.SOURCE].metadata["page_starts"].append(98)
    assert two.metadata["page_starts"] == [0, 10, 20] == two.relationships[NodeRelationship.SOURCE].metadata["page_starts"]


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="plain"),
        TextNode(text="", metadata={"a": None, "b": True, "c": 1.0, "d": {"e": [1, "é"]}}),
        TextNode(text="embedded", embedding=[0.1, 1e-30, -2.5]),
        TextNode(text="wrong offsets", start_char_idx=5, end_char_idx=3, mimetype="text/markdown"),
        TextNode(id_="caf\udce9", text="lone \ud800 surrogate", metadata={"\udcff": "\udcff"}),
        TextNode(id_="nul\0id", text="a\0b", metadata_separator=" ; "),
        IndexNode(text="points", index_id="other", obj=TextNode(id_="x", text="inner")),
        ImageNode(text="caption", image="aGVsbG8=", image_mimetype="image/png"),
        Node(text_resource=MediaResource(text="multi"), image_resource=MediaResource(data=b"\x89PNG", url="https://example.org/a.png", path="a.png")),
        Document(text="a document", metadata={"title": "t"}, relationships={NodeRelationship.NEXT: RelatedNodeInfo(node_id="n")}),
        Document(metadata={"only": "metadata"}),
        Document(text_resource=MediaResource(text="t", mimetype="text/html")),
        ImageDocument(image=b"hello", text="caption"),
        TextNode(
            text="related",
            relationships={
                NodeRelationship.CHILD: [RelatedNodeInfo(node_id="c", metadata={"k": 1}), RelatedNodeInfo(node_id="d", node_type=None)],
                NodeRelationship.SOURCE: RelatedNodeInfo(node_id="nowhere", hash="h", node_type="odd"),
                NodeRelationship.PARENT: RelatedNodeInfo(node_id="p", metadata={"title": "t", "more": 2}),
            },
        ),
        Document(text="inside", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="nowhere")}),
    ],
    ids=lambda node: f"{type(node).__name__}-{node.get_content()!a}",
)
def test_every_kind_of_node_comes_back_equal(store, node):
    original = node.model_copy(deep=True)
    store.add_documents([node])
    assert node == original
    assert store.get_document(node.node_id) == original
    assert store.document_exists(node.node_id)
    assert list(store.docs.values()) == [original]
    store.delete_document(node.node_id)
    assert not store.document_exists(node.node_id)


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(st.text(), v))
METADATA = st.dictionaries(st.sampled_from(["title", "page", "é", "a"]), JSON, max_size=4)


@settings(deadline=None, max_examples=60)
@given(METADATA, METADATA, METADATA, st.text(), st.integers(0, 12), st.integers(0, 12), st.booleans())
def test_any_node_of_any_document_comes_back_equal(base, own, other, text, start, end, follow):
    document = Document(id_="d", text=text, metadata=base)
    metadata = {**base, **own} if follow else own
    node = TextNode(id_="n", text=text[start:end] if follow else "own", metadata=metadata, start_char_idx=start, end_char_idx=end)
    node.relationships = {
        NodeRelationship.SOURCE: document.as_related_node_info(),
        NodeRelationship.NEXT: RelatedNodeInfo(node_id="m", metadata={**base, **other}),
    }
    with CorpusDatabase(None) as database:
        store = SQLDocumentStore(database)
        store.put_document(document, [node])
        assert same(store.get_document("n"), node)
        store.add_documents([Document(id_="d", text="z" + text, metadata=other)])
        assert same(store.get_document("n"), node)
        store.delete_document("d")
        assert same(store.get_document("n"), node)
        store.add_documents([document])
        assert same(store.get_document("n"), node)
        assert same(store.get_document("d"), document)


def test_put_document_replaces_and_is_part_of_the_callers_transaction(store, database):
    old, new = make_document(seed=1), make_document(seed=2, year=2024)
    store.put_document(old, split(old))
    with contextlib.suppress(KeyError), database.transaction():
        store.put_document(new, split(new))
        raise KeyError
    assert same(store.get_document("a.txt"), old)
    nodes = split(new)
    store.put_document(new, nodes, [f"h{place}" for place in range(len(nodes))])
    assert [node.node_id for node in store.iter_nodes()] == [node.node_id for node in nodes]
    assert store.get_document_hash("a.txt") == new.hash
    assert [tuple(key) for key in store.node_keys()] == [(node.node_id, "a.txt", node.start_char_idx, f"h{place}") for place, node in enumerate(nodes)]
    store.put_document(new, [])
    assert list(store.iter_nodes()) == []
    assert store.get_ref_doc_info("a.txt") is None
    assert store.delete_documents(["a.txt", "unknown"]) == 1
    assert store.docs == {}


def test_duplicate_ids_are_refused_by_name(store):
    document = make_document()
    node = TextNode(id_="n", text="x")
    with pytest.raises(ConfigurationError, match=r"Two nodes have the id 'n', one of document 'a.txt'"):
        store.put_document(document, [node, node])
    store.put_document(document, [node])
    with pytest.raises(ConfigurationError, match=r"'n' of document 'b.txt' belongs to document 'a.txt'"):
        store.put_document(make_document("b.txt"), [node])
    assert not store.document_exists("b.txt")


@pytest.mark.parametrize("value", [{1, 2}, object(), b"bytes"])
def test_metadata_that_is_not_json_is_refused_by_name(store, value):
    with pytest.raises(ConfigurationError, match=r"Node 'n' cannot be stored: its metadata key 'bad' is not JSON"):
        store.add_documents([TextNode(id_="ok", text="a"), TextNode(id_="n", text="x", metadata={"good": 1, "bad": value})])
    assert store.docs == {}


def test_missing_ids(store):
    store.add_documents([TextNode(id_="a", text="a"), TextNode(id_="b", text="b")])
    assert [node.node_id for node in store.get_nodes(["b", "none", "a", "b"], raise_error=False)] == ["b", "a", "b"]
    for call in (store.get_document, store.delete_document, store.delete_ref_doc, lambda one: store.get_nodes(["a", one])):
        with pytest.raises(NodeNotFoundError, match="'none' not found"):
            call("none")
    assert store.get_document("none", raise_error=False) is None
    with pytest.raises(ConfigurationError, match="'a' already exists"):
        store.add_documents([TextNode(id_="a", text="new")], allow_update=False)
    assert store.get_document("a").text == "a"


def test_one_query_for_500_ids(store, database):
    documents = [make_document(f"{place}", words=60, seed=place) for place in range(100)]
    for document in documents:
        store.put_document(document, split(document))
    ids = [node.node_id for node in store.iter_nodes()][:500]
    random.Random(0).shuffle(ids)
    statements = []
    database._connection.set_trace_callback(statements.append)
    assert [node.node_id for node in store.get_nodes(ids)] == ids
    assert len([one for one in statements if one.startswith("SELECT")]) <= 4


def test_delete_is_complete(store, database):
    for name in ("a", "b"):
        document = make_document(name)
        store.put_document(document, split(document))
    store.delete_ref_doc("a")
    assert list(store.get_all_ref_doc_info()) == ["b"]
    assert store.get_document_hash("a") is None
    assert database.query("SELECT count(DISTINCT ref_doc_id) FROM nodes") == [(1,)]


class Script:
    """The same random calls on two stores; answers must be equal after each."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.parents = {f"d{place}": Document(id_=f"d{place}", text="hello world " * 3, metadata={"title": f"d{place}"}) for place in range(3)}

    def node(self):
        place = self.rng.randrange(8)
        text = self.rng.choice(["hello world ", "other"])
        node = TextNode(id_=f"n{place}", text=text, metadata={"title": f"d{place % 3}", "v": self.rng.randrange(2)}, start_char_idx=0, end_char_idx=len(text))
        if place < 6:
            parent = self.parents[f"d{place % 3}"]
            node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=parent.id_, metadata=dict(parent.metadata), hash=parent.hash)
        return node

    def step(self):
        kind = self.rng.randrange(7)
        any_id = self.rng.choice([*self.parents, *[f"n{place}" for place in range(8)]])
        if kind == 0:
            parent = self.rng.choice(list(self.parents.values()))
            return ("add_documents", ([parent.model_copy(update={"metadata": {"title": parent.id_, "v": self.rng.randrange(2)}})],))
        if kind in (1, 2):
            return ("add_documents", ([self.node() for _ in range(self.rng.randrange(1, 4))],))
        if kind == 3:
            return ("delete_document", (any_id, False))
        if kind == 4:
            return ("delete_ref_doc", (self.rng.choice(list(self.parents)), False))
        if kind == 5:
            return ("set_document_hash", (any_id, f"hash {self.rng.randrange(5)} of {any_id}"))
        return ("add_documents", ([self.node()], True, None, False))


def state(store):
    ids = [f"d{place}" for place in range(3)] + [f"n{place}" for place in range(8)]
    infos = store.get_all_ref_doc_info() or {}
    return {
        "docs": store.docs,
        "ref_docs": {key: info.node_ids for key, info in infos.items()},
        "exists": [store.document_exists(one) for one in ids],
        "infos": [info and info.node_ids for info in map(store.get_ref_doc_info, ids)],
        "nodes": store.get_nodes(ids, raise_error=False),
        "hashes": {one: store.get_document_hash(one) for one in ids if one in store.docs},
    }


@pytest.mark.parametrize("seed", range(30))
def test_behaves_like_the_simple_document_store(store, seed):
    script, stock = Script(seed), SimpleDocumentStore()
    for _ in range(40):
        name, arguments = script.step()
        if name == "delete_ref_doc" and stock.get_ref_doc_info(arguments[0]) is None:
            continue  # ours deletes a document without nodes, stock keeps it
        if name == "set_document_hash" and (arguments[0] not in stock.docs or arguments[0].startswith("n")):
            continue  # stock then forgets whose node it is
        getattr(stock, name)(*arguments)
        getattr(store, name)(*arguments)
        assert state(store) == state(stock), (name, arguments)


def test_a_hash_set_on_a_node_does_not_tear_it_from_its_document(store):
    document = make_document()
    nodes = split(document)
    for one in (store, SimpleDocumentStore()):
        one.add_documents([document, *nodes])
        one.set_document_hash(nodes[0].node_id, "mine")
        one.delete_document(nodes[0].node_id)
    assert nodes[0].node_id not in store.get_ref_doc_info("a.txt").node_ids


def test_a_refresh_after_a_delete_inserts_again(store):
    store.set_document_hash("a.txt", "hash of a document kept elsewhere")
    store.delete_ref_doc("a.txt")
    assert store.get_document_hash("a.txt") is None


async def test_async_twins_do_the_same_and_leave_the_loop_free(store):
    document = make_document()
    nodes = split(document)
    await store.async_add_documents([document, *nodes])
    assert await store.aget_document("a.txt") == document
    assert await store.aget_nodes([node.node_id for node in nodes]) == nodes
    assert await store.aget_node_dict({0: nodes[1].node_id}) == {0: nodes[1]}
    assert await store.adocument_exists(nodes[0].node_id)
    assert (await store.aget_ref_doc_info("a.txt")).node_ids == [node.node_id for node in nodes]
    assert list(await store.aget_all_ref_doc_info()) == ["a.txt"]
    assert await store.aref_doc_exists("a.txt")
    await store.aset_document_hash("a.txt", "h")
    await store.aset_document_hashes({"b": "k"})
    assert await store.aget_document_hash("a.txt") == "h"
    assert (await store.aget_all_document_hashes())["k"] == "b"
    await asyncio.gather(*(store.adelete_document(node.node_id) for node in nodes[:3]))
    assert len((await store.aget_ref_doc_info("a.txt")).node_ids) == len(nodes) - 3
    await store.adelete_ref_doc("a.txt")
    assert await store.aget_document("a.txt", raise_error=False) is None


def test_in_a_vector_store_index(store):
    documents = [make_document(f"{place}.txt", words=80, seed=place) for place in range(3)]
    index = VectorStoreIndex.from_documents(
        documents,
        embed_model=DeterministicEmbedding(),
        storage_context=StorageContext.from_defaults(docstore=store),
        transformations=[SentenceSplitter(chunk_size=40, chunk_overlap=0)],
    )
    assert set(index.ref_doc_info) == {"0.txt", "1.txt", "2.txt"}
    assert index.as_retriever(similarity_top_k=3).retrieve("règlement")
    index.delete_ref_doc("1.txt", delete_from_docstore=True)
    assert set(index.ref_doc_info) == {"0.txt", "2.txt"}
    assert index.refresh_ref_docs(documents) == [False, True, False]
    assert index.refresh_ref_docs(documents) == [False, False, False]


def test_in_an_ingestion_pipeline(store):
    pipeline = IngestionPipeline(transformations=[SentenceSplitter()], docstore=store, docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY)
    document = make_document()
    assert pipeline.run(documents=[document])
    assert pipeline.run(documents=[document]) == []


def test_reopened(tmp_path):
    document = make_document()
    nodes = split(document)
    with CorpusDatabase(tmp_path, create=True) as database:
        SQLDocumentStore(database).put_document(document, nodes)
    with CorpusDatabase(tmp_path, read_only=True) as database:
        store = SQLDocumentStore(database)
        assert list(store.iter_nodes()) == nodes
        assert store.get_all_document_hashes() == {document.hash: "a.txt", **{node.hash: node.node_id for node in nodes}}
        store.persist()
