"""Terms of a text from a table of its tokens (what stands between white space): each distinct token is read once, not each occurrence."""

import re
from collections.abc import Callable, Iterable
from itertools import chain

from llama_index_advanced_rag.text.words import MAX_WORD_CHARS, Piece, cut_pieces, is_loud, normalized

Terms = tuple[str, ...]

_MAX_TOKENS = 1 << 17
_EDGES = '.,;:!?()[]"'
# No term holds "\0", so these can stand among terms and say what a token alone cannot answer.
_WHOLE = "\0whole"  # the text must be read as a whole
_CAPITALS = "\0capitals"  # a stop word in capitals, which counts as a word when the words beside it are not in capitals
_GROUP = "\0group"  # begins with three digits, which belong to the number before them in "81 797"
_MARKS = frozenset({_WHOLE, _CAPITALS, _GROUP})
_GROUP_OF_DIGITS = re.compile(r"\d{3}(?!\d)")
_MAY_BE_JOINED = re.compile(r"(?:\d|[^\x00-\x7f])\s+\d{3}(?!\d)")


class TokenTerms(dict[str, Terms]):
    """Table from a token to its terms, filled at first sight; equal to reading the whole text at once, and several times faster.

    Nothing but a number in groups of digits reaches across white space, and nothing but words in capitals depends on their
    neighbours; a text where that matters is read anew or as a whole. A full table makes place for a new one, which takes
    over what is still asked for. Threads may share one: an entry is the same whoever makes it.

    Args:
        read_piece: the terms of one piece as `words.pieces_of` cuts it.
        read_word: the same for a word of lower-case ASCII letters, which can be had for less.
    """

    def __init__(self, read_piece: Callable[[Piece], Terms], read_word: Callable[[str], Terms]) -> None:
        super().__init__()
        self._read_piece, self._read_word = read_piece, read_word
        self._older: dict[str, Terms] = {}

    def terms_of(self, text: str) -> list[str] | None:
        """The terms of a text in order, or None when it must be read as a whole."""
        tokens = text.split()
        terms = list(chain.from_iterable(map(self.__getitem__, tokens)))
        if _MARKS.isdisjoint(terms):
            return terms
        if _WHOLE in terms or (_GROUP in terms and _MAY_BE_JOINED.search(text)):
            return None
        if _CAPITALS in terms:
            terms = list(chain.from_iterable(self._beside_others(tokens, at) for at in range(len(tokens))))
        return [term for term in terms if term != _GROUP]

    def __missing__(self, token: str) -> Terms:
        if len(token) > MAX_WORD_CHARS:
            return self._read(token)
        terms = self._older.get(token)
        if terms is None:
            terms = self._read_plain(token)
        if len(self) >= _MAX_TOKENS:
            self._older = dict(self)
            self.clear()
        self[token] = terms
        return terms

    def _read_plain(self, token: str) -> Terms:
        """The usual token is a word of ASCII letters with a full stop or a capital: its terms are those of the word."""
        word = token.strip(_EDGES)
        lower = word.lower()
        if not (word.isascii() and word.isalpha()) or is_loud(word) or lower == "www":  # "www." is the head of an address
            return self._read(token)
        return self._read_word(lower) if lower == token else self[lower]

    def _read(self, token: str) -> Terms:
        clean = normalized(token)
        pieces = cut_pieces(clean)
        loud = [surface for kind, surface in pieces if kind == "word" and is_loud(surface) and self._needs_neighbours(surface)]
        group = _GROUP_OF_DIGITS.match(token) is not None
        if " " in clean.strip() or (loud and len(pieces) > 1) or (_GROUP_OF_DIGITS.match(clean) and not group):
            return (_WHOLE,)
        if loud:
            return (_CAPITALS,)
        terms = chain.from_iterable(self._read_piece((kind, surface, False)) for kind, surface in pieces)
        return (_GROUP, *terms) if group else tuple(terms)

    def _needs_neighbours(self, surface: str) -> bool:
        return self._read_piece(("word", surface, True)) != self._read_piece(("word", surface, False))

    def _beside_others(self, tokens: list[str], at: int) -> Terms:
        terms = self[tokens[at]]
        if terms != (_CAPITALS,):
            return terms
        before = _first_loudness(reversed(tokens[:at]), place=-1)
        after = _first_loudness(tokens[at + 1 :], place=0)
        beside = [loud for loud in (before, after) if loud is not None]
        (_, surface), *_ = cut_pieces(normalized(tokens[at]))
        return self._read_piece(("word", surface, bool(beside) and not any(beside)))


def _first_loudness(tokens: Iterable[str], *, place: int) -> bool | None:
    """Whether the nearest word is in capitals; None when there is none."""
    for token in tokens:
        words = [surface for kind, surface in cut_pieces(normalized(token)) if kind == "word"]
        if words:
            return is_loud(words[place])
    return None
