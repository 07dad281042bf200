"""A document's text as the parser sees it: pieces to be packed, the sections they stand in, and the tables that cross them."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from llama_index_advanced_rag.hierarchy.chunking import CountTokens, Piece, cut_pieces, too_long
from llama_index_advanced_rag.hierarchy.sections import DOCUMENT, SectionTree
from llama_index_advanced_rag.text.blocks import Table, bar_rows, cut_at, fenced_blocks, find_tables, keep_whole
from llama_index_advanced_rag.text.lead_lines import lead_lines
from llama_index_advanced_rag.text.lines import Span
from llama_index_advanced_rag.text.outline import Heading
from llama_index_advanced_rag.text.sentences import trimmed

_MOST_TITLES = 17


@dataclass(frozen=True)
class DocumentLayout:
    """Pieces, sections and tables of one document.

    Attributes:
        headings: in the order of the text; section n + 1 is that of heading n, section 0 the document.
        pieces: the text in pieces that fit; none crosses the border of a section.
        tables: those with a header, in the order of the text.
    """

    headings: Sequence[Heading]
    pieces: Sequence[Piece]
    tables: Sequence[Table]

    @classmethod
    def of_text(cls, text: str, sentences: Sequence[Span], headings: Sequence[Heading], *, count_tokens: CountTokens, max_tokens: int) -> "DocumentLayout":
        """The layout of a text.

        Rows between bars and fenced code blocks are one piece; a longer code block is one a line. Headings, the
        headers of tables and lines that announce something are marked as what goes with what follows.

        Args:
            text: the document.
            sentences: its `sentence_spans`.
            headings: its outline.
            count_tokens: tokens of a string.
            max_tokens: most tokens of a piece.
        """
        fences = fenced_blocks(text)
        spans = keep_whole(text, keep_whole(text, sentences, bar_rows(text)), fences)
        spans = cut_at(text, spans, [border for heading in headings for border in (heading.start, heading.body)])
        code = set(fences)
        spans = [part for span in spans for part in _lines_if_long(text, span, count_tokens, max_tokens, is_code=span in code)]
        tables = find_tables(text, [span for span in spans if span not in code])
        heads = [*((heading.start, heading.body) for heading in headings), *((table.start, table.first_row) for table in tables)]
        leading = _starts_inside(spans, heads) | {start for start, _ in lead_lines(text, spans)}
        pieces = cut_pieces(text, spans, count_tokens=count_tokens, max_tokens=max_tokens, with_next=lambda span: span[0] in leading)
        return cls(headings, pieces, tables)

    @cached_property
    def borders(self) -> list[int]:
        """For each section the first piece of its own text, and one more: how many pieces there are."""
        starts = [piece.start for piece in self.pieces]
        return [0, *(bisect_left(starts, heading.start) for heading in self.headings), len(self.pieces)]

    @cached_property
    def tree(self) -> SectionTree:
        """The sections with their tokens."""
        borders = self.borders
        owned = [self.pieces[first:after] for first, after in pairwise(borders)]
        bodies = [0, *(heading.body for heading in self.headings)]
        texts = [sum(piece.tokens for piece in pieces if piece.start >= body) for body, pieces in zip(bodies, owned, strict=True)]
        return SectionTree([heading.parent for heading in self.headings], [sum(piece.tokens for piece in pieces) for pieces in owned], texts)

    def titles(self, section: int) -> list[str]:
        """The headings above a section from the top, the own one last; the nearest ones where they are many."""
        titles: list[str] = []
        while section != DOCUMENT and len(titles) < _MOST_TITLES:
            titles.append(self.headings[section - 1].title)
            section = self.tree.parents[section]
        return titles[::-1]

    def header_above(self, start: int) -> str | None:
        """The header of the table inside which a chunk begins; None elsewhere and for a chunk that begins with it."""
        place = bisect_right(self._first_rows, start) - 1
        return self.tables[place].header if place >= 0 and start < self.tables[place].end else None

    @cached_property
    def _first_rows(self) -> list[int]:
        return [table.first_row for table in self.tables]


def _lines_if_long(text: str, span: Span, count_tokens: CountTokens, max_tokens: int, *, is_code: bool) -> list[Span]:
    if not is_code or not too_long(text, span, count_tokens, max_tokens):
        return [span]
    lines: list[Span] = []
    start, end = span
    while start < end:
        line_end = text.find("\n", start, end)
        line_end = end if line_end < 0 else line_end + 1
        lines += trimmed(text, start, line_end)
        start = line_end
    return lines


def _starts_inside(spans: Sequence[Span], ranges: Sequence[Span]) -> set[int]:
    """The starts of the spans that begin inside one of the ranges."""
    starts = [start for start, _ in spans]
    return {start for first, after in ranges for start in starts[bisect_left(starts, first) : bisect_left(starts, after)]}
