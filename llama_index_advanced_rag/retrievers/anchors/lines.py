"""The keyword detectors: which words of a question stand on which lines of a passage, and in which headings."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode

from llama_index_advanced_rag.hierarchy.keys import PAGE_LABEL
from llama_index_advanced_rag.ranking.anchors import coverage, score_line
from llama_index_advanced_rag.ranking.bm25 import inverse_document_frequency
from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
from llama_index_advanced_rag.text.analyzer import TextAnalyzer, detect_language
from llama_index_advanced_rag.text.languages import AUTO
from llama_index_advanced_rag.text.lines import Span
from llama_index_advanced_rag.text.sentences import sentence_spans

_CACHED_TEXTS = 4096
_CACHED_CHARS = 10_000
_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True)
class AnchorLine:
    """A line that holds words of the question.

    Attributes:
        text: the line, white space joined, at most 300 characters.
        node_id: the passage it was read in.
        start: where it begins in its document; in the passage where that does not say where it stands.
        page: label of the passage's pages, None where it has none.
        words: the keywords on it, as places in `Keywords.surfaces`.
        score: see `ranking.anchors.score_line`.
    """

    text: str
    node_id: str
    start: int
    page: str | None
    words: frozenset[int]
    score: float


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
        weights = tuple(_weight(retriever, group) for group in groups)
        return cls(tuple(surfaces[group[0]] for group in groups), weights, {term: frozenset(found) for term, found in words.items()}, own)

    def __bool__(self) -> bool:
        return any(self.weights)

    def in_terms(self, terms: Iterable[str]) -> frozenset[int]:
        """The keywords among terms, those without a weight left out."""
        known = self.words_of_term.keys() & set(terms)
        return frozenset(word for term in known for word in self.words_of_term[term] if self.weights[word] > 0)

    def named(self, words: Collection[int]) -> list[str]:
        """Keywords as written, those that tell most first."""
        return [self.surfaces[word] for word in sorted(words, key=lambda word: (-self.weights[word], word))]

    def share(self, words: Collection[int]) -> float:
        """`ranking.anchors.coverage` of keywords."""
        return coverage(words, self.weights)


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
    analyzer = _analyzer_for(text, keywords.analyzer)
    page, first = page_of(node), getattr(node, "start_char_idx", None) or 0
    lines: list[AnchorLine] = []
    for start, end in _spans(text, analyzer.language):
        words = keywords.in_terms(analyzer.tokens(text[start:end]))
        if words:
            shown = " ".join(text[start:end].split())[:_SHOWN_CHARS]
            lines.append(AnchorLine(shown, node.node_id, first + start, page, words, score_line(words, keywords.weights)))
    return lines


def heading_words(heading: str, keywords: Keywords) -> tuple[frozenset[int], int]:
    """The keywords in a heading, and how many terms it has."""
    terms = keywords.analyzer.tokens(heading)
    return keywords.in_terms(terms), len(terms)


def page_of(node: BaseNode) -> str | None:
    """The label of a node's pages, "3" or "3-4"; None where it has none."""
    label: Any = node.metadata.get(PAGE_LABEL)
    return None if label in (None, "") else str(label)


def _weight(retriever: BaseRetriever, group: tuple[str, ...]) -> float:
    if not isinstance(retriever, LexicalRetriever):
        return 1.0
    view = retriever.postings.view()
    alive = view.alive
    found = sum(len(held) if alive is None else int(alive[held].sum()) for held, _, _ in view.matches(Counter([group])))
    return inverse_document_frequency(view.n_texts, found) if found else 0.0


def _analyzer_for(text: str, analyzer: TextAnalyzer) -> TextAnalyzer:
    """The analyzer with the language of the whole passage: a line is too short to show it."""
    language = detect_language(text) if analyzer.language == AUTO else None
    return analyzer if language is None else replace(analyzer, language=language)


def _spans(text: str, language: str) -> Sequence[Span]:
    return _cached_spans(text, language) if len(text) <= _CACHED_CHARS else sentence_spans(text, language=language)


@lru_cache(maxsize=_CACHED_TEXTS)
def _cached_spans(text: str, language: str) -> tuple[Span, ...]:
    return tuple(sentence_spans(text, language=language))
