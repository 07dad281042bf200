import copy
import itertools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError, IndexNotFoundError, StorageError
from llama_index_advanced_rag.stores.postings.postings_file import _sealed
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

PLAIN = TextAnalyzer("none", token_pattern=r"\S+")
TERMS = "abcdef"


def filled(texts, analyzer=PLAIN, **kwargs):
    store = PostingsStore(analyzer, **kwargs)
    store.add(list(texts), list(texts.values()))
    return store


texts_of = st.lists(st.sampled_from(TERMS), max_size=6).map(" ".join)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.dictionaries(st.integers(0, 25).map(str), texts_of, max_size=5)),
        st.tuples(
            st.just("replace"), st.tuples(st.dictionaries(st.integers(0, 25).map(str), texts_of, max_size=3), st.sets(st.integers(0, 25).map(str), max_size=3))
        ),
        st.tuples(st.just("save and load"), st.none()),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 25).map(str), max_size=5)),
    ),
    max_size=15,
)


@given(changes)
@settings(max_examples=150, deadline=None)
def test_any_history_scores_like_a_fresh_build(tmp_path_factory, history):
    store, truth = PostingsStore(PLAIN), {}
    for kind, batch in history:
        if kind == "add":
            store.add(list(batch), list(batch.values()))
            truth.update(batch)
        elif kind == "replace":
            added, gone = batch
            store.add_term_counts(list(added), [store.term_counts(text) for text in added.values()], replacing=gone)
            truth = {**{node_id: text for node_id, text in truth.items() if node_id not in gone}, **added}
        elif kind == "save and load":
            path = tmp_path_factory.mktemp("history") / "postings"
            store.save(path)
            store = PostingsStore.load(path)
        else:
            store.delete(batch)
            truth = {node_id: text for node_id, text in truth.items() if node_id not in batch}
    fresh = filled(truth)
    assert len(store) == len(truth)
    assert store.node_ids() == sorted(truth)
    assert all(node_id in store for node_id in truth)
    for query in ("a", "a b c", "f f e", "z"):
        for top_k in (1, 3, 100):
            assert store.search(query, top_k=top_k) == fresh.search(query, top_k=top_k)
    for node_id in truth:
        assert store.explain("a b f", node_id) == fresh.explain("a b f", node_id)


@given(st.dictionaries(st.integers(0, 40).map(str), texts_of, max_size=30), st.sets(st.integers(0, 40).map(str)), st.integers(1, 10))
@settings(max_examples=100, deadline=None)
def test_candidates_are_chosen_before_the_cut(texts, candidates, top_k):
    store = filled(texts)
    everything = store.search("a b", top_k=1000)
    assert store.search("a b", top_k=top_k, candidates=candidates) == [hit for hit in everything if hit[0] in candidates][:top_k]


