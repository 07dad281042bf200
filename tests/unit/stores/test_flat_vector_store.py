import asyncio
import copy
import pickle
import random
import subprocess
import sys
import threading

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters, VectorStoreQuery, VectorStoreQueryMode

from llama_index_advanced_rag.errors import (
    ConfigurationError,
    EmbeddingMismatchError,
    IndexFormatError,
    IndexNotCopiedError,
    IndexNotFoundError,
    NodeSourceError,
    ReadOnlyIndexError,
    StorageError,
)
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.vectors.flat_rows import FlatRows, FlatSettings
from llama_index_advanced_rag.testing import DeterministicEmbedding


def make_node(node_id, vector, doc="d", start=0, **metadata):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=doc)} if doc else {}
    return TextNode(id_=node_id, text=f"text of {node_id}", embedding=vector, metadata=metadata, relationships=source, start_char_idx=start)


def random_nodes(count, dimension=16, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, dimension))
    return [make_node(f"n{place}", vectors[place].tolist(), doc=f"d{place % 7}", year=2000 + place % 5, parity=place % 2) for place in range(count)]


def ask(store, vector, top_k=5, **kwargs):
    return store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=top_k, **kwargs))


def where(key, value, operator="=="):
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


@pytest.fixture(params=[(True, False), (False, False), (True, True), (False, True)], ids=["nodes", "ids only", "nodes in a folder", "ids in a folder"])
def store(request, tmp_path):
    keep_nodes, on_disk = request.param
    return FlatVectorStore(tmp_path / "own" if on_disk else None, keep_nodes=keep_nodes)


@pytest.mark.parametrize("filters", [None, where("year", 2003), where("year", 2002, ">="), where("ref_doc_id", "d3"), where("none", 1)])
def test_same_results_as_the_simple_vector_store(store, filters):
    nodes = random_nodes(300)
    before = [node.model_copy(deep=True) for node in nodes]
    stock = SimpleVectorStore()
    assert store.add(nodes) == stock.add(nodes)
    for seed in range(5):
        vector = np.random.default_rng(1000 + seed).standard_normal(16).tolist()
        for top_k in (1, 10, 1000):
            ours, theirs = ask(store, vector, top_k, filters=filters), ask(stock, vector, top_k, filters=filters)
            assert ours.ids == theirs.ids
            assert ours.similarities == pytest.approx(theirs.similarities, abs=1e-6)
            assert all(type(score) is float for score in ours.similarities)
    assert nodes == before


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_metrics_against_the_definition(metric):
    nodes, vector = random_nodes(200), np.random.default_rng(5).standard_normal(16)
    matrix = np.array([node.embedding for node in nodes])
    expected = {
        "cosine": matrix @ vector / np.linalg.norm(matrix, axis=1) / np.linalg.norm(vector),
        "dot": matrix @ vector,
        "euclidean": 1 / (1 + np.linalg.norm(matrix - vector, axis=1)),
    }[metric]
    store = FlatVectorStore(metric=metric)
    store.add(nodes)
    result = ask(store, vector.tolist(), 20)
    order = np.argsort(-expected)[:20]
    assert result.ids == [f"n{place}" for place in order]
    assert result.similarities == pytest.approx(expected[order].tolist(), abs=1e-5)
    if metric != "dot":
        assert ask(store, nodes[3].embedding, 1).similarities == pytest.approx([1.0], abs=1e-6)


def test_ties_break_by_document_place_and_id_wherever_rows_stand():
    vector = np.random.default_rng(0).standard_normal(37).tolist()
    nodes = [make_node(f"t{place:02}", vector, doc=f"d{place % 3}", start=place % 4) for place in range(40)] + random_nodes(50, 37, seed=1)
    expected = [node.node_id for node in sorted(nodes[:40], key=lambda node: (node.ref_doc_id, node.start_char_idx, node.node_id))]
    for seed in range(5):
        random.Random(seed).shuffle(nodes)
        store = FlatVectorStore()
        for start in range(0, len(nodes), 13):
            store.add(nodes[start : start + 13])
        assert ask(store, vector, 7).ids == expected[:7]
        assert ask(store, vector, 40).ids == expected


