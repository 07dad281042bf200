"""Chains of bare numbers: 1, 2, 3 of headings go on over the text, those of a list stand close together or inside another chain."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from llama_index_advanced_rag.text.outlines.numbers import NumberedLine

_MAX_GAP = 3
_MAX_OPEN = 50


@dataclass(frozen=True, slots=True)
class Item:
    """A numbered line: its index among the lines, what it says, and whether a blank line stands before it."""

    index: int
    line: NumberedLine
    apart: bool


@dataclass(slots=True)
class _Chain:
    series: str
    members: list[Item] = field(default_factory=list[Item])
    inside: bool = False
    restart: bool = False

    @property
    def last(self) -> Item:
        return self.members[-1]


def chain_members(items: Sequence[Item], borders: Sequence[int], parents: frozenset[int] = frozenset()) -> list[Item]:
    """The members of chains that may be headings, in order.

    Args:
        items: Lines with numbers of one part, in order.
        borders: Indices of headings that stand above; numbers may begin again behind them.
        parents: Indices of items that a lower number follows (1 before 1.1); these need no second member.
    """
    marks = sorted(borders)
    chains: list[_Chain] = []
    open_chains: list[_Chain] = []
    for item in _outside_lists(items):
        _join(item, open_chains, chains, marks)
    kept: list[Item] = []
    for chain in chains:
        alone = len(chain.members) < 2 and chain.last.index not in parents
        unsure = chain.restart and not all(item.apart for item in chain.members)
        if not alone and not unsure and not chain.inside:
            kept.extend(chain.members)
    return sorted(kept, key=lambda item: item.index)


def _outside_lists(items: Sequence[Item]) -> list[Item]:
    """Without lines that directly follow each other in a run: those are a list."""
    numbers = {item.index: item.line.number[0] for item in items}
    return [item for item in items if numbers.get(item.index + 1) != item.line.number[0] + 1 and numbers.get(item.index - 1) != item.line.number[0] - 1]


def _join(item: Item, open_chains: list[_Chain], chains: list[_Chain], borders: Sequence[int]) -> None:
    number = item.line.number[0]
    for place in range(len(open_chains) - 1, -1, -1):
        chain = open_chains[place]
        if chain.series == item.line.series and 0 < number - chain.last.line.number[0] <= (1 if place else _MAX_GAP):
            for inner in open_chains[place + 1 :]:
                inner.inside = inner.inside or not _border_between(borders, chain.last.index, inner.members[0].index)
            del open_chains[place + 1 :]
            chain.members.append(item)
            return
    if number in (0, 1):
        free = not open_chains or _border_between(borders, open_chains[-1].last.index, item.index)
        chain = _Chain(item.line.series, [item], restart=not free)
        chains.append(chain)
        open_chains.append(chain)
        del open_chains[1 : len(open_chains) - _MAX_OPEN]


def _border_between(borders: Sequence[int], first: int, second: int) -> bool:
    return bisect_right(borders, second) > bisect_right(borders, first)


def decimal_members(items: Sequence[Item], borders: Sequence[int], labels: Mapping[int, tuple[int, ...]]) -> list[Item]:
    """Decimal headings (1, 1.1, 1.1.2) that follow each other; `labels` are the numbers of the labelled headings by line index."""
    tops = [item for item in items if len(item.line.number) == 1]
    firsts = {after.line.number[:1]: item.index for item, after in pairwise(items) if item.line.number == after.line.number[:-1]}
    accepted = {item.index for item in chain_members(tops, borders, frozenset(firsts.values()))}
    kept: list[Item] = []
    marks = sorted(labels)
    current: tuple[int, ...] = ()
    for item in items:
        place = bisect_right(marks, item.index) - 1
        if len(item.line.number) == 1:
            fits = item.index in accepted
        else:
            fits = _follows(current, item.line.number) or (place >= 0 and _follows(labels[marks[place]], item.line.number))
        if fits:
            current = item.line.number
            kept.append(item)
    return kept if len(kept) > 1 else []


def _follows(current: tuple[int, ...], number: tuple[int, ...]) -> bool:
    """Whether a number comes next: the first part that differs is a little higher, and all parts behind it begin.

    Example:
        >>> _follows((1, 2), (1, 3)), _follows((1, 2), (2, 1)), _follows((), (31, 1))
        (True, True, False)
    """
    for place, part in enumerate(number):
        before = current[place] if place < len(current) else 0
        if part != before:
            return 0 < part - before <= (_MAX_GAP if before else 1) and all(later in (0, 1) for later in number[place + 1 :])
    return False
