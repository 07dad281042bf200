"""Our fusion against ranx, on random lists without ties."""

import random
import warnings

import pytest

from llama_index_advanced_rag.ranking.fusion import fuse_reciprocal_rank, fuse_weighted
from llama_index_advanced_rag.ranking.score_scale import ScoreRange


@pytest.fixture(scope="module")
def ranx():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("ranx", reason="ranx, the reference for fusion, is not installed")


def random_lists(seed):
    rng = random.Random(seed)
    ids = [f"d{number}" for number in range(30)]
    return [[(item, rng.uniform(-2, 20)) for item in rng.sample(ids, rng.randint(2, 20))] for _ in range(rng.randint(2, 4))]


def reference(ranx, lists, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fused = ranx.fuse(runs=[ranx.Run({"q": dict(scored)}) for scored in lists], **options)
    return dict(fused.run["q"])


def ordered(scored):
    return [item for item, _ in sorted(scored, key=lambda pair: pair[1], reverse=True)]


@pytest.mark.parametrize("seed", range(10))
def test_reciprocal_rank(ranx, seed):
    lists = random_lists(seed)
    expected = reference(ranx, lists, norm=None, method="rrf", params={"k": 60})
    assert dict(fuse_reciprocal_rank([ordered(scored) for scored in lists])) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(10))
def test_weighted_min_max(ranx, seed):
    lists = random_lists(seed)
    weights = [random.Random(seed + 100).uniform(0.1, 1) for _ in lists]
    total = sum(weights)
    expected = reference(ranx, lists, norm="min-max", method="wsum", params={"weights": [weight / total for weight in weights]})
    assert dict(fuse_weighted(lists, weights=weights, ranges=[ScoreRange()] * len(lists))) == pytest.approx(expected)
