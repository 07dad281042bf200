"""Clusters of vectors of a bounded size: the same clusters for the same vectors, in whatever order they come."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag.errors import ConfigurationError

MAX_CLUSTER_SIZE = 10
_ROUNDS = 12
_LEAST_SHARE = 0.05

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def cluster_vectors(ids: Sequence[str], vectors: NDArray[np.floating], *, max_size: int = MAX_CLUSTER_SIZE) -> list[list[str]]:
    """Groups of like vectors, by direction, of at most `max_size` members.

    All vectors are halved, each half again, until the parts are small enough. A vector that is left alone joins the nearest cluster that has
    room; it stays alone only when none has. Time is n log n.

    Args:
        ids: a different one for each vector.
        vectors: shape (n, d), finite; lengths do not matter.
        max_size: most members of a cluster, at least 2.

    Returns:
        Clusters with sorted ids, in the order of their first ids; each id is in exactly one. They do not depend on the order of the input.

    Raises:
        ConfigurationError: ids and vectors differ in number, an id occurs twice, or `max_size` is below 2.

    Source: bisecting k-means as in Steinbach, Karypis, Kumar 2000, "A Comparison of Document Clustering Techniques", with cosines (spherical).
    RAPTOR (Sarthi et al. 2024, arXiv:2401.18059, section 3) clusters with UMAP and Gaussian mixtures, where a text may be in several
    clusters. Our deviations from it: nothing random (the start is the vector farthest from the mean, and the one farthest from that), a
    bounded size instead of a criterion, one cluster for each text. A half that would hold less than one in twenty is made larger, which
    bounds the depth.

    Example:
        >>> cluster_vectors(["a", "b", "c", "d"], np.array([[1.0, 0.1], [0.0, 1.0], [1.0, 0.0], [0.1, 1.0]]), max_size=2)
        [['a', 'c'], ['b', 'd']]
    """
    whole_number("max_size", max_size, least=2)
    if len(ids) != len(vectors) or len(set(ids)) != len(ids):
        raise ConfigurationError(f"There are {len(ids)} ids ({len(set(ids))} different ones) and {len(vectors)} vectors. Expected one id of its own for each.")
    if not len(ids):
        return []
    order = sorted(range(len(ids)), key=lambda index: ids[index])
    names = [ids[index] for index in order]
    units = _unit_rows(np.asarray(vectors, dtype=np.float64)[order])
    parts = _without_singletons(units, list(_halved(units, max_size)), max_size)
    return sorted([names[row] for row in sorted(part)] for part in parts)


def place_in_clusters(
    ids: Sequence[str], vectors: NDArray[np.floating], clusters: Sequence[Sequence[str]], *, max_size: int = MAX_CLUSTER_SIZE
) -> list[list[str]]:
    """Clusters that are kept, with the vectors that are new to them: each joins the nearest one, which is divided when it becomes too large.

    Args:
        ids: of all vectors, old and new, each once.
        vectors: shape (n, d).
        clusters: those to keep, of these ids; none larger than `max_size`.
        max_size: most members of a cluster, at least 2.

    Returns:
        As `cluster_vectors`, which it is when there is nothing to keep. It does not depend on the order of the input.

    Example:
        >>> vectors = np.array([[1.0, 0.1], [0.0, 1.0], [1.0, 0.0], [0.1, 1.0], [0.9, 0.2]])
        >>> place_in_clusters(["a", "b", "c", "d", "e"], vectors, [["b", "d"], ["a", "c"]])
        [['a', 'c', 'e'], ['b', 'd']]
    """
    if not clusters:
        return cluster_vectors(ids, vectors, max_size=max_size)
    rows = {name: row for row, name in enumerate(ids)}
    units = _unit_rows(np.asarray(vectors, dtype=np.float64))
    kept = sorted(sorted(cluster) for cluster in clusters)
    centres = _unit_rows(np.array([units[[rows[name] for name in cluster]].mean(axis=0) for cluster in kept]))
    for name in sorted(rows.keys() - {member for cluster in kept for member in cluster}):
        kept[int(np.argmax(np.round(centres @ units[rows[name]], 12)))].append(name)
    return sorted(part for cluster in kept for part in _divided(cluster, units[[rows[name] for name in cluster]], max_size))


def _divided(cluster: list[str], vectors: Floats, max_size: int) -> list[list[str]]:
    return [sorted(cluster)] if len(cluster) <= max_size else cluster_vectors(cluster, vectors, max_size=max_size)


def _unit_rows(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0.0, norms, 1.0)


def _halved(units: Floats, max_size: int) -> Iterator[list[int]]:
    waiting: list[Indices] = [np.arange(len(units), dtype=np.intp)]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= max_size:
            yield rows.tolist()
            continue
        in_second = _second_half(units[rows], max_size)
        waiting += [rows[in_second], rows[~in_second]]


def _second_half(units: Floats, max_size: int) -> NDArray[np.bool_]:
    """Which rows go to the second of two parts, neither of which is empty."""
    first = units[int(np.argmin(units @ _unit_rows(units.mean(axis=0))))]
    second = units[int(np.argmin(units @ first))]
    in_second = units @ (second - first) > 0.0
    for _ in range(_ROUNDS):
        if in_second.all() or not in_second.any():
            break
        first, second = _unit_rows(units[~in_second].mean(axis=0)), _unit_rows(units[in_second].mean(axis=0))
        after = units @ (second - first) > 0.0
        if (after == in_second).all():
            break
        in_second = after
    least = 1 if len(units) <= 2 * max_size else max(1, int(len(units) * _LEAST_SHARE))
    if least <= int(in_second.sum()) <= len(units) - least:
        return in_second
    ranks = np.argsort(np.argsort(np.round(units @ (second - first), 12), kind="stable"), kind="stable")
    return ranks >= len(units) // 2


def _without_singletons(units: Floats, parts: list[list[int]], max_size: int) -> list[list[int]]:
    alone = sorted(part[0] for part in parts if len(part) == 1)
    kept = sorted((part for part in parts if len(part) > 1), key=min)
    if not alone or not kept:
        return [*kept, *_in_groups(alone, max_size)]
    centres = _unit_rows(np.array([units[part].mean(axis=0) for part in kept]))
    left: list[int] = []
    for row in alone:
        likeness = np.where([len(part) < max_size for part in kept], centres @ units[row], -np.inf)
        nearest = int(np.argmax(likeness))
        (left if likeness[nearest] == -np.inf else kept[nearest]).append(row)
    return [*kept, *_in_groups(left, max_size)]


def _in_groups(rows: Sequence[int], max_size: int) -> list[list[int]]:
    return [list(rows[start : start + max_size]) for start in range(0, len(rows), max_size)]
