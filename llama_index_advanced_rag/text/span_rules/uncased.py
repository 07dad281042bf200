"""Names in scripts without capitals: foreign words in katakana, and what stands between the marks of titles."""

import re

from llama_index_advanced_rag.text.span_rules.letters import UNSPACED
from llama_index_advanced_rag.text.span_rules.lexemes import SpanKind

_HAS_UNSPACED = re.compile(f"[{UNSPACED}]")
_NAME = re.compile(
    r"[\u30a1-\u30fa][\u30a1-\u30fe]+(?:[・＝][\u30a1-\u30fa][\u30a1-\u30fe]*){0,8}|(?<=《)[^《》\n]{1,60}(?=》)|(?<=「)[^「」\n]{1,60}(?=」)|(?<=『)[^『』\n]{1,60}(?=』)"
)
_LONGEST_KATAKANA = 60
_FEWEST_KATAKANA = 3
# Bounded, so that a megabyte of digits is passed over in one step.
_UNIT = re.compile(
    r"(?<!\d)\d{1,24}(?:[.,]\d{1,12}){0,8}(?!\d)\s?(?:[万亿億兆千百]?(?:円|元|人民币|美元|ドル|ユーロ|원|%|％|パーセント|キロ|公里|米|メートル)|[万亿億兆])"
)
_DATE = re.compile(r"\d{4}\s?[年년](?:\s?\d{1,2}\s?[月월](?:\s?\d{1,2}\s?[日일])?)?")
_SENTENCE = re.compile("[。！？、，]")


def uncased_spans(text: str) -> list[tuple[int, int, SpanKind]]:
    """Start, end and kind of the spans that only the rules for scripts without capitals find; nothing for a text without such a script.

    Example:
        >>> text = "『雪国』はソニーの川端が2023年7月に100億円で"
        >>> [(text[start:end], kind) for start, end, kind in uncased_spans(text)]
        [('雪国', 'name'), ('ソニー', 'name'), ('2023年7月', 'date'), ('100億円', 'number')]
    """
    if text.isascii() or _HAS_UNSPACED.search(text) is None:
        return []
    found: list[tuple[int, int, SpanKind]] = [(match.start(), match.end(), "name") for match in _NAME.finditer(text) if _is_name(match.group())]
    found.extend((match.start(), match.end(), "date") for match in _DATE.finditer(text))
    found.extend((match.start(), match.end(), "number") for match in _UNIT.finditer(text))
    return sorted(found)


def _is_name(surface: str) -> bool:
    if "\u30a1" <= surface[0] <= "\u30fa":
        return _FEWEST_KATAKANA <= len(surface) <= _LONGEST_KATAKANA
    return _SENTENCE.search(surface) is None
