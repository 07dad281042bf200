"""Citations of an answer: markers found, renumbered in order of use, resolved to sentences; text may come in pieces."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from llama_index_advanced_rag.answering.context import NumberedContext, NumberedSentence

MARKER = re.compile(r"\[(?=[^\]]{1,60}\])\s*\d+(?:\s*[,;–—-]\s*\d+)*\s*\]")
_PART = re.compile(r"(\d+)(?:\s*[-–—]\s*(\d+))?")
_UNFINISHED = re.compile(r"\s*(?:\[[\d\s,;–—-]{0,60})?\Z")
_SPACE_AND_MARKER = re.compile(r"(\s*)(" + MARKER.pattern + ")")
_LONGEST_RANGE = 20
_LARGEST_NUMBER = 999


@dataclass(frozen=True, slots=True)
class Citation:
    """One `[number]` of an answer and the sentence it stands for.

    Attributes:
        number: the number in the answer, from 1 in order of first use.
        node_id: node the sentence was read from.
        ref_doc_id: document of that node, or None.
        start: first character in the node's text.
        end: character after the last one in the node's text.
        document_start: first character in the document's text, None when unknown.
        document_end: character after the last one in the document's text, or None.
        text: the sentence, white space as in the node.
        score: score of the node, None when it has none.
        page_label: page, "" when unknown.
        title: title of the document, "" when unknown.
    """

    number: int
    node_id: str
    ref_doc_id: str | None
    start: int
    end: int
    document_start: int | None
    document_end: int | None
    text: str
    score: float | None = None
    page_label: str = ""
    title: str = ""

    @classmethod
    def of(cls, sentence: NumberedSentence, number: int) -> "Citation":
        """The citation of a sentence under a number of the answer."""
        return cls(
            number=number,
            node_id=sentence.node_id,
            ref_doc_id=sentence.ref_doc_id,
            start=sentence.start,
            end=sentence.end,
            document_start=sentence.document_start,
            document_end=sentence.document_end,
            text=sentence.text,
            score=sentence.score,
            page_label=sentence.page_label,
            title=sentence.title,
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary of all attributes."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Citation":
        """The citation `to_dict` described; keys it does not know are ignored."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


@dataclass
class CitationWriter:
    """Rewrites the markers of an answer while it arrives: feed pieces, then finish.

    `[7]`, `[7][2]`, `[7, 2]` and `[7-9]` are markers of context sentences; they come out as `[1]`, `[2]`, ... in order of
    first use. A marker of a sentence that does not exist is taken out together with the space before it, and reported.
    Numbers above 999 that no sentence has are left as text (`[2023]`). However the text is cut into pieces, the joined
    output is the same.

    Args:
        context: the numbered sentences the answer was made from.

    Attributes:
        citations: one for each number of the answer so far, in order.
        dangling: numbers that no sentence has, in order of appearance.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> from llama_index_advanced_rag.answering.context import number_sentences
        >>> context = number_sentences([NodeWithScore(node=TextNode(id_="n1", text="One. Two. Three."))])
        >>> writer = CitationWriter(context)
        >>> writer.feed("Three [") + writer.feed("3], one [1] and") + writer.feed(" nine [9].") + writer.finish()
        'Three [1], one [2] and nine.'
        >>> writer.citations[0].text, writer.dangling
        ('Three.', [9])
    """

    context: NumberedContext
    citations: list[Citation] = field(default_factory=list[Citation])
    dangling: list[int] = field(default_factory=list[int])
    _numbers: dict[int, int] = field(default_factory=dict[int, int])
    _pending: str = ""
    _begun: bool = False

    def feed(self, delta: str) -> str:
        """Take the next piece; returns the text that is final by now, which may be empty."""
        text = self._pending + delta
        unfinished = _UNFINISHED.search(text)
        cut = unfinished.start() if unfinished is not None else len(text)
        self._pending = text[cut:]
        return self._rewrite(text[:cut])

    def finish(self) -> str:
        """The text that was held back; white space at the end of the answer is dropped."""
        rest, self._pending = self._pending, ""
        return self._rewrite(rest.rstrip())

    def _rewrite(self, text: str) -> str:
        done = _SPACE_AND_MARKER.sub(self._replace, text)
        if not self._begun:
            done = done.lstrip()
            self._begun = bool(done)
        return done

    def _replace(self, found: re.Match[str]) -> str:
        numbers = _numbers_in(found.group(2))
        if min(numbers) > max(_LARGEST_NUMBER, len(self.context.sentences)):
            return found.group(0)
        markers = "".join(f"[{number}]" for number in dict.fromkeys(self._number_of(old) for old in numbers) if number is not None)
        return found.group(1) + markers if markers else ""

    def _number_of(self, old: int) -> int | None:
        sentence = self.context.sentence(old)
        if sentence is None:
            if old not in self.dangling:
                self.dangling.append(old)
            return None
        if old not in self._numbers:
            self._numbers[old] = len(self._numbers) + 1
            self.citations.append(Citation.of(sentence, self._numbers[old]))
        return self._numbers[old]


def renumber_citations(answer: str, context: NumberedContext) -> tuple[str, list[Citation], list[int]]:
    """A whole answer at once: its text with markers renumbered, the citations, the dangling numbers."""
    writer = CitationWriter(context)
    text = writer.feed(answer) + writer.finish()
    return text, writer.citations, writer.dangling


def cited_numbers(text: str) -> list[int]:
    """The numbers of all markers in a text, each once, in order.

    Example:
        >>> cited_numbers("A [2][1], b [2, 4-6].")
        [2, 1, 4, 5, 6]
    """
    return list(dict.fromkeys(number for marker in MARKER.findall(text) for number in _numbers_in(marker)))


def _numbers_in(marker: str) -> list[int]:
    numbers: list[int] = []
    for first, last in _PART.findall(marker):
        low, high = int(first), int(last or first)
        whole = 0 <= high - low <= _LONGEST_RANGE
        numbers += range(low, high + 1) if whole else [low, high]
    return numbers
