"""What a question says: its words, its dates, its names, and the kind of thing it asks for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from llama_index_advanced_rag.answering.dates import Date, dates_of, says_date
from llama_index_advanced_rag.answering.wording import AnswerKind, answer_kind
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

Words = frozenset[str]

_NAME = re.compile(r"(?<=[\w,;:(] )[A-ZÀ-ÖØ-Þ][\w'’.-]*")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as groups; each stands for one word, pair of neighbouring words or date and is said where one of its terms stands.

    Attributes:
        kind: what is asked for.
        groups: for each its terms, several where the language is not certain; the empty tuple for a date. Words come first,
            then dates, then pairs.
        n_words: how many groups stand for words.
        dates: the dates.
        names: the groups that are names.
    """

    kind: AnswerKind
    groups: tuple[tuple[str, ...], ...]
    n_words: int
    dates: tuple[Date, ...]
    names: frozenset[int]

    def said_in(self, words: Words, text: str) -> frozenset[int]:
        """The groups said by these words, and the dates said in this text."""
        found = {index for index, terms in enumerate(self.groups) if any(term in words for term in terms)}
        found.update(self.n_words + place for place, date in enumerate(self.dates) if says_date(text, date))
        return frozenset(found)

    @property
    def n_parts(self) -> int:
        """How many groups stand for words and dates."""
        return self.n_words + len(self.dates)

    @property
    def date_groups(self) -> frozenset[int]:
        """The groups that stand for dates."""
        return frozenset(range(self.n_words, self.n_parts))

    @property
    def all_parts(self) -> frozenset[int]:
        """The groups that stand for words and dates."""
        return frozenset(range(self.n_parts))

    def holds(self, word: str) -> bool:
        """Whether the question says a word."""
        return any(word in terms for terms in self.groups)

    def holds_all(self, words: Words) -> bool:
        """Whether the question says all of these words."""
        return all(self.holds(word) for word in words)


def words_and_pairs(tokens: Sequence[str]) -> Words:
    """The words of a text and its pairs of neighbouring words.

    Example:
        >>> sorted(words_and_pairs(["net", "sale"]))
        ['net', 'net sale', 'sale']
    """
    return frozenset(tokens).union(f"{first} {second}" for first, second in pairwise(tokens))


def read_question(question: str, analyzer: TextAnalyzer) -> Asked:
    """Read a question.

    Example:
        >>> asked = read_question("What did Apple sell on July 1, 2023?", TextAnalyzer("en"))
        >>> asked.groups, asked.dates, asked.names
        ((('appl',), ('sell',), (), ('appl sell',)), ((2023, 7, 1),), frozenset({0}))
        >>> sorted(asked.said_in(frozenset({"sell"}), "1st July 2023"))
        [1, 2]
    """
    dates = dates_of(question)
    words = question
    for written in dates.values():
        words = words.replace(written, " ")
    terms = analyzer.query_groups(words)
    groups = list(dict.fromkeys(terms))
    pairs = dict.fromkeys(tuple(f"{one} {two}" for one in first for two in second) for first, second in pairwise(terms))
    of_names = {group for name in _NAME.findall(words) for group in analyzer.query_groups(name)}
    names = frozenset(index for index, group in enumerate(groups) if group in of_names)
    return Asked(answer_kind(question), (*groups, *(() for _ in dates), *pairs), len(groups), tuple(dates), names)