IDS = ["", "n", "N", "é", "e\u0301", "a\0b", "\ud800", "\U0001f98a", "'; --", "%", "\n", "0"]
STEPS = ["add", "add", "add", "delete", "delete_nodes", "filter", "clear", "persist", "reopen"]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 11)), max_size=20),
    st.booleans(),
    st.sampled_from(["cosine", "dot", "euclidean"]),
    st.sampled_from(["float32", "float16"]),
)
def test_after_any_series_of_updates_results_are_those_of_a_fresh_store(tmp_path_factory, steps, on_disk, metric, dtype):
    options, folder = {"metric": metric, "dtype": dtype}, tmp_path_factory.mktemp("store")
    store, held = FlatVectorStore(folder if on_disk else None, **options), {}
    for number, (kind, place) in enumerate(steps):
        if kind == "add":
            ids = [*(IDS * 2)[place : place + 5], IDS[place]]
            nodes = [make_node(one, random_nodes(1, 4, seed=number + at)[0].embedding, f"d{IDS.index(one) % 4}", v=at % 3) for at, one in enumerate(ids)]
            assert store.add(nodes) == ids
            held.update((node.node_id, node) for node in nodes)
        elif kind == "delete":
            store.delete(f"d{place % 5}")
            held = {one: node for one, node in held.items() if node.ref_doc_id != f"d{place % 5}"}
        elif kind == "delete_nodes":
            store.delete_nodes([IDS[place], "unknown"])
            held.pop(IDS[place], None)
        elif kind == "filter":
            store.delete_nodes(filters=where("v", place))
            held = {one: node for one, node in held.items() if node.metadata["v"] != place}
        elif kind == "clear":
            store.clear()
            held = {}
        elif kind == "persist":
            path = str(folder / f"copy {number}")
            store.persist(path)
            store = FlatVectorStore.from_persist_path(path)
            on_disk = False
        elif on_disk:
            store.close()
            store = FlatVectorStore(folder)
    assert len(store) == len(held)
    fresh = FlatVectorStore(**options)
    fresh.add(list(held.values()))
    for mode in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.MMR):
        for filters in (None, where("v", 1), where("doc_id", ["d0", "d2"], "in")):
            ours, theirs = (ask(one, [1.0, 2.0, -1.0, 0.5], 8, mode=mode, filters=filters) for one in (store, fresh))
            assert ours.ids == theirs.ids
            assert ours.similarities == pytest.approx(theirs.similarities, abs=1e-6)
            assert [node.node_id for node in ours.nodes] == ours.ids
            assert [(node.text, node.metadata, node.ref_doc_id) for node in ours.nodes] == [
                (held[one].text, held[one].metadata, held[one].ref_doc_id) for one in ours.ids
            ]
    assert {node.node_id for node in store.get_nodes()} == set(held)
    store.close()


def test_ids_restrict_before_the_cut(store):
    store.add(random_nodes(100))
    vector = random_nodes(1, seed=9)[0].embedding
    assert sorted(ask(store, vector, 10, node_ids=["n5", "n50", "unknown"]).ids) == ["n5", "n50"]
    assert {int(one[1:]) % 7 for one in ask(store, vector, 100, doc_ids=["d1", "d2"]).ids} == {1, 2}
    assert ask(store, vector, 10, doc_ids=["d1"], node_ids=["n5"]).ids == []
    assert ask(store, vector, 10, doc_ids=[]).ids == []
    assert len(ask(store, vector, 10, node_ids=[]).ids) == (10 if store.keep_nodes else 0)
    assert store.search(vector, 3, node_ids=[]) == []
    assert store.search(vector, 3, doc_ids=[]) == []
    assert store.search(vector, 3, filters=where("parity", 1)) == [(one, score) for one, score in store.search(vector, 100) if int(one[1:]) % 2][:3]


def test_nested_filters(store):
    store.add(random_nodes(100))
    nested = MetadataFilters(
        filters=[where("parity", 1), MetadataFilters(filters=[where("year", 2000), where("year", 2001)], condition=FilterCondition.OR)],
        condition=FilterCondition.AND,
    )
    found = ask(store, random_nodes(1, seed=9)[0].embedding, 100, filters=nested).ids
    assert sorted(int(one[1:]) for one in found) == [place for place in range(100) if place % 2 and place % 5 < 2]


