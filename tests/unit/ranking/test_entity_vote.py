"""Votes of entities: what they come to by hand, and what holds for any."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_array

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.entity_vote import select_voters, vote, with_neighbours

NAMING = csr_array(np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]]))  # entities a, b, c name passages 0 to 3
shares = st.floats(0, 1, allow_nan=False, width=32)


@st.composite
def elections(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Which of at most 6 passages name each of at most 8 entities, and how well these fit."""
    n_entities, n_passages = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    naming = draw(arrays.arrays(bool, (n_entities, n_passages)))
    scores = draw(arrays.arrays(np.float64, n_entities, elements=shares))
    return naming.astype(np.float64), scores


def test_the_scores_of_a_vote_by_hand() -> None:
    scores = np.array([0.5, 0.9, 0.2])
    golden = [0.4 * 2 / 3 + 0.6 * 0.7, 0.4 / 3 + 0.6 * 0.5, 0.4 * 2 / 3 + 0.6 * 0.55, 0.4 / 3 + 0.6 * 0.2]
    assert vote(NAMING, np.array([0, 1, 2]), scores, n_votes=3) == pytest.approx(golden)
    assert vote(NAMING, np.array([1, 0]), np.array([0.9, 0.5]), n_votes=2, share_weight=0.5) == pytest.approx([0.85, 0.5, 0.7, 0.0])


def test_only_shares_and_only_means() -> None:
    scores = np.array([0.5, 0.9])
    assert vote(NAMING, np.array([0, 1]), scores, n_votes=2, share_weight=1.0).tolist() == [1.0, 0.5, 0.5, 0.0]
    assert vote(NAMING, np.array([0, 1]), scores, n_votes=2, share_weight=0.0) == pytest.approx([0.7, 0.5, 0.9, 0.0])


def test_neighbours_add_to_a_share_but_not_beyond_the_whole() -> None:
    assert vote(NAMING, np.array([0, 1, 2]), np.array([0.8, 0.4, 0.4]), n_votes=1, share_weight=1.0).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert vote(NAMING, np.array([0, 1, 2]), np.array([0.8, 0.4, 0.4]), n_votes=2, share_weight=1.0).tolist() == [1.0, 0.5, 1.0, 0.5]


