"""Which clusters an update keeps: those there were, so that a changed section costs a summary for each level and not for every cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_NEW = 0.25
"""When a larger share of the units than this is new, all is clustered afresh."""


@dataclass
class ClusterHistory:
    """The clusters of the tree before, followed from the bottom up while the new tree grows.

    Attributes:
        children: the members of each cluster before; empty = nothing to keep.

    Example:
        >>> history = ClusterHistory.of({"ab": ["a", "b"], "cd": ["c", "d"], "top": ["ab", "cd"]}, unchanged=["a", "c", "d"], count=4)
        >>> history.kept_groups(["a", "c", "d", "x"], height=1)
        [['c', 'd']]
    """

    children: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    _parents: dict[str, str] = field(default_factory=dict[str, str])
    _heights: dict[str, int] = field(default_factory=dict[str, int])
    _before: dict[str, str] = field(default_factory=dict[str, str])
    _followed: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, children: Mapping[str, Sequence[str]], *, unchanged: Sequence[str], count: int) -> "ClusterHistory":
        """The history of a tree.

        Args:
            children: its clusters, from the bottom up.
            unchanged: units that were in it and are as they were.
            count: units of the new tree.
        """
        if count - len(unchanged) > MOST_NEW * count:
            return cls()
        parents = {member: cluster for cluster, members in children.items() for member in members}
        heights: dict[str, int] = {}
        for cluster, members in children.items():
            heights[cluster] = 1 + max(heights.get(member, 0) for member in members)
        return cls(children, parents, heights, {unit: unit for unit in unchanged})

    @property
    def height(self) -> int:
        """Levels of clusters there were."""
        return max(self._heights.values(), default=0)

    def waiting(self, level: Sequence[str], height: int) -> set[str]:
        """The nodes whose cluster was above this height: they go up alone, as they did before."""
        return {node for node in level if self._heights.get(self._cluster_of(node), 0) > height}

    def kept_groups(self, level: Sequence[str], height: int) -> list[list[str]]:
        """The clusters of this height of which two members or more are left, by what stands for their members now."""
        groups: dict[str, list[str]] = {}
        for node in level:
            cluster = self._cluster_of(node)
            if self._heights.get(cluster) == height:
                groups.setdefault(cluster, []).append(node)
        return [group for group in groups.values() if len(group) > 1]

    def follow(self, cluster: str, members: Sequence[str]) -> None:
        """Tell what became of the members of this level: the new cluster stands for the old one that its first known member was in, once."""
        for member in members:
            before = self._cluster_of(member)
            if before and before not in self._followed:
                self._before[cluster] = before
                self._followed.add(before)
                return

    def _cluster_of(self, node: str) -> str:
        """The cluster that a node, or what it stands for, was in; empty for none."""
        return self._parents.get(self._before.get(node, ""), "")
