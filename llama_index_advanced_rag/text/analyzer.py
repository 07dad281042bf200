"""Text to search terms, the same way for the corpus and for the question."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from llama_index_advanced_rag.errors import ConfigurationError, IndexFormatError
from llama_index_advanced_rag.text.languages import (
    AUTO,
    DETECTED,
    FALLBACK,
    NONE,
    check_language,
    detect_language,
    fold,
    restore_accent,
    shared_stop_words,
    stem_words,
    stop_words_of,
)
from llama_index_advanced_rag.text.token_terms import TokenTerms
from llama_index_advanced_rag.text.words import MAX_WORD_CHARS, Piece, Word, pieces_of, words_in

__all__ = ["TextAnalyzer", "detect_language"]

_FORMAT = 1
_WITH_ENCLITICS = frozenset({"es", "fr", "it", "pt"})


@dataclass(frozen=True)
class TextAnalyzer:
    r"""Cuts a text into terms: words, stop words dropped, stemmed by Snowball, then without accents.

    Accents are folded after stemming, because the stemmers read them: `élève` and `eleve` meet, and so do `sécurité` and `securite`,
    whose ending gets its accent back before the stemmer sees it (French, Spanish, Portuguese). Negations are kept, so are forms that are also content words
    (French `avions`, `été`) and words in capitals among others that are not (`US`, `IT`). What happens to elisions, hyphens,
    numbers, addresses and scripts without spaces is told by `text.words.words_in`.

    Args:
        language: ISO 639-1 code; "none" for no stop words and no stemming; "auto" to detect each text's language by its stop words.
            With "auto" a text without evidence is stemmed as English, and loses only the words that are stop words of more than one
            language. A query gives for each word the stem under its language and under English, or under all detectable languages
            when it shows no evidence itself, so that it meets texts of any. Name the language where you know it: it finds better.
        stem: whether to stem.
        stop_words: words to drop instead of the language's list; compared in lower case, before stemming.
        token_pattern: a regular expression that finds the words in the lower-case text instead of the rules above. Nothing is then
            normalised or folded: with `r"(?u)\b\w\w+\b"` and a stop-word list the terms are those of `bm25s.tokenize`.

    Raises:
        ConfigurationError: unknown language, or a pattern that does not compile or has more than one group.

    Example:
        >>> TextAnalyzer("fr").tokens("L'accès aux données d’un élève, les avions")
        ['acces', 'don', 'elev', 'avion']
        >>> TextAnalyzer("en").tokens("What were Apple's net sales? 81,797")
        ['appl', 'net', 'sale', '81797']
        >>> TextAnalyzer("none", token_pattern=r"\S+").tokens("Le Re-ranking est-il utile ?")
        ['le', 're-ranking', 'est-il', 'utile', '?']
    """

    language: str = AUTO
    stem: bool = True
    stop_words: frozenset[str] | None = None
    token_pattern: str | None = None

    def __post_init__(self) -> None:
        check_language(self.language)
        if self.stop_words is not None:
            if isinstance(self.stop_words, str):
                raise ConfigurationError(f"stop_words is {self.stop_words!r}. Expected a set of words, or None for the list of the language.")
            object.__setattr__(self, "stop_words", frozenset(self.stop_words))
        if self.token_pattern is not None:
            _compiled(self.token_pattern)

    def tokens(self, text: str) -> list[str]:
        """The terms of a text of the corpus, in order, repeated as often as they occur."""
        if self.language != AUTO:
            return self._terms(text, self.language)
        return self._terms(text, detect_language(text))

    def query_tokens(self, text: str) -> list[str]:
        """The terms to look up for a question: those of `query_groups`, one after the other."""
        return [term for group in self.query_groups(text) for term in group]

    def query_groups(self, text: str) -> list[tuple[str, ...]]:
        """For each word of a question, repeated as often as it occurs, the terms that it may have in the corpus: one, or several with "auto".

        Example:
            >>> TextAnalyzer("en").query_groups("running shoes"), TextAnalyzer("auto").query_groups("Häuser")
            ([('run',), ('shoe',)], [('haus', 'hauser')])
        """
        return [terms for _, terms in self._query_words(text)]

    def query_surfaces(self, text: str) -> dict[str, str]:
        """For each term of a question the word, in lower case, that it came from first.

        Example:
            >>> TextAnalyzer("en").query_surfaces("Apple's revenues")
            {'appl': "apple's", 'revenu': 'revenues'}
        """
        surfaces: dict[str, str] = {}
        for surface, terms in self._query_words(text):
            for term in terms:
                surfaces.setdefault(term, surface)
        return surfaces

    def to_dict(self) -> dict[str, Any]:
        """Everything that decides the terms, as JSON values."""
        stop_words = None if self.stop_words is None else sorted(self.stop_words)
        return {"format": _FORMAT, "language": self.language, "stem": self.stem, "stop_words": stop_words, "token_pattern": self.token_pattern}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TextAnalyzer":
        """The analyzer that `to_dict` described.

        Raises:
            IndexFormatError: it was described by a version whose terms differ.
        """
        if data.get("format") != _FORMAT:
            raise IndexFormatError(f"The analyzer has format {data.get('format')!r}. This version reads format {_FORMAT}. Build the index again.")
        stop_words = data["stop_words"]
        return cls(data["language"], data["stem"], None if stop_words is None else frozenset(stop_words), data["token_pattern"])

    def _stops(self, language: str | None) -> frozenset[str]:
        if self.stop_words is not None:
            return self.stop_words
        if language is None:
            return shared_stop_words()
        return frozenset() if language == NONE else stop_words_of(language)

    def _terms(self, text: str, language: str | None) -> list[str]:
        stops, stemmer = self._stops(language), self._stemmer(language or FALLBACK)
        if self.token_pattern is None:
            terms = _token_terms(language or NONE, stemmer, stops).terms_of(text)
            if terms is None:
                terms = [term for piece in pieces_of(text) for term in _piece_terms(piece, language or NONE, stemmer, stops)]
            return terms
        found: list[str] = [word for word in _compiled(self.token_pattern).findall(text.lower()) if word not in stops]
        return found if stemmer == NONE else stem_words(stemmer, found)

    def _stemmer(self, language: str) -> str:
        return language if self.stem else NONE

    def _query_words(self, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each word of a question as written, in lower case, with the distinct terms it may have."""
        language = detect_language(text) if self.language == AUTO else self.language
        stops, candidates = self._stops(language), (language,)
        if self.language == AUTO:
            candidates = DETECTED if language is None else (language, FALLBACK)
        stemmers = [self._stemmer(candidate) for candidate in candidates if candidate is not None]
        if self.token_pattern is not None:
            for word in _compiled(self.token_pattern).findall(text.lower()):
                if word not in stops:
                    yield word, tuple(dict.fromkeys(word if stemmer == NONE else stem_words(stemmer, [word])[0] for stemmer in stemmers))
            return
        for piece in pieces_of(text):
            for word in _kept_words(piece, language or NONE, stops):
                if not word.corpus_only:
                    yield piece[1].lower(), tuple(dict.fromkeys(_term(word, stemmer) for stemmer in stemmers))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> "re.Pattern[str]":
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(f"token_pattern is {pattern!r}, which is no regular expression: {error}. Expected one that finds a word.") from error
    if compiled.groups > 1:
        raise ConfigurationError(f"token_pattern is {pattern!r}, which has {compiled.groups} groups. Expected none or one. Write the others as (?:...).")
    return compiled


