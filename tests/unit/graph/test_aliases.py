"""Which names of a graph are aliases: those spelled alike or near by their vectors, unless something tells them apart."""

import numpy as np
import pytest
from numpy.typing import NDArray

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.aliases import alias_weights, with_aliases
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.text.name_words import name_key


def weights(*names: str, cosine: float | None = 0.95, **options: float) -> dict[frozenset[str], float]:
    """Of names that all have this cosine with each other."""
    matrix = None if cosine is None else all_near(len(names), cosine)
    found = alias_weights([name_key(name) for name in names], names, matrix, **options)  # type: ignore[arg-type]
    assert all(0 < weight <= 1 for weight in found.values())
    written = {name_key(name): name for name in names}
    return {frozenset({written[one], written[other]}): weight for (one, other), weight in found.items()}


def all_near(n: int, cosine: float) -> NDArray[np.float32]:
    return np.hstack([np.full((n, 1), np.sqrt(cosine)), np.sqrt(1 - cosine) * np.eye(n)]).astype(np.float32)


def test_near_names_are_aliases_by_their_cosine() -> None:
    assert weights("Elvis", "Elvis Presley") == {frozenset({"Elvis", "Elvis Presley"}): pytest.approx(0.95, abs=1e-6)}
    assert weights("Elvis", "Elvis Presley", cosine=0.7) == {}
    assert len(weights("Elvis", "Elvis Presley", cosine=0.7, least=0.6)) == 1


@pytest.mark.parametrize(
    ("one", "other"), [("Q3 2022", "Q3 2023"), ("Lothair I", "Lothair II"), ("North Korea", "South Korea"), ("Bliss (film)", "Bliss (novel)"), ("UK", "United")]
)
def test_what_is_told_apart_is_no_alias_however_near(one: str, other: str) -> None:
    assert weights(one, other, cosine=1.0) == {}


def test_spelling_needs_no_vectors() -> None:
    pair = frozenset({"OSU", "Ohio State University"})
    assert weights("OSU", "Ohio State University", cosine=None) == {pair: 0.9}
    assert weights("OSU", "Ohio State University", cosine=0.5) == {pair: 0.9}
    assert weights("OSU", "Ohio State University", cosine=0.95)[pair] == pytest.approx(0.95, abs=1e-6)


def test_a_name_has_at_most_so_many_aliases() -> None:
    names = [f"Name {letters}" for letters in ("ab", "cd", "ef", "gh", "jk", "lm")]
    found = weights(*names, most=2)
    assert found
    assert all(sum(name in pair for pair in found) <= 2 for name in names)


def test_what_does_not_fit_together() -> None:
    with pytest.raises(ConfigurationError, match="There are 2 keys, 1 names"):
        alias_weights(["a", "b"], ["A"])
    with pytest.raises(ConfigurationError, match="and 1 vectors"):
        alias_weights(["a", "b"], ["A", "B"], all_near(1, 0.9))
    with pytest.raises(ConfigurationError, match="most is 0"):
        alias_weights(["a", "b"], ["A", "B"], most=0)


def test_no_names_have_no_aliases() -> None:
    assert alias_weights([], []) == alias_weights([], [], np.zeros((0, 0), dtype=np.float32)) == {}


def test_a_graph_with_aliases_leaves_the_given_one_alone() -> None:
    plain = EntityGraph.from_triples({"a": [("Acme Corp", "sells", "anvils")], "b": [("Wile", "works at", "Acme Corporation")]})
    aliased = with_aliases(plain)
    assert (plain.aliases.nnz, aliased.aliases.nnz) == (0, 2)
    assert (aliased.aliases != aliased.aliases.T).nnz == 0
    one, other = plain.place_of_key["acme corp"], plain.place_of_key["acme corporation"]
    assert aliased.aliases[one, other] == 0.9
    assert aliased.mentions is plain.mentions
    assert with_aliases(aliased, all_near(plain.n_entities, 0.5)).aliases.nnz == 2
