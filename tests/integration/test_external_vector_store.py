"""A vector store of the user's beside an index (Qdrant in its local mode, LlamaIndex's own, ours): it answers as one with its own vectors."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError, VectorStoreError
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.testing import DeterministicEmbedding

COLOURS = ("red", "blue", "green", "grey", "white", "black", "brown", "golden")
ANIMALS = ("fox", "whale", "owl", "bee", "hen", "wolf", "trout", "crow", "mole", "lynx")
QUESTIONS = ("red fox at night", "blue whale of the sea", "golden", "which bee is brown and old")
Texts = dict[str, str]


def texts() -> Texts:
    """No two chunks are equal: which of two equal ones is the last hit, a store decides as it likes."""
    return {
        f"{animal}.txt": f"The {COLOURS[place % 8]} {animal} lives by the sea. This {animal} is {place} years old. At night it eats {ANIMALS[place - 3]}s."
        for place, animal in enumerate(ANIMALS)
    }


def documents(contents: Texts) -> list[Document]:
    return [
        Document(text=text, id_=name, metadata={"kind": "bird" if name[0] in "hoc" else "other", "year": 1990 + len(text)}) for name, text in contents.items()
    ]


def qdrant_store(path: Path | None = None) -> BasePydanticVectorStore:
    qdrant = pytest.importorskip("llama_index.vector_stores.qdrant", reason="llama-index-vector-stores-qdrant (dependency group `test`) is not installed")
    from qdrant_client import QdrantClient

    made = QdrantClient(":memory:") if path is None else QdrantClient(path=str(path))
    return qdrant.QdrantVectorStore("corpus", client=made, index_doc_id=False)  # the local mode knows no such indexes and warns


STORES: dict[str, Callable[[], BasePydanticVectorStore]] = {"qdrant": qdrant_store, "simple": SimpleVectorStore, "flat": FlatVectorStore}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[BasePydanticVectorStore]:
    made = STORES[request.param]()
    yield made
    close(made)


@pytest.fixture
def qdrant() -> Iterator[BasePydanticVectorStore]:
    made = qdrant_store()
    yield made
    close(made)


def close(store: BasePydanticVectorStore) -> None:
    if hasattr(store.client, "close"):
        store.client.close()


def build(contents: Texts | None = None, **options: object) -> CorpusIndex:
    given = {"embed_model": DeterministicEmbedding(), "chunk_size": 32, "chunk_overlap": 0, **options}
    return CorpusIndex.from_documents(documents(texts() if contents is None else contents), **given)


def found(index: CorpusIndex, mode: str, question: str, **options: object) -> list[tuple[str, float]]:
    return [(hit.node_id, hit.score or 0.0) for hit in index.as_retriever(mode, **{"similarity_top_k": 6, **options}).retrieve(question)]


def assert_same_answers(index: CorpusIndex, contents: Texts, **options: object) -> None:
    """The answers, with and without restrictions, are those of an index built anew with its own vectors."""
    wanted = build(contents)
    for mode in ("dense", "hybrid"):
        for question in QUESTIONS:
            answers, expected = found(index, mode, question, **options), found(wanted, mode, question, **options)
            assert [node_id for node_id, _ in answers] == [node_id for node_id, _ in expected], (mode, question)
            assert [score for _, score in answers] == pytest.approx([score for _, score in expected], abs=1e-5), (mode, question)


def held(store: BasePydanticVectorStore) -> set[str]:
    """Ids of what is really in the store."""
    if isinstance(store, SimpleVectorStore):
        return set(store.data.embedding_dict)
    if isinstance(store, FlatVectorStore):
        return {node.node_id for node in store.get_nodes()}
    return {str(point.id) for point in store.client.scroll("corpus", limit=10_000)[0]} if store.client.collection_exists("corpus") else set()


def our_ids(index: CorpusIndex) -> set[str]:
    return set(index.corpus.rows.table.node_ids())


def test_built_updated_and_deleted(store: BasePydanticVectorStore) -> None:
    contents = texts()
    index = build(contents, vector_store=store)
    assert index.last_report.skipped == []
    assert_same_answers(index, contents)
    contents |= {"fox.txt": "The fox is silver now. It sleeps by day.", "new.txt": "A golden eel swims in the sea."}
    index.refresh_ref_docs(documents(contents))
    del contents["bee.txt"]
    index.delete_ref_doc("bee.txt")
    assert_same_answers(index, contents)
    assert held(store) == our_ids(index)
    assert index.verify().problems == []


def test_filters_and_documents_restrict(store: BasePydanticVectorStore) -> None:
    index = build(vector_store=store)
    both = MetadataFilters(filters=[MetadataFilter(key="kind", value="other"), MetadataFilter(key="year", value=2090, operator=FilterOperator.LT)])
    assert_same_answers(index, texts(), filters=both)
    assert_same_answers(index, texts(), filters=MetadataFilters(filters=[MetadataFilter(key="kind", value=["bird", "x"], operator=FilterOperator.IN)]))
    wanted = build(texts())
    for doc_ids in (["fox.txt", "owl.txt"], ["unknown"], []):
        answers = [found(one, "dense", QUESTIONS[0], doc_ids=doc_ids) for one in (index, wanted)]
        assert [node_id for node_id, _ in answers[0]] == [node_id for node_id, _ in answers[1]]


def test_empty_index_answers_nothing(store: BasePydanticVectorStore) -> None:
    index = CorpusIndex(vector_store=store, embed_model=DeterministicEmbedding())
    index.delete_ref_doc("unknown")
    index.insert(Document(text="", id_="empty"))
    index.delete_nodes(["12345678-1234-5678-1234-567812345678"])
    for mode in ("lexical", "dense", "hybrid"):
        assert index.as_retriever(mode).retrieve("anything") == []
        assert asyncio.run(index.as_retriever(mode).aretrieve("anything")) == []
    assert index.verify().problems == []
    assert index.verify(repair=True).ok


async def test_async_gives_the_same(store: BasePydanticVectorStore) -> None:
    contents = texts()
    index = CorpusIndex(vector_store=store, embed_model=DeterministicEmbedding(), chunk_size=32, chunk_overlap=0)
    await index.aapply(added=documents(contents))
    await index.adelete_ref_doc(next(iter(contents)))
    del contents["fox.txt"]
    assert_same_answers(index, contents)
    for mode in ("dense", "hybrid"):
        retriever = index.as_retriever(mode, similarity_top_k=6)
        hits = await asyncio.gather(*(retriever.aretrieve(question) for question in QUESTIONS))
        assert [[hit.node_id for hit in answer] for answer in hits] == [[hit.node_id for hit in retriever.retrieve(question)] for question in QUESTIONS]


def ready_nodes(numbers: range) -> list[TextNode]:
    return [
        TextNode(text=f"A ready node about the {COLOURS[number % 8]} newt {number}", id_=f"00000000-0000-4000-8000-{number:012}",
                 relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="newts")})
        for number in numbers
    ]  # fmt: skip


def test_ready_nodes_come_and_go(store: BasePydanticVectorStore) -> None:
    index, own = build(vector_store=store), build()
    for one in (index, own):
        one.insert_nodes(ready_nodes(range(6)))
        one.insert_nodes([TextNode(text="changed beyond recognition", id_=ready_nodes(range(1))[0].node_id)])
        one.delete_nodes([ready_nodes(range(3))[2].node_id])
    for question in (*QUESTIONS, "ready newt 4", "beyond recognition"):
        assert found(index, "dense", question) == [(node_id, pytest.approx(score, abs=1e-5)) for node_id, score in found(own, "dense", question)]
    assert held(store) == our_ids(index)
    index.delete_ref_doc("newts")
    assert held(store) == our_ids(index)


def test_reopened_with_the_store(tmp_path: Path) -> None:
    store = qdrant_store(tmp_path / "qdrant")
    with build(persist_dir=tmp_path / "index", vector_store=store):
        pass
    close(store)
    with pytest.raises(ConfigurationError, match="external vector store"):
        CorpusIndex.load(tmp_path / "index", embed_model=DeterministicEmbedding())
    store = qdrant_store(tmp_path / "qdrant")
    with CorpusIndex.load(tmp_path / "index", vector_store=store, embed_model=DeterministicEmbedding()) as index:
        assert_same_answers(index, texts())
        assert index.verify().ok
        index.delete_ref_doc("fox.txt")
    close(store)
    store = qdrant_store(tmp_path / "qdrant")
    with CorpusIndex.load(tmp_path / "index", vector_store=store, embed_model=DeterministicEmbedding(), read_only=True) as index:
        assert_same_answers(index, {name: text for name, text in texts().items() if name != "fox.txt"})
    close(store)


def test_lost_store_is_filled_from_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    build(persist_dir=tmp_path / "index", vector_store=SimpleVectorStore()).close()
    store, model = qdrant_store(), DeterministicEmbedding()
    with CorpusIndex.load(tmp_path / "index", vector_store=store, embed_model=model) as index:
        assert f"QdrantVectorStore lacks {len(our_ids(index))} nodes of this index" in index.verify().problems[0]
        report = index.verify(repair=True)
        assert "from vectors kept here" in report.repaired[0]
        assert model.texts == []
        assert index.verify().ok
        assert_same_answers(index, texts())
    close(store)


def test_files_and_store_are_damaged_at_once(tmp_path: Path) -> None:
    store, folder, model = SimpleVectorStore(), tmp_path / "index", DeterministicEmbedding()
    with build(persist_dir=folder, vector_store=store) as index, failing(store, "add", after=1), pytest.raises(VectorStoreError):
        index.update_ref_doc(documents(CHANGED)[0])
    vectors = next(file for file in folder.iterdir() if "vectors" in file.name)
    content = bytearray(vectors.read_bytes())
    content[40] ^= 255
    vectors.write_bytes(content)
    report = CorpusIndex.repair(folder, vector_store=store, embed_model=model)
    assert [line.split(" is ")[0] for line in report.problems[:1]] == [f"The file {vectors.name!r}"]
    assert "was cut off" in report.problems[1]
    assert len(model.texts) > 0  # only what is lost here is embedded again
    with CorpusIndex.load(folder, vector_store=store, embed_model=model) as index:
        assert index.verify().ok
        index.compact()
        assert held(store) == our_ids(index)
        assert_same_answers(index, texts())
        index.persist(tmp_path / "copy")
    other = FlatVectorStore()
    with CorpusIndex.load(tmp_path / "copy", vector_store=other, embed_model=model) as index:
        assert index.verify(repair=True).repaired == [f"{len(our_ids(index))} nodes were written to FlatVectorStore again, from vectors kept here."]
        assert_same_answers(index, texts())


class BrokenError(RuntimeError):
    pass


@contextmanager
def failing(
    store: BasePydanticVectorStore, method: str, *, after: int | None = None, only: Callable[[object], bool] = lambda _: True
) -> Iterator[list[object]]:
    """The method does a part of its work (the first `after` nodes; None = all of it), then fails."""
    real, calls = getattr(type(store), method), list[object]()

    def broken(self: BasePydanticVectorStore, argument: list[object] | str, **options: object) -> object:
        if self is not store or not only(argument):
            return real(self, argument, **options)
        calls.append(argument)
        if isinstance(argument, str) or after is None:
            real(self, argument, **options)
        elif after:
            real(self, argument[:after], **options)
        raise BrokenError("the connection was lost")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(store), method, broken)
        yield calls


CHANGED = {"fox.txt": "The fox is silver now. It sleeps by day. Nobody has seen it."}


@pytest.mark.parametrize(("method", "after"), [("add", 0), ("add", 1), ("add", None), ("delete", None)])
def test_failure_between_the_two_is_known_and_mended(store: BasePydanticVectorStore, method: str, after: int | None, caplog: pytest.LogCaptureFixture) -> None:
    model = DeterministicEmbedding()
    index = build(vector_store=store, embed_model=model)
    with (
        failing(store, method, after=after),
        pytest.raises(VectorStoreError, match=r"failed to .* \(BrokenError: the connection was lost\)\. Nothing has changed"),
    ):
        index.update_ref_doc(documents(CHANGED)[0])
    assert index.last_report.skipped[0].ref_doc_id == "fox.txt"
    assert [info.hash for info in index.list_documents()] == [info.hash for info in build().list_documents()]
    assert "may differ in 1 documents" in caplog.text
    assert {hit.node.ref_doc_id for hit in index.as_retriever("lexical").retrieve("silver")} == set()
    assert our_ids(index) >= {hit.node_id for hit in index.as_retriever("dense", similarity_top_k=100).retrieve("silver")}

    assert "A change of 1 documents or nodes was cut off" in index.verify().problems[0]
    embedded = len(model.texts)
    assert index.verify(repair=True).repaired
    assert len(model.texts) == embedded
    assert index.verify().ok
    assert held(store) == our_ids(index)
    assert_same_answers(index, texts())


@pytest.mark.parametrize("method", ["add", "delete"])
def test_next_write_of_the_document_makes_them_agree(store: BasePydanticVectorStore, method: str) -> None:
    index = build(vector_store=store)
    with failing(store, method, after=1), pytest.raises(VectorStoreError):
        index.update_ref_doc(documents(CHANGED)[0])
    index.update_ref_doc(documents(CHANGED)[0])
    assert index.verify().ok
    assert held(store) == our_ids(index)
    assert_same_answers(index, {**texts(), **CHANGED})


def test_first_write_of_all_fails(store: BasePydanticVectorStore) -> None:
    index = CorpusIndex(vector_store=store, embed_model=DeterministicEmbedding(), chunk_size=32, chunk_overlap=0)
    with failing(store, "add", after=0), pytest.raises(VectorStoreError):
        index.insert(documents(texts())[0])
    assert not index.verify().ok
    assert index.verify(repair=True).repaired
    assert index.verify().ok
    with failing(store, "add", after=1), pytest.raises(VectorStoreError):
        index.insert(documents(texts())[0])
    index.apply(added=documents(texts()))
    assert index.verify().ok
    assert_same_answers(index, texts())


def test_failed_deletion_keeps_the_document(store: BasePydanticVectorStore) -> None:
    index = build(vector_store=store)
    with failing(store, "delete", only=lambda name: name == "fox.txt"):
        report = index.apply(deleted=["bee.txt", "fox.txt", "owl.txt"])
    assert report.deleted == ["bee.txt", "owl.txt"]
    assert [item.ref_doc_id for item in report.skipped] == ["fox.txt"]
    assert "could not be deleted, the stored version is kept: VectorStoreError" in report.skipped[0].reason
    assert not index.verify(repair=True).ok
    assert index.verify().ok
    assert_same_answers(index, {name: text for name, text in texts().items() if name not in ("bee.txt", "owl.txt")})


def test_one_document_the_store_refuses_does_not_stop_the_others(store: BasePydanticVectorStore) -> None:
    model = DeterministicEmbedding()
    index = CorpusIndex(vector_store=store, embed_model=model, chunk_size=32, chunk_overlap=0)
    contents = texts()
    with failing(store, "add", after=2, only=lambda nodes: any(node.ref_doc_id == "owl.txt" for node in nodes)):
        report = index.apply(added=documents(contents))
    assert [item.ref_doc_id for item in report.skipped] == ["owl.txt"]
    assert "could not be stored" in report.skipped[0].reason
    assert sorted(report.added) == sorted(name for name in contents if name != "owl.txt")
    assert len(model.texts) == len(set(model.texts))  # a second attempt embeds nothing again
    del contents["owl.txt"]
    assert_same_answers(index, contents)
    index.verify(repair=True)
    assert held(store) == our_ids(index)
    assert index.verify().ok


def test_store_that_is_down_is_not_tried_for_every_document() -> None:
    store = SimpleVectorStore()
    index = CorpusIndex(vector_store=store, embed_model=DeterministicEmbedding())
    with failing(store, "add") as calls, pytest.raises(VectorStoreError):
        index.apply(added=documents(texts()))
    assert len(calls) == 4  # all together, then three alone
    reasons = [item.reason for item in index.last_report.skipped]
    assert reasons[-1] == "not tried: the vector store failed 3 times in a row"
    index.apply(added=documents(texts()))
    with failing(store, "delete") as calls, pytest.raises(VectorStoreError):
        index.apply(deleted=list(texts()))
    assert len(calls) == 4
    assert len(index.list_documents()) == len(texts())


def test_failed_node_changes_are_mended(store: BasePydanticVectorStore) -> None:
    index = build(vector_store=store)
    index.insert_nodes(ready_nodes(range(3)))
    with failing(store, "add", after=1), pytest.raises(VectorStoreError, match="failed to add 4 nodes"):
        index.insert_nodes(ready_nodes(range(2, 6)))
    with failing(store, "delete_nodes", after=1), pytest.raises(VectorStoreError, match="failed to delete 2 nodes"):
        index.delete_nodes([node.node_id for node in ready_nodes(range(2))])
    assert not index.verify(repair=True).ok
    assert index.verify().ok
    assert held(store) == our_ids(index)
    assert our_ids(index) >= {node.node_id for node in ready_nodes(range(3))}


def test_our_commit_fails_after_the_store_was_written(store: BasePydanticVectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    index = build(vector_store=store)
    run = index.corpus.database._run
    armed = []

    def full_disk(sql: str, parameters: object = ()) -> object:
        if sql == "COMMIT" and armed:
            raise OSError("the disk is full")
        return run(sql, parameters)

    add = type(store).add
    monkeypatch.setattr(type(store), "add", lambda self, nodes, **options: armed.append(1) or add(self, nodes, **options))
    monkeypatch.setattr(index.corpus.database, "_run", full_disk)
    with pytest.raises(OSError, match="the disk is full"):
        index.update_ref_doc(documents(CHANGED)[0])
    monkeypatch.undo()
    assert not index.verify().ok
    assert our_ids(index) >= {hit.node_id for hit in index.as_retriever("dense").retrieve("silver fox")}
    index.verify(repair=True)
    assert index.verify().ok
    assert held(store) == our_ids(index)
    assert_same_answers(index, texts())


def test_what_fails_before_the_store_is_called_leaves_no_note(store: BasePydanticVectorStore, caplog: pytest.LogCaptureFixture) -> None:
    index = build(vector_store=store)
    with pytest.raises(EmbeddingMismatchError):
        index.insert_nodes([TextNode(text="too short a vector", embedding=[1.0, 2.0])], use_embeddings=True)
    with pytest.raises(ConfigurationError):
        index.insert_nodes([TextNode(text="no direction", embedding=[0.0] * 64)], use_embeddings=True)
    assert index.corpus.external.pending() == []
    assert "may differ" not in caplog.text
    with failing(store, "add", after=1), pytest.raises(VectorStoreError):
        index.insert_nodes([first := ready_nodes(range(1))[0]])
    with pytest.raises(EmbeddingMismatchError):
        index.insert_nodes([first.model_copy(update={"text": "other", "embedding": [1.0]})], use_embeddings=True)
    assert index.corpus.external.pending() == [("", first.node_id)]  # that of the change before stays


KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_external_vector_store import CHANGED, DeterministicEmbedding, CorpusIndex, documents, qdrant_store
folder = Path(sys.argv[1])
store = qdrant_store(folder / "qdrant")
index = CorpusIndex.load(folder / "index", vector_store=store, embed_model=DeterministicEmbedding())
add = type(store).add
def killed(self, nodes, **options):
    add(self, nodes[:1], **options)
    os._exit(9)
type(store).add = killed
index.apply(updated=documents(CHANGED), deleted=["bee.txt"])
"""


