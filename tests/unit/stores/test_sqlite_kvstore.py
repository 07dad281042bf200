import copy
import pickle
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag import SQLiteKVStore
from llama_index_advanced_rag.errors import (
    ConfigurationError,
    IndexClosedError,
    IndexFormatError,
    IndexNotCopiedError,
    IndexNotFoundError,
    ReadOnlyIndexError,
    StorageError,
)

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUES = st.dictionaries(TEXT, st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=5))
NAMES = st.sampled_from(["a", "b", "é", "\ud800", "\U0010ffff", "\0", ""]) | TEXT
STEPS = st.lists(
    st.tuples(st.just("put"), NAMES, NAMES, VALUES)
    | st.tuples(st.just("put_all"), NAMES, st.lists(st.tuples(NAMES, VALUES), max_size=4), st.integers(1, 9))
    | st.tuples(st.just("delete"), NAMES, NAMES, st.none())
    | st.tuples(st.just("failed"), NAMES, NAMES, VALUES)
    | st.tuples(st.just("reopen"), st.none(), st.none(), st.none()),
    max_size=12,
)
PAIRS = [(str(number), {"n": number}) for number in range(500)]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "stores é?#%" / "cache.sqlite"
    with SQLiteKVStore(file) as store:
        store.put("language", {"code": "fr"})
    return file


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    with SQLiteKVStore(tmp_path / "kv.sqlite" if request.param == "file" else None) as opened:
        yield opened


def fail_after(store, *keys):
    with store.transaction():
        for key in keys:
            store.put(key, {"lost": "x" * 1000})
        raise KeyError


def go_on_after_a_full_disk(store):
    with store.transaction():
        store.put("language", {"code": "en"})
        with pytest.raises(StorageError, match="disk is full"):
            store.put("big", {"x": "x" * 1_000_000})
        store.put("small", {})


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_any_sequence_leaves_what_a_dict_of_dicts_holds(steps):
    expected: dict[str, dict[str, dict]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteKVStore(Path(folder) / "kv.sqlite")
        for kind, collection, key, value in steps:
            if kind == "reopen":
                store.close()
                store = SQLiteKVStore(Path(folder) / "kv.sqlite")
            elif kind == "put":
                store.put(key, value, collection)
                expected.setdefault(collection, {})[key] = value
            elif kind == "put_all":
                store.put_all(key, collection, batch_size=value)
                expected.setdefault(collection, {}).update(key)
            elif kind == "delete":
                assert store.delete(key, collection) == (expected.get(collection, {}).pop(key, None) is not None)
            else:
                with pytest.raises(KeyError):
                    fail_after(store, key)
        for collection, pairs in expected.items():
            assert list(store.get_all(collection).items()) == list(pairs.items())
            assert all(store.get(key, collection) == value for key, value in pairs.items())
        assert store.to_dict() == {collection: pairs for collection, pairs in expected.items() if pairs}
        store.close()
        assert [file.name for file in Path(folder).iterdir()] == ["kv.sqlite"]


def test_a_value_is_not_shared(store):
    value = {"list": [1]}
    store.put("a", value)
    value["list"].append(2)
    store.get("a")["list"].append(3)
    assert store.get("a") == {"list": [1]}
    assert store.get("none") is store.get("a", "other") is None
    assert store.get_all("other") == {}


async def test_the_async_twins_do_the_same(store):
    await store.aput("a", {"n": 1})
    await store.aput_all([("b", {"n": 2}), ("c", {"n": 3})], batch_size=2)
    assert await store.aget("b") == {"n": 2}
    assert await store.adelete("a")
    assert not await store.adelete("a")
    assert await store.aget_all() == store.get_all() == {"b": {"n": 2}, "c": {"n": 3}}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1], "it is of type list"),
        (None, "it is of type NoneType"),
        ({"a": {1, 2}}, "type set is not JSON"),
        ({"a": [{"b": b"x"}]}, "type bytes is not JSON"),
        ({"a": ({1: "x"},)}, "the key 1 in it is of type int"),
        ({None: 1}, "the key None in it is of type NoneType"),
    ],
)
def test_what_is_not_json_is_refused_by_key_and_nothing_is_stored(store, value, reason):
    with pytest.raises(ConfigurationError, match=rf"value of key 'bad' is not JSON: .*{reason}.*convert it first"):
        store.put_all([("good", {}), ("bad", value)])
    assert store.to_dict() == {}


