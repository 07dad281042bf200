"""Lines that begin with the number of a heading: `Item 1A. Risk Factors`, `1.2 Scope`, `Article 12 - Résiliation`, `第三章`."""

import re
from dataclasses import dataclass, replace

from llama_index_advanced_rag.text.lines import is_table_row
from llama_index_advanced_rag.text.outlines.labels import KIND_OF_WORD, RANKS, chinese_value, read_number, read_ordinal, roman_value

_LABEL = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)?)\.?[ \u00a0\t]+")
_SIGN = re.compile(r"§{1,2}[ \u00a0]?(?=\d)")
_DECIMAL = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,5})(\.?)[ \u00a0\t]+(?=\S)")
_ROMAN = re.compile(r"([IVXLC]{1,7})(\.|[ \u00a0]?[-–—])[ \u00a0\t]+(?=\S)")
_LETTER = re.compile(r"([A-Z])(\.|[ \u00a0]?[-–—])[ \u00a0\t]+(?=\S)")
_CJK = re.compile(r"第[ \u3000]*([0-9０-９零〇一二两三四五六七八九十百千]{1,8})[ \u3000]*([编編篇部章节節条條款])(?:の\d{1,3})?(.*)$")
_KOREAN = re.compile(r"제[ ]*(\d{1,4})[ ]*([편장절조])(.*)$")
_CJK_KINDS = {
    "编": "book", "編": "book", "篇": "book", "편": "book", "部": "part", "章": "chapter", "장": "chapter",
    "节": "section", "節": "section", "절": "section", "条": "article", "條": "article", "조": "article", "款": "paragraph",
}  # fmt: skip
_MARKS = " \u00a0\u3000\t.:)]-–—―|"
_STRONG = ".:)]-–—―|"
_MAX_LABEL = 200
_MAX_BARE = 120
_MAX_WORDS = 30
_MAX_BARE_WORDS = 16
_SENTENCE = re.compile(r"[.!?][”\")]?\s+[^\W\d_]")
_LINKS = frozenset(("of", "and", "or", "to", "in", "for", "du", "de", "des", "et", "à", "und", "der", "des", "del", "y"))
_RUN_IN = ("section", "article", "paragraph")
_MAX_RUN_IN = 8
_SHORT_WORD = 4
_MAX_ENDED = 5


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """The number of a line. `title` is what stands behind it, `cut` where the heading ends when running text follows in the same line."""

    kind: str
    series: str
    number: tuple[int, ...]
    title: str
    rank: float
    cut: int | None = None

    @property
    def leads(self) -> bool:
        """Whether this is a first number: 1, A, I, or the first below a higher one."""
        return self.number[-1] in (0, 1) if self.kind == "decimal" else self.number in ((1,), (0,))


def read_numbered(line: str) -> NumberedLine | None:
    """What a stripped line says when it looks like a numbered heading, else None; sentences and cross references are no headings.

    Example:
        >>> read_numbered("ITEM 1A. RISK FACTORS")
        NumberedLine(kind='item', series='', number=(1, 1), title='RISK FACTORS', rank=4.5, cut=None)
        >>> read_numbered("Item 1A of the Annual Report") is None, read_numbered("1.2 Scope").rank
        (True, 11.0)
    """
    if not line or len(line) > 2 * _MAX_LABEL:
        return None
    return _east_asian(line) or _labelled(line) or _bare(line)


def _east_asian(line: str) -> NumberedLine | None:
    match = _CJK.match(line) or _KOREAN.match(line)
    if match is None:
        return None
    kind, rest = _CJK_KINDS[match.group(2)], match.group(3).strip(_MARKS)
    number = (chinese_value(match.group(1)),)
    if match.group(3)[:1] in ("の", "의", "第", "제", "和", "、", "，", "及") or (rest.endswith(("，", "、", "；")) and kind not in _RUN_IN):
        return None
    if len(rest) <= 40 and not rest.endswith(("。", "，", "；", "：")):
        return NumberedLine(kind, "", number, rest, RANKS[kind])
    return NumberedLine(kind, "", number, "", RANKS[kind], match.start(3)) if kind in _RUN_IN else None


def _labelled(line: str) -> NumberedLine | None:
    sign = _SIGN.match(line)
    label = None if sign else _LABEL.match(line)
    kind = "paragraph" if sign else _label_kind(label.group(1)) if label else None
    begin = sign.end() if sign else label.end() if label else 0
    number = read_number(line, begin) if kind else None
    if kind is None or number is None:
        ordinal = read_ordinal(line)
        return NumberedLine(ordinal[0], "", (ordinal[1],), "", RANKS[ordinal[0]]) if ordinal else None
    series, value, end = number
    title, explicit = _rest(line, end)
    if title is None:
        return None
    if _is_heading_text(title, explicit=explicit) and not is_table_row(line):
        return NumberedLine(kind, series, value, title, RANKS[kind])
    return _run_in(line, title, NumberedLine(kind, series, value, "", RANKS[kind], end), explicit=explicit)


def _run_in(line: str, title: str, label: NumberedLine, *, explicit: bool) -> NumberedLine | None:
    """A heading whose text follows in the same line: `Section 1.1 Certain Terms. As used here`."""
    head = _run_in_head(title) if label.kind in _RUN_IN else ""
    if head:
        return replace(label, title=head, cut=len(line) - len(title) + len(head) + 1)
    return label if label.kind in _RUN_IN and explicit and title[:1].isupper() else None


def _run_in_head(title: str) -> str:
    """The first words of a line when they are a title that running text follows."""
    match = _SENTENCE.search(title)
    head = title[: match.start()] if match and title[match.start()] == "." else ""
    return head if head and len(head.split()) <= _MAX_RUN_IN and _is_title_case(head) else ""


def _is_title_case(title: str) -> bool:
    words = [word for word in title.split() if len(word) > _SHORT_WORD]
    return title[0].isupper() and all(not word[0].islower() for word in words)


def _label_kind(word: str) -> str | None:
    return None if word[:1].islower() else KIND_OF_WORD.get(word.casefold())


def _rest(line: str, end: int) -> tuple[str | None, bool]:
    """What stands behind the number, and whether a mark parts them; None when the number is part of a sentence."""
    tail = line[end:]
    title = tail.lstrip(_MARKS)
    between = tail[: len(tail) - len(title)]
    if tail and not between:
        return None, False
    return title.rstrip(), any(mark in _STRONG for mark in between)


def _is_heading_text(title: str, *, explicit: bool) -> bool:
    if not title:
        return True
    if len(title) > _MAX_LABEL or title[-1] in ",;" or len(title.split()) > _MAX_WORDS or _SENTENCE.search(title):
        return False
    if not explicit and title.split(None, 1)[0].casefold() in _LINKS:
        return False
    if title[0].islower() or not any(mark.isalpha() for mark in title):
        return False
    return not title.endswith((".", ":")) or (explicit and len(title.split()) <= 12)


def _bare(line: str) -> NumberedLine | None:
    if match := _DECIMAL.match(line):
        number = tuple(int(part) for part in match.group(1).split("."))
        return _bare_line(line, match, "decimal", number, RANKS["decimal"] + len(number) - 1)
    if match := _ROMAN.match(line):
        return _bare_line(line, match, "roman", (roman_value(match.group(1)),), RANKS["roman"])
    if match := _LETTER.match(line):
        return _bare_line(line, match, "letter", (ord(match.group(1)) - ord("A") + 1,), RANKS["letter"])
    return None


def _bare_line(line: str, match: re.Match[str], kind: str, number: tuple[int, ...], rank: float) -> NumberedLine | None:
    title = line[match.end() :].lstrip(_MARKS)
    if not title or not (title[0].isalpha() or title[0] in "“\"«'‘(") or title[0].islower():
        return None
    found = NumberedLine(kind, match.group(2).strip(), number, title, rank)
    head = _run_in_head(title)
    if head:
        return replace(found, title=head, cut=len(line) - len(title) + len(head) + 1)
    ended = title[-1] in ",;:!" or (title[-1] == "." and len(title.split()) > _MAX_ENDED and not _is_title_case(title))
    if ended or len(title) > _MAX_BARE or len(title.split()) > _MAX_BARE_WORDS or sum(mark.isalpha() for mark in title) < 2 or _SENTENCE.search(title):
        return None
    return None if is_table_row(line) else found
