"""Where the entries of a table of contents stand in the text: at the line with their title, else at the page they name."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from llama_index_advanced_rag.text.outlines.contents import Contents, Entry
from llama_index_advanced_rag.text.outlines.drafts import RANK_BELOW, RANK_ENTRY, RANK_GROUP, RANK_TOP, Draft, HeadingSource
from llama_index_advanced_rag.text.outlines.lines import Layout, TextLine, plain_words
from llama_index_advanced_rag.text.outlines.sequence import Numbered
from llama_index_advanced_rag.text.outlines.titles import read_title

_MAX_TITLE_LINE = 220
_MAX_LOOKED_AT = 100
_MIN_PREFIX_WORDS = 2
_MIN_VOTES = 2
_NEAR_PAGES = 2
_INDENT_STEP = 0.001
_MAX_INDENT = 99
_PART_STEP = 0.1


class BodyLines:
    """The lines of a text that may be headings, by their words."""

    def __init__(self, layout: Layout, skipped: frozenset[int]) -> None:
        self._layout = layout
        self._same: dict[str, list[int]] = {}
        self._alike: dict[tuple[str, ...], list[int]] = {}
        for index, line in enumerate(layout.lines):
            words = plain_words(line.text) if index not in skipped and index not in layout.running and line.size <= _MAX_TITLE_LINE else ""
            if words:
                self._same.setdefault(words, []).append(index)
                self._alike.setdefault(tuple(words.split(None, 2)[:2]), []).append(index)

    def same(self, title: str) -> list[int]:
        """Lines that say just this."""
        return self._same.get(plain_words(title), [])

    def find(self, title: str, after: int, page: int | None) -> int | None:
        """The first line from `after` on with this title, on or next to the page if one is given; else one that the title begins, or that begins the title."""
        place = self._nearest(self.same(title), after, page)
        if place is not None:
            return place
        words = plain_words(title)
        near = self._alike.get(tuple(words.split(None, 2)[:2]), [])
        begin = bisect_left(near, after) if page is None else bisect_left(near, page - 1, key=self._page_of)
        alike = [index for index in near[begin : begin + _MAX_LOOKED_AT] if self._is_like(words, index, on_page=page is not None)]
        return self._nearest(alike, after, page)

    def _nearest(self, places: Sequence[int], after: int, page: int | None) -> int | None:
        if page is None:
            begin = bisect_left(places, after)
            return places[begin] if begin < len(places) else None
        begin = bisect_left(places, page - 1, key=self._page_of)
        near: list[tuple[int, int]] = []
        for index in places[begin : begin + _MAX_LOOKED_AT]:
            distance = abs(self._layout.lines[index].page - page)
            if distance > 1:
                break
            if index >= after:
                near.append((distance, index))
        return min(near)[1] if near else None

    def _page_of(self, index: int) -> int:
        return self._layout.lines[index].page

    def _is_like(self, words: str, index: int, *, on_page: bool) -> bool:
        line = plain_words(self._layout.lines[index].text)
        if line.startswith(f"{words} "):
            last = self._layout.lines[index].text[-1]
            return len(line) <= len(words) + _MAX_TITLE_LINE // 4 and last not in ".,;" and not last.isdecimal()
        if not words.startswith(f"{line} "):
            return False
        below = index + 1
        if below < len(self._layout.lines) and words == f"{line} {plain_words(self._layout.lines[below].text)}":
            return True
        return len(line.split()) >= _MIN_PREFIX_WORDS and (on_page or (len(line.split()) > _MIN_PREFIX_WORDS and self._layout.opens_page(index)))


def page_shift(layout: Layout, contents: Iterable[Contents], body: BodyLines) -> int | None:
    """The index of a page minus its printed number: from the page numbers, else from entries that stand in the text once."""
    if layout.shift is not None or len(layout.page_starts) < 2:
        return layout.shift
    votes = Counter(
        layout.lines[places[0]].page - entry.page
        for table in contents
        for entry in table.entries
        if entry.page is not None and len(places := body.same(entry.title)) == 1
    )
    best = votes.most_common(1)
    return best[0][0] if best and best[0][1] >= _MIN_VOTES else None


def place_entries(
    layout: Layout, table: Contents, body: BodyLines, shift: int | None, numbered: Mapping[tuple[str, tuple[int, ...]], list[int]]
) -> tuple[list[Draft], list[str]]:
    """The headings that a table of contents adds to the numbered ones, and a note for each entry without a place.

    Args:
        layout: The lines of the text.
        table: The table of contents.
        body: The lines outside tables of contents.
        shift: The index of a page minus its printed number.
        numbered: The lines of the numbered headings by kind and number.
    """
    drafts: list[Draft] = []
    notes: list[str] = []
    after = 0
    pages = [_page(layout, entry, shift) for entry in table.entries]
    for entry, rank, own, following in zip_longest(table.entries, _ranks(table.entries), pages, pages[1:]):
        page = following if own is None and entry.page is None else own
        known = _labelled(layout, entry, numbered, after, page)
        if known is not None:
            after = known + 1
            notes.extend(_contradiction(layout, entry, known))
            continue
        place = body.find(entry.title, after, page)
        if place is None and page is None and (others := body.same(entry.title)):
            place = others[0]
            notes.append(f"The entry {entry.title!r} of the table of contents stands in another order in the text.")
        if place is not None:
            after = max(after, place + 1)
            title, end = read_title(layout, place)
            drafts.append(Draft(layout.lines[place].start, end, title, rank, HeadingSource.CONTENTS, entry.numbered is not None and entry.numbered.leads))
        elif page is not None:
            drafts.append(_at_page(layout, page, entry.title, rank, drafts))
        else:
            notes.append(f"The entry {entry.title!r} of the table of contents has no place in the text.")
    return [_before_its_part(draft, after) for draft, after in zip_longest(drafts, drafts[1:])], notes


def _before_its_part(draft: Draft, after: Draft | None) -> Draft:
    """A group at the start of a page begins one character before its first part that stands at the same place."""
    if after is None or draft.start != after.start or draft.body != draft.start or draft.rank >= after.rank or not draft.start:
        return draft
    return replace(draft, start=draft.start - 1)


def _labelled(layout: Layout, entry: Entry, numbered: Mapping[tuple[str, tuple[int, ...]], list[int]], after: int, page: int | None) -> int | None:
    """The numbered heading with the label of an entry: near its page if there is one, else the next."""
    known = numbered.get((entry.numbered.kind, entry.numbered.number), []) if entry.numbered else []
    begin = bisect_left(known, after)
    later = known[begin : begin + _MAX_LOOKED_AT]
    near = [index for index in later if page is not None and abs(layout.lines[index].page - page) <= _NEAR_PAGES]
    return near[0] if near else later[0] if later else None


def _contradiction(layout: Layout, entry: Entry, index: int) -> list[str]:
    here, there = plain_words(entry.title), plain_words(layout.lines[index].text)
    if here.startswith(there) or there.startswith(here):
        return []
    return [f"The table of contents says {entry.title!r} where the text says {layout.lines[index].text[:100]!r}."]


def _at_page(layout: Layout, page: int, title: str, rank: float, before: Sequence[Draft]) -> Draft:
    """A heading at the start of a page, but not above the entry before it when that stands on the same page."""
    start = layout.page_starts[page]
    stop = layout.page_starts[page + 1] if page + 1 < len(layout.page_starts) else start + 1
    if before and start <= before[-1].start and before[-1].body < stop:
        start = before[-1].body
    return Draft(start, start, title, rank, HeadingSource.CONTENTS)


def _page(layout: Layout, entry: Entry, shift: int | None) -> int | None:
    if entry.page is None or shift is None or not 0 <= entry.page + shift < len(layout.page_starts):
        return None
    return entry.page + shift


def _ranks(entries: Sequence[Entry]) -> list[float]:
    """Ranks of the entries: by their number, else just below the number before.

    Without any numbers the indentation counts, and an entry that names no page stands above the others.
    """
    counted = [place for place, entry in enumerate(entries) if entry.numbered is not None]
    ranks: list[float] = []
    above = RANK_TOP
    for place, entry in enumerate(entries):
        if entry.numbered is not None:
            above = entry.numbered.rank
            ranks.append(above)
        elif not counted:
            ranks.append(
                (RANK_GROUP if entry.page is None else RANK_ENTRY) + (_PART_STEP if entry.is_part else 0) + min(entry.indent, _MAX_INDENT) * _INDENT_STEP
            )
        elif entry.is_part or counted[0] < place < counted[-1]:
            ranks.append(above + _PART_STEP)
        else:
            ranks.append(RANK_TOP)
    return ranks


def place_index(layout: Layout, table: Contents, body: BodyLines, shift: int | None, drafts: Sequence[Draft], numbered: Iterable[Numbered]) -> list[Draft]:
    """The headings when an index at the end names places before it: what stands there takes the full title of its entry.

    An entry with a label and no place stays a heading where it stands in the index.
    """
    by_start = {draft.start: draft for draft in drafts}
    known = {(one.line.kind, one.line.number) for one in numbered}
    last = max((place for place, entry in enumerate(table.entries) if entry.numbered), default=len(table.entries))
    for number, entry in enumerate(table.entries):
        line = entry.numbered
        if line is not None and (line.kind, line.number) in known:
            continue
        page = _page(layout, entry, shift)
        place = body.find(line.title if line and line.title else entry.title, 0, page) if line is None or line.title else None
        if place is not None:
            start, end = layout.lines[place].start, read_title(layout, place)[1]
        elif line is not None and page is not None:
            start = end = _free_place(layout, page, entry, by_start)
        elif line is not None:
            start, end = layout.lines[entry.index].start, layout.lines[entry.index].end
        else:
            continue
        there = by_start.get(start)
        if there is not None and line is not None:
            by_start[start] = replace(there, body=max(end, there.body), title=entry.title)
        elif there is None:
            rank = RANK_TOP if number > last else RANK_BELOW + (line.rank / 10 if line and place is None and page is None else 0)
            by_start[start] = Draft(start, end, entry.title, rank, HeadingSource.CONTENTS)
    return sorted(by_start.values(), key=lambda draft: draft.start)


def _free_place(layout: Layout, page: int, entry: Entry, by_start: Mapping[int, Draft]) -> int:
    """The start of a page, or of a heading there that holds the words of the entry; behind other headings at that place."""
    start = layout.page_starts[page]
    words = plain_words(entry.numbered.title if entry.numbered else entry.title)
    for place in (start - 1, start):
        if place in by_start and by_start[place].body <= start and words and words in plain_words(by_start[place].title):
            return place
    while start in by_start:
        after = bisect_right(layout.lines, start, key=_line_start)
        at_end = after == len(layout.lines) or by_start[start].body > start
        start = max(by_start[start].body, start + 1) if at_end else layout.lines[after].start
    return start


def _line_start(line: TextLine) -> int:
    return line.start