def test_killed_between_the_two(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = qdrant_store(tmp_path / "qdrant")
    build(persist_dir=tmp_path / "index", vector_store=store).close()
    close(store)
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(Path(__file__).parent)], capture_output=True, text=True, timeout=200, check=False,
                          env={**os.environ, "PYTHONUTF8": "1"})  # fmt: skip
    assert done.returncode == 9, done.stderr
    store, model = qdrant_store(tmp_path / "qdrant"), DeterministicEmbedding()
    with caplog.at_level(logging.WARNING), CorpusIndex.load(tmp_path / "index", vector_store=store, embed_model=model) as index:
        assert "QdrantVectorStore and this index may differ in 1 documents or nodes" in caplog.text
        assert not index.verify(repair=True).ok
        assert model.texts == []
        assert index.verify().ok
        assert held(store) == our_ids(index)
        assert_same_answers(index, {name: text for name, text in texts().items() if name != "bee.txt"})
    close(store)


def test_store_that_cannot_be_asked_is_reported() -> None:
    index = build(vector_store=SimpleVectorStore())
    report = index.verify()
    assert report.ok
    assert report.unchecked == ["SimpleVectorStore cannot say which nodes it holds; only changes that were cut off are known."]


def test_store_that_does_not_answer_is_a_problem(qdrant: BasePydanticVectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    index = build(vector_store=qdrant)

    def down(*_: object, **__: object) -> None:
        raise BrokenError("no answer")

    monkeypatch.setattr(type(qdrant), "get_nodes", down)
    assert index.verify().problems == ["QdrantVectorStore could not be asked for its nodes: BrokenError: no answer"]


def test_ids_that_qdrant_cannot_store(qdrant: BasePydanticVectorStore) -> None:
    index = build(vector_store=qdrant)
    with pytest.raises(VectorStoreError, match="not a valid UUID"):
        index.insert_nodes([TextNode(text="of any name", id_="any name")])
    assert index.as_retriever("lexical").retrieve("name") == []
    assert not index.verify(repair=True).ok
    assert index.verify().ok


def test_documents_only_store_says_that_it_cannot_delete_nodes() -> None:
    class DocumentsOnly(SimpleVectorStore):
        delete_nodes = BasePydanticVectorStore.delete_nodes

    index = build(vector_store=DocumentsOnly())
    with pytest.raises(ConfigurationError, match="it deletes whole documents only"):
        index.delete_nodes(sorted(our_ids(index))[:1])
    assert index.corpus.external.pending() == []
    assert index.verify().ok


def test_async_client_alone_is_refused() -> None:
    qdrant = pytest.importorskip("llama_index.vector_stores.qdrant", reason="llama-index-vector-stores-qdrant (dependency group `test`) is not installed")
    from qdrant_client import AsyncQdrantClient

    with pytest.raises(ConfigurationError, match="async client only.*client="):
        CorpusIndex(vector_store=qdrant.QdrantVectorStore("corpus", aclient=AsyncQdrantClient(":memory:")), embed_model=DeterministicEmbedding())
