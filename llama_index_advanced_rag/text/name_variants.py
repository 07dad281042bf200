"""Two spellings of one name: what tells names apart however alike they look, and what spelling alone says to be the same."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from llama_index_advanced_rag.text.name_words import function_words, name_key, plain_name
from llama_index_advanced_rag.text.span_rules.calendar import CALENDAR_WORDS
from llama_index_advanced_rag.text.span_rules.word_list import words_of

LEAST_CHARACTERS = 3
"""Shorter names are alike by chance."""

_FIGURES = re.compile(r"\d+")
_ROMAN = re.compile(r"x{0,3}(?:ix|iv|v?i{0,3})\Z")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10}
_COUNTED = (
    ("one", "first", "1st"),
    ("two", "second", "2nd"),
    ("three", "third", "3rd"),
    ("four", "fourth"),
    ("five", "fifth"),
    ("six", "sixth"),
    ("seven", "seventh"),
    ("eight", "eighth"),
    ("nine", "ninth"),
    ("ten", "tenth"),
)
_NUMBER_WORDS = {word: str(number) for number, words in enumerate(_COUNTED, start=1) for word in words}
_TELLING = words_of(
    """
    north south east west northern southern eastern western northeast northwest southeast southwest northeastern northwestern southeastern
    southwestern nord sud ost ouest norte sur este oeste oriental occidental upper lower inner outer junior senior jr sr men women mens womens boys girls
    male female son daughter brother sister father mother king queen prince princess duke duchess
    """
)
_LEGAL_FORMS = words_of(
    """
    inc incorporated corp corporation co company ltd limited llc llp lp plc gmbh ag kg kgaa se sa sas sarl srl spa nv bv ab asa oyj oy aps pty pte
    """
)
_LONGEST_FORM = 4
_LONGEST_ACRONYM = 8
_NEXT = 8


def told_by(key: str) -> tuple[str, ...]:
    """What tells a name from names that look alike: its numbers, months, points of the compass and the like, and a single letter at its end.

    Names in which this differs are two things. Roman numerals after the first word and number words count as the number.

    Args:
        key: see `name_words.name_key`.

    Example:
        >>> told_by("q3 2022"), told_by("lothair ii"), told_by("second world war"), told_by("south korea")
        (('2022', '3'), ('2',), ('2',), ('south',))
    """
    words = key.split(" ")
    telling = [mark for before, word in zip(["", *words], words, strict=False) for mark in _marks(before, word)]
    if len(words) > 1 and len(words[-1]) == 1 < len(words[-2]) and not _marks(words[-2], words[-1]):
        telling.append(words[-1])
    return tuple(sorted(telling))


def _marks(before: str, word: str) -> list[str]:
    number = _number(before, word)
    if number or word in _TELLING or word in CALENDAR_WORDS:
        return [number or word]
    return [figures.lstrip("0") or "0" for figures in _FIGURES.findall(word)]


def _number(before: str, word: str) -> str:
    """The number that a word is; empty where it is none. The letters of "D.I.Y." are none, and neither is the first word in "Xi Jinping"."""
    if len(before) > 1 and _ROMAN.match(word):
        return str(_roman_value(word))
    return _NUMBER_WORDS.get(word, "")


def _roman_value(word: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in word]
    return sum(-value if any(after > value for after in values[place + 1 : place + 2]) else value for place, value in enumerate(values))


def are_namesakes(one: str, other: str) -> bool:
    """Whether two names differ just in what stands in parentheses behind them, which is there to tell them apart.

    Example:
        >>> are_namesakes("Jurassic Park (film)", "Jurassic Park"), are_namesakes("Jurassic Park", "Jurassic World")
        (True, False)
    """
    return name_key(plain_name(one)) == name_key(plain_name(other))


class _Read(NamedTuple):
    """A name as the rules see it: its place, its words without a legal form, and how it is written."""

    place: int
    words: list[str]
    name: str


def spelled_alike(keys: Sequence[str], names: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of names that their spelling alone says to be the same.

    These are names that differ in a legal form, in "and", in where they are divided, or in how they write a number ("Acme Corp." / "Acme Corporation",
    "WiFi" / "Wi-Fi", "World War II" / "World War 2"); an acronym of three letters or more and the only name with these initials ("OSU" / "Ohio State
    University"); initials and the only person they fit ("J. R. R. Tolkien" / "John Ronald Reuel Tolkien"). Linear in the names.

    Args:
        keys: what the names are known by, each once, see `name_words.name_key`.
        names: how they are written.

    Returns:
        Places, lower first, sorted.

    Example:
        >>> names = ["OSU", "Ohio State University", "Acme Corp", "ACME"]
        >>> spelled_alike([name_key(name) for name in names], names)
        [(0, 1), (2, 3)]
    """
    read = [_Read(place, _bare(key.split(" ")), name) for place, (key, name) in enumerate(zip(keys, names, strict=True))]
    read = [one for one in read if sum(map(len, one.words)) >= LEAST_CHARACTERS]
    plain = [one for one in read if plain_name(one.name) == one.name]
    pairs = {*_joined_alike(read), *_acronyms(plain), *_initials(plain)}
    return sorted((min(pair), max(pair)) for pair in pairs if not are_namesakes(names[pair[0]], names[pair[1]]))


