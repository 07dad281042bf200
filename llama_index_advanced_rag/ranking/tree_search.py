"""Search in a tree of summaries, on ids and scores: all nodes in one list, or from the top down.

A tree is given by the children of its clusters; what has no children is a unit. Clusters share no child.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from enum import Enum
from typing import Any

from llama_index_advanced_rag._choices import whole_number

BEAM = 5

Children = Mapping[str, Sequence[str]]


class TreeSearch(str, Enum):
    """How a tree of summaries is searched."""

    COLLAPSED = "collapsed"
    TOP_DOWN = "top_down"


def units_below(node_id: str, children: Children) -> list[str]:
    """The units under a cluster, in the order of the children; a unit is its own only one.

    Example:
        >>> units_below("root", {"root": ["left", "c"], "left": ["a", "b"]})
        ['a', 'b', 'c']
    """
    found: list[str] = []
    waiting, seen = [node_id], {node_id}
    while waiting:
        current = waiting.pop()
        if current not in children:
            found.append(current)
        below = [child for child in dict.fromkeys(children.get(current, ())) if child not in seen]
        seen.update(below)
        waiting += reversed(below)
    return found


def pruned(children: Children, allowed: Container[str]) -> dict[str, list[str]]:
    """The clusters that have an allowed unit below them, with those children only that lead to one.

    Example:
        >>> pruned({"root": ["left", "c"], "left": ["a", "b"], "right": ["d"]}, {"a", "c"})
        {'root': ['left', 'c'], 'left': ['a']}
    """
    kept: dict[str, list[str]] = {}
    for cluster in _from_below(children):
        below = [child for child in children[cluster] if child in kept or (child not in children and child in allowed)]
        if below:
            kept[cluster] = below
    return {cluster: kept[cluster] for cluster in children if cluster in kept}


def collapsed(scores: Mapping[str, float], children: Children, *, top_k: int, tie_key: Callable[[str], Any] = str) -> list[tuple[str, float]]:
    """The best units when the nodes of all levels compete in one list.

    A cluster that does better than its units speaks for them: the best of its units gets the score of the cluster, the others as much of it as
    their own score is of that of the best. A unit keeps its own score where that is higher.

    Args:
        scores: for units and clusters, from 0 to 1, higher is better; a node without one is 0.
        children: of each cluster.
        top_k: most units returned, at least 1.
        tie_key: order among equal scores.

    Returns:
        (unit, score) best first, scores above 0 only.

    Source: Sarthi et al. 2024, "RAPTOR" (arXiv:2401.18059), section 3, collapsed tree retrieval. Our deviation: there the summary of a cluster
    is what is read; here it leads to its units, which can be cited.

    Example:
        >>> collapsed({"ab": 0.9, "a": 0.5, "b": 0.25, "c": 0.6}, {"ab": ["a", "b"]}, top_k=2)
        [('a', 0.9), ('c', 0.6)]
    """
    best = {node: score for node, score in scores.items() if node not in children}
    highest: dict[str, float] = {}
    for cluster in _from_below(children):
        highest[cluster] = max((highest.get(child, 0.0) if child in children else scores.get(child, 0.0) for child in children[cluster]), default=0.0)
        lent = scores.get(cluster, 0.0)
        if lent > highest[cluster]:
            for unit in units_below(cluster, children):
                share = scores.get(unit, 0.0) / highest[cluster] if highest[cluster] > 0.0 else 1.0
                best[unit] = max(best.get(unit, 0.0), lent * share)
    return _best_first(best, top_k, tie_key)


def top_down(
    scores: Mapping[str, float], children: Children, *, roots: Sequence[str], top_k: int, beam: int = BEAM, tie_key: Callable[[str], Any] = str
) -> list[tuple[str, float]]:
    """The best units under the best clusters: at each level the `beam` best clusters are opened, the others are not looked into.

    Args:
        scores: as in `collapsed`.
        children: of each cluster.
        roots: where the search begins; units among them are results.
        top_k: most units returned, at least 1.
        beam: clusters opened at each level, at least 1.
        tie_key: order among equal scores.

    Returns:
        (unit, score) with the unit's own score, best first, scores above 0 only.

    Source: Sarthi et al. 2024, section 3, tree traversal retrieval.

    Example:
        >>> tree = {"left": ["a", "b"], "right": ["c"]}
        >>> top_down({"left": 0.9, "right": 0.1, "a": 0.4, "b": 0.5, "c": 0.8}, tree, roots=["left", "right"], top_k=3, beam=1)
        [('b', 0.5), ('a', 0.4)]
    """
    whole_number("beam", beam)
    found: dict[str, float] = {}
    level, seen = list(dict.fromkeys(roots)), set[str]()
    while level:
        seen.update(level)
        found.update((node, scores.get(node, 0.0)) for node in level if node not in children)
        clusters = sorted((node for node in level if node in children), key=lambda node: (-scores.get(node, 0.0), tie_key(node)))
        below = dict.fromkeys(child for cluster in clusters[:beam] for child in children[cluster])
        level = [child for child in below if child not in seen]
    return _best_first(found, top_k, tie_key)


def _from_below(children: Children) -> list[str]:
    """The clusters, each after those below it; each once, also in a circle."""
    ordered: dict[str, None] = {}
    seen = set[str]()
    for start in children:
        waiting = [(start, False)]
        while waiting:
            cluster, is_left = waiting.pop()
            if is_left:
                ordered[cluster] = None
            elif cluster not in seen:
                seen.add(cluster)
                waiting.append((cluster, True))
                waiting += [(child, False) for child in children[cluster] if child in children and child not in seen]
    return list(ordered)


def _best_first(scores: Mapping[str, float], top_k: int, tie_key: Callable[[str], Any]) -> list[tuple[str, float]]:
    whole_number("top_k", top_k)
    return sorted(((node, score) for node, score in scores.items() if score > 0.0), key=lambda pair: (-pair[1], tie_key(pair[0])))[:top_k]