def test_mmr_against_the_definition():
    nodes, vector = random_nodes(40, 6), np.random.default_rng(3).standard_normal(6)
    store = FlatVectorStore()
    store.add(nodes)
    matrix = np.array([node.embedding for node in nodes])
    matrix /= np.linalg.norm(matrix, axis=1)[:, None]
    wanted = matrix @ vector / np.linalg.norm(vector)
    for threshold in (0.0, 0.3, 1.0):
        picked, scores = [], []
        for _ in range(8):
            left = [place for place in range(40) if place not in picked]
            marginal = [threshold * wanted[one] - ((1 - threshold) * max(matrix[one] @ matrix[other] for other in picked) if picked else 0) for one in left]
            picked.append(left[int(np.argmax(marginal))])
            scores.append(max(marginal))
        query = VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=8, mode=VectorStoreQueryMode.MMR)
        result = store.query(query, mmr_threshold=threshold)
        if threshold:
            assert result.ids == [f"n{place}" for place in picked]
        assert result.similarities == pytest.approx(scores, abs=1e-6)
    assert ask(store, vector.tolist(), 3, mode=VectorStoreQueryMode.MMR, mmr_threshold=1.0).ids == ask(store, vector.tolist(), 3).ids
    with pytest.raises(ConfigurationError, match=r"mmr_threshold=2 is out of range"):
        store.query(query, mmr_threshold=2)


@pytest.mark.parametrize("mode", [mode for mode in VectorStoreQueryMode if mode.value not in ("default", "mmr")])
def test_other_modes_are_refused_with_the_reason(store, mode):
    with pytest.raises(ConfigurationError, match=rf"mode '{mode.value}' is not available: it (searches text|fits a classifier)"):
        ask(store, [1.0], mode=mode)


def test_bad_vectors_change_nothing(store):
    store.add([make_node("a", [1.0, 0.0])])
    with pytest.raises(EmbeddingMismatchError, match=r"node 'b' has 3 dimensions, and the vectors of this store have 2"):
        store.add([make_node("a", [0.0, 1.0]), make_node("b", [1.0, 2.0, 3.0])])
    for vector, message in (([float("nan"), 1.0], "NaN or infinity"), ([1e300, 1.0], "NaN or infinity"), ([0.0, 0.0], "is zero"), (None, "has no embedding")):
        with pytest.raises(ConfigurationError, match=rf"'b'.*{message}"):
            store.add([make_node("a", [0.0, 1.0]), make_node("b", vector)])
    with pytest.raises(EmbeddingMismatchError, match=r"query vector has 3 dimensions, .* have 2"):
        ask(store, [1.0, 0.0, 0.0])
    for vector, message in (([0.0, 0.0], "is zero"), ([float("inf"), 0.0], "NaN or infinity"), (None, "has no embedding")):
        with pytest.raises(ConfigurationError, match=message):
            ask(store, vector)
    with pytest.raises(ConfigurationError, match="similarity_top_k=0"):
        ask(store, [1.0, 0.0], 0)
    assert ask(store, [1.0, 0.0]).similarities == [1.0]
    assert store.dimension == 2
    with pytest.raises(EmbeddingMismatchError):
        FlatVectorStore().add([make_node("a", [1.0]), make_node("b", [1.0, 2.0])])


def test_zero_vectors_are_fine_where_they_have_a_similarity():
    for metric in ("dot", "euclidean"):
        store = FlatVectorStore(metric=metric)
        store.add([make_node("a", [0.0, 0.0]), make_node("b", [1.0, 0.0])])
        assert len(ask(store, [0.0, 0.0]).ids) == 2
    with pytest.raises(ConfigurationError, match=r"metric='manhattan' is not known.*cosine"):
        FlatVectorStore(metric="manhattan")


def test_duplicate_ids(store):
    assert store.add([make_node("a", [1.0, 0.0]), make_node("b", [1.0, 1.0]), make_node("a", [0.0, 1.0], doc="other")]) == ["a", "b", "a"]
    assert len(store) == 2
    assert ask(store, [0.0, 1.0], 1).ids == ["a"]
    store.delete("d")
    assert ask(store, [0.0, 1.0]).ids == ["a"]
    assert "a" in store
    assert "b" not in store