def test_nobody_votes() -> None:
    nobody = np.array([], dtype=np.int64)
    assert vote(NAMING, nobody, np.array([]), n_votes=0).tolist() == [0.0, 0.0, 0.0, 0.0]
    assert vote(csr_array((3, 0)), np.array([1]), np.array([0.5]), n_votes=1).tolist() == []
    assert vote(csr_array((0, 2)), nobody, np.array([]), n_votes=0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("share", [-0.1, 1.01, float("nan")])
def test_a_share_that_cannot_work(share: float) -> None:
    with pytest.raises(ConfigurationError, match=r"share_weight is .* It must be from 0 to 1; 0.4 is usual"):
        vote(NAMING, np.array([0]), np.array([0.5]), n_votes=1, share_weight=share)


def test_the_best_vote_and_of_equal_ones_the_first() -> None:
    scores = np.array([0.2, 0.9, 0.0, 0.9, -0.5, 0.2])
    assert select_voters(scores, 3).tolist() == [1, 3, 0]
    assert select_voters(scores, 100).tolist() == [1, 3, 0, 5]
    assert select_voters(np.zeros(4)).tolist() == []
    assert select_voters(np.array([])).tolist() == []


def test_35_vote_unless_told_otherwise() -> None:
    assert len(select_voters(np.linspace(0.1, 1, 100))) == 35


RELATIONS = csr_array(np.array([[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 1], [0, 0, 1, 0]], dtype=float))


def test_a_neighbour_votes_with_a_part_of_the_best_it_is_related_to() -> None:
    voters, scores = with_neighbours(np.array([0, 3]), np.array([0.8, 0.9]), RELATIONS, 0.5)
    assert voters.tolist() == [0, 3, 1, 2]
    assert scores == pytest.approx([0.8, 0.9, 0.4, 0.45])


def test_a_neighbour_that_votes_itself_keeps_its_own_score() -> None:
    voters, scores = with_neighbours(np.array([0, 1]), np.array([0.8, 0.1]), RELATIONS, 1.0)
    assert dict(zip(voters.tolist(), scores.tolist(), strict=True)) == {0: 0.8, 1: 0.1, 2: 0.8}


def test_the_neighbours_of_neighbours_do_not_vote() -> None:
    assert 3 not in with_neighbours(np.array([1]), np.array([0.8]), RELATIONS, 1.0)[0]


@pytest.mark.parametrize(("relations", "decay"), [(RELATIONS, 0.0), (csr_array((4, 4)), 0.5)])
def test_without_decay_or_relations_nobody_joins(relations: csr_array, decay: float) -> None:
    voters, scores = with_neighbours(np.array([0, 3]), np.array([0.8, 0.9]), relations, decay)
    assert (voters.tolist(), scores.tolist()) == ([0, 3], [0.8, 0.9])


def test_nobody_has_no_neighbours() -> None:
    voters, scores = with_neighbours(np.array([], dtype=np.int64), np.array([]), RELATIONS, 0.5)
    assert (voters.tolist(), scores.tolist()) == ([], [])


@given(elections(), shares, shares, st.integers(1, 8), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_votes_are_0_to_1_and_do_not_depend_on_the_order_of_passages(
    election: tuple[np.ndarray, np.ndarray], share: float, decay: float, top_n: int, random: object
) -> None:
    naming, scores = election
    before = [naming.copy(), scores.copy()]
    related = csr_array(((naming @ naming.T) > 0).astype(float))
    voters = select_voters(scores, top_n)
    everybody, theirs = with_neighbours(voters, scores[voters], related, decay)
    votes = vote(csr_array(naming), everybody, theirs, n_votes=len(voters), share_weight=share)
    assert votes.shape == (naming.shape[1],)
    assert ((votes >= 0) & (votes <= 1 + 1e-12)).all()
    assert (votes[naming[everybody].sum(axis=0) == 0] == 0).all(), "nobody votes for what names no voter"
    order = list(range(naming.shape[1]))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = vote(csr_array(naming[:, order]), everybody, theirs, n_votes=len(voters), share_weight=share)
    assert shuffled.tolist() == votes[order].tolist()
    assert [np.array_equal(one, other) for one, other in zip(before, (naming, scores), strict=True)] == [True, True]


@given(elections(), shares)
@settings(max_examples=40, deadline=None)
def test_it_is_the_formula(election: tuple[np.ndarray, np.ndarray], share: float) -> None:
    naming, scores = election
    voters = select_voters(scores)
    votes = vote(csr_array(naming), voters, scores[voters], n_votes=len(voters), share_weight=share)
    for passage in range(naming.shape[1]):
        voted = [entity for entity in voters.tolist() if naming[entity, passage]]
        mean = sum(scores[entity] for entity in voted) / len(voted) if voted else 0.0
        assert votes[passage] == pytest.approx(share * len(voted) / max(1, len(voters)) + (1 - share) * mean)


def test_a_million_mentions_are_counted_at_once() -> None:
    random = np.random.default_rng(0)
    naming = csr_array((np.ones(1_000_000), (random.integers(0, 50_000, 1_000_000), random.integers(0, 100_000, 1_000_000))), shape=(50_000, 100_000))
    scores = random.random(50_000)
    voters = select_voters(scores, 40)
    assert vote(naming, voters, scores[voters], n_votes=40).max() <= 1


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.5000001, 0.9, 1.0]), max_size=60), st.integers(1, 70))
def test_the_best_are_those_of_a_whole_sort(values, top_n):
    scores = np.array(values)
    order = np.argsort(-scores, kind="stable")[:top_n]
    assert select_voters(scores, top_n).tolist() == order[scores[order] > 0].tolist()