def test_a_value_that_holds_itself_is_refused(store):
    value = {}
    value["self"] = value
    with pytest.raises(ConfigurationError, match="value of key 'loop' is not JSON: it holds itself"):
        store.put("loop", value)


def test_names_are_strings(store):
    for use in (lambda: store.put(1, {}), lambda: store.get(1), lambda: store.delete(1)):
        with pytest.raises(ConfigurationError, match="key 1 is of type int, expected a string"):
            use()
    with pytest.raises(ConfigurationError, match="collection None is of type NoneType"):
        store.get_all(None)


def test_put_all_is_one_transaction_whatever_the_batch_size(path):
    with SQLiteKVStore(path) as store:
        statements: list[str] = []
        store._file._writer.set_trace_callback(statements.append)
        store.put_all(PAIRS, batch_size=7)
        assert [statement for statement in statements if "INSERT" not in statement] == ["BEGIN IMMEDIATE", "COMMIT"]
        assert store.get_all() == {"language": {"code": "fr"}, **dict(PAIRS)}


def test_disk_full_keeps_the_old_state(path):
    with SQLiteKVStore(path) as store:
        store._file._on_writer("PRAGMA max_page_count = 30")
        with pytest.raises(StorageError, match=r"disk is full.*Free some space"):
            store.put_all([(str(number), {"x": "x" * 1000}) for number in range(1000)])
        with pytest.raises(StorageError, match="taken back"):
            go_on_after_a_full_disk(store)
        assert store.to_dict() == {"data": {"language": {"code": "fr"}}}
        store.put("language", {"code": "de"})
        assert store.get("language") == {"code": "de"}


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_that_is_no_database(tmp_path, read_only):
    (tmp_path / "kv").write_bytes(b"hello world" * 1000)
    with pytest.raises(IndexFormatError, match=r"is not a key-value store\. Restore a copy"):
        SQLiteKVStore(tmp_path / "kv", read_only=read_only)


def test_a_database_of_another_application_is_left_alone(tmp_path):
    connection = sqlite3.connect(tmp_path / "kv")
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    before = (tmp_path / "kv").read_bytes()
    with pytest.raises(IndexFormatError, match="belongs to another application"):
        SQLiteKVStore(tmp_path / "kv")
    assert (tmp_path / "kv").read_bytes() == before


def test_another_format_version(path):
    with SQLiteKVStore(path) as store:
        store._file._on_writer("PRAGMA user_version = 99")
    with pytest.raises(IndexFormatError, match=r"format version 99, and this release reads version 1"):
        SQLiteKVStore(path)


def test_damaged_files(path):
    with SQLiteKVStore(path) as store:
        store.put_all([(str(number), {"x": "x" * 1000}) for number in range(200)])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 // 4096 * 4096])
    with pytest.raises(IndexFormatError, match=r"file of this key-value store is damaged\. Restore a copy"), SQLiteKVStore(path) as store:
        store.get_all()
    with pytest.raises(IndexFormatError, match=r"file of this key-value store is damaged|a row cannot be read"), SQLiteKVStore(path) as store:
        store.get("150")


@pytest.mark.parametrize("written", [b'"code":"fr"', b"language"])
def test_a_flipped_bit_is_noticed(path, written):
    data = path.read_bytes()
    assert data.count(written) in {1, 2}  # a key stands in the table and in its index
    path.write_bytes(data.replace(written, bytes([*written[:-3], written[-3] ^ 1, *written[-2:]])))
    with SQLiteKVStore(path) as store:
        for use in (store.get_all, store.to_dict):
            with pytest.raises(IndexFormatError, match=r"damaged: a row cannot be read \(ValueError: the value of key '.*' in collection 'data' has changed"):
                use()
        store.put("other", {"n": 1})
        assert store.get("other") == {"n": 1}