def test_empty_store(store):
    assert store.add([]) == []
    result = ask(store, [1.0, 2.0])
    assert (result.ids, result.similarities) == ([], [])
    assert ask(store, [1.0], mode=VectorStoreQueryMode.MMR, filters=where("a", 1)).ids == []
    store.delete("none")
    store.delete_nodes([])
    with pytest.raises(ConfigurationError, match="call clear"):
        store.delete_nodes()
    store.add([make_node("a", [1.0, 0.0])])
    store.clear()
    assert len(store) == 0
    store.add([make_node("a", [1.0, 0.0, 0.0])])
    assert store.dimension == 3


def test_nodes_are_copies(store):
    node = make_node("a", [1.0, 0.0], tags=["x"])
    store.add([node])
    node.metadata["tags"].append("changed")
    if not store.keep_nodes:
        assert not store.stores_text
        assert ask(store, [1.0, 0.0]).nodes is None
        with pytest.raises(NodeSourceError, match="keep_nodes=False"):
            store.get_nodes(["a"])
        return
    read = ask(store, [1.0, 0.0]).nodes[0]
    assert read.metadata == {"tags": ["x"]}
    assert read.embedding is None
    read.metadata["tags"].append("changed")
    assert store.get_nodes(["unknown", "a"])[0].metadata == {"tags": ["x"]}
    assert [node.node_id for node in store.get_nodes(filters=where("tags", "x", "contains"))] == ["a"]
    assert node.embedding == [1.0, 0.0]


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_persist_and_reload(tmp_path, metric, dtype, store):
    store = FlatVectorStore(metric=metric, keep_nodes=store.keep_nodes, dtype=dtype)
    store.add([*random_nodes(50, 8), IndexNode(id_="é\0\ud800", text="x", index_id="i", embedding=[1.0] * 8)])
    store.delete("d1")
    path = tmp_path / "a folder" / "é.bin"
    store.persist(str(path))
    store.persist(str(path))
    assert [one.name for one in path.parent.iterdir()] == ["é.bin"]
    for loaded in (FlatVectorStore.from_persist_path(str(path)), FlatVectorStore.from_persist_path(str(path), fs=fsspec.filesystem("file"))):
        assert (loaded.metric, loaded.keep_nodes, loaded.dtype, len(loaded)) == (store.metric, store.keep_nodes, dtype, len(store))
        assert ask(loaded, [1.0] * 8, 60) == ask(store, [1.0] * 8, 60)
        loaded.close()
    FlatVectorStore().persist(str(path))
    assert FlatVectorStore.from_persist_path(str(path)).add([make_node("a", [1.0])]) == ["a"]


def test_other_file_systems(store):
    memory = fsspec.filesystem("memory")
    store.add(random_nodes(30))
    store.persist("/somewhere/vectors", fs=memory)
    store.delete_nodes(["n1"])
    store.persist("/somewhere/vectors", fs=memory)
    loaded = FlatVectorStore.from_persist_path("/somewhere/vectors", fs=memory)
    assert len(loaded) == 29
    loaded.add(random_nodes(1))
    with memory.open("/a file", "w") as file:
        file.write("{}")
    with pytest.raises(IndexFormatError, match="holds no FlatVectorStore"):
        FlatVectorStore.from_persist_path("/a file", fs=memory)
    with pytest.raises(IndexNotFoundError, match="There is no folder '/nowhere'"):
        FlatVectorStore.from_persist_path("/nowhere", fs=memory)


def test_a_folder_is_opened_where_it_was_left(tmp_path):
    store = FlatVectorStore(tmp_path, metric="dot", dtype="float16", keep_nodes=False)
    store.add(random_nodes(40))
    store.delete("d3")
    before = ask(store, [1.0] * 16, 40)
    store.persist(str(tmp_path / "default__vector_store.json"))
    for again in (FlatVectorStore(tmp_path), FlatVectorStore.from_persist_dir(str(tmp_path)), FlatVectorStore(tmp_path, read_only=True)):
        assert (again.metric.value, again.dtype, again.keep_nodes) == ("dot", "float16", False)
        assert ask(again, [1.0] * 16, 40) == before
    for name, value, stored in (("metric", "cosine", "dot"), ("dtype", "float32", "float16"), ("keep_nodes", True, False)):
        with pytest.raises(ConfigurationError, match=f"was made with {name}={stored!r}, not {value!r}. Leave {name} out"):
            FlatVectorStore(tmp_path, **{name: value})
    with pytest.raises(ConfigurationError, match="dtype='float64' is not known"):
        FlatVectorStore(dtype="float64")


