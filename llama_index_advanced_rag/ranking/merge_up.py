"""Parts whose whole is wanted: hits that cover enough of their parent become the parent, level by level."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Merged:
    """One entry of the list after merging.

    Attributes:
        node_id: the hit itself, or the ancestor that took its place.
        score: that of the best hit in it.
        hits: ids of the hits that it stands for, best first.
    """

    node_id: str
    score: float
    hits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    node_id: str
    score: float
    rank: int
    hits: tuple[tuple[int, str], ...]

    @property
    def order(self) -> tuple[float, int]:
        return (-self.score, self.rank)


def merge_up(
    hits: Sequence[tuple[str, float]],
    *,
    parents: Mapping[str, str],
    children: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int],
    min_share: float = 0.5,
    max_tokens: int | None = None,
    budget: int | None = None,
) -> list[Merged]:
    """Replace hits by their parent where enough of its children are hit, then parents by theirs, and so on upwards.

    A parent takes the place of at least two of its children when they are at least `min_share` of all; it has the score
    and the rank of the best of them. A chain of only children counts as one child. A hit below a hit, or below a merged
    parent, is absorbed: it is never shown beside the whole. A link that is part of a circle does not count.

    With a budget the list ends before the first entry that does not fit (the best entry always stays), and a merge that
    would push a hit out of the list is not made: every hit that is given without merging is given with it.

    Args:
        hits: ids and scores (higher is better), best first; of an id that comes twice the better one counts.
        parents: the parent of each node, of as many levels as there are; a node without one is a root.
        children: all children of each parent; one that is not listed here takes no one's place.
        sizes: tokens of nodes. A parent without a size takes no one's place; a hit without one counts 0.
        min_share: from 0 to 1.
        max_tokens: most tokens of a merged parent; None = no limit.
        budget: most tokens of the whole list; None = no limit.

    Returns:
        Entries by (score, best first; rank among the hits). Together they stand for all hits, unless a budget ends the list.

    Source: LlamaIndex's AutoMergingRetriever. Ours are the best score in place of the mean, the share as a lower bound that
        is reached, the limits of tokens, and that no part stands beside its whole.

    Example:
        >>> parents = {"a": "AB", "b": "AB", "c": "CDE"}
        >>> children = {"AB": ["a", "b"], "CDE": ["c", "d", "e"]}
        >>> merged = merge_up([("a", 0.9), ("c", 0.8), ("b", 0.1)], parents=parents, children=children, sizes={"AB": 20, "CDE": 30})
        >>> [(entry.node_id, entry.score, entry.hits) for entry in merged]
        [('AB', 0.9, ('a', 'b')), ('c', 0.8, ('c',))]
    """
    tree = _Tree(without_cycles(parents)[0], children, sizes, min_share, max_tokens, budget)
    items = _absorbed(_items(hits), tree)
    while (merged := _one_level(items, tree)) is not None:
        items = _absorbed(merged, tree)
    kept = _within(sorted(items.values(), key=lambda item: item.order), tree)
    return [Merged(item.node_id, item.score, tuple(hit for _, hit in sorted(item.hits))) for item in kept]


@dataclass(frozen=True, slots=True)
class _Tree:
    parents: Mapping[str, str]
    children: Mapping[str, Sequence[str]]
    sizes: Mapping[str, int]
    min_share: float
    max_tokens: int | None
    budget: int | None

    def wanted_parent(self, node_id: str) -> tuple[str, str] | None:
        """The nearest ancestor with several children, and the one among them that holds the node."""
        child = node_id
        for parent in ancestors(node_id, self.parents):
            siblings = self.children.get(parent)
            if siblings is None:
                return None
            if len(set(siblings)) > 1:
                return parent, child
            child = parent
        return None

    def may_stand(self, parent: str) -> bool:
        """Whether the parent is small enough to be given."""
        limits = [limit for limit in (self.max_tokens, self.budget) if limit is not None]
        return parent in self.sizes and all(self.sizes[parent] <= limit for limit in limits)

    def enough(self, parent: str, hit_children: Iterable[str]) -> bool:
        """Whether so many of its children are hit that the whole is wanted."""
        siblings = set(self.children[parent])
        count = len(siblings.intersection(hit_children))
        return count >= 2 and count >= self.min_share * len(siblings)


def _items(hits: Sequence[tuple[str, float]]) -> dict[str, _Item]:
    items: dict[str, _Item] = {}
    for rank, (node_id, score) in enumerate(hits):
        if node_id not in items or score > items[node_id].score:
            items[node_id] = _Item(node_id, score, rank, ((rank, node_id),))
    return items


def _joined(node_id: str, parts: Sequence[_Item]) -> _Item:
    best = min(parts, key=lambda item: item.order)
    return _Item(node_id, best.score, best.rank, tuple(hit for item in parts for hit in item.hits))


def _absorbed(items: Mapping[str, _Item], tree: _Tree) -> dict[str, _Item]:
    """Each item in its highest ancestor among the items; an ancestor beyond the budget gives way to its parts instead."""
    too_big = {item for item in items if tree.budget is not None and tree.sizes.get(item, 0) > tree.budget}
    parts: dict[str, list[_Item]] = {}
    giving_way: set[str] = set()
    for node_id, item in items.items():
        above = [ancestor for ancestor in ancestors(node_id, tree.parents) if ancestor in items]
        giving_way.update(too_big.intersection(above))
        standing = [ancestor for ancestor in above if ancestor not in too_big]
        parts.setdefault(standing[-1] if standing else node_id, []).append(item)
    return {node_id: _joined(node_id, held) for node_id, held in parts.items() if node_id not in giving_way}


def _one_level(items: Mapping[str, _Item], tree: _Tree) -> dict[str, _Item] | None:
    """The items after all merges into their next parents, or None when there is nothing to merge."""
    current, room = dict(items), _Room(items.values(), tree)
    for parent, held in _families(items, tree):
        parts = [items[part] for part in held]
        if room.takes(parent, parts):
            for part in held:
                del current[part]
            current[parent] = _joined(parent, parts)
    return current if current.keys() != items.keys() else None


class _Room:
    """What the budget leaves for merges that push out none of the entries it holds."""

    def __init__(self, items: Iterable[_Item], tree: _Tree) -> None:
        self._tree = tree
        kept = [] if tree.budget is None else _within(sorted(items, key=lambda item: item.order), tree)
        self._orders = {item.order for item in kept}
        self._total = sum(tree.sizes.get(item.node_id, 0) for item in kept)

    def takes(self, parent: str, parts: Sequence[_Item]) -> bool:
        """Whether the parent may stand in place of its parts; then its room is taken."""
        inside = [part for part in parts if part.order in self._orders]
        if self._tree.budget is None or not inside:
            return True
        total = self._total + self._tree.sizes[parent] - sum(self._tree.sizes.get(part.node_id, 0) for part in inside)
        fits = total <= self._tree.budget
        self._total = total if fits else self._total
        return fits


def _families(items: Mapping[str, _Item], tree: _Tree) -> Iterator[tuple[str, list[str]]]:
    """Parents that are wanted whole, with the items in them, in the order of their best item."""
    families: dict[str, dict[str, str]] = {}
    for item in sorted(items.values(), key=lambda item: item.order):
        wanted = tree.wanted_parent(item.node_id)
        if wanted is not None:
            families.setdefault(wanted[0], {})[item.node_id] = wanted[1]
    return ((parent, list(held)) for parent, held in families.items() if tree.enough(parent, held.values()) and tree.may_stand(parent))


def _within(ordered: Sequence[_Item], tree: _Tree) -> Sequence[_Item]:
    if tree.budget is None:
        return ordered
    total = 0
    for place, item in enumerate(ordered):
        total += tree.sizes.get(item.node_id, 0)
        if total > tree.budget and place:
            return ordered[:place]
    return ordered


def ancestors(node_id: str, parents: Mapping[str, str]) -> Iterator[str]:
    """The parent of a node, its parent, and so on; the links must have no circle.

    Example:
        >>> list(ancestors("chunk", {"chunk": "section", "section": "document"}))
        ['section', 'document']
    """
    above = parents.get(node_id)
    while above is not None:
        yield above
        above = parents.get(above)


def without_cycles(parents: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The links without those that go round in a circle, and the nodes of the circles, in the order of the links.

    Example:
        >>> without_cycles({"a": "b", "b": "c", "c": "b", "d": "d"})
        ({'a': 'b'}, ['b', 'c', 'd'])
    """
    walked: dict[str, int] = {}
    circular: set[str] = set()
    for walk, start in enumerate(parents):
        node_id = start
        while node_id in parents and node_id not in walked:
            walked[node_id] = walk
            node_id = parents[node_id]
        if walked.get(node_id) == walk:
            while node_id not in circular:
                circular.add(node_id)
                node_id = parents[node_id]
    return {child: parent for child, parent in parents.items() if child not in circular}, [child for child in parents if child in circular]