def test_a_relative_path_holds_after_a_change_of_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SQLiteKVStore("kv") as store:
        monkeypatch.chdir(tmp_path.parent)
        store.put("a", {})
        with copy.deepcopy(store) as copied:
            assert copied.path == store.path == tmp_path / "kv"


def test_read_only(path):
    with SQLiteKVStore(path, read_only=True) as store:
        assert store.get("language") == {"code": "fr"}
        for use in (lambda: store.put("a", {}), lambda: store.delete("a"), lambda: store.transaction().__enter__()):
            with pytest.raises(ReadOnlyIndexError, match="key-value store was opened with read_only=True"):
                use()
        assert repr(store) == f"SQLiteKVStore({str(path)!r}, read_only=True)"
    with pytest.raises(ConfigurationError, match="needs an existing file"):
        SQLiteKVStore(read_only=True)
    with pytest.raises(ConfigurationError, match=r"is a folder, expected the path of a file"):
        SQLiteKVStore(path.parent)


def test_no_such_file(tmp_path):
    with pytest.raises(IndexNotFoundError, match="no key-value store at"):
        SQLiteKVStore(tmp_path / "none", read_only=True)
    with pytest.raises(IndexNotFoundError):
        SQLiteKVStore.from_persist_path(str(tmp_path / "none"))
    (tmp_path / "empty").touch()
    with pytest.raises(IndexFormatError, match="is empty"):
        SQLiteKVStore(tmp_path / "empty", read_only=True)
    SQLiteKVStore(tmp_path / "empty").close()
    with pytest.raises(StorageError, match="could not be made"):
        SQLiteKVStore(tmp_path / "empty" / "below")


def test_deleted_while_open(path):
    with SQLiteKVStore(path) as store:
        shutil.rmtree(path.parent)
        with pytest.raises(StorageError, match="was deleted or replaced while it was open"):
            store.put("a", {})


async def test_closed(path):
    store = SQLiteKVStore(path)
    store.close()
    store.close()
    assert store.closed
    assert repr(store) == f"SQLiteKVStore({str(path)!r}, closed)"
    for use in (lambda: store.get("a"), lambda: store.put("a", {}), store.to_dict):
        with pytest.raises(IndexClosedError, match=r"key-value store is closed. Open it again with SQLiteKVStore"):
            use()
    with pytest.raises(IndexClosedError):
        await store.aget("a")


def test_a_copy_is_the_same_file_opened_again(path):
    with SQLiteKVStore(path) as store, pickle.loads(pickle.dumps(store)) as pickled, copy.deepcopy(store) as copied:
        pickled.put("a", {"n": 1})
        assert store.get("a") == copied.get("a") == {"n": 1}
    with SQLiteKVStore(path, read_only=True) as store, copy.deepcopy(store) as copied:
        assert copied.read_only
    with SQLiteKVStore() as store:
        for use in (pickle.dumps, copy.deepcopy):
            with pytest.raises(IndexNotCopiedError, match="in memory cannot be pickled or deep-copied"):
                use(store)


def test_persist_copies(tmp_path, path, store):
    store.put_all(PAIRS)
    store.persist(str(tmp_path / "copies" / "new"))
    store.persist(str(path))
    with store.transaction(), pytest.raises(ConfigurationError, match="inside a transaction"):
        store.persist(str(path))
    for file in (tmp_path / "copies" / "new", path):
        with SQLiteKVStore.from_persist_path(str(file)) as copied:
            assert copied.get_all() == dict(PAIRS)
            copied.persist(str(file))
            copied.put("a", {})
    assert store.get("a") is None
