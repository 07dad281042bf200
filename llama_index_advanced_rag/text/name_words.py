"""Names cut into words, so that one name is found however it is spelled: with other capitals, accents, punctuation or spaces."""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from llama_index_advanced_rag.text.languages import DETECTED, fold, stop_words_of

MAX_NAME_WORDS = 16
"""A name of more words (a triple of a page of text) is known by its first ones."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|(?:[^\W_{_UNSPACED}](?:[\u0300-\u036f])*)+(?:\+\+|#)?")
_POSSESSIVE = re.compile(r"['’][sS]\b")
_PARENTHESES = re.compile(r"[(（][^()（）]*[)）]\s*$")
_ARTICLES = frozenset({"the", "a", "an"})
_LONGEST_NAME = 1000


class NameWord(NamedTuple):
    """One word of a text as names are compared.

    Attributes:
        start: its first character.
        end: one past its last.
        key: in lower case, without accents.
        shown: whether it begins like a name: with a capital letter, a digit, or in a script without capitals.
    """

    start: int
    end: int
    key: str
    shown: bool


def name_words(text: str) -> list[NameWord]:
    """The words of a text; scripts without spaces are cut into characters.

    Example:
        >>> [(word.key, word.shown) for word in name_words("L'Élysée, GPT-4 and C++")]
        [('l', True), ('elysee', True), ('gpt', True), ('4', True), ('and', False), ('c++', True)]
    """
    words = [NameWord(*match.span(), *_read(match.group())) for match in _WORD.finditer(text)]
    return [word for word in words if word.key]


def _read(word: str) -> tuple[str, bool]:
    if word.isascii():
        return word.lower(), not word[0].islower()
    plain = fold(unicodedata.normalize("NFKC", word).casefold())
    return "".join(plain.split()), not word[0].islower()  # some characters are several words: a space would end the key


def name_key(name: str) -> str:
    """What a name is known by: its words, without a leading article and the possessive; empty where there are none.

    Names that differ by a digit differ: `Q3 2022` is not `Q3 2023`.

    Example:
        >>> name_key("The Beatles'"), name_key("Müller’s GPT-4"), name_key("Q3 2022"), name_key("—")
        ('beatles', 'muller gpt 4', 'q3 2022', '')
    """
    named = _POSSESSIVE.sub("", name[:_LONGEST_NAME])
    words: list[str] = _WORD.findall(named.lower()) if named.isascii() else [word.key for word in name_words(named)]
    words = words[:MAX_NAME_WORDS]
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)


def plain_name(name: str) -> str:
    """The name without what tells it from its namesakes.

    Example:
        >>> plain_name("Jurassic Park (film)"), plain_name("(film)")
        ('Jurassic Park', '(film)')
    """
    return _PARENTHESES.sub("", name).rstrip() or name


@cache
def function_words() -> frozenset[str]:
    """Words that are no name by themselves: the stop words of the languages we know."""
    return frozenset({word for language in DETECTED for word in stop_words_of(language)})
