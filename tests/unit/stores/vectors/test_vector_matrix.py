import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llama_index_advanced_rag.errors import ConfigurationError, EmbeddingMismatchError
from llama_index_advanced_rag.stores.postings.memory_names import MemoryNames
from llama_index_advanced_rag.stores.vectors.vector_batch import Candidates
from llama_index_advanced_rag.stores.vectors.vector_checks import checked_vectors
from llama_index_advanced_rag.stores.vectors.vector_matrix import MatrixView, VectorMetric
from llama_index_advanced_rag.stores.vectors.vector_scores import lower_floor, products

METRICS = list(VectorMetric)
DTYPES = ["float32", "float16"]


def names_of(count):
    """Sort keys that run against the positions, so that the order of ties shows."""
    return MemoryNames().extended([f"n{place}" for place in range(count)], [f"{count - place:06}" for place in range(count)])


def view_of(vectors, metric=VectorMetric.COSINE, dtype="float32", alive=None):
    return MatrixView(metric, checked_vectors(vectors, [f"n{place}" for place in range(len(vectors))], metric, dtype=dtype), alive)


def expected_similarities(view, query):
    vectors = view.vectors.astype(np.float64)
    if view.metric is VectorMetric.EUCLIDEAN:
        return 1 / (1 + np.sqrt(((vectors - query) ** 2).sum(axis=1)))
    scores = (vectors * query).sum(axis=1)
    return scores.clip(-1, 1) if view.metric is VectorMetric.COSINE else scores


def expected_top(view, query, top_k, mask):
    scores = expected_similarities(view, query)
    allowed = [place for place in range(len(scores)) if (mask is None or mask[place]) and (view.alive is None or view.alive[place])]
    best = sorted(allowed, key=lambda place: (-scores[place], -place))[:top_k]
    return best, scores[best].tolist()


def expected_diverse(view, query, top_k, relevance, mask):
    wanted = relevance * expected_similarities(view, query)
    left = [place for place in range(len(wanted)) if (mask is None or mask[place]) and (view.alive is None or view.alive[place])]
    picked, scores, overlap = [], [], np.full(len(wanted), -np.inf)
    while left and len(picked) < top_k:
        marginal = wanted - (1 - relevance) * overlap if picked else wanted
        best = max(left, key=lambda place: (marginal[place], place))
        picked.append(best)
        scores.append(float(marginal[best]))
        left.remove(best)
        overlap = np.maximum(overlap, expected_similarities(view, view.vectors[best].astype(np.float64)))
    return picked, scores


few_numbers = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0])  # so that equal scores are common


@st.composite
def searches(draw):
    n, d = draw(st.integers(1, 60)), draw(st.integers(1, 5))
    numbers = few_numbers if draw(st.booleans()) else st.floats(-4, 4, width=16)
    vectors = draw(hnp.arrays(np.float64, (n, d), elements=numbers))
    vectors[~vectors.any(axis=1), 0] = 1.0
    queries = draw(hnp.arrays(np.float64, (draw(st.integers(1, 3)), d), elements=numbers))
    queries[~queries.any(axis=1), 0] = 1.0
    masks = st.one_of(st.none(), hnp.arrays(np.bool_, n))
    metric, dtype = draw(st.sampled_from(METRICS)), draw(st.sampled_from(DTYPES))
    view = view_of(vectors, metric, dtype, draw(masks))
    return view, [view.checked_query(query) for query in queries], draw(st.integers(1, 70)), draw(masks)


@settings(deadline=None, max_examples=300)
@given(searches())
def test_top_is_that_of_all_scores_sorted(search):
    view, queries, top_k, mask = search
    names = names_of(len(view.vectors))
    founds = [view.top(query, top_k=top_k, names=names, mask=mask) for query in queries]
    for query, found in zip(queries, founds, strict=True):
        positions, scores = expected_top(view, query, top_k, mask)
        assert found.positions.tolist() == positions
        assert found.scores.tolist() == scores
    for one, found in zip(view.top_batch(queries, top_k=top_k, names=names, mask=mask), founds, strict=True):
        assert one.positions.tolist() == found.positions.tolist()
        assert one.scores.tolist() == found.scores.tolist()