def _bare(words: list[str]) -> list[str]:
    """The words without the legal form, which may be written in letters ("s p a"), where a name is left."""
    for length in range(min(_LONGEST_FORM, len(words) - 1), 0, -1):
        form, rest = words[-length:], words[:-length]
        if "".join(form) in _LEGAL_FORMS and (length == 1 or max(map(len, form)) == 1) and sum(map(len, rest)) >= LEAST_CHARACTERS:
            return _bare(rest)
    return words


def _joined_alike(read: Iterable[_Read]) -> Iterable[tuple[int, int]]:
    same: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for one in read:
        same.setdefault((_joined(one.words), told_by(" ".join(one.words))), []).append(one.place)
    for places in same.values():
        for start in range(len(places)):
            yield from ((places[start], other) for other in places[start + 1 : start + 1 + _NEXT])


def _joined(words: Sequence[str]) -> str:
    """The words in one, after the first one with figures for numbers; these stay apart, as 1 23 is not 12 3."""
    said = [(_number(before, word) if before else "") or word for before, word in zip(["", *words], words, strict=False) if word != "and"]
    return "".join(f" {word} " if word.isdigit() else word for word in said)


def _acronyms(read: Sequence[_Read]) -> Iterable[tuple[int, int]]:
    expansions: dict[str, dict[str, int]] = {}
    for one in read:
        for initials in _initials_of(one.words):
            expansions.setdefault(initials, {}).setdefault(_joined(one.words), one.place)
    for one in read:
        letters = "".join(one.words)
        if _is_acronym(one, letters) and len(expansions.get(letters, ())) == 1:
            yield one.place, next(iter(expansions[letters].values()))


def _is_acronym(one: _Read, letters: str) -> bool:
    in_letters = len(one.words) == 1 or max(map(len, one.words)) == 1
    return in_letters and LEAST_CHARACTERS <= len(letters) <= _LONGEST_ACRONYM and letters.isalpha() and one.name.isupper()


def _initials_of(words: Sequence[str]) -> set[str]:
    """The initials of a name of three words or more, with and without its small words."""
    full = [word for word in words if word not in function_words()]
    both = ("".join(word[0] for word in some) for some in (words, full) if max(map(len, some), default=0) > 1)
    return {initials for initials in both if len(initials) >= LEAST_CHARACTERS and len(full) > 1}


def _initials(read: Sequence[_Read]) -> Iterable[tuple[int, int]]:
    people: dict[tuple[str, str], list[int]] = {}
    for one in read:
        if len(one.words) > 1 and min(map(len, one.words)) > 1:
            people.setdefault(_pattern(one.words), []).append(one.place)
    for one in read:
        first = one.words[:-1]
        if first and max(map(len, first)) == 1 < len(one.words[-1]):
            fitting = people.get(_pattern(one.words), [])
            if len(fitting) == 1:
                yield one.place, fitting[0]


def _pattern(words: Sequence[str]) -> tuple[str, str]:
    return "".join(word[0] for word in words[:-1]), words[-1]