def test_other_handles_see_what_is_committed(tmp_path):
    writer = FlatVectorStore(tmp_path)
    writer.add(random_nodes(20))
    reader = FlatVectorStore(tmp_path, read_only=True)
    assert len(reader) == 20
    writer.delete_nodes([f"n{place}" for place in range(15)])
    assert sorted(one for one, _ in reader.search([1.0] * 16, 20)) == ["n15", "n16", "n17", "n18", "n19"]
    writer.clear()
    assert (len(reader), ask(reader, [1.0], 3).ids, reader.dimension) == (0, [], None)
    writer.add([make_node("a", [1.0, 2.0])])
    assert ask(reader, [1.0, 2.0]).nodes[0].get_content() == "text of a"
    second = FlatVectorStore(tmp_path)
    second.add([make_node("b", [2.0, 1.0])])
    writer.add([make_node("c", [2.0, 2.0])])
    assert [one for one, _ in reader.search([2.0, 2.0], 3)] == ["c", "a", "b"]
    for change in (lambda: reader.add([make_node("a", [1.0, 0.0])]), lambda: reader.delete("d"), reader.clear, lambda: reader.delete_nodes(["a"])):
        with pytest.raises(ReadOnlyIndexError):
            change()
    assert len(reader) == 3
    with pytest.raises(IndexNotFoundError, match="There is no folder"):
        FlatVectorStore(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_bad_files(tmp_path):
    store, path = FlatVectorStore(), tmp_path / "vectors"
    with pytest.raises(IndexNotFoundError, match="There is no folder"):
        FlatVectorStore.from_persist_path(str(path))
    SimpleVectorStore().persist(str(tmp_path / "stock"))
    (tmp_path / "empty").mkdir()
    for other in ("stock", "empty"):
        with pytest.raises(IndexFormatError, match="holds no FlatVectorStore"):
            FlatVectorStore.from_persist_path(str(tmp_path / other))
    CorpusDatabase(tmp_path / "corpus", create=True).close()
    with pytest.raises(IndexFormatError, match="no FlatVectorStore"):
        FlatVectorStore.from_persist_path(str(tmp_path / "corpus"))
    store.add(random_nodes(50, 8))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="holds other files"):
        store.persist(str(tmp_path / "notes"))
    store.persist(str(tmp_path / "stock"))
    assert len(FlatVectorStore.from_persist_path(str(tmp_path / "stock"))) == 50
    with pytest.raises(StorageError, match="could not be written"):
        store.persist(str(tmp_path / "notes" / "mine.txt" / "below"))
    assert [one.name for one in (tmp_path / "notes").iterdir()] == ["mine.txt"]


DAMAGES = [(kind, damage) for kind in ("vectors", "rows", "lengths") for damage in ("cut", "half", "empty", "flipped", "missing")]
DAMAGES += [("corpus.sqlite", damage) for damage in ("half", "empty", "flipped", "missing")]


@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
def test_damaged_files_are_detected(tmp_path, kind, damage):
    store = FlatVectorStore()
    store.add(random_nodes(50, 8))
    store.persist(str(tmp_path / "s"))
    (file,) = (tmp_path / "s").glob(f"{kind}*")
    good = file.read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2 if file.suffix == ".bin" else 10] ^= 8
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes({"cut": good[:-1], "half": good[: len(good) // 2], "empty": b"", "flipped": bytes(flipped)}[damage])
    with pytest.raises((IndexFormatError, IndexNotFoundError), match="damaged|missing|shorter|no FlatVectorStore|not an index|no index|format"):
        ask(FlatVectorStore.from_persist_path(str(tmp_path / "s")), [1.0] * 8)


def test_metadata_that_are_not_json_are_refused_and_change_nothing(store):
    store.add([make_node("a", [1.0, 0.0])])
    with pytest.raises(ConfigurationError, match="Node 'b' cannot be stored: its metadata key 'tags' is not JSON"):
        store.add([make_node("a", [0.0, 1.0]), make_node("b", [1.0, 1.0], tags={1})])
    assert store.search([1.0, 0.0], 5) == [("a", 1.0)]


def test_the_vectors_of_a_corpus_are_read_and_not_written():
    rows = FlatRows(None, FlatSettings())
    rows.add(random_nodes(20), [node.embedding for node in random_nodes(20)])
    store = FlatVectorStore._of_rows(rows, metric=rows.settings.metric)
    assert store.row_space is rows
    assert (len(store), store.dimension, "n3" in store, store.stores_text) == (20, 16, True, False)
    assert ask(store, random_nodes(20)[3].embedding, 2).ids[0] == "n3"
    for change in (lambda: store.add(random_nodes(1)), lambda: store.delete("d1"), store.clear, lambda: store.delete_nodes(["n1"])):
        with pytest.raises(ReadOnlyIndexError, match=r"index\.insert_nodes"):
            change()
    with pytest.raises(ConfigurationError, match=r"index\.persist"):
        store.persist("anywhere")
    with pytest.raises(NodeSourceError, match="holds no nodes"):
        store.get_nodes()
    with pytest.raises(IndexNotCopiedError, match="Open it again"):
        copy.deepcopy(store)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store)), lambda store: store.model_copy(deep=True)])
def test_copies(again, store, tmp_path):
    store = FlatVectorStore(metric="dot", keep_nodes=store.keep_nodes, dtype="float16")
    store.add(random_nodes(1200, 5))
    store.delete("d1")
    other = again(store)
    assert (other.metric, other.keep_nodes, other.dtype) == (store.metric, store.keep_nodes, store.dtype)
    assert ask(other, [1.0] * 5, 2000) == ask(store, [1.0] * 5, 2000)
    other.clear()
    assert len(store) > 1000
    with pytest.raises(IndexNotCopiedError, match=r"FlatVectorStore\(persist_dir, read_only=True\)"):
        again(FlatVectorStore(tmp_path / "disk"))


KILLED = """
import sys
from llama_index.core.schema import TextNode
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.stores.vectors.flat_rows import FlatRows, FlatSettings
from llama_index_advanced_rag.stores.flat_vector_store import FlatVectorStore
store = FlatVectorStore(sys.argv[1])
print("open", flush=True)
batch = 0
while True:
    nodes = [TextNode(id_=f"n{place}", text=str(batch), metadata={"batch": batch}, embedding=[1.0, batch + place / 100]) for place in range(20)]
    store.add(nodes)
    print(batch, flush=True)
    batch += 1
"""


def test_a_killed_writer_leaves_whole_updates(tmp_path):
    for turn in range(4):
        writer = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / str(turn))], stdout=subprocess.PIPE, text=True)
        lines = [writer.stdout.readline() for _ in range(2 + 5 * turn)]
        writer.kill()
        committed = [*lines, *writer.stdout.readlines()][1:]
        writer.wait()
        writer.stdout.close()
        store = FlatVectorStore(tmp_path / str(turn))
        found = ask(store, [1.0, 1.0], 100)
        assert len(found.ids) == len(store) == 20
        (batch,) = {node.metadata["batch"] for node in found.nodes}
        assert batch >= int(committed[-1])
        (same,) = {int(node.text) for node in store.get_nodes(filters=where("batch", batch))}
        assert same == batch
        assert store.search([1.0, batch + 0.07], 1)[0][1] == pytest.approx(1.0, abs=1e-6)
        store.add([make_node("after", [1.0, 0.0])])


def make_documents(count=4):
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    rng = random.Random(0)
    return [Document(id_=f"{place}.txt", text=" ".join(rng.choices(words, k=60)) + f" unique{place}", metadata={"place": place}) for place in range(count)]


