"""The keyword detectors: which words of a question stand on which lines of a passage, and in which headings."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_advanced_rag.hierarchy.keys import PAGE_LABEL
from llama_index_advanced_rag.ranking.anchors import coverage, line_score
from llama_index_advanced_rag.ranking.bm25 import inverse_document_frequency
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.stores.postings.postings_view import PostingsView
from llama_index_advanced_rag.text.analyzer import TextAnalyzer, detect_language
from llama_index_advanced_rag.text.languages import AUTO
from llama_index_advanced_rag.text.lines import Span
from llama_index_advanced_rag.text.sentences import sentence_spans

_CACHED_TEXTS = 4096
_CACHED_CHARS = 10_000
_SHOWN_CHARS = 300
_FIGURES = re.compile(r"\d+")


class AnchorLine(NamedTuple):
    """A line that holds words of the question.

    Attributes:
        text: the line, white space joined, at most 300 characters.
        node_id: the passage it was read in.
        start: where it begins in its document; in the passage where that does not say where it stands.
        page: label of the passage's pages, None where it has none.
        words: the keywords on it, as places in `Keywords.surfaces`.
        score: see `ranking.anchors.score_line`.
        running: the text without its figures, which is the same at the head or foot of each page.
    """

    text: str
    node_id: str
    start: int
    page: str | None
    words: frozenset[int]
    score: float
    running: str = ""


@dataclass(frozen=True)
class Keywords:
    """The words of a question that can find something.

    Attributes:
        surfaces: each word as written, in lower case.
        weights: what each tells, its idf among all passages; 0 for a word that none holds.
        words_of_term: the words that a term stands for.
        analyzer: cuts texts into terms.
    """

    surfaces: tuple[str, ...]
    weights: tuple[float, ...]
    words_of_term: Mapping[str, frozenset[int]]
    analyzer: TextAnalyzer

    @classmethod
    def of(cls, question: str, retriever: BaseRetriever, analyzer: TextAnalyzer) -> "Keywords":
        """The keywords of a question, weighed among the passages that a lexical retriever searches.

        A retriever of another kind does not say how rare a word is: all words weigh the same.

        Args:
            question: any text.
            retriever: the lexical retriever that is asked.
            analyzer: used where the retriever has none of its own.
        """
        own = retriever.analyzer if isinstance(retriever, LexicalRetriever) else analyzer
        groups = list(dict.fromkeys(own.query_groups(question)))
        surfaces = own.query_surfaces(question)
        words: dict[str, set[int]] = {}
        for word, group in enumerate(groups):
            for term in group:
                words.setdefault(term, set()).add(word)
        weights = _weights(retriever, groups)
        return cls(tuple(surfaces[group[0]] for group in groups), weights, {term: frozenset(found) for term, found in words.items()}, own)

    def __bool__(self) -> bool:
        return any(self.weights)

    @cached_property
    def weighty(self) -> Mapping[str, frozenset[int]]:
        """`words_of_term` without words that have no weight."""
        found = {term: frozenset(word for word in words if self.weights[word] > 0) for term, words in self.words_of_term.items()}
        return {term: words for term, words in found.items() if words}

    def in_terms(self, terms: Iterable[str]) -> frozenset[int]:
        """The keywords among terms, those without a weight left out."""
        known = self.weighty.keys() & set(terms)
        return frozenset(word for term in known for word in self.weighty[term])

    def named(self, words: Collection[int]) -> list[str]:
        """Keywords as written, those that tell most first."""
        return [self.surfaces[word] for word in sorted(words, key=lambda word: (-self.weights[word], word))]

    def share(self, words: frozenset[int]) -> float:
        """`ranking.anchors.coverage` of keywords."""
        if words not in self._shares:
            self._shares[words] = coverage(words, self.weights)
        return self._shares[words]

    @cached_property
    def _shares(self) -> dict[frozenset[int], float]:
        """The shares asked for so far: lines and sections hold the same few sets of words."""
        return {}


def read_lines(node: BaseNode, keywords: Keywords) -> list[AnchorLine]:
    r"""The lines of a passage that hold keywords, in the order of the text; a sentence that runs over several lines is one.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> retriever = LexicalRetriever.from_defaults(nodes=[TextNode(text="Fees"), TextNode(text="Late fees are due.")], language="en")
        >>> keywords = Keywords.of("What are the late fees?", retriever, retriever.analyzer)
        >>> [(line.text, line.start, keywords.named(line.words)) for line in read_lines(TextNode(text="Rules\nLate fees apply.\nEnd"), keywords)]
        [('Late fees apply.', 6, ['late', 'fees'])]
    """
    if not keywords:
        return []
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    lines = _lines_of(text, keywords.analyzer)
    page, first = page_of(node), getattr(node, "start_char_idx", None) or 0
    found: list[AnchorLine] = []
    for place, words in sorted(_words_by_line(lines, keywords).items()):
        shown, running = lines.shown(place)
        found.append(AnchorLine(shown, node.node_id, first + lines.spans[place][0], page, words, line_score(keywords.share(words)), running))
    return found


def _words_by_line(lines: "_TextLines", keywords: Keywords) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for term, words in keywords.weighty.items():
        for place in lines.places_of(term):
            found[place] = found[place] | words if place in found else words
    return found


def heading_words(heading: str, keywords: Keywords) -> tuple[frozenset[int], int]:
    """The keywords in a heading, and how many terms it has."""
    terms = _heading_terms(heading, keywords.analyzer) if len(heading) <= _CACHED_CHARS else keywords.analyzer.tokens(heading)
    return keywords.in_terms(terms), len(terms)


def page_of(node: BaseNode) -> str | None:
    """The label of a node's pages, "3" or "3-4"; None where it has none."""
    label: Any = node.metadata.get(PAGE_LABEL)
    return None if label in (None, "") else str(label)


