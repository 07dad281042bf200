"""Sentences of any text as character spans: prose by Punkt, tables, lists and headings by line.

The Punkt models of eighteen languages are the ones that llama-index-core ships; they are read from its folder, nothing is
downloaded and llama-index is not imported.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from llama_index_advanced_rag.text.lines import Span, prose_blocks

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

MAX_SENTENCE_CHARS = 1000
PIECE_CHARS = 400
_PUNKT_CHARS = 20_000
_LANGUAGE_SAMPLE = 20_000
_PUNKT_LANGUAGES = {
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "fi": "finnish",
    "fr": "french",
    "it": "italian",
    "ml": "malayalam",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sl": "slovene",
    "sv": "swedish",
    "tr": "turkish",
}
# Punkt learnt its abbreviations from newspapers; these are common in reports, law and science.
_MORE_ABBREVIATIONS = {
    "english": "al approx art cf ch co corp dept dr e.g ed eq eqs fig figs i.e inc jr ltd mr mrs ms no nos pp prof sec sr st u.k u.s vol vs",
    # "L.", "R." and "D." are the parts of a French code: "article L. 411-1".
    "french": "al art av bd cf chap d dr etc ex fig fr l m me mgr mlle mm mme mmes n no p.ex pp pr r ste st vol éd",
    "german": "abb abs art bzw d.h dr ggf inkl nr prof s.o str u.a usw vgl z.b zzgl",
}
# Sentence ends that Punkt does not know; they need no space after them.
_OTHER_ENDS = re.compile(r"[。！？｡؟۔।॥]+[」』”’）)\"']*")
_MAYBE_END = re.compile(r"[.!?][\"'”’»)\]]{0,3}\s")
_GLUED_END = re.compile(r"(?<=[^\W_])[.!?](?=[^\W\d_][\w'’])|(?<=[)»”])[.!?](?=[^\W\d_][\w'’])")
_NOT_A_WORD = re.compile(r"[\d./@_\\:=#&(\[]|[^\W\d_A-ZÀ-ÖØ-Þ][A-ZÀ-ÖØ-Þ]")
_LONGEST_WORD, _LONGEST_LABEL = 40, 3
_ENUMERATOR = re.compile(r"(?:#{1,6}\s+)?\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]")
_WHITE_SPACE = re.compile(r"\s")


def sentence_spans(text: str, *, language: str = "auto") -> list[Span]:
    """The sentences of a text as (start, end) pairs: `text[start:end]` is the sentence.

    Spans are in order, do not overlap, begin and end with a visible character, and together hold every visible character. A row
    of a table, a list item, a heading and a line of its own are one span each; lines that continue a sentence are read
    together. A space may be missing behind a full stop ("in 2014.It is"); names like "www.Example.com" stay whole. A "sentence"
    of more than 1,000 characters is cut at line ends, else at white space, about every 400 characters.
    Time is linear in the length of the text.

    Args:
        text: any text; empty or white text has no sentences.
        language: ISO code; "auto" looks at the beginning of the text. A language without a Punkt model is read as English.

    Example:
        >>> text = "Sales rose 2.5 % in the U.S. market. See No. 5! Total 10 20"
        >>> [text[start:end] for start, end in sentence_spans(text, language="en")]
        ['Sales rose 2.5 % in the U.S. market.', 'See No. 5!', 'Total 10 20']

    Source: Kiss & Strunk 2006, "Unsupervised Multilingual Sentence Boundary Detection", as built into nltk. Ours are the
    handling of lines, more abbreviations, glued sentences, the sentence ends of CJK, Arabic and Indic scripts, and the cut of
    long sentences.
    """
    if not text or text.isspace():
        return []
    name = _punkt_language(text, language)
    return [
        piece
        for block in prose_blocks(text)
        for part in _portions(text, block)
        for sentence in _prose_sentences(text, part, name)
        for piece in _cut_long(text, sentence)
    ]


def _punkt_language(text: str, language: str) -> str:
    code: str | None = language
    if language in ("auto", "none"):
        from llama_index_advanced_rag.text.languages import detect_language

        code = detect_language(text[:_LANGUAGE_SAMPLE])
    return _PUNKT_LANGUAGES.get((code or "en").lower().split("-")[0], "english")


@lru_cache(maxsize=4)
def _punkt(name: str) -> "PunktSentenceTokenizer":
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer(_parameters(name))


@lru_cache(maxsize=4)
def _parameters(name: str) -> "PunktParameters":
    """The Punkt model, read here because nltk opens files of its own data folders only."""
    from nltk.tokenize.punkt import PunktParameters

    spec = find_spec("llama_index.core")
    if spec is None or spec.origin is None:
        raise LookupError("The sentence models were not found: llama-index-core is not installed. Install it with: pip install llama-index-core")
    folder = Path(spec.origin).parent / "_static" / "nltk_cache" / "tokenizers" / "punkt_tab" / name
    parameters = PunktParameters()
    parameters.abbrev_types = set(_rows(folder / "abbrev_types.txt")) | set(_MORE_ABBREVIATIONS.get(name, "").split())
    parameters.sent_starters = set(_rows(folder / "sent_starters.txt"))
    parameters.collocations = {tuple(row.split("\t")) for row in _rows(folder / "collocations.tab")}
    for row in _rows(folder / "ortho_context.tab"):
        word, flags = row.split("\t")
        parameters.ortho_context[word] = int(flags)
    return parameters


def _rows(path: Path) -> list[str]:
    return [row for row in path.read_text(encoding="utf-8").split("\n") if row]


def _portions(text: str, block: Span) -> Iterator[Span]:
    """A block in portions that Punkt reads in bounded time, cut after what looks like a sentence end, else at white space."""
    start, end = block
    while end - start > _PUNKT_CHARS:
        low, high = start + _PUNKT_CHARS * 3 // 4, start + _PUNKT_CHARS
        cut = _last_end(_MAYBE_END, text, low, high) or _last_end(_WHITE_SPACE, text, low, high) or safe_cut(text, high, lowest=low)
        yield start, cut
        start = cut
    yield start, end


def _last_end(pattern: re.Pattern[str], text: str, low: int, high: int) -> int | None:
    last = None
    for match in pattern.finditer(text, low, high):
        last = match.end()
    return last


def _prose_sentences(text: str, part: Span, name: str) -> Iterator[Span]:
    start, end = part
    prose = text[start:end]
    for first, last in _punkt_spans(prose, name):
        begin = start + first
        for cut in _further_ends(text, (begin, start + last), name):
            yield from trimmed(text, begin, cut)
            begin = cut
        yield from trimmed(text, begin, start + last)


def _further_ends(text: str, span: Span, name: str) -> list[int]:
    """Ends of sentences that Punkt leaves inside one."""
    cuts = [match.end() for match in _OTHER_ENDS.finditer(text, *span)]
    begin, end = span
    for match in _GLUED_END.finditer(text, *span):
        if _is_glued(text, match.start(), (begin, end), name):
            begin = match.end()
            cuts.append(begin)
    return sorted(cuts)


def _is_glued(text: str, stop: int, span: Span, name: str) -> bool:
    """Whether two sentences meet at the full stop: "in 2014.It is", and not "www.Example.com", "M.Dupont" or "1.Scope"."""
    before, after = text[max(span[0], stop - _LONGEST_WORD) : stop], text[stop + 1 : min(span[1], stop + 1 + _LONGEST_WORD)]
    if not (before[-1].islower() or before[-1] in "0123456789)»”") or not after[0].isupper() or not (after[1].islower() or after[1] in "'’"):
        return False
    left, right = before.split()[-1], after.split()[0].rstrip(".,;:!?»”)")
    if max(len(left), len(right)) == _LONGEST_WORD or (len(left) == stop - span[0] and len(left) <= _LONGEST_LABEL):
        return False
    left = left.lstrip('(«“"').rstrip(")»”").lower()
    is_word = left.isdigit() or (_NOT_A_WORD.search(left) is None and left not in _parameters(name).abbrev_types)
    return is_word and _NOT_A_WORD.search(right) is None


def _punkt_spans(prose: str, name: str) -> list[Span]:
    spans = list(_punkt(name).span_tokenize(prose)) if _MAYBE_END.search(prose) else [(0, len(prose))]
    if len(spans) > 1 and _ENUMERATOR.fullmatch(prose, *spans[0]):
        spans[:2] = [(spans[0][0], spans[1][1])]
    return spans


def trimmed(text: str, start: int, end: int) -> list[Span]:
    """The span without white space at its ends, in a list; the empty list when nothing is left.

    Example:
        >>> trimmed("  a b ", 0, 6), trimmed("   ", 0, 3)
        ([(2, 5)], [])
    """
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return [(start, end)] if start < end else []


def _cut_long(text: str, span: Span) -> Iterator[Span]:
    start, end = span
    if end - start <= MAX_SENTENCE_CHARS:
        yield span
        return
    while end - start > PIECE_CHARS:
        low, high = start + PIECE_CHARS // 2, start + PIECE_CHARS
        cut = _last_line_end(text, low, high) or _last_end(_WHITE_SPACE, text, low, high) or safe_cut(text, high, lowest=low)
        yield from trimmed(text, start, cut)
        start = cut
    yield from trimmed(text, start, end)


def _last_line_end(text: str, low: int, high: int) -> int | None:
    return max(text.rfind("\n", low, high), text.rfind("\r", low, high)) + 1 or None


def safe_cut(text: str, position: int, *, lowest: int) -> int:
    r"""A place at or before `position`, but not before `lowest`, that does not take an accent or a joined sign from its letter.

    Example:
        >>> safe_cut("cafe\u0301s", 4, lowest=1)
        3
    """
    cut = position
    while cut > lowest and _joins(text, cut):
        cut -= 1
    return cut if not _joins(text, cut) else position


def _joins(text: str, position: int) -> bool:
    if not 0 < position < len(text):
        return False
    after = text[position]
    return (
        text[position - 1] == "\u200d"
        or after == "\u200d"
        or "\udc00" <= after <= "\udfff"
        or unicodedata.category(after) in ("Mn", "Mc", "Me")
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )
