"""What is known about each language: its stop words, its stemmer, and how to tell it from the others."""

import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from llama_index_advanced_rag.errors import ConfigurationError

AUTO = "auto"
NONE = "none"
FALLBACK = "en"
"""Stands in for a text whose language shows no evidence: the English stemmer also strips the plural -s of Romance languages."""

DETECTED = ("de", "en", "es", "fr", "it", "nl", "pt")
"""The languages that `detect_language` tells apart."""


@dataclass(frozen=True)
class _Language:
    """Names of the library resources of one language, and what its library list of stop words gets wrong.

    `kept` are words of the list that stay searchable: negations, and forms that are also nouns (French `avions`, German `weg`).
    `also` are the interrogatives that the library lists only for some languages. `accents` are endings that are always, or as far as the
    stemmer goes may always be, written with an accent: people type `securite`, and the stemmer knows only `sécurité`.
    """

    stemmer: str | None = None
    stop_words: str | None = None
    kept: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    accents: Mapping[str, str] = field(default_factory=dict[str, str])


_FRENCH_INTERROGATIVES = (
    *("quel", "quelle", "quels", "quelles", "comment", "pourquoi", "quand", "où", "combien", "quoi"),
    *("lequel", "laquelle", "lesquels", "lesquelles"),
)
LANGUAGES: Mapping[str, _Language] = {
    "de": _Language("german", "GERMAN", ("nicht", "nichts", "kein", "keine", "keinem", "keinen", "keiner", "keines", "ohne", "weg"), ("wer", "wann", "warum")),
    "en": _Language("english", "EN_PLUS", ("no", "nor", "not")),
    "es": _Language(
        "spanish", "SPANISH", ("no", "ni", "sin", "nada", "estado", "estados", "sentido", "sentidos"), ("cuál", "cuáles", "cuánto", "cuántos"), {"ion": "ión"}
    ),
    "fr": _Language(
        "french", "FRENCH", ("pas", "été", "étés", "sommes", "avions"), _FRENCH_INTERROGATIVES, {"ite": "ité", "ites": "ités", "ee": "ée", "ees": "ées"}
    ),
    "it": _Language("italian", "ITALIAN", ("non", "contro", "faccia"), ("quali", "quando", "cosa")),
    "ja": _Language(),
    "ko": _Language(),
    "nl": _Language("dutch", "DUTCH", ("geen", "niet", "niets", "zonder"), ("waar", "waarom", "wanneer", "welk", "welke")),
    "no": _Language("norwegian", "NORWEGIAN", ("ikke",)),
    "pt": _Language(
        "portuguese", "PORTUGUESE", ("não", "nem", "sem"), ("quais", "onde", "quanto", "quantos"), {"cao": "ção", "coes": "ções", "ao": "ão", "oes": "ões"}
    ),
    "ru": _Language("russian", "RUSSIAN", ("не", "нет", "без")),
    "sv": _Language("swedish", "SWEDISH", ("inte",)),
    "zh": _Language(),
}

_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ß": "ss", "ı": "i", "œ": "oe", "æ": "ae"})
_WORD = re.compile(r"[^\W\d_]+")
_HEAD_CHARS = 10_000
_stemmers = threading.local()


def check_language(language: str) -> str:
    """The code, if it is one that can be analysed.

    Raises:
        ConfigurationError: it is not; the message lists those that can.
    """
    if language not in LANGUAGES and language not in (AUTO, NONE):
        raise ConfigurationError(f"language is {language!r}. Expected {AUTO!r}, {NONE!r} or one of the codes {', '.join(LANGUAGES)}.")
    return language


def fold(word: str) -> str:
    """The word without the diacritics of Latin and Greek letters; other scripts keep their marks.

    Example:
        >>> fold("élève"), fold("straße"), fold("й")
        ('eleve', 'strasse', 'й')
    """
    if word.isascii():
        return word
    pieces: list[str] = []
    for char in unicodedata.normalize("NFD", word.translate(_LETTERS)):
        after_latin_or_greek = bool(pieces) and pieces[-1] < "\u0400"
        if not ("\u0300" <= char <= "\u036f" and after_latin_or_greek):
            pieces.append(char)
    return unicodedata.normalize("NFC", "".join(pieces))


