import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index_advanced_rag.ranking.bm25 import inverse_document_frequency
from llama_index_advanced_rag.stores.postings import postings_view
from llama_index_advanced_rag.stores.postings.memory_names import MemoryNames
from llama_index_advanced_rag.stores.postings.postings_segment import build_segment
from llama_index_advanced_rag.stores.postings.postings_view import PostingsView

TERMS = "abcde"
counts_of = st.dictionaries(st.sampled_from(TERMS), st.integers(1, 4), max_size=4)
groups_of = st.dictionaries(st.lists(st.sampled_from([*TERMS, "unknown"]), min_size=1, max_size=2, unique=True).map(tuple), st.integers(1, 2), max_size=4)


def view_of(parts, alive=None, **options):
    texts = [counts for part in parts for counts in part]
    lengths = np.array([sum(counts.values()) for counts in texts], dtype=np.uint32)
    starts = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).tolist()
    segments = tuple(build_segment(start, part) for start, part in zip(starts, parts, strict=False))
    living = lengths if alive is None else lengths[alive]
    return PostingsView(segments, lengths, alive, len(living), int(living.sum()), **options)


def names_of(n_rows):
    return MemoryNames().extended([str(number) for number in range(n_rows)], [f"{n_rows - number:06}" for number in range(n_rows)])


def plain_scores(texts, alive, groups, k1=1.5, b=0.75):
    """The formula, text by text, in Python's own numbers."""
    living = [counts for counts, is_alive in zip(texts, alive, strict=True) if is_alive]
    average = sum(sum(counts.values()) for counts in living) / len(living) if living else 0
    scores = np.zeros(len(texts))
    for group, times in groups.items():
        n_with = sum(any(term in counts for term in group) for counts in living)
        for position, counts in enumerate(texts):
            frequency = sum(counts.get(term, 0) for term in group)
            if alive[position] and frequency:
                idf = inverse_document_frequency(len(living), n_with)
                scores[position] += times * idf * (k1 + 1) * frequency / (frequency + k1 * (1 - b + b * sum(counts.values()) / average))
    return scores


@given(st.lists(st.lists(counts_of, max_size=8), min_size=1, max_size=4), groups_of, st.data(), st.sampled_from([1, 16, 10**6]))
@settings(max_examples=150, deadline=None)
def test_scores_and_the_best_are_those_of_the_formula_however_they_are_found(parts, groups, data, lookup):
    texts = [counts for part in parts for counts in part]
    flags = st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)).map(lambda flags: np.array(flags, dtype=bool))
    alive, mask, top_k = data.draw(st.none() | flags), data.draw(st.none() | flags), data.draw(st.integers(1, 12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings_view, "_LOOKUP", lookup)  # which way is taken depends on sizes that such small cases never reach
        view, whole = view_of(parts, alive), view_of([texts], alive)
        names = names_of(len(texts))
        scores = view.scores(groups)
        assert scores == pytest.approx(plain_scores(texts, np.ones(len(texts), dtype=bool) if alive is None else alive, groups), rel=1e-12)
        assert np.array_equal(scores, whole.scores(groups))
        found = view.top(groups, top_k=top_k, names=names, mask=mask)
        allowed = [position for position in np.flatnonzero(scores).tolist() if mask is None or mask[position]]
        best = sorted(allowed, key=lambda position: (-scores[position], -position))[:top_k]
        assert found.positions.tolist() == best
        assert np.array_equal(found.scores, scores[best])
        for one in (whole.top(groups, top_k=top_k, names=names, mask=mask), *view.top_batch([groups, groups], top_k=top_k, names=names, mask=mask)):
            assert one.positions.tolist() == best
            assert np.array_equal(one.scores, found.scores)
        for position, shares in zip(best, view.explain_each(groups, found.positions), strict=True):
            assert shares == view.explain(groups, position)
            assert sum(shares.values()) == pytest.approx(scores[position], rel=1e-12)
            assert set(shares) == {held[0] for group in groups if (held := [term for term in group if term in texts[position]])}


@given(st.integers(0, 10**6), st.integers(1, 300), st.sampled_from([0.0, 0.4, 1.5, 1e6]), st.sampled_from([0.0, 0.75, 1.0]))
@settings(max_examples=40, deadline=None)
def test_the_best_of_many_texts_are_those_of_all_scores(seed, top_k, k1, b):
    generator = np.random.default_rng(seed)
    shares = {"rare": 0.01, "some": 0.1, "many": 0.5, "most": 0.9}
    texts = [{term: int(generator.integers(1, 5)) for term, share in shares.items() if generator.random() < share} for _ in range(1500)]
    mask = generator.random(len(texts)) < generator.choice([0.01, 0.5, 1.0])
    view, names = view_of([texts[:800], texts[800:1300], texts[1300:]], generator.random(len(texts)) < 0.9, k1=k1, b=b), names_of(len(texts))
    queries = [{("rare",): 1, ("most",): 1}, {("some",): 1, ("many",): 2, ("most",): 1}, {("most",): 1}, {("rare", "some"): 1, ("many",): 1}]
    batch = view.top_batch(queries, top_k=top_k, names=names, mask=mask)
    for groups, found in zip(queries, batch, strict=True):
        scores = view.scores(groups)
        order = np.lexsort((-np.arange(len(texts)), -scores))
        best = order[(scores[order] > 0) & mask[order]][:top_k]
        assert found.positions.tolist() == best.tolist()
        assert np.array_equal(found.scores, scores[best])


def test_texts_of_equal_scores_are_returned_in_the_order_of_their_names():
    view = view_of([[{"a": 1, "b": 1}] * 5000 + [{"a": 1}] * 5000])
    found = view.top({("a",): 1, ("b",): 1}, top_k=3, names=names_of(10000))
    assert found.positions.tolist() == [4999, 4998, 4997]
    assert len(set(found.scores.tolist())) == 1


def test_nothing_is_found_in_nothing():
    empty = view_of([[]])
    assert len(empty.top({("a",): 1}, top_k=3, names=names_of(0)).positions) == 0
    assert empty.scores({("a",): 1}).shape == (0,)
    all_dead = view_of([[{"a": 1}]], np.array([False]))
    assert len(all_dead.top({("a",): 1}, top_k=3, names=names_of(1)).positions) == 0
    assert all_dead.scores({("a",): 1}).tolist() == [0.0]
    assert all_dead.explain({("a",): 1}, 0) == {}
