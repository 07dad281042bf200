"""The extractor that needs no model: names, numbers, dates, identifiers and labels of table rows by rules."""

from collections.abc import Iterable, Iterator, Sequence

from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention
from llama_index_advanced_rag.text.languages import AUTO, check_language
from llama_index_advanced_rag.text.row_labels import row_labels
from llama_index_advanced_rag.text.spans import find_spans

_VERSION = 1
"""Goes up when the same text would give other spans."""
_LABEL = "label"


class SpanExtractor:
    """Mentions by the rules of `text.spans`, and what the rows of tables are called ("label"); no relations, no model, no LLM call.

    6,000 passages take a second or two.

    Args:
        language: ISO 639-1 code of the texts; "auto" to detect that of each text by its stop words; "none" to read all by the rules of
            English. Name it where you know it: short texts show none.

    Raises:
        ConfigurationError: unknown language.

    Example:
        >>> record, = SpanExtractor().extract(["Claude was created by Anthropic in San Francisco."])
        >>> [(mention.surface, mention.kind) for mention in record.mentions]
        [('Claude', 'name'), ('Anthropic', 'name'), ('San Francisco', 'name')]
    """

    def __init__(self, language: str = AUTO) -> None:
        self._language = check_language(language)

    @property
    def identity(self) -> str:
        """The version of the rules and the language: "spans-1:auto"."""
        return f"spans-{_VERSION}:{self._language}"

    def extract(self, texts: Sequence[str]) -> list[ExtractionRecord]:
        """One record for each text; any text can be read, an empty one has no mentions."""
        return [ExtractionRecord(mentions=self.mentions(text)) for text in texts]

    def mentions(self, text: str) -> tuple[Mention, ...]:
        """The mentions of one text, in order, none over another."""
        labels = [(start, end, _LABEL) for start, end in row_labels(text)]
        others = _beside(labels, find_spans(text, language=self._language))
        return tuple(Mention(text[start:end], kind, start, end) for start, end, kind in sorted([*labels, *others]))

    def __repr__(self) -> str:
        return f"SpanExtractor(language={self._language!r})"


def _beside(labels: Sequence[tuple[int, int, str]], spans: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """The spans that share no character with a label; both in order."""
    place = 0
    for start, end, kind in spans:
        while place < len(labels) and labels[place][1] <= start:
            place += 1
        if place == len(labels) or end <= labels[place][0]:
            yield start, end, kind