@given(st.dictionaries(st.integers(0, 40).map(str), texts_of, min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_explanations_add_up_to_the_score(texts):
    store = filled(texts)
    for node_id, score in store.search("a b b c", top_k=100):
        shares = store.explain("a b b c", node_id)
        assert sum(shares.values()) == pytest.approx(score, abs=1e-9)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_empty_store_empty_query_and_unknown_words_find_nothing():
    assert PostingsStore(PLAIN).search("a", top_k=3) == []
    store = filled({"1": "a", "2": ""})
    assert store.search("", top_k=3) == []
    assert store.search("zebra", top_k=3) == []
    assert store.search("a", top_k=3, candidates=[]) == []
    assert store.explain("a", "unknown") == {}
    assert filled({"1": "", "2": ""}).search("a", top_k=3) == []


def test_equal_scores_at_the_cut_are_decided_by_the_sort_key_not_by_history():
    for order in itertools.permutations("abcd"):
        store = PostingsStore(PLAIN)
        for node_id in order:
            store.add([node_id], ["same words"], sort_keys=[str("dcba".index(node_id))])
        assert [node_id for node_id, _ in store.search("words", top_k=2)] == ["d", "c"]


def test_adding_a_known_id_replaces_it_and_the_later_of_a_batch_stays():
    store = filled({"1": "old"})
    store.add(["1", "2", "2"], ["new", "first", "second"])
    assert len(store) == 2
    assert store.search("old first", top_k=5) == []
    assert [node_id for node_id, _ in store.search("new second", top_k=5)] == ["1", "2"]


def test_a_repeated_query_term_counts_for_each_occurrence():
    store = filled({"1": "a b", "2": "c d"})
    assert store.search("a a", top_k=1)[0][1] == pytest.approx(2 * store.search("a", top_k=1)[0][1])


def test_the_terms_of_one_query_word_count_as_one_term():
    texts = {"fr": "Les données de la société sont conservées", "en": "She is donning a coat and was there", "x": "Données"}
    store = filled(texts, TextAnalyzer())
    assert len(store.analyzer.query_groups("données")[0]) > 1
    scores = dict(store.search("données", top_k=9))
    idf = np.log((3 - 3 + 0.5) / (3 + 0.5) + 1)
    assert all(score <= idf * 2.5 for score in scores.values())
    assert set(scores) == {"fr", "en", "x"}
    assert sum(store.explain("données", "x").values()) == pytest.approx(scores["x"])


def test_counts_can_be_stored_elsewhere_and_added_without_analysing_again():
    one, two = filled({"1": "a b a"}), PostingsStore(PLAIN)
    two.add_term_counts(["1"], [one.term_counts("a b a")])
    assert one.term_counts("a b a") == {"a": 2, "b": 1}
    assert one.search("a", top_k=1) == two.search("a", top_k=1)


def test_node_ids_by_prefix_of_the_sort_key():
    store = PostingsStore(PLAIN)
    store.add(["n1", "n2", "n3"], ["a", "b", "c"], sort_keys=["doc\x002", "doc\x001", "other\x001"])
    assert store.node_ids(sort_key_prefix="doc\x00") == ["n2", "n1"]


def test_many_single_adds_and_deletes_keep_few_segments():
    store = PostingsStore(PLAIN)
    for number in range(300):
        store.add([str(number)], ["a b"])
    assert len(store._state.view.segments) <= 7 * 3, "at most seven of each order of magnitude: 1, 8, 64"
    store.delete(str(number) for number in range(290))
    assert len(store._state.view.lengths) <= 20


def test_readers_see_a_whole_state_while_a_writer_works():
    store = filled({str(number): "a b" for number in range(50)})
    stop, seen, kept = threading.Event(), [], []

    def read():
        while not stop.is_set():
            seen.append(len(store.search("a", top_k=200)))
            kept.append(len(store.search("a", top_k=200, candidates=["0"])))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(50):
        store.add(["x", "y"], ["a", "a"])
        store.delete(["x", "y"])
        store.add(["0"], ["a b"])
    stop.set()
    for reader in readers:
        reader.join()
    assert set(seen) <= {50, 52}
    assert set(kept) <= {1}


def test_saved_and_loaded_answers_are_equal(tmp_path):
    store = filled({"é 1": "l'accès aux données", "2": "les avions", "3": "rien"}, TextAnalyzer("fr", stop_words=frozenset({"les"})), k1=1.2, b=0.5)
    store.delete(["3"])
    path = tmp_path / "a folder" / "postings.arrays"
    store.save(path)
    store.save(path)
    loaded = PostingsStore.load(path)
    assert (loaded.analyzer, loaded.k1, loaded.b, len(loaded)) == (store.analyzer, 1.2, 0.5, 2)
    assert loaded.search("accès avion", top_k=5) == store.search("accès avion", top_k=5)
    loaded.add(["4"], ["encore un avion"])
    assert len(loaded.search("avions", top_k=5)) == 2
    assert [file.name for file in path.parent.iterdir()] == ["postings.arrays"]


def test_a_loaded_store_lives_in_its_file(tmp_path):
    filled({"1": "a b", "2": "b c"}).save(tmp_path / "p.arrays")
    (segment,) = PostingsStore.load(tmp_path / "p.arrays")._state.view.segments
    assert all(isinstance(array.base, np.memmap) for array in (segment.positions, segment.frequencies, segment.indptr, segment.terms.text))


def test_a_used_store_can_be_copied():
    store = filled({"1": "a b", "2": "b c"})
    assert store.search("a", top_k=1)
    again = copy.deepcopy(store)
    again.add(["3"], ["a a"])
    assert [len(found.search("a", top_k=5)) for found in (store, again)] == [1, 2]


def test_ids_and_terms_of_any_unicode_are_kept(tmp_path):
    store = filled({"\ud800": "caf\ud800 \U0001f600", "\0": "é"})
    store.save(tmp_path / "p.arrays")
    for one in (store, PostingsStore.load(tmp_path / "p.arrays")):
        assert [one.search(query, top_k=5)[0][0] for query in ("caf\ud800", "\U0001f600", "é")] == ["\ud800", "\ud800", "\0"]


def test_a_subclass_may_bring_its_own_state():
    class Bound(PostingsStore):
        def _view(self):
            return other._view()

    other = filled({"1": "a b", "2": "b c"})
    bound = Bound(PLAIN)
    assert (len(bound), "1" in bound, bound.search("a", top_k=2), bound.explain("a", "1")) == (2, True, other.search("a", top_k=2), other.explain("a", "1"))


def test_an_empty_store_is_saved_and_loaded(tmp_path):
    PostingsStore(PLAIN).save(tmp_path / "p.arrays")
    loaded = PostingsStore.load(tmp_path / "p.arrays")
    assert len(loaded) == 0
    assert loaded.search("a", top_k=1) == []


def test_missing_damaged_and_foreign_files_are_told_apart(tmp_path):
    path = tmp_path / "p.arrays"
    with pytest.raises(IndexNotFoundError, match=r"no postings file .*p\.arrays"):
        PostingsStore.load(path)
    filled({str(number): "some words here" for number in range(100)}).save(path)
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", b"not an archive", whole[:400] + b"XXXX" + whole[404:], whole[:-1] + b"X", whole + b"X"):
        path.write_bytes(broken)
        with pytest.raises(IndexFormatError, match="damaged"):
            PostingsStore.load(path)
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(b'{"format": "advanced-rag-postings", "version": 1}', dtype=np.uint8))
    with pytest.raises(IndexFormatError, match=r"not a postings file of format version 2.*Build the index again"):
        PostingsStore.load(path)
    path.write_bytes(_sealed(99, 0, 0))
    with pytest.raises(IndexFormatError, match=r"version 99.*reads 2.*Build the index again"):
        PostingsStore.load(path)


def test_a_disk_that_refuses_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="could not be written"):
        filled({"1": "a"}).save(tmp_path / "file" / "p.arrays")


def test_bad_arguments_are_named():
    with pytest.raises(ConfigurationError, match=r"b is 2"):
        PostingsStore(PLAIN, b=2)
    with pytest.raises(ConfigurationError, match=r"2 node ids, 1 texts"):
        PostingsStore(PLAIN).add(["1", "2"], ["a"])
    with pytest.raises(ConfigurationError, match="at least 1"):
        PostingsStore(PLAIN).add_term_counts(["1"], [{"a": 0}])
    with pytest.raises(ConfigurationError, match=r"top_k is 0"):
        filled({"1": "a"}).search("a", top_k=0)
