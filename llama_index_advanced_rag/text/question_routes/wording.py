"""A question made ready for the rules, and the patterns that they are written in."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from llama_index_advanced_rag.text.languages import AUTO, NONE, detect_language, fold

RULED = ("en", "fr")
"""The languages that have rules."""

_LONGEST, _READ_OF_EACH_END, _LONGEST_SIGN = 4000, 1000, 60
_FOREIGN = re.compile(r"(?<!\w)[a-zà-þ]*[äößñãõåøłşğıčžřąęěőðþ]")  # in a word that is no name: neither English nor French
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼ′`´", "'") | dict.fromkeys("‐‑", "-"))

Patterns = Mapping[str, re.Pattern[str]]
"""A pattern for each language that has one."""


class Sign(NamedTuple):
    """Something in a question that speaks for a way to answer it.

    Attributes:
        text: the words of the question.
        meaning: what they are, as the end of a sentence: `is a place in a document`.
    """

    text: str
    meaning: str

    def __str__(self) -> str:
        return f'"{self.text}" {self.meaning}'


class Wording(NamedTuple):
    """A question as the rules read it.

    Attributes:
        written: as it was asked, with single spaces and one kind of apostrophe; of a very long question its beginning and its end.
        plain: the same in lower case without accents, character for character; `où` keeps its accent, which tells it from `ou`.
        languages: those whose rules apply: one, both where the question shows no language, none for a language without rules.
    """

    written: str
    plain: str
    languages: tuple[str, ...]

    def find(self, patterns: Patterns, start: int = 0) -> re.Match[str] | None:
        """The first match of the patterns of its languages."""
        for language in self.languages:
            if language in patterns and (match := patterns[language].search(self.plain, start)):
                return match
        return None

    def begins(self, patterns: Patterns, start: int = 0) -> re.Match[str] | None:
        """The match of the patterns of its languages at one place."""
        for language in self.languages:
            if language in patterns and (match := patterns[language].match(self.plain, start)):
                return match
        return None

    def find_all(self, patterns: Patterns) -> Iterator[re.Match[str]]:
        """Every match, language by language."""
        for language in self.languages:
            if language in patterns:
                yield from patterns[language].finditer(self.plain)

    def sign(self, match: re.Match[str], meaning: str) -> Sign:
        """What matched, as it was written."""
        text = self.written[match.start() : match.end()].strip(" ,;:.?!")
        return Sign(text if len(text) <= _LONGEST_SIGN else f"{text[:_LONGEST_SIGN]}…", meaning)


def read_wording(question: str, language: str = AUTO) -> Wording:
    """The question made ready. Reads its first and last 1,000 characters if it has more than 4,000.

    Example:
        >>> read_wording("Où est   l’école ?").plain
        "où est l'ecole ?"
    """
    if len(question) > _LONGEST:
        question = f"{question[:_READ_OF_EACH_END]} {question[-_READ_OF_EACH_END:]}"
    written = " ".join(question.translate(_APOSTROPHES).split())
    plain = written.lower() if written.isascii() else "".join(map(_plain, written))
    return Wording(written, plain, _ruled_languages(plain if written.isupper() else written, language))


def _ruled_languages(text: str, language: str) -> tuple[str, ...]:
    found = detect_language(text) if language == AUTO else language
    if found is None or found == NONE:
        return () if _FOREIGN.search(text) else RULED
    return (found,) if found in RULED else ()


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """One character in lower case without accent; itself where that would be more than one."""
    lowered = char.lower()
    folded = lowered if lowered == "ù" else fold(lowered)
    return folded if len(folded) == 1 else lowered if len(lowered) == 1 else char


def one_of(*texts: str) -> str:
    r"""The lines of texts as the alternatives of a regular expression, one idea a line.

    Example:
        >>> one_of("chapters?", "in common\nversus|vs")
        'chapters?|in common|versus|vs'
    """
    return "|".join(line.strip() for text in texts for line in text.splitlines() if line.strip())


def words_like(*texts: str) -> re.Pattern[str]:
    """A pattern for whole words or phrases, each line a regular expression on the plain question.

    Example:
        >>> words_like("clause", "in common").findall("clauses in common")
        ['in common']
    """
    return re.compile(rf"(?<![\w-])(?:{one_of(*texts)})(?:(?<=[' ])|(?!\w))")