def test_drop_in_for_a_vector_store_index(tmp_path):
    documents, splitter = make_documents(), SentenceSplitter(chunk_size=30, chunk_overlap=0)
    model = DeterministicEmbedding()
    nodes = splitter.get_nodes_from_documents(documents)
    stock = VectorStoreIndex(nodes, embed_model=model)
    index = VectorStoreIndex.from_vector_store(FlatVectorStore(), embed_model=model)
    index.insert_nodes(nodes)

    def hits(of, question, **kwargs):
        return [(hit.node_id, round(hit.score, 5), hit.text) for hit in of.as_retriever(similarity_top_k=4, **kwargs).retrieve(question)]

    for question in ("unique2 alpha", "beta gamma"):
        assert hits(index, question) == hits(stock, question)
        assert hits(index, question, filters=where("place", 1)) == hits(stock, question, filters=where("place", 1))
    index.delete_ref_doc("2.txt")
    stock.delete_ref_doc("2.txt")
    assert hits(index, "unique2 alpha") == hits(stock, "unique2 alpha")
    index.insert(Document(id_="new", text="something unique2"))
    assert index.as_retriever(similarity_top_k=1).retrieve("unique2")[0].node.ref_doc_id == "new"
    index.storage_context.persist(str(tmp_path))
    again = VectorStoreIndex.from_vector_store(FlatVectorStore.from_persist_dir(str(tmp_path)), embed_model=model)
    assert hits(again, "unique2 alpha") == hits(index, "unique2 alpha")
    with pytest.raises(OSError, match="vector_store.json"):  # LlamaIndex's own store does not take the folder for an empty one of its own
        StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(
        StorageContext.from_defaults(persist_dir=str(tmp_path), vector_store=FlatVectorStore.from_persist_dir(str(tmp_path), read_only=True)), embed_model=model
    )
    assert hits(loaded, "unique2 alpha") == hits(index, "unique2 alpha")
    index.delete_nodes([nodes[0].node_id])
    assert nodes[0].node_id not in index.vector_store


def test_without_nodes_the_docstore_supplies_them():
    context = StorageContext.from_defaults(vector_store=FlatVectorStore(keep_nodes=False))
    assert isinstance(context.vector_store, FlatVectorStore)
    index = VectorStoreIndex.from_documents(make_documents(), embed_model=DeterministicEmbedding(), storage_context=context)
    stock = VectorStoreIndex.from_documents(make_documents(), embed_model=DeterministicEmbedding())
    hits, expected = (one.as_retriever(similarity_top_k=4).retrieve("unique2 alpha") for one in (index, stock))
    assert [(hit.text, round(hit.score, 6)) for hit in hits] == [(hit.text, round(hit.score, 6)) for hit in expected]
    index.delete_ref_doc("2.txt", delete_from_docstore=True)
    assert len(index.as_retriever(similarity_top_k=10).retrieve("unique2")) == 3


async def test_async_twins(store):
    nodes = random_nodes(60)
    assert await store.async_add(nodes) == [node.node_id for node in nodes]
    query = VectorStoreQuery(query_embedding=nodes[0].embedding, similarity_top_k=3)
    assert await store.aquery(query) == store.query(query)
    assert (await asyncio.gather(*(store.aquery(query) for _ in range(8))))[0].ids[0] == "n0"
    if store.keep_nodes:
        assert len(await store.aget_nodes(["n1", "n2"])) == 2
    await store.adelete("d0")
    await store.adelete_nodes(["n1"])
    assert (await store.aquery(query)).ids[0] not in ("n0", "n1")
    await store.aclear()
    assert len(store) == 0


def test_readers_beside_a_writer_see_whole_states():
    store, stop, failures = FlatVectorStore(), threading.Event(), []
    batches = [[make_node(f"{batch}-{place}", [1.0, batch + place / 100], doc=f"d{batch}") for place in range(10)] for batch in range(30)]

    def read():
        while not stop.is_set():
            found = ask(store, [1.0, 1.0], 1000, filters=where("none", 1, "!=")).ids
            counts = {batch: sum(one.startswith(f"{batch}-") for one in found) for batch in range(30)}
            if set(counts.values()) - {0, 10}:
                failures.append(counts)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for turn in range(3):
        for batch in batches:
            store.add(batch)
            if turn < 2:
                store.delete(batch[0].ref_doc_id)
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert len(store) == 300


def test_a_document_that_changes_is_seen_old_or_new():
    store, stop, failures = FlatVectorStore(), threading.Event(), []
    restrictions = [{"doc_ids": ["d"]}, {"node_ids": ["a"]}, {"filters": where("kind", "x")}, {"filters": where("version", 10**6, "<")}]
    store.add([make_node("a", [1.0, 1.0], kind="x", version=0), *random_nodes(50, 2)])

    def read(restriction):
        while not stop.is_set():
            if ask(store, [1.0, 1.0], 1, **restriction).ids != ["a"]:
                failures.append(restriction)

    readers = [threading.Thread(target=read, args=(restriction,)) for restriction in restrictions]
    for reader in readers:
        reader.start()
    for version in range(1, 300):
        store.add([make_node("a", [1.0, 1.0], kind="x", version=version)])
    store.delete_nodes([f"n{place}" for place in range(50)])
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []
