"""Text cut into the words that a search index keeps: one rule for every language, nothing stemmed or dropped yet."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

MAX_WORD_CHARS = 64
"""A longer word (base64, a table without spaces) is searchable by its first 64 characters."""

Piece = tuple[str, str, bool]
"""Kind, characters as written, and whether it is in capitals among words that are not."""

_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17d3"
_W = rf"[\w{_MARKS}]+"
_DECIMALS = r"(?:(?<=\d)\.\d+)*"
_EMAIL = rf"(?P<email>(?<![\w.+-]){_W}(?:[.+-]{_W}){{0,8}}@{_W}(?:[.-]{_W}){{1,8}})"
_OTHERS = rf"""
    (?P<acronym>(?:[^\W\d_]\.){{2,10}}(?:[^\W\d_](?!\w))?)
  | (?P<spaced>(?<![\w.,])(?<!\d[ ])[1-9]\d{{0,2}}(?:[ ]\d{{3}})+(?:,\d+)?(?![\w.,]?\d))
  | (?P<number>\d+(?:[.,']\d+)+(?:{_W})?)
  | (?P<ampersand>\w{{1,3}}&\w{{1,3}}(?!\w))
  | (?P<word>{_W}{_DECIMALS}(?:[-']{_W}{_DECIMALS})*(?:\+\+|\#)?)
"""
_PIECE = re.compile(_OTHERS, re.VERBOSE)
_PIECE_OR_EMAIL = re.compile(f"{_EMAIL} | {_OTHERS}", re.VERBOSE)

_URL_HEAD = re.compile(r"\b(?:https?|ftp)://(?:www\.)?|\bwww\.", re.IGNORECASE)
_FOOTNOTE = re.compile(r"(?<=[^\W\d_]{3})[\u00b9\u00b2\u00b3\u2070-\u2079]+")
_DIGIT_SPACE = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")
_CHARACTERS = str.maketrans(
    dict.fromkeys("’‘ʼ′`´＇", "'") | dict.fromkeys("‐‑", "-") | dict.fromkeys("™®©℠", " ") | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff")
)
_GROUPED = re.compile(r"[1-9]\d{0,2}([.,'])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
_ELISION = re.compile(
    r"(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|quest|sant|bell|nessun|com|dov|(?:a|da|de|ne|su)?gl|(?:a|da|de|ne|su|co|que)ll)'"
    r"(?=[^\W\d_bcdfgjklmnpqrstvwxz])"
)
_CONTRACTION = re.compile(r"'(?:s|ll|re|ve|d|m)$")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003fffd"
)
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")


class Word(NamedTuple):
    """One searchable word.

    Attributes:
        text: lower case, accents kept.
        literal: never a stop word and never stemmed: numbers, e-mail addresses, character n-grams, acronyms with full stops.
        capitals: written in capitals among words that are not (`US`, `IT`): not a stop word.
        last_part: the last part of the compound whose closed form this is (`on` for `peuton`); empty otherwise.
        corpus_only: searched for by a query of that one character only, not by longer ones.
    """

    text: str
    literal: bool = False
    capitals: bool = False
    last_part: str = ""
    corpus_only: bool = False


def pieces_of(text: str) -> list[Piece]:
    """The text cut, in order, as written (NFKC, one kind of apostrophe and hyphen); `words_in` reads each piece.

    Example:
        >>> [surface for _, surface, _ in pieces_of("GPT-4 coûte 81,797 $.")]
        ['GPT-4', 'coûte', '81,797']
    """
    found = cut_pieces(normalized(text))
    capitals = _lone_capitals([surface for kind, surface in found if kind == "word"])
    return [(kind, surface, next(capitals) if kind == "word" else False) for kind, surface in found]


def normalized(text: str) -> str:
    """The text in NFKC, with one kind of apostrophe and hyphen, without footnote marks, invisible characters and the heads of addresses."""
    if text.isascii():
        return _URL_HEAD.sub(" ", text.translate(_CHARACTERS)) if "`" in text or "/" in text or "." in text else text
    clean = _FOOTNOTE.sub(" ", _DIGIT_SPACE.sub("", text)).translate(_CHARACTERS)
    return _URL_HEAD.sub(" ", unicodedata.normalize("NFKC", clean))


def cut_pieces(clean: str) -> list[tuple[str, str]]:
    """Kind and characters of each piece of a normalised text, in order."""
    pattern = _PIECE_OR_EMAIL if "@" in clean else _PIECE
    return [(match.lastgroup or "word", match.group()) for match in pattern.finditer(clean)]


def is_loud(surface: str) -> bool:
    """Written in capitals, and more than one character long."""
    return len(surface) > 1 and surface.isupper()


def _lone_capitals(surfaces: list[str]) -> Iterator[bool]:
    """For each word, whether it is in capitals while its neighbours are not; a heading in capitals says nothing."""
    loud = list(map(is_loud, surfaces))
    for position, one in enumerate(loud):
        if not one:
            yield False
            continue
        beside = loud[max(0, position - 1) : position] + loud[position + 1 : position + 2]
        yield bool(beside) and not any(beside)


def words_in(piece: Piece) -> tuple[Word, ...]:
    """The words that one piece is found by.

    - `l'index`, `d’accès`, `qu'il` lose the elided word, `company's` its `'s`, `don't` is `not`; other apostrophes are closed (`obrien`);
    - `pré-entraîné` gives its closed form and its parts, `GPT-4` is `gpt4` and `gpt`, `2023-07-01` its three numbers;
    - `81,797`, `81 797`, `81'797` and `81797` are one number, `1 234,5` and `1,234.5` too; `2,5M` is `2.5m`. Currency signs are dropped.
      Three digits after a single point or comma are read as a group of thousands, in corpus and query alike;
    - `jane.doe@acme.com` is itself and its parts, `https://www.site.fr/page` is `site`, `fr`, `page`, `U.S.` is `us`, `C++` is `c++`;
    - scripts without spaces are cut into bigrams; their single characters are kept for queries of one character.

    Example:
        >>> [word.text for piece in pieces_of("L'index de GPT-4 : 81,797 $") for word in words_in(piece)]
        ['index', 'de', 'gpt4', 'gpt', '81797']
    """
    kind, surface, capitals = piece
    if kind == "word":
        return tuple(_word(surface.lower(), capitals))
    return tuple(_READERS[kind](surface.lower()))


def _email(address: str) -> Iterator[Word]:
    yield Word(address[:MAX_WORD_CHARS], literal=True)
    local, _, domain = address.rpartition("@")
    parts = re.split(r"[.+_-]", local) + domain.split(".")[:-1]
    yield from (Word(part[:MAX_WORD_CHARS]) for part in parts if len(part) > 1)


def _acronym(letters: str) -> Iterator[Word]:
    yield Word(letters.replace(".", ""), literal=True)


def _spaced(digits: str) -> Iterator[Word]:
    """Groups of three digits: one number, or the cells of a table row. Without a decimal comma both readings are kept."""
    yield Word(digits.replace(" ", "").replace(",", ".")[:MAX_WORD_CHARS], literal=True)
    if "," not in digits:
        yield from (Word(cell, literal=True) for cell in digits.split())


def _number(digits: str) -> Iterator[Word]:
    core, suffix = re.fullmatch(r"([\d.,']*\d)(.*)", digits, re.DOTALL).groups()  # type: ignore[union-attr]
    grouped = _GROUPED.fullmatch(core)
    if grouped:
        values = [core.replace(grouped.group(1), "").replace(",", ".") + suffix]
    elif len(re.findall(r"[.,']", core)) == 1:
        values = [re.sub(r"[,']", ".", core) + suffix]
    elif "," in core or re.search(r"\d{4}", core):
        values = [*re.split(r"[.,']", core), suffix]
    else:
        values = [core + suffix]
    yield from (Word(value[:MAX_WORD_CHARS], literal=True) for value in values if value)


def _ampersand(letters: str) -> Iterator[Word]:
    yield Word(letters, literal=True)


def _word(lower: str, capitals: bool) -> Iterator[Word]:
    if lower.isascii() and lower.isalpha():
        yield Word(lower[:MAX_WORD_CHARS], capitals=capitals)
    elif _HAS_UNSPACED.search(lower):
        for run in _UNSPACED_RUN.findall(lower):
            yield from _ngrams(run) if _HAS_UNSPACED.match(run) else _word(run.strip("-'_"), capitals=False)
    else:
        yield from _compound(lower, capitals)


def _ngrams(run: str) -> Iterator[Word]:
    yield from (Word(run[at : at + 2], literal=True) for at in range(len(run) - 1))
    yield from (Word(char, literal=True, corpus_only=len(run) > 1) for char in run)


def _compound(lower: str, capitals: bool) -> Iterator[Word]:
    parts = [part for part in (_plain(piece) for piece in re.split(r"[-_]+", lower)) if part]
    if len(parts) == 1:
        yield _part(parts[0], capitals=capitals)
        return
    closed = "".join(parts)
    if 1 < len(parts) <= 4 and not closed.replace(".", "").isdigit():
        yield _part(closed, last_part=parts[-1])
        parts = [part for part in parts if len(part) > 1]
    yield from (_part(part) for part in parts)


def _part(part: str, *, capitals: bool = False, last_part: str = "") -> Word:
    return Word(part[:MAX_WORD_CHARS], literal=any(map(str.isdigit, part)), capitals=capitals, last_part=last_part)


def _plain(piece: str) -> str:
    """A part of a compound without its elided article, its possessive or contraction, and its other apostrophes."""
    if "'" not in piece:
        return piece
    if piece.endswith("n't"):
        return "not"
    return _CONTRACTION.sub("", _ELISION.sub("", piece, count=1) if _ELISION.match(piece) else piece).replace("'", "")


_READERS = {"email": _email, "acronym": _acronym, "spaced": _spaced, "number": _number, "ampersand": _ampersand}