@lru_cache(maxsize=16)
def _token_terms(language: str, stemmer: str, stops: frozenset[str]) -> TokenTerms:
    def read_word(lower: str) -> tuple[str, ...]:
        return () if lower in stops else (_term(Word(lower), stemmer),)

    return TokenTerms(lambda piece: _read(piece, language, stemmer, stops), read_word)


def _piece_terms(piece: Piece, language: str, stemmer: str, stops: frozenset[str]) -> tuple[str, ...]:
    reader = _read_once if len(piece[1]) <= MAX_WORD_CHARS else _read
    return reader(piece, language, stemmer, stops)


def _read(piece: Piece, language: str, stemmer: str, stops: frozenset[str]) -> tuple[str, ...]:
    return tuple(_term(word, stemmer) for word in _kept_words(piece, language, stops))


_read_once = lru_cache(maxsize=1 << 17)(_read)


def _kept_words(piece: Piece, language: str, stops: frozenset[str]) -> Iterator[Word]:
    for word in words_in(piece):
        enclitic = language in _WITH_ENCLITICS and word.last_part != "" and word.last_part in stops
        if (word.literal or word.capitals or word.text not in stops) and not enclitic:
            yield word


def _term(word: Word, stemmer: str) -> str:
    if word.literal or stemmer == NONE:
        return fold(word.text)
    return fold(stem_words(stemmer, [restore_accent(stemmer, word.text)])[0])