def _weights(retriever: BaseRetriever, groups: Sequence[tuple[str, ...]]) -> tuple[float, ...]:
    if not isinstance(retriever, LexicalRetriever):
        return tuple(1.0 for _ in groups)
    view = retriever.postings.view()
    return tuple(_weight(view, group) for group in groups)


def _weight(view: PostingsView, group: tuple[str, ...]) -> float:
    alive = view.alive
    found = sum(len(held) if alive is None else int(alive[held].sum()) for held, _, _ in view.matches(Counter([group])))
    return inverse_document_frequency(view.n_texts, found) if found else 0.0


def _analyzer_for(text: str, analyzer: TextAnalyzer) -> TextAnalyzer:
    """The analyzer with the language of the whole passage: a line is too short to show it."""
    language = detect_language(text) if analyzer.language == AUTO else None
    return analyzer if language is None else replace(analyzer, language=language)


@dataclass(frozen=True, slots=True)
class _TextLines:
    """The lines of a text, as far as they depend on no question.

    Attributes:
        text: the text.
        spans: where each line stands.
        places: for each term the lines that hold it, ascending; most terms stand on one.
    """

    text: str
    spans: tuple[Span, ...]
    places: Mapping[str, int | tuple[int, ...]]
    _shown: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])

    @classmethod
    def read(cls, text: str, analyzer: TextAnalyzer) -> "_TextLines":
        own = _analyzer_for(text, analyzer)
        spans = tuple(sentence_spans(text, language=own.language))
        places: dict[str, list[int]] = {}
        for place, (start, end) in enumerate(spans):
            for term in set(own.tokens(text[start:end])):
                places.setdefault(term, []).append(place)
        return cls(text, spans, {term: held[0] if len(held) == 1 else tuple(held) for term, held in places.items()})

    def places_of(self, term: str) -> tuple[int, ...]:
        """The lines that hold a term, ascending."""
        held = self.places.get(term)
        if held is None:
            return ()
        return (held,) if isinstance(held, int) else held

    def shown(self, place: int) -> tuple[str, str]:
        """What is shown of a line, and the same without figures; kept, as a line that holds words of one question often holds some of the next."""
        known = self._shown.get(place)
        if known is None:
            start, end = self.spans[place]
            text = " ".join(self.text[start:end].split())[:_SHOWN_CHARS]
            known = self._shown[place] = text, _FIGURES.sub("0", text)
        return known


def _lines_of(text: str, analyzer: TextAnalyzer) -> _TextLines:
    """What is kept is known by the text and the analyzer, so that it is never out of date."""
    return _cached_lines(text, analyzer) if len(text) <= _CACHED_CHARS else _TextLines.read(text, analyzer)


_cached_lines = lru_cache(maxsize=_CACHED_TEXTS)(_TextLines.read)


@lru_cache(maxsize=_CACHED_TEXTS)
def _heading_terms(heading: str, analyzer: TextAnalyzer) -> tuple[str, ...]:
    return tuple(analyzer.tokens(heading))
