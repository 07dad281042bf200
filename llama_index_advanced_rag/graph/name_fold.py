"""All records of a corpus folded together: which names are known, and which chunk says which of them. Exact through every change."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention, Relation
from llama_index_advanced_rag.text.gazetteer import Gazetteer
from llama_index_advanced_rag.text.name_words import NameWord, name_key, name_words, plain_name

_NO_WORDS: NDArray[np.int32] = np.zeros(0, dtype=np.int32)


class ChunkText(NamedTuple):
    """A chunk as it is folded: its text without metadata, and its record."""

    text: str
    record: ExtractionRecord


@dataclass(frozen=True, slots=True)
class Fact:
    """A relation between two names, by their keys."""

    subject: str
    object: str
    relation: Relation


@dataclass(slots=True)
class FoldedChunk:
    """What one chunk adds to the whole.

    Attributes:
        spellings: (key, name as written) of every name that it makes known.
        own: key, and key without parentheses, of the names that it is found by: the title of its document, its heading.
        unwritten: keys of names that are said of it without standing in its text.
        facts: its relations.
        words: the distinct words of its text, as numbers.
        found: how often it says each known name, by key; of no meaning while it waits to be read (again).
    """

    spellings: tuple[tuple[str, str], ...]
    own: tuple[tuple[str, str], ...]
    unwritten: tuple[str, ...]
    facts: tuple[Fact, ...]
    words: NDArray[np.int32] = field(default_factory=lambda: _NO_WORDS)
    found: Mapping[str, int] = field(default_factory=dict[str, int])


class NameFold:
    """Names and who says them, kept up to date chunk by chunk.

    A name that one chunk makes known (a span in it, its title, an end of a fact) is found in all others, the longest at each place. When
    names come or go, only chunks that hold their rarest word are read again. The result depends on the chunks alone, not on how they came.

    Example:
        >>> from llama_index_advanced_rag.graph.span_extractor import SpanExtractor
        >>> texts = {1: "Knott is a fell in the Lake District.", 2: "The lake district has many fells."}
        >>> fold = NameFold()
        >>> for number, record in zip(texts, SpanExtractor("en").extract(list(texts.values()))):
        ...     fold.add(number, ChunkText(texts[number], record))
        >>> fold.settle(lambda numbers: {number: texts[number] for number in numbers})
        >>> sorted(fold.chunks[2].found)
        ['lake district']
    """

    def __init__(self) -> None:
        self.chunks: dict[int, FoldedChunk] = {}
        self.names = Gazetteer()
        self._spellings: dict[str, Counter[str]] = {}
        self._changed = set[str]()
        self._unread: dict[int, list[NameWord]] = {}
        self._numbers: dict[str, int] = {}

    def add(self, chunk: int, said: ChunkText) -> None:
        """Add a chunk under a number of its own; `settle` makes it count."""
        folded = _folded(said.record)
        words = name_words(said.text)
        folded.words = np.unique(np.fromiter((self._number(word.key) for word in words), dtype=np.int32, count=len(words)))
        self.chunks[chunk], self._unread[chunk] = folded, words
        for key, name in folded.spellings:
            spellings = self._spellings.setdefault(key, Counter())
            if not spellings:
                self._changed.add(key)
            spellings[name] += 1

    def remove(self, chunk: int) -> None:
        """Take a chunk out; `settle` makes it count."""
        folded = self.chunks.pop(chunk)
        self._unread.pop(chunk, None)
        for key, name in folded.spellings:
            spellings = self._spellings[key]
            spellings[name] -= 1
            if not spellings[name]:
                del spellings[name]
            if not spellings:
                del self._spellings[key]
                self._changed.add(key)

    def settle(self, texts: Callable[[Sequence[int]], Mapping[int, str]]) -> None:
        """Find the known names again wherever what was added or removed makes a difference.

        Args:
            texts: gives texts of chunks by their numbers.
        """
        changed = {key for key in self._changed if (key in self._spellings) != (key in self.names)}
        again = texts([chunk for chunk in self._holding(changed) if chunk not in self._unread])  # first: if it fails, nothing has changed
        for key in changed:
            (self.names.add if key in self._spellings else self.names.discard)(key)
        for chunk, words in chain(self._unread.items(), ((chunk, name_words(text)) for chunk, text in again.items())):
            self.chunks[chunk].found = Counter(found.key for found in self.names.find(words))
        self._unread, self._changed = {}, set()

    def spelling(self, key: str) -> str:
        """How a name is usually written; of equally frequent spellings the first in order."""
        return min(self._spellings[key].items(), key=lambda item: (-item[1], item[0]))[0]

    def _number(self, word: str) -> int:
        return self._numbers.setdefault(word, len(self._numbers))

    def _holding(self, keys: Collection[str]) -> list[int]:
        """The chunks that may say one of these names: those that hold its rarest word."""
        if not keys or len(self._unread) == len(self.chunks):
            return []
        chunks = list(self.chunks)
        words = [self.chunks[chunk].words for chunk in chunks]
        held = np.concatenate(words)
        counts = np.bincount(held, minlength=len(self._numbers))
        numbers = ([self._numbers[word] for word in key.split(" ") if word in self._numbers] for key in keys)
        rarest = {min(of_name, key=lambda number: counts[number]) for of_name in numbers if of_name}
        places = np.repeat(np.arange(len(chunks)), [len(item) for item in words])
        return [chunks[place] for place in np.unique(places[np.isin(held, list(rarest))]).tolist()]


def _folded(record: ExtractionRecord) -> FoldedChunk:
    titles = _keyed(record.names)
    facts = tuple(_facts(record.relations))
    ends = _keyed(chain.from_iterable((fact.relation.subject, fact.relation.object) for fact in facts))
    linking = [mention for mention in record.mentions if _links(mention)]
    said = _keyed(mention.surface for mention in linking)
    plain = _keyed(plain_name(name) for _, name in titles)
    unwritten = {key for key, _ in ends} | {name_key(mention.surface) for mention in linking if mention.start < 0}
    spellings = tuple(dict.fromkeys((*titles, *plain, *said, *ends)))
    own = tuple({key: (key, name_key(plain_name(name))) for key, name in titles}.values())
    return FoldedChunk(spellings, own, tuple(sorted(unwritten - {""})), facts)


def _links(mention: Mention) -> bool:
    return mention.kind != "number"


def _keyed(names: Iterable[str]) -> list[tuple[str, str]]:
    """Key and spelling of each name that has words."""
    keyed = ((name_key(name), " ".join(name.split())) for name in names)
    return [(key, name) for key, name in keyed if key]


def _facts(relations: Iterable[Relation]) -> Iterable[Fact]:
    """The facts with two named ends; what lacks one says nothing of two things."""
    for relation in relations:
        subject, target = name_key(relation.subject), name_key(relation.object)
        if subject and target:
            yield Fact(subject, target, relation)
