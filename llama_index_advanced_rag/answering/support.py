"""A light check of cited statements, without a model: do the words, numbers and names stand in the sentences they cite?

It reads words, not meaning: a faithful paraphrase in other words, or an answer in another language than its source, may
count as unsupported; a number or a name that stands nowhere in the cited sentences always does.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from llama_index_advanced_rag.answering.citations import MARKER, Citation, cited_numbers
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.text.sentences import sentence_spans

LEAST_OVERLAP = 0.5
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?![\d])(?:[.,]\d+)?")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_SPACE_AND_MARKER = re.compile(r"\s*" + MARKER.pattern)
_NAME = re.compile(r"(?<=[\w,;:] )[A-ZÀ-ÖØ-Þ][\w-]*\w")
_MARKER_AFTER_STOP = re.compile(rf"([.!?…])(\s*(?:{MARKER.pattern}\s*)+)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of the answer under its citations.

    Attributes:
        text: the sentence without markers.
        citations: numbers it cites, in order; empty = uncited.
        overlap: share (0-1) of its content words that stand in the cited sentences, their titles or the question; 0 when uncited.
        missing: its numbers and names that stand in none of these, as written.
        supported: None when uncited; else whether the overlap is at least 0.5 and nothing is missing.
    """

    text: str
    citations: tuple[int, ...]
    overlap: float
    missing: tuple[str, ...]
    supported: bool | None


@dataclass(frozen=True, slots=True)
class SupportReport:
    """How well an answer rests on what it cites.

    Attributes:
        statements: the sentences of the answer, in order.
        cited_share: share (0-1) of the statements with a citation; None when there is no statement.
        supported_share: share (0-1) of the cited statements that are supported; None when nothing is cited.
        dangling: numbers the writer of the answer cited although no sentence has them.
    """

    statements: tuple[Statement, ...] = ()
    cited_share: float | None = None
    supported_share: float | None = None
    dangling: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary."""
        statements = [{**asdict(item), "citations": list(item.citations), "missing": list(item.missing)} for item in self.statements]
        return {**asdict(self), "statements": statements, "dangling": list(self.dangling)}


def check_support(answer: str, citations: Sequence[Citation], *, analyzer: TextAnalyzer, question: str = "", dangling: Sequence[int] = ()) -> SupportReport:
    """Check each statement of a renumbered answer against the sentences it cites.

    Args:
        answer: text whose markers are the numbers of `citations`.
        citations: the citations of the answer.
        analyzer: turns text into comparable words; the same for statement and source.
        question: what was asked; repeating its words, numbers and names claims nothing.
        dangling: passed through into the report.

    Example:
        >>> source = Citation(1, "n1", "d1", 0, 30, None, None, "Net sales were 81,797 million.")
        >>> report = check_support("Net sales were 81,798 million [1].", [source], analyzer=TextAnalyzer("en"))
        >>> report.statements[0].missing, report.supported_share
        (('81,798',), 0.0)
    """
    by_number = {citation.number: citation for citation in citations}
    statements = [_check(text, by_number, analyzer, question) for text in _statements(answer)]
    cited = [item for item in statements if item.supported is not None]
    return SupportReport(
        statements=tuple(statements),
        cited_share=len(cited) / len(statements) if statements else None,
        supported_share=sum(bool(item.supported) for item in cited) / len(cited) if cited else None,
        dangling=tuple(dangling),
    )


def numbers_of(text: str) -> dict[str, str]:
    """Numbers of a text, canonical form -> as written: `81,797` and `81 797` are one number, `3.3` and `3,3` too.

    Example:
        >>> numbers_of("81 797 and 3,3")
        {'81797': '81 797', '3.3': '3,3'}
    """
    found: dict[str, str] = {}
    for match in _GROUPED.finditer(text):
        found.setdefault(_canonical(re.sub(r"[ \u00a0\u202f]", "", match.group())), match.group())
    for match in _NUMBER.finditer(_GROUPED.sub(" ", text)):
        found.setdefault(_canonical(match.group()), match.group())
    return found


def _canonical(number: str) -> str:
    return re.sub(r"[.,]", "", number) if _THOUSANDS.fullmatch(number) else number.replace(",", ".")


def _statements(answer: str) -> list[str]:
    # "It is so. [1] Next" cites for the sentence before the marker, so the marker moves in front of the full stop.
    moved = _MARKER_AFTER_STOP.sub(lambda found: f" {found.group(2).strip()}{found.group(1)} ", answer)
    parts = [moved[start:end] for start, end in sentence_spans(moved)]
    return [part for part in parts if re.search(r"\w", MARKER.sub("", part))]


def _check(statement: str, by_number: dict[int, Citation], analyzer: TextAnalyzer, question: str) -> Statement:
    plain = " ".join(_SPACE_AND_MARKER.sub("", statement).split())
    cited = [number for number in cited_numbers(statement) if number in by_number]
    if not cited:
        return Statement(plain, (), 0.0, (), None)
    evidence = "\n".join([question, *(f"{by_number[number].title}\n{by_number[number].text}" for number in cited)])
    known_words = set(analyzer.tokens(evidence))
    missing = (*_missing_numbers(plain, evidence), *_missing_names(plain, known_words, analyzer))
    words = {token for token in analyzer.tokens(plain) if not token[:1].isdigit()}
    overlap = len(words & known_words) / len(words) if words else 1.0
    return Statement(plain, tuple(cited), overlap, missing, overlap >= LEAST_OVERLAP and not missing)


def _missing_numbers(statement: str, evidence: str) -> list[str]:
    known = numbers_of(evidence).keys() | {_canonical(match) for match in _NUMBER.findall(evidence)}
    return [written for canonical, written in numbers_of(statement).items() if canonical not in known]


def _missing_names(statement: str, known_words: set[str], analyzer: TextAnalyzer) -> list[str]:
    if analyzer.language == "de":  # every German noun has a capital
        return []
    return [name for name in dict.fromkeys(_NAME.findall(statement)) if not known_words.issuperset(analyzer.tokens(name))]
