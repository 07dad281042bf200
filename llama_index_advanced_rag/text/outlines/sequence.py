"""Which numbered lines are headings: the numbers must go on, begin again only below a new parent, and must not stand in running text."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from llama_index_advanced_rag.text.lines import is_table_row
from llama_index_advanced_rag.text.outlines.chains import Item, chain_members, decimal_members
from llama_index_advanced_rag.text.outlines.labels import BARE_KINDS, EITHER_ORDER, RANKS
from llama_index_advanced_rag.text.outlines.lines import Layout
from llama_index_advanced_rag.text.outlines.numbers import NumberedLine, read_numbered

_FULL_SHARE = 0.65
_NARROW = 50
_NEAR = 5
_MIN_LISTING = 3
_MOST = 0.6
_REFERRED = ("section", "subsection", "article", "paragraph", "note")
_SENTENCE_ENDS = '.!?:;”"»)…。：；！？'
_WRAP_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Numbered:
    """A line of the layout that begins with a number."""

    index: int
    line: NumberedLine

    @property
    def key(self) -> tuple[str, str, tuple[int, ...]]:
        """What two lines with the same number share."""
        return self.line.kind, self.line.series, self.line.number


def numbered_headings(layout: Layout, skipped: frozenset[int] = frozenset()) -> list[Numbered]:
    r"""The numbered headings of a text in order; lines whose index is in `skipped` (those of a table of contents) are left out.

    Example:
        >>> from llama_index_advanced_rag.text.outlines.lines import read_layout
        >>> layout = read_layout("1. Aim\nWe say it.\n2. Means\n1. Buy\n2. Sell\n3. Wait\nAs said.\n3. End\nBye.")
        >>> [layout.lines[found.index].text for found in numbered_headings(layout)]
        ['1. Aim', '2. Means', '3. End']
    """
    found = [Numbered(index, line) for index in range(len(layout.lines)) if index not in skipped and (line := _standing(layout, index))]
    found = _without_listings(_without_repeats(layout, found))
    labels = _in_order([one for one in found if one.line.kind not in BARE_KINDS], _order_of_kinds(found))
    kept = labels + _bare_headings(layout, [one for one in found if one.line.kind in BARE_KINDS], labels)
    return sorted(kept, key=lambda one: one.index)


def _standing(layout: Layout, index: int) -> NumberedLine | None:
    """What a line says when it begins with a number and is no part of a sentence."""
    here = layout.lines[index]
    line = read_numbered(here.text)
    if line is None or (line.cut is None and here.size > len(here.text)) or (not here.apart and _runs_on(layout, index)):
        return None
    after = layout.after(index)
    if line.cut is None and after is not None and not layout.lines[after].apart and layout.lines[after].text[:1].islower():
        short = layout.lines[after].size <= _WRAP_SHARE * layout.width and layout.lines[after].text[-1] not in ".,;"
        if line.kind in BARE_KINDS or not line.title or not short:
            return None
    return line


def _runs_on(layout: Layout, index: int) -> bool:
    """Whether the line above is full and ends within a sentence."""
    above = layout.before(index)
    if above is None or above.text[-1] in _SENTENCE_ENDS or layout.width < _NARROW or read_numbered(above.text):
        return False
    return above.size >= _FULL_SHARE * layout.width and not is_table_row(above.text) and not above.text.isupper()


def _without_repeats(layout: Layout, found: Sequence[Numbered]) -> list[Numbered]:
    """Without running lines that repeat the number before, and without bare labels that a titled one follows closely."""
    kept: list[Numbered] = []
    last: dict[str, tuple[str, str, tuple[int, ...]]] = {}
    for place, one in enumerate(found):
        repeated = one.index in layout.running and last.get(one.line.kind) == one.key
        last[one.line.kind] = one.key
        near = (after for after in found[place + 1 : place + 1 + _NEAR] if after.index - one.index <= _NEAR)
        if not repeated and (one.line.title or not any(after.key == one.key and after.line.title for after in near)):
            kept.append(one)
    return kept


def _without_listings(found: Sequence[Numbered]) -> list[Numbered]:
    """Without runs of lines that directly follow each other and come again further down: contents without page numbers."""
    last = {one.key: one.index for one in found}
    kept: list[Numbered] = []
    run: list[Numbered] = []
    keys: set[tuple[str, str, tuple[int, ...]]] = set()
    for one, after in zip_longest(found, found[1:]):
        run.append(one)
        keys.add(one.key)
        if after is not None and after.index == one.index + 1 and (after.key not in keys or after.line.kind == "item"):
            continue
        again = sum(last[member.key] > one.index for member in run)
        if len(run) < _MIN_LISTING or again < _MOST * len(run):
            kept.extend(run)
        run = []
        keys.clear()
    return kept


def _order_of_kinds(found: Iterable[Numbered]) -> dict[str, float]:
    """The rank of each kind; of some pairs the one that comes first stands above."""
    first: dict[str, int] = {}
    for one in found:
        first.setdefault(one.line.kind, one.index)
    ranks = dict(RANKS)
    for above, below in EITHER_ORDER:
        if above in first and below in first and first[below] < first[above] and ranks[above] < ranks[below]:
            ranks[above], ranks[below] = ranks[below], ranks[above]
    return ranks


def _in_order(found: Sequence[Numbered], ranks: dict[str, float]) -> list[Numbered]:
    """Labels whose numbers go on, kind by kind from the top; a kind begins again below each heading that stands above it."""
    kept: list[Numbered] = []
    for kind in sorted({one.line.kind for one in found}, key=lambda kind: ranks[kind]):
        borders = sorted(one.index for one in kept)
        numbers = {one.line.number for one in found if one.line.kind == kind}
        scopes: dict[tuple[int, str], list[Numbered]] = {}
        for one in found:
            if one.line.kind == kind:
                ranked = replace(one, line=replace(one.line, rank=ranks[kind]))
                scopes.setdefault((bisect_left(borders, one.index), one.line.series), []).append(ranked)
        for scope in scopes.values():
            for run in _runs(scope):
                rising = _rising(_titled(run))
                if len(numbers) > 1 or rising[0].line.title or rising[0].line.leads or kind not in _REFERRED:
                    kept.extend(rising)
    return kept


def _runs(scope: Sequence[Numbered]) -> list[list[Numbered]]:
    """The scope cut where the numbers begin again with 1 and go on from there."""
    runs: list[list[Numbered]] = [[]]
    for place, one in enumerate(scope):
        after = scope[place + 1].line.number if place + 1 < len(scope) else ()
        if runs[-1] and one.line.leads and runs[-1][-1].line.number > one.line.number and (1,) < after < (3,):
            runs.append([])
        runs[-1].append(one)
    return runs


def _titled(run: Sequence[Numbered]) -> list[Numbered]:
    """Of several lines with one number the first with a title, else the first."""
    best: dict[tuple[int, ...], Numbered] = {}
    for one in run:
        other = best.get(one.line.number)
        if other is None or (one.line.title and not other.line.title):
            best[one.line.number] = one
    return sorted(best.values(), key=lambda one: one.index)


def _rising(run: Sequence[Numbered]) -> list[Numbered]:
    """The longest part of a run whose numbers rise."""
    tails: list[tuple[int, ...]] = []
    ends: list[int] = []
    before: list[int] = []
    for place, one in enumerate(run):
        length = bisect_left(tails, one.line.number)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(one.line.number)
            ends.append(place)
        elif tails[length] != one.line.number:
            tails[length], ends[length] = one.line.number, place
    kept: list[Numbered] = []
    place = ends[-1] if ends else -1
    while place >= 0:
        kept.append(run[place])
        place = before[place]
    return kept[::-1]


def _bare_headings(layout: Layout, found: Sequence[Numbered], labels: Sequence[Numbered]) -> list[Numbered]:
    items = [Item(one.index, one.line, apart=layout.lines[one.index].apart) for one in found]
    borders = [one.index for one in labels]
    letters = [
        replace(item, line=replace(item.line, kind="letter", number=letter, rank=RANKS["letter"])) for item in items if (letter := _letter(layout, item))
    ]
    as_letter = {item.index: item.line for item in chain_members(letters, [*borders, *(item.index for item in items if item.line.kind != "letter")])}
    romans = [item for item in items if item.line.kind == "roman" and item.index not in as_letter]
    kept = {item.index: item.line for item in chain_members(romans, borders)}
    numbers = {one.index: one.line.number for one in labels}
    decimals = decimal_members([item for item in items if item.line.kind == "decimal"], [*borders, *kept], numbers)
    kept |= {item.index: item.line for item in decimals} | as_letter
    return [Numbered(index, line) for index, line in kept.items()]


def _letter(layout: Layout, item: Item) -> tuple[int] | None:
    """The place in the alphabet of a number that is one letter, also when it can be read as a Roman one."""
    mark = layout.lines[item.index].text
    single = item.line.kind in ("roman", "letter") and not mark[1:2].isalpha()
    return (ord(mark[0]) - ord("A") + 1,) if single else None
