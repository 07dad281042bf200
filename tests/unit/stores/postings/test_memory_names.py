import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from llama_index_advanced_rag.stores.postings.memory_names import MemoryNames


def test_an_older_snapshot_still_finds_a_node_where_it_was():
    old = MemoryNames().extended(["a", "b"], ["1", "2"])
    new = old.extended(["a", "c"], ["3", "4"], np.array([False, True, True, True]))
    assert old.positions_of(["a", "b", "c"]).tolist() == [0, 1]
    assert new.positions_of(["c", "a", "b"]).tolist() == [1, 2, 3]
    assert new.without(np.array([False, True, False, True])).positions_of(["a", "b"]).tolist() == [1]
    assert new.living().tolist() == [1, 2, 3]
    assert old.living().tolist() == [0, 1]
    assert new.node_ids(np.array([2, 0])) == ["a", "a"]


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 40), st.randoms(use_true_random=False))
def test_order_is_by_sort_key_then_node_id_few_or_many(keys, limit, random):
    ids = [f"{number:02}" for number in range(len(keys))]
    random.shuffle(ids)
    names = MemoryNames().extended(ids, list(map(str, keys)))
    positions = np.arange(len(keys))
    expected = sorted(range(len(keys)), key=lambda position: (str(keys[position]), ids[position]))[:limit]
    assert names.in_order(positions, limit).tolist() == expected


def test_many_equal_are_put_in_order_by_ranks():
    n_rows = 5000
    names = MemoryNames().extended([str(number) for number in range(n_rows)], [f"{n_rows - number:05}" for number in range(n_rows)])
    assert names.in_order(np.arange(n_rows), 3).tolist() == [4999, 4998, 4997]
    assert names.in_order(np.arange(n_rows), n_rows).tolist() == list(range(n_rows))[::-1]


def test_nodes_of_a_document_by_the_start_of_their_sort_keys():
    names = MemoryNames().extended(["x", "y", "z"], ["doc\x001", "doc 2\x001", "doc\x002"])
    assert names.positions_of_documents(["doc", "unknown"]).tolist() == [0, 2]
    assert list(names.metadata(0, 3)) == []
