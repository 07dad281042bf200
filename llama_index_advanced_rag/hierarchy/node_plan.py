"""Which nodes a document becomes, and what stands in what: a pure function on sections and chunks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from llama_index_advanced_rag.hierarchy.sections import DOCUMENT, SectionTree

MOST_LEVELS = 12


@dataclass(frozen=True, slots=True)
class OwnedChunk:
    """A chunk and the section it belongs to."""

    owner: int
    start: int
    end: int


@dataclass(slots=True)
class PlannedNode:
    """A node to be made.

    Attributes:
        section: the section that it is or, for a chunk, that it belongs to; 0 is the document.
        chunk: which chunk it is; None for the document and sections.
        start: where it begins.
        end: where it ends.
        parent: the planned node it stands in, None for the document.
        children: the planned nodes that stand in it, in the order of the text.
    """

    section: int
    chunk: int | None
    start: int
    end: int
    parent: int | None
    children: list[int] = field(default_factory=list[int])


def plan_nodes(tree: SectionTree, chunks: Sequence[OwnedChunk], length: int) -> list[PlannedNode]:
    """The document, its sections and chunks as one walk: each before what stands in it, in the order of the text.

    A section is a node when it has sub-sections or more than one chunk, and a chunk belongs to it or to one of them; it reaches
    from its first chunk to its last. Sections below the twelfth level are no nodes: their chunks hang on the one above.

    Args:
        tree: the sections.
        chunks: in the order of the text.
        length: characters of the document.

    Example:
        >>> tree = SectionTree([None], [0, 50], [0, 48])
        >>> [(node.section, node.chunk, node.parent, node.children) for node in plan_nodes(tree, [OwnedChunk(1, 0, 9), OwnedChunk(1, 10, 20)], 20)]
        [(0, None, None, [1]), (1, None, 0, [2, 3]), (1, 0, 1, []), (1, 1, 1, [])]
    """
    plan = [PlannedNode(DOCUMENT, None, 0, length, None)]
    holders = _holders(tree, Counter(chunk.owner for chunk in chunks))
    placed = {DOCUMENT: 0}
    for number, chunk in enumerate(chunks):
        holder = holders[chunk.owner]
        missing: list[int] = []
        while holder not in placed:
            missing.append(holder)
            holder = holders[tree.parents[holder]]
        for section in reversed(missing):
            placed[section] = _add(plan, PlannedNode(section, None, chunk.start, chunk.end, placed[holders[tree.parents[section]]]))
        place: int | None = _add(plan, PlannedNode(chunk.owner, number, chunk.start, chunk.end, placed[holders[chunk.owner]]))
        while (place := plan[place].parent) is not None:
            plan[place].end = max(plan[place].end, chunk.end)
    return plan


def _holders(tree: SectionTree, own_chunks: Counter[int]) -> list[int]:
    """For each section the deepest one at or above it that is a node."""
    holders, levels = [DOCUMENT], [0]
    for section in range(1, len(tree)):
        above = tree.parents[section]
        levels.append(levels[above] + 1)
        is_node = levels[section] <= MOST_LEVELS and (tree.end(section) > section + 1 or own_chunks[section] > 1)
        holders.append(section if is_node else holders[above])
    return holders


def _add(plan: list[PlannedNode], node: PlannedNode) -> int:
    plan.append(node)
    if node.parent is not None:
        plan[node.parent].children.append(len(plan) - 1)
    return len(plan) - 1
