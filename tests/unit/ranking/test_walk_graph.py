"""The graph of a walk: what binds and how strongly, and where a walk starts that begins nowhere."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.sparse import csr_array

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.walk_graph import EdgeWeights, leading_entities, restart, walk_adjacency
from llama_index_advanced_rag.ranking.walk_matrix import WalkMatrix

COUNTS = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 3.0])


def matrix(rows: Any, shape: tuple[int, int] | None = None) -> Any:
    made: Any = csr_array(np.array(rows, dtype=float).reshape(shape) if shape else np.array(rows, dtype=float))
    made.eliminate_zeros()
    return made


NONE = matrix(np.zeros((3, 3)))
SAID = matrix([[3.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])


def dense(mentions: Any, own: Any, facts: Any, aliases: Any, weights: EdgeWeights = EdgeWeights()) -> Any:  # noqa: B008 - it is immutable
    return walk_adjacency(mentions, own, facts, aliases, weights).toarray()


def symmetric(pairs: list[tuple[int, int, float]], size: int = 3) -> Any:
    made = np.zeros((size, size))
    for one, other, weight in pairs:
        made[one, other] = made[other, one] = weight
    return matrix(made)


def test_a_passage_shares_1_among_the_names_that_lead_somewhere() -> None:
    made = dense(SAID, NONE, NONE, NONE)
    assert made[:3, 3:].tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], "only the second name is said twice"
    related = dense(SAID, NONE, symmetric([(0, 2, 2.0)]), NONE)
    assert related[:3, 3:].tolist() == [[0.75, 0.25, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "by how often they are said"
    assert related[3:, 3:].tolist() == [[0.0, 0.0, 0.6], [0.0, 0.0, 0.0], [0.6, 0.0, 0.0]], "0.3 for each fact"


def test_two_related_names_of_one_passage_alone_do_not_keep_the_walk_from_it() -> None:
    said = matrix([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    among = symmetric([(0, 1, 1.0)])
    made = walk_adjacency(said, NONE, among, NONE, EdgeWeights())
    assert made.toarray()[3:, 3:].tolist() == np.zeros((3, 3)).tolist()
    nodes, amounts = restart(WalkMatrix.of(made), 3, said.T.tocsr(), entities=[0], shares=[1.0])
    assert (nodes.tolist(), amounts.tolist()) == ([0], [1.0])


def test_what_a_document_is_called_binds_on_top() -> None:
    own = matrix([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert dense(SAID, own, NONE, NONE)[:3, 3:].tolist() == [[0.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    assert dense(SAID, own, NONE, NONE, EdgeWeights(own=0.0))[:3, 3:].tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


def test_aliases_lead_and_bind() -> None:
    made = dense(SAID, NONE, NONE, symmetric([(0, 2, 0.9)]))
    assert made[3, 5] == made[5, 3] == pytest.approx(0.27)
    assert made[2, 5] == 1.0
    assert leading_entities(SAID, NONE, symmetric([(0, 2, 0.9)])).all()
    assert leading_entities(SAID, NONE, NONE).tolist() == [False, True, False]


@given(
    arrays.arrays(float, (4, 3), elements=COUNTS),
    arrays.arrays(float, (4, 3), elements=st.sampled_from([0.0, 1.0])),
    arrays.arrays(float, (3, 3), elements=COUNTS),
)
def test_the_graph_is_symmetric_and_can_be_walked(said: Any, own: Any, facts: Any) -> None:
    mentions, related = matrix(said + own), matrix(facts + facts.T)
    before = [part.copy() for part in (mentions.data, mentions.indices, related.data)]
    made = walk_adjacency(mentions, matrix(own), related, NONE, EdgeWeights())
    full: Any = made.toarray()
    np.testing.assert_allclose(full, full.T)
    assert not full[:4, :4].any()
    assert np.all(made.data > 0)
    assert WalkMatrix.of(made).n == 7
    for kept, part in zip(before, (mentions.data, mentions.indices, related.data), strict=True):
        np.testing.assert_array_equal(kept, part)


def test_nothing_at_all() -> None:
    for shape in ((0, 0), (2, 0), (0, 2)):
        empty, among = matrix([], shape) if 0 in shape else None, matrix(np.zeros((shape[1], shape[1])))
        assert WalkMatrix.of(walk_adjacency(empty, empty, among, among, EdgeWeights())).n == sum(shape)


def starts(entities: list[int], shares: list[float], mentions: Any = SAID) -> dict[int, float]:
    walk = WalkMatrix.of(walk_adjacency(mentions, NONE, NONE, NONE, EdgeWeights()))
    nodes, amounts = restart(walk, 3, mentions.T.tocsr(), entities=entities, shares=shares)
    return dict(zip(nodes.tolist(), amounts.tolist(), strict=True))


def test_a_walk_starts_at_entities_or_where_they_are_named() -> None:
    assert starts([1], [1.0]) == {4: 1.0}
    assert starts([0, 1], [0.75, 0.25]) == {0: 0.75, 4: 0.25}, "the first leads nowhere"
    assert starts([], []) == {}


def test_an_entity_that_nothing_names_starts_nothing() -> None:
    mentions = matrix([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert starts([0, 1], [0.5, 0.5], mentions) == {4: 0.5}
    assert starts([0], [1.0], mentions) == {}


@pytest.mark.parametrize("weights", [{"own": -1.0}, {"relations": float("nan")}, {"aliases": float("inf")}])
def test_weights_that_cannot_bind(weights: dict[str, float]) -> None:
    (name, value) = next(iter(weights.items()))
    with pytest.raises(ConfigurationError, match=f"The edge weight {name} is {value!r}.*at least 0"):
        EdgeWeights(**weights).checked()
    assert EdgeWeights(0.0, 0.0, 0.0).checked() == (0.0, 0.0, 0.0)
