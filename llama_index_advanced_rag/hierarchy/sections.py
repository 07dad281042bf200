"""Which stretches of a document are cut into chunks together: a pure function on the tree of headings and token counts."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

DOCUMENT = 0
FEW_TOKENS = 12  # "(Unaudited)" below a heading is no text of its own


class SectionTree:
    """The document (section 0) and its sections in the order of the text, with the tokens of each one's own text.

    A section's own text is what stands between its heading, this included, and the next heading of any level.

    Args:
        parents: for each heading the index of the heading it stands under, None for a top one.
        tokens: tokens of the own text of the document (in front of the first heading) and of each section: one more than headings.
        texts: of these the tokens without the heading.

    Attributes:
        parents: for each section the one it stands in, -1 for the document.
        only_heading: for each section, whether it has no text of its own worth a chunk: none, or a few tokens in front of sub-sections.

    Example:
        >>> tree = SectionTree([None, 0, 0], [0, 2, 30, 40], [0, 0, 28, 38])
        >>> tree.total(1), tree.end(1), tree.parents[2]
        (72, 4, 1)
    """

    def __init__(self, parents: Sequence[int | None], tokens: Sequence[int], texts: Sequence[int]) -> None:
        self.parents = [-1, *(DOCUMENT if parent is None else parent + 1 for parent in parents)]
        self._ends = list(range(1, len(self.parents) + 1))
        for section in range(len(self.parents) - 1, 0, -1):
            parent = self.parents[section]
            self._ends[parent] = max(self._ends[parent], self._ends[section])
        self._sums = [0, *accumulate(tokens)]
        self.only_heading = [text == 0 or (text <= FEW_TOKENS and self._ends[section] > section + 1) for section, text in enumerate(texts)]

    def __len__(self) -> int:
        """How many sections there are, the document included."""
        return len(self.parents)

    def end(self, section: int) -> int:
        """The section behind the last one that stands in this one."""
        return self._ends[section]

    def total(self, section: int) -> int:
        """Tokens of a section with all that stands in it."""
        return self.between(section, self.end(section))

    def between(self, first: int, after: int) -> int:
        """Tokens of the own texts of consecutive sections."""
        return self._sums[after] - self._sums[first]


class Group(NamedTuple):
    """The own texts of the sections `first` to `after` (exclusive), which are cut into chunks together and belong to `owner`."""

    owner: int
    first: int
    after: int


def group_sections(tree: SectionTree, *, small: int, most: int) -> list[Group]:
    """The sections in groups whose chunks have no border of a section inside, but for small ones side by side.

    Consecutive sections of at most `small` tokens (with all that stands in them) under one parent form one group as long as
    they fit into `most` tokens; so do they with a small text of the parent in front of them. The group belongs to the parent.
    A heading without text of its own goes with what follows it: its first sub-section, or the next section beside it.

    Args:
        tree: the sections.
        small: most tokens of a section that is put together with others.
        most: most tokens of sections put together, so that they make one chunk.

    Returns:
        Groups in the order of the text; together they hold every section once. A small section that stands alone owns its group.

    Example:
        >>> tree = SectionTree([None, 0, 0, None], [0, 2, 10, 12, 300], [0, 0, 8, 10, 298])
        >>> group_sections(tree, small=20, most=100)
        [Group(owner=1, first=0, after=4), Group(owner=4, first=4, after=5)]
    """
    groups: list[Group] = []
    first = section = DOCUMENT
    while section < len(tree):
        owner, after = _group_at(tree, first, section, small, most)
        if _goes_on(tree, section, after):
            section = after
            continue
        groups.append(Group(owner, first, after))
        first = section = after
    return groups


def _group_at(tree: SectionTree, first: int, section: int, small: int, most: int) -> tuple[int, int]:
    """Owner and end of the group that begins with the headings from `first` on and the section."""
    if section != DOCUMENT and tree.total(section) <= small:
        after = _small_ones_from(tree, first, tree.end(section), tree.parents[section], small, most)
        return (section if after == tree.end(section) else tree.parents[section]), after
    if tree.between(section, section + 1) <= small and not tree.only_heading[section]:
        return section, _small_ones_from(tree, first, section + 1, section, small, most)
    return section, section + 1


def _small_ones_from(tree: SectionTree, first: int, after: int, parent: int, small: int, most: int) -> int:
    """The end of the run of small sections under one parent that begins at `after` and fits beside what begins at `first`."""
    while after < len(tree) and tree.parents[after] == parent and tree.total(after) <= small and tree.between(first, tree.end(after)) <= most:
        after = tree.end(after)
    return after


def _goes_on(tree: SectionTree, section: int, after: int) -> bool:
    """Whether the section is only a heading, which goes with the next one: one that stands in it or beside it."""
    if after != section + 1 or not tree.only_heading[section] or after == len(tree):
        return False
    return section in (DOCUMENT, tree.parents[after]) or tree.parents[section] == tree.parents[after]
