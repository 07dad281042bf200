"""The visible lines of a text with their pages, and which of them only repeat at the top or the bottom of the pages."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from llama_index_advanced_rag.text.lines import is_table_row

_MAX_READ = 400
_EDGE = 3
_MIN_REPEATS = 3
_REPEAT_SHARE = 0.05
_MAX_WIDTH = 200
_PAGE_BREAK = re.compile("\f")
_DIGITS = re.compile(r"\d+")
_NOT_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line with something visible in it; `text` is stripped and cut at 400 characters, `size` is its full length."""

    start: int
    end: int
    text: str
    size: int
    indent: int
    page: int
    apart: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines of one text and what their places on the pages say.

    `running` holds the lines that repeat at the edges of pages, `shift` is the index of a page minus its printed number (None: not known),
    `width` how wide the prose runs in characters.
    """

    lines: tuple[TextLine, ...]
    page_starts: tuple[int, ...]
    running: frozenset[int]
    shift: int | None
    width: int

    def opens_page(self, index: int) -> bool:
        """Whether only running lines stand above this line on its page."""
        page = self.lines[index].page
        before = index - 1
        while before >= 0 and self.lines[before].page == page and before in self.running:
            before -= 1
        return before < 0 or self.lines[before].page != page

    def before(self, index: int) -> TextLine | None:
        """The line above on the same page that is not a running line."""
        page = self.lines[index].page
        for place in range(index - 1, max(index - 1 - 2 * _EDGE, -1), -1):
            if self.lines[place].page != page:
                return None
            if place not in self.running:
                return self.lines[place]
        return None

    def after(self, index: int) -> int | None:
        """The index of the next line that is not a running line."""
        for place in range(index + 1, min(index + 2 + 2 * _EDGE, len(self.lines))):
            if place not in self.running:
                return place
        return None


def read_layout(text: str, page_starts: Sequence[int] = ()) -> Layout:
    r"""The visible lines of a text; pages begin at `page_starts`, else behind form feeds.

    Example:
        >>> layout = read_layout("Title\r\n\r\n  Some text.")
        >>> [(line.start, line.text, line.indent, line.apart) for line in layout.lines]
        [(0, 'Title', 0, True), (9, 'Some text.', 2, True)]
    """
    starts = tuple(page_starts) or (0, *(match.end() for match in _PAGE_BREAK.finditer(text)))
    lines: list[TextLine] = []
    offset, blank, page = 0, True, -1
    for raw in text.splitlines(keepends=True):
        start, offset = offset, offset + len(raw)
        head = raw[: _MAX_READ * 2]
        stripped = head.strip()
        if not stripped:
            blank = True
            continue
        indent = len(head) - len(head.lstrip())
        here = bisect_right(starts, start + indent) - 1
        size = len(stripped) if len(raw) <= len(head) else len(raw)
        lines.append(TextLine(start, offset, stripped[:_MAX_READ], size, indent, here, blank or here != page))
        blank, page = False, here
    running = running_lines(lines)
    return Layout(tuple(lines), starts, running, _page_shift(lines), _text_width(lines))


def running_lines(lines: Sequence[TextLine]) -> frozenset[int]:
    """Indices of the lines that stand at the top or the bottom of several pages with the same words, or with a number that counts the pages."""
    edges = _edges(lines)
    if len({lines[index].page for index in edges}) <= _MIN_REPEATS:
        return frozenset()
    least = max(_MIN_REPEATS, int(_REPEAT_SHARE * (lines[-1].page + 1)))
    same = Counter(key for key, _ in {(lines[index].text.casefold(), lines[index].page) for index in edges})
    counted = Counter(_page_key(lines[index]) for index in edges)
    counted[None] = 0
    return frozenset(index for index in edges if same[lines[index].text.casefold()] >= least or counted[_page_key(lines[index])] >= _MIN_REPEATS)


def _edges(lines: Sequence[TextLine]) -> list[int]:
    pages: dict[int, list[int]] = {}
    for index, line in enumerate(lines):
        pages.setdefault(line.page, []).append(index)
    if len(pages) < 2:
        return []
    return sorted({index for page in pages.values() for index in (*page[:_EDGE], *page[-_EDGE:])})


def _page_key(line: TextLine) -> tuple[str, int] | None:
    """The words of a line with its last number as the distance to the page: the same for each page when the number counts pages."""
    numbers = _DIGITS.findall(line.text)
    if not numbers or not line.text.endswith(numbers[-1]) or len(numbers[-1]) > 4:
        return None
    return _DIGITS.sub("#", line.text.casefold()), line.page - int(numbers[-1])


def _page_shift(lines: Sequence[TextLine]) -> int | None:
    votes: Counter[int] = Counter()
    seen: dict[int, int] = {}
    for index, line in enumerate(lines):
        seen[line.page] = index
    for index in seen.values():
        key = _page_key(lines[index])
        if key is not None:
            votes[key[1]] += 1
    if not votes:
        return None
    shift, count = votes.most_common(1)[0]
    return shift if count >= _MIN_REPEATS else None


def _text_width(lines: Sequence[TextLine]) -> int:
    sizes = sorted(line.size for line in lines if not is_table_row(line.text))
    return min(sizes[len(sizes) * 9 // 10], _MAX_WIDTH) if sizes else 0


def plain_words(text: str) -> str:
    """Lower-case words without punctuation, for comparing titles.

    Example:
        >>> plain_words("ITEM 1A.  Risk Factors —")
        'item 1a risk factors'
    """
    return _NOT_WORD.sub(" ", text.casefold()).strip()
