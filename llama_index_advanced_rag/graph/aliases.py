"""Which names of a graph may mean the same: by their spelling, and by their vectors."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.fold_arrays import sparse
from llama_index_advanced_rag.ranking.near_pairs import Pairs, near_pairs, strongest_pairs
from llama_index_advanced_rag.text.name_variants import LEAST_CHARACTERS, are_namesakes, spelled_alike, told_by

LEAST_COSINE = 0.8
MOST_ALIASES = 100
SPELLED_ALIKE = 0.9
Matrix = NDArray[np.float32]


def alias_weights(
    keys: Sequence[str], names: Sequence[str], matrix: Matrix | None = None, *, least: float = LEAST_COSINE, most: int = MOST_ALIASES
) -> dict[tuple[str, str], float]:
    """How likely two names mean the same, by their keys: what `EntityGraph.from_fold` takes as `aliases`.

    Names that are spelled alike (see `text.name_variants`) have 0.9. With vectors, names with a cosine of at least `least` have that cosine, if it is
    more. Names of fewer than 3 letters or digits have no aliases; neither are names aliases that differ in what tells names apart (a number, a
    month, a point of the compass), or only in the parentheses behind them. The names alone decide, not how they came. No LLM call.

    Args:
        keys: what the names are known by, each once.
        names: how they are written.
        matrix: (n_names, dimension) unit vectors of the names; None = spelling alone.
        least: lowest cosine, above 0 and at most 1.
        most: most aliases of a name, the strongest.

    Returns:
        Weights above 0 and at most 1, each pair once, lower place first.

    Raises:
        ConfigurationError: there is not one name, and one vector, for each key; or a number cannot work.

    Example:
        >>> alias_weights(["osu", "ohio state university", "q3 2022"], ["OSU", "Ohio State University", "Q3 2022"])
        {('osu', 'ohio state university'): 0.9}

    Source: Gutierrez et al. 2024, "HippoRAG" (arXiv:2405.14831), synonymy edges. Our deviations: spelling counts too, what tells names apart keeps them
    apart, and nearest neighbours are mutual.
    """
    pairs = alias_pairs(keys, names, matrix, least=least, most=most)
    return {(keys[row], keys[column]): weight for row, column, weight in pairs.listed()}


def alias_pairs(keys: Sequence[str], names: Sequence[str], matrix: Matrix | None = None, *, least: float = LEAST_COSINE, most: int = MOST_ALIASES) -> Pairs:
    """The same as `alias_weights`, by the places of the names."""
    if len(names) != len(keys) or (matrix is not None and len(matrix) != len(keys)):
        vectors = "" if matrix is None else f" and {len(matrix)} vectors"
        raise ConfigurationError(f"There are {len(keys)} keys, {len(names)} names{vectors}. Expected one of each for each entity.")
    whole_number("most", most)
    weights = dict.fromkeys(spelled_alike(keys, names), SPELLED_ALIKE)
    if matrix is not None:
        for pair, cosine in _near(keys, names, matrix, least, most):
            weights[pair] = max(cosine, weights.get(pair, 0.0))
    ends = np.array([*weights], dtype=np.int64).reshape(-1, 2)
    return strongest_pairs(Pairs(ends[:, 0], ends[:, 1], np.array([*weights.values()], dtype=np.float64)), len(keys), most=most)


def with_aliases(graph: EntityGraph, matrix: Matrix | None = None, *, least: float = LEAST_COSINE, most: int = MOST_ALIASES) -> EntityGraph:
    """A graph with edges between its names that may mean the same, instead of those it has; all else is shared with the given one.

    Args:
        graph: the graph, which stays as it is.
        matrix: (n_entities, dimension) unit vectors of its names; None = spelling alone.
        least: see `alias_weights`.
        most: likewise.

    Example:
        >>> graph = EntityGraph.from_triples({"c1": [("Acme Corp", "sells", "anvils")], "c2": [("Wile", "works at", "Acme Corporation")]})
        >>> with_aliases(graph).aliases.nnz, graph.aliases.nnz
        (2, 0)
    """
    pairs = alias_pairs(graph.keys, graph.names, matrix, least=least, most=most)
    both = (edge for row, column, weight in pairs.listed() for edge in ((row, column, weight), (column, row, weight)))
    return replace(graph, aliases=sparse(both, (graph.n_entities, graph.n_entities)))


def _near(keys: Sequence[str], names: Sequence[str], matrix: Matrix, least: float, most: int) -> list[tuple[tuple[int, int], float]]:
    """Near pairs among names that nothing tells apart."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, key in enumerate(keys):
        if len(key.replace(" ", "")) >= LEAST_CHARACTERS:
            groups.setdefault(told_by(key), []).append(place)
    found: list[tuple[tuple[int, int], float]] = []
    for places in groups.values():
        for row, column, cosine in near_pairs(matrix[places], least=least, most=most).listed():
            pair = (places[row], places[column])
            if not are_namesakes(names[pair[0]], names[pair[1]]):
                found.append((pair, cosine))
    return found