@settings(deadline=None, max_examples=300)
@given(searches(), st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))
def test_diverse_is_the_greedy_choice_over_all_rows(search, relevance):
    view, queries, top_k, mask = search
    found = view.diverse(queries[0], top_k=min(top_k, 8), names=names_of(len(view.vectors)), relevance=relevance, mask=mask)
    positions, scores = expected_diverse(view, queries[0], min(top_k, 8), relevance, mask)
    assert found.positions.tolist() == positions
    assert found.scores.tolist() == pytest.approx(scores, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_rows(metric, dtype):
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((20_000, 48))
    vectors[rng.integers(0, 20_000, 300)] = vectors[7]
    view = view_of(vectors, metric, dtype, rng.random(20_000) < 0.99)
    names, queries = names_of(20_000), [view.checked_query(query) for query in [*rng.standard_normal((70, 48)), vectors[7]]]
    for mask in (None, rng.random(20_000) < 0.01, rng.random(20_000) < 0.6, np.zeros(20_000, dtype=bool)):
        batch = view.top_batch(queries, top_k=100, names=names, mask=mask)
        for query, one in list(zip(queries, batch, strict=True))[::14]:
            positions, scores = expected_top(view, query, 100, mask)
            found = view.top(query, top_k=100, names=names, mask=mask)
            assert found.positions.tolist() == one.positions.tolist() == positions
            assert found.scores.tolist() == one.scores.tolist() == pytest.approx(scores, abs=1e-12)
        picked = view.diverse(queries[0], top_k=10, names=names, relevance=0.5, mask=mask)
        assert picked.positions.tolist() == expected_diverse(view, queries[0], 10, 0.5, mask)[0]


def test_equal_rows_by_the_thousand():
    view, names = view_of(np.ones((30_000, 4))), names_of(30_000)
    query = view.checked_query([1.0, 2.0, 3.0, 4.0])
    for found in (view.top(query, top_k=5, names=names), *view.top_batch([query, query], top_k=5, names=names)):
        assert found.positions.tolist() == [29_999, 29_998, 29_997, 29_996, 29_995]
    assert view.diverse(query, top_k=2, names=names, relevance=0.5).positions.tolist() == [29_999, 29_998]


def test_a_score_does_not_depend_on_where_the_row_stands():
    rng = np.random.default_rng(1)
    vectors, query = rng.standard_normal((500, 37)), rng.standard_normal(37)
    view, turned = view_of(vectors), view_of(vectors[::-1])
    there, back = (one.top(one.checked_query(query), top_k=500, names=names_of(500)) for one in (view, turned))
    assert there.positions.tolist() == (499 - back.positions).tolist()
    assert there.scores.tolist() == back.scores.tolist()


def test_no_rows():
    view = MatrixView(VectorMetric.COSINE, np.empty((0, 0), dtype=np.float32))
    query = view.checked_query([1.0, 2.0])
    names = names_of(0)
    for found in (view.top(query, top_k=3, names=names), *view.top_batch([query], top_k=3, names=names)):
        assert found.positions.tolist() == []
    assert view.diverse(query, top_k=3, names=names, relevance=0.5).scores.tolist() == []


def test_a_grown_view_goes_on_from_what_is_known():
    vectors = np.random.default_rng(2).standard_normal((50, 3)).astype(np.float32)
    small = MatrixView(VectorMetric.EUCLIDEAN, vectors[:20])
    query, names = small.checked_query([1.0, 0.0, 0.0]), names_of(50)
    small.top(query, top_k=3, names=names)
    dead = np.arange(50) != 40
    found, fresh = (view.top(query, top_k=50, names=names) for view in (small.grown(vectors, dead), MatrixView(VectorMetric.EUCLIDEAN, vectors, dead)))
    assert found.positions.tolist() == fresh.positions.tolist()
    assert small.top(query, top_k=50, names=names).positions.max() == 19


def test_views_are_searched_by_many_threads():
    view = view_of(np.random.default_rng(3).standard_normal((3000, 8)), VectorMetric.DOT)
    names, query = names_of(3000), view.checked_query([1.0] * 8)
    expected, found = expected_top(view, query, 10, None)[0], []
    threads = [threading.Thread(target=lambda: found.append(view.top(query, top_k=10, names=names).positions.tolist())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_every_finite_float16_becomes_the_same_float32():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)].reshape(-1, 1)
    assert products(finite, np.ones(1)).tolist() == finite[:, 0].astype(np.float32).tolist()


@given(hnp.arrays(np.float32, st.integers(1, 400), elements=st.floats(-1, 1, width=32)), st.integers(1, 20))
def test_at_least_top_k_values_reach_the_floor(values, top_k):
    floor = lower_floor(values, top_k)
    assert (values >= floor).sum() >= min(top_k, len(values))


def test_candidates_say_when_they_are_too_many():
    candidates = Candidates(1, 1, np.zeros(1, dtype=np.float32))
    candidates.offer(np.zeros((1, 5000), dtype=np.float32), np.arange(5000), None)
    assert candidates.too_many


def test_vectors_are_checked_as_arrays_and_as_lists():
    values = np.random.default_rng(4).standard_normal((20_000, 6))
    names = [f"n{place}" for place in range(20_000)]
    for metric in METRICS:
        for given_as in (values, values.astype(np.float32), values.tolist(), list(values)):
            ready = checked_vectors(given_as, names, metric)
            assert ready.dtype == np.float32
            wanted = values / np.linalg.norm(values, axis=1)[:, None] if metric is VectorMetric.COSINE else values
            assert np.abs(ready - wanted).max() < 1e-6
    assert checked_vectors([], [], VectorMetric.DOT, 3).shape == (0, 3)
    assert values.tolist() != checked_vectors(values, names, VectorMetric.COSINE).tolist()


@pytest.mark.parametrize("as_array", [True, False])
def test_bad_vectors_are_named(as_array):
    def check(vectors, message, error=ConfigurationError, metric=VectorMetric.COSINE, **options):
        with pytest.raises(error, match=message):
            checked_vectors(np.array(vectors) if as_array else vectors, [f"n{place}" for place in range(len(vectors))], metric, **options)

    many = [[1.0, 2.0]] * 9000
    check([*many, [float("nan"), 1.0]], "node 'n9000' holds NaN or infinity")
    check([[1.0, 2.0], [1e300, 1.0]], "node 'n1' holds NaN or infinity", metric=VectorMetric.DOT)
    check([[1.0, 2.0], [1e5, 1.0]], r"node 'n1' holds NaN or infinity \(or a number above 65504", metric=VectorMetric.DOT, dtype="float16")
    check([*many, [0.0, 0.0]], "node 'n9000' is zero, which has no cosine")
    check(many, "node 'n0' has 2 dimensions, and the vectors of this store have 3", EmbeddingMismatchError, dimension=3)
    with pytest.raises(EmbeddingMismatchError, match="node 'b' has 1 dimensions, .* have 2"):
        checked_vectors([[1.0, 2.0], [1.0]], ["a", "b"], VectorMetric.DOT)
    with pytest.raises(ConfigurationError, match="2 vectors were given for 1 nodes"):
        checked_vectors([[1.0], [2.0]], ["a"], VectorMetric.DOT)