def _listed(language: str) -> frozenset[str]:
    from bm25s import stopwords

    name = LANGUAGES[language].stop_words
    return frozenset[str]() if name is None else frozenset(getattr(stopwords, f"STOPWORDS_{name}"))


@cache
def stop_words_of(language: str) -> frozenset[str]:
    """The stop words of a language, with and without accents: the list of bm25s (NLTK's), plus interrogatives, minus content words.

    Example:
        >>> {"or", "avions"} & stop_words_of("fr"), {"même", "meme", "quelles"} <= stop_words_of("fr")
        (set(), True)
    """
    known = LANGUAGES[language]
    words = {*_listed(language), *known.also}
    return frozenset(words | {fold(word) for word in words}) - frozenset(known.kept) - {fold(word) for word in known.kept}


@cache
def shared_stop_words() -> frozenset[str]:
    """Words that are stop words of two or more of the detected languages (`de`, `la`, `in`): function words whatever the language is."""
    shared = {word for word, speakers in _evidence().items() if len(speakers) > 1}
    kept = {word for language in DETECTED for word in LANGUAGES[language].kept}
    return frozenset(shared | {fold(word) for word in shared}) - kept


def stem_words(language: str, words: Sequence[str]) -> list[str]:
    """Each word reduced by the Snowball stemmer of the language, or as it is where there is none."""
    name = LANGUAGES[language].stemmer
    return list(words) if name is None else _stemmer(name).stemWords(list(words))


def restore_accent(language: str, word: str) -> str:
    """The word with the accent of its ending, if it was typed without any.

    Example:
        >>> restore_accent("fr", "securite"), restore_accent("fr", "résumé"), restore_accent("en", "website")
        ('securité', 'résumé', 'website')
    """
    endings = LANGUAGES[language].accents
    if endings and word.isascii():
        for length in (4, 3, 2):
            if len(word) > length + 1 and word[-length:] in endings:
                return word[:-length] + endings[word[-length:]]
    return word


def _stemmer(name: str) -> Any:
    """One stemmer a thread, as they are not safe to share; without the library's cache, which costs more than stemming anew."""
    held: dict[str, Any] = _stemmers.__dict__
    if name not in held:
        import Stemmer

        held[name] = Stemmer.Stemmer(name, 0)
    return held[name]


@cache
def _evidence() -> dict[str, tuple[str, ...]]:
    """For each stop word of a detected language (not single letters), the languages that use it."""
    evidence: dict[str, tuple[str, ...]] = {}
    for language in DETECTED:
        for word in {*_listed(language), *LANGUAGES[language].also}:
            if len(word) > 1:
                evidence[word] = (*evidence.get(word, ()), language)
    return evidence


def detect_language(text: str) -> str | None:
    """The language whose stop words the text uses, or None without clear evidence (too short, a table, another language).

    Among German, English, Spanish, French, Italian, Dutch and Portuguese. Each stop word counts 1, shared among the languages
    that have it; the winner needs two different stop words, a count of 0.8, and 1.5 times the count of the next. Reads the first
    10,000 characters.

    Example:
        >>> detect_language("What were the total net sales in the third quarter?")
        'en'
        >>> detect_language("Quelles sont les obligations du responsable de traitement ?")
        'fr'
        >>> detect_language("AAPL 10-Q 2023") is None
        True
    """
    evidence = _evidence()
    scores: dict[str, float] = dict.fromkeys(DETECTED, 0.0)
    seen: dict[str, set[str]] = {language: set() for language in DETECTED}
    for word in _WORD.findall(text[:_HEAD_CHARS].lower()):
        speakers = evidence.get(word, ())
        for language in speakers:
            scores[language] += 1.0 / len(speakers)
            seen[language].add(word)
    best, second = sorted(DETECTED, key=lambda language: -scores[language])[:2]
    clear = scores[best] >= 0.8 and scores[best] >= 1.5 * scores[second] and len(seen[best]) > 1
    return best if clear else None
