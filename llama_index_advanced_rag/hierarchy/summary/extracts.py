"""A text shortened to its most central sentences, without a model."""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from llama_index_advanced_rag.ranking.central_sentences import central_sentences, sentence_centrality
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.text.lines import Span, is_list_item, is_table_row
from llama_index_advanced_rag.text.sentences import safe_cut, sentence_spans

CountTokens = Callable[[str], int]

_END = re.compile(r"[.!?…。！？｡؟۔।॥][\"'”’»」』）)\]]*$")
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_MARK = re.compile(r"^(?:[-*+•·▪◦‣●○■□–—]|\(\d{1,3}\))\s+")
_FIGURE = re.compile(r"\d+")
_CAPITALS = re.compile(r"[^\W\d_]*[A-ZÀ-ÖØ-Þ]{2}[^\W\d_]*")
_LEAST_WORDS, _LEAST_UNSPACED = 5, 8
_LEAST_LETTERS = 0.6
_MOST_CAPITALS = 0.6
_REPEATED = 3
_FEW = 2
_LEAST_TERMS, _USUAL_TOKENS, _ITEM_WEIGHT = 4, 40, 0.7
_LONG_SHARE = 0.75


def extract(text: str, *, max_tokens: int, count_tokens: CountTokens, analyzer: TextAnalyzer, language: str = "auto") -> str:
    r"""The most central sentences of a text, in its order, as one line.

    Rows of tables, headings, lines in capitals and lines that come back on every page are left out, unless the text holds nothing else. A text
    that fits as a whole is given as a whole. Of a text without a sentence that fits, the beginning of the most central one is given.

    Args:
        text: any text.
        max_tokens: what the extract may count, at least 1.
        count_tokens: tokens of a string.
        analyzer: cuts sentences into the terms by which they are compared.
        language: ISO code for the sentence models, or "auto".

    Example:
        >>> text = "Foxes\nThe red fox hunts at night.\nTotal 10 20\nThe fox hunts hens at night in winter.\nHens sleep."
        >>> extract(text, max_tokens=16, count_tokens=lambda part: len(part.split()), analyzer=TextAnalyzer("en"))
        'The red fox hunts at night. The fox hunts hens at night in winter.'
    """
    whole = " ".join(text.split())
    if len(whole) <= max_tokens or count_tokens(whole) <= max_tokens:
        return whole
    sentences = [" ".join(text[start:end].split()) for start, end in telling_spans(text, language=language)]
    terms = [[term for term in analyzer.tokens(sentence) if not term.isdigit()] for sentence in sentences]
    counts = [count_tokens(sentence) + 1 for sentence in sentences]
    weights = [_weight(sentence, words, count) for sentence, words, count in zip(sentences, terms, counts, strict=True)]
    chosen = central_sentences(terms, token_counts=counts, max_tokens=max_tokens, weights=weights if any(weights) else None)
    if chosen:
        return " ".join(_MARK.sub("", sentences[index]) for index in chosen)
    return cut_to(sentences[int(sentence_centrality(terms).argmax())], max_tokens=max_tokens, count_tokens=count_tokens)


def _weight(sentence: str, terms: Sequence[str], tokens: int) -> float:
    """0 for a sentence that says almost nothing, less for a remark or list item, and for a long one, which is like many others because of its length."""
    if len(set(terms)) < _LEAST_TERMS:
        return 0.0
    return min(1.0, (_USUAL_TOKENS / tokens) ** 0.5) * (_ITEM_WEIGHT if is_list_item(sentence) else 1.0)


def telling_spans(text: str, *, language: str = "auto") -> list[Span]:
    r"""The sentences that may stand in a summary, as spans in the order of the text; those of a text that has few of them, with its other lines.

    Example:
        >>> text = "PART I\nNet sales rose in the last quarter.\nTotal net sales 81,797 82,959\nCosts fell in the same quarter."
        >>> [text[start:end] for start, end in telling_spans(text)]
        ['Net sales rose in the last quarter.', 'Costs fell in the same quarter.']
    """
    spans = sentence_spans(text, language=language)
    lines = [text[start:end] for start, end in spans]
    repeated = _come_back(lines)
    running = [span for span, line, again in zip(spans, lines, repeated, strict=True) if not again and is_running_sentence(line)]
    if len(running) >= _FEW:
        return running
    plain = [span for span, line in zip(spans, lines, strict=True) if _WORD.search(line) and not is_table_row(line)]
    return plain or spans


def is_running_sentence(line: str) -> bool:
    """True for a sentence of prose or a list item that is one; false for headings, rows of tables and what is mostly figures or capitals.

    Example:
        >>> [is_running_sentence(line) for line in ("Net sales rose by 5 % in the quarter.", "Note 2 – Revenue", "SEE THE NOTES BELOW TOO.")]
        [True, False, False]
    """
    line = line.strip()
    if not _END.search(line) or is_table_row(line):
        return False
    unspaced = len(_UNSPACED.findall(line))
    words = _WORD.findall(line)
    if len(words) < _LEAST_WORDS and unspaced < _LEAST_UNSPACED:
        return False
    if sum(map(str.isalpha, line)) < _LEAST_LETTERS * (len(line) - sum(map(str.isspace, line))):
        return False
    return unspaced >= _LEAST_UNSPACED or len(_CAPITALS.findall(line)) < _MOST_CAPITALS * len(words)


def cut_to(text: str, *, max_tokens: int, count_tokens: CountTokens) -> str:
    """The beginning of a text that counts at most `max_tokens`, cut at white space where there is some; at least one character.

    Example:
        >>> cut_to("one two three four", max_tokens=2, count_tokens=lambda part: len(part.split()))
        'one two'
    """
    low, high = 1, len(text)
    if count_tokens(text) <= max_tokens:
        return text
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    space = text.rfind(" ", 0, low + 1)
    return text[: space if space >= low * _LONG_SHARE else safe_cut(text, low, lowest=1)].rstrip() or text[:1]


def _come_back(lines: Sequence[str]) -> list[bool]:
    """Which lines are repeated, but for their figures: running heads, and remarks of no weight."""
    keys = [_FIGURE.sub("0", " ".join(line.split()).casefold()) for line in lines]
    counts = Counter(keys)
    return [counts[key] >= _REPEATED for key in keys]
