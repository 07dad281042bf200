"""Passages of one document laid side by side as one text, without what they share: pure functions on texts and offsets."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from llama_index_advanced_rag.text.lines import Span
from llama_index_advanced_rag.text.sentences import sentence_spans, trimmed

_WIDEST_GAP = 4
_OVERLAP_CHARS = 8000
_SURE_CHARS = 16
_SENTENCE_ENDS = tuple(".!?…。！？:\"'”’»)")


class Piece(NamedTuple):
    """The text of a node; `start` is where it begins in its document, None when that is not known."""

    node_id: str
    text: str
    start: int | None


class Segment(NamedTuple):
    """A stretch of a strip from `place` on; it begins at `start` in the document, None when that is not known."""

    place: int
    start: int | None


class Unit(NamedTuple):
    """A sentence, or the part of it that lies on one side of a border; parts of one sentence share its number."""

    start: int
    end: int
    sentence: int


@dataclass(frozen=True, slots=True)
class Strip:
    """Pieces of a document as one text.

    Attributes:
        text: the text; no sentence is in it twice because two pieces share it.
        spans: where each piece lies in the text.
        segments: stretches in which offsets run on; the first one begins at 0.
        complete: True when all nodes of the text are among the pieces.
    """

    text: str
    spans: Mapping[str, Span]
    segments: Sequence[Segment]
    complete: bool = True

    def document_span(self, start: int, end: int) -> Span | None:
        """The place in the document of a part of the text; None when it is not known or not in one stretch."""
        number = bisect_right(self.segments, start, key=lambda segment: segment.place) - 1
        place, offset = self.segments[number]
        ends = self.segments[number + 1].place if number + 1 < len(self.segments) else len(self.text)
        return None if offset is None or end > ends else (offset + start - place, offset + end - place)


def join_pieces(pieces: Sequence[Piece], *, complete: bool = True) -> Strip:
    """One text of pieces that follow each other in a document and may overlap.

    Where both offsets are known and agree with the texts, they say what is shared; a gap of at most four characters is
    white space that no node holds, and is filled with as much of it. Otherwise what is shared is found in the texts:
    the longest end of the one, of at least 16 characters or of whole sentences, with which the other begins.

    Args:
        pieces: at least one.
        complete: see `Strip`.

    Example:
        >>> strip = join_pieces([Piece("a", "One. Two.", 0), Piece("b", "Two. Three.", 5), Piece("c", "Three. Four.", None)])
        >>> strip.text, strip.spans["b"], strip.document_span(0, 16), strip.document_span(0, 22)
        ('One. Two. Three. Four.', (5, 16), (0, 16), None)
    """
    first = pieces[0]
    text, spans, segments = first.text, {first.node_id: (0, len(first.text))}, [Segment(0, first.start)]
    for piece in pieces[1:]:
        shared = _shared_by_offset(text, segments[-1], piece)
        if shared is not None:
            back = forward = max(0, shared)
            filler = _white(text, -shared)
        elif _is_far(text, segments[-1], piece):
            back, forward, filler = 0, 0, "\n\n"
            segments.append(Segment(len(text) + len(filler), piece.start))
        else:
            back, forward = shared_lengths(text, piece.text)
            filler = "" if back else _white(text, 1)
            segments.append(Segment(len(text), None))
        place = len(text) + len(filler) - back
        text += filler + piece.text[forward:]
        spans[piece.node_id] = (place, place + len(piece.text) if back == forward else len(text))
    return Strip(text, spans, segments, complete)


def _edge(text: str, segment: Segment) -> int | None:
    """The place in the document at which the text so far ends."""
    return None if segment.start is None else segment.start + len(text) - segment.place


def _is_far(text: str, segment: Segment, piece: Piece) -> bool:
    edge = _edge(text, segment)
    return edge is not None and piece.start is not None and piece.start - edge > _WIDEST_GAP


def _shared_by_offset(text: str, segment: Segment, piece: Piece) -> int | None:
    """How much of a piece the text ends with, below 0 for a gap; None when offsets do not say, or say what is not so."""
    edge = _edge(text, segment)
    if edge is None or piece.start is None or piece.start - edge > _WIDEST_GAP:
        return None
    return edge - piece.start if agrees(text, piece.text, edge - piece.start) else None


def agrees(text: str, after: str, shared: int) -> bool:
    """Whether the last `shared` characters of a text are where the other one begins, or hold it; true of 0 and less."""
    return shared <= 0 or (shared <= len(text) and text.startswith(after[:shared], len(text) - shared))


def shared_lengths(before: str, after: str) -> tuple[int, int]:
    """How many characters at the end of a text are, but for white space, how many at the beginning of the next one.

    Example:
        >>> shared_lengths("One. It is two.", "It is two. Three."), shared_lengths("One. A", "A new one.")
        ((10, 10), (0, 0))
    """
    tail = before[-_OVERLAP_CHARS:]
    head, place = after[:_SURE_CHARS], -1
    while len(head) == _SURE_CHARS and (place := tail.find(head, place + 1)) >= 0:
        if after.startswith(tail[place:]):
            return len(tail) - place, len(tail) - place
    return _shared_sentences(tail, after[:_OVERLAP_CHARS])


def _shared_sentences(tail: str, head: str) -> tuple[int, int]:
    ends, begins = sentence_spans(tail), sentence_spans(head)
    last = [" ".join(tail[start:end].split()) for start, end in ends]
    first = [" ".join(head[start:end].split()) for start, end in begins]
    for count in range(min(len(last), len(first)), 0, -1):
        if last[-count:] == first[:count]:
            return len(tail) - ends[-count][0], begins[count - 1][1]
    return 0, 0


def _white(before: str, width: int) -> str:
    """White space between two sentences that no node holds: a blank behind a sentence, else the end of a line."""
    return " " * width if width == 1 and before.rstrip().endswith(_SENTENCE_ENDS) else "\n" * max(0, width)


def cut_units(text: str, spans: Sequence[Span], *, reach: int | None = None, language: str = "auto") -> list[Unit]:
    """The sentences of a text, cut where the border of a span lies within one.

    Args:
        text: any text.
        spans: the parts of it that matter, in any order.
        reach: characters around their borders that are read; what lies further off is one unit. None reads all.
        language: see `sentence_spans`.

    Example:
        >>> [text[unit.start : unit.end] for text in ["One two. Three."] for unit in cut_units(text, [(4, 15)])]
        ['One ', 'two.', 'Three.']
    """
    borders, units = sorted({border for span in spans for border in span}), list[Unit]()
    for number, (start, end) in enumerate(_sentences_near(text, spans, reach, language)):
        begin = start
        for border in borders[bisect_right(borders, start) : bisect_left(borders, end)]:
            units.append(Unit(begin, border, number))
            begin = border
        units.append(Unit(begin, end, number))
    return units


def _sentences_near(text: str, spans: Sequence[Span], reach: int | None, language: str) -> Iterator[Span]:
    place = 0
    for low, high in _regions(len(text), spans, reach):
        yield from trimmed(text, place, low)
        yield from ((low + start, low + end) for start, end in sentence_spans(text[low:high], language=language))
        place = high
    yield from trimmed(text, place, len(text))


def _regions(length: int, spans: Sequence[Span], reach: int | None) -> list[Span]:
    if reach is None:
        return [(0, length)]
    regions: list[Span] = []
    edges = [edge for start, end in spans for edge in (((start, start), (end, end)) if end - start > 2 * reach else ((start, end),))]
    for start, end in sorted(edges):
        low, high = max(0, start - reach), min(length, end + reach)
        if regions and low <= regions[-1][1]:
            regions[-1] = (regions[-1][0], max(high, regions[-1][1]))
        else:
            regions.append((low, high))
    return regions


class Want(NamedTuple):
    """Units of a strip that a hit has (`first` to before `last`), and those that are wanted around it (`low` to before `high`)."""

    strip: int
    first: int
    last: int
    low: int
    high: int


def grow_ranges(wants: Sequence[Want], cost: Callable[[int, int], int], room: int | None) -> list[Span]:
    """How far each hit may grow into what is wanted around it, the first hit first, unit by unit after and before.

    A unit that belongs to a hit, or into which another one has grown, costs nothing more.

    Args:
        wants: hits, best first.
        cost: tokens of a unit, asked by number of the strip and of the unit.
        room: tokens that may be added to the hits in all; None = no limit.

    Returns:
        Units of each hit after growing, as (low, high).

    Example:
        >>> grow_ranges([Want(0, 5, 6, 2, 9), Want(0, 9, 10, 9, 12)], lambda strip, unit: 10, 40)
        [(3, 8), (9, 10)]
    """
    taken = {(want.strip, unit) for want in wants for unit in range(want.first, want.last)}
    grown: list[Span] = []
    for want in wants:
        low, high = want.first, want.last
        after, before = high < want.high, low > want.low
        while after or before:
            for forward in (True, False):
                if not (after if forward else before):
                    continue
                unit = (want.strip, high if forward else low - 1)
                price = 0 if unit in taken else cost(*unit)
                if room is not None and price > room:
                    after, before = after and not forward, before and forward
                    continue
                room = None if room is None else room - price
                taken.add(unit)
                low, high = (low, high + 1) if forward else (low - 1, high)
                after, before = after and high < want.high, before and low > want.low
        grown.append((low, high))
    return grown


def touching_groups(ranges: Sequence[tuple[int, int, int]], breaks: frozenset[tuple[int, int]] = frozenset()) -> list[list[int]]:
    """Which ranges overlap or touch, as lists of their numbers; each list in the order of the text.

    Args:
        ranges: (strip, low, high) each.
        breaks: (strip, unit) at which two ranges may touch without being one.

    Example:
        >>> touching_groups([(0, 5, 8), (1, 0, 9), (0, 0, 5), (0, 9, 10)])
        [[2, 0], [3], [1]]
    """
    groups: list[list[int]] = []
    reach = (-1, -1)
    for number in sorted(range(len(ranges)), key=lambda number: (ranges[number], number)):
        strip, low, high = ranges[number]
        together = strip == reach[0] and (low < reach[1] or (low == reach[1] and (strip, low) not in breaks))
        if together:
            groups[-1].append(number)
        else:
            groups.append([number])
        reach = (strip, max(reach[1], high) if together else high)
    return groups
