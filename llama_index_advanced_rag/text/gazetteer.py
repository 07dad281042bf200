"""Known names, found in texts: the longest at each place, in one pass."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from llama_index_advanced_rag.text.name_words import NameWord, function_words


class NameFound(NamedTuple):
    """A known name in a text: its key (see `name_words.name_key`), its first word, and one past its last."""

    key: str
    first: int
    last: int


class Gazetteer:
    """A set of names by their keys, that finds them in texts.

    Names of several words are found in any capitals ("Lake district"), those of one word where it begins with a capital or a digit, or
    has none in its script: "apple" is no Apple. A name that is a function word ("It") is not found by itself.

    Args:
        keys: the names it knows, as `name_key` gives them.

    Example:
        >>> from llama_index_advanced_rag.text.name_words import name_words
        >>> names = Gazetteer(["lake district", "lake", "knott"])
        >>> [found.key for found in names.find(name_words("Knott is a fell in the Lake District, above a lake."))]
        ['knott', 'lake district']
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._keys = set[str]()
        self._counts = Counter[tuple[str, int]]()  # of names by their first word and their number of words
        self._longest_first: dict[str, tuple[int, ...]] = {}
        for key in keys:
            self.add(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        """Know one more name; the empty key and a known one change nothing."""
        if key and key not in self._keys:
            self._keys.add(key)
            word, length = _place(key)
            self._counts[word, length] += 1
            if self._counts[word, length] == 1:
                self._longest_first[word] = tuple(sorted((length, *self._longest_first.get(word, ())), reverse=True))

    def discard(self, key: str) -> None:
        """Forget a name; an unknown one changes nothing."""
        if key in self._keys:
            self._keys.remove(key)
            word, length = _place(key)
            self._counts[word, length] -= 1
            if not self._counts[word, length]:
                del self._counts[word, length]
                left = tuple(other for other in self._longest_first.pop(word) if other != length)
                self._longest_first.update({word: left} if left else {})

    def copy(self) -> "Gazetteer":
        """One that knows the same names, and goes on knowing them whatever becomes of this one; some ten milliseconds for 100,000 names."""
        other = Gazetteer()
        other._keys, other._counts, other._longest_first = self._keys.copy(), self._counts.copy(), self._longest_first.copy()
        return other

    def find(self, words: Sequence[NameWord], *, any_case: bool = False) -> list[NameFound]:
        """The names in a text, in order, without overlap.

        Args:
            words: the words of the text.
            any_case: find names of one word in lower case too, as people type questions.
        """
        keys = [word.key for word in words]
        found: list[NameFound] = []
        place, n_words = 0, len(keys)
        while place < n_words:
            for length in self._longest_first.get(keys[place], ()):
                key = keys[place] if length == 1 else " ".join(keys[place : place + length])
                if place + length <= n_words and key in self._keys and (length > 1 or _is_name(words[place], any_case=any_case)):
                    found.append(NameFound(key, place, place + length))
                    place += length
                    break
            else:
                place += 1
        return found


def _place(key: str) -> tuple[str, int]:
    """The first word of a name, and its number of words."""
    return key.partition(" ")[0], key.count(" ") + 1


def _is_name(word: NameWord, *, any_case: bool) -> bool:
    """Whether a word that is a known name stands for it."""
    return (any_case or word.shown) and word.key not in function_words()
