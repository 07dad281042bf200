"""Classes of characters for regular expressions, which know no upper case beyond one letter at a time."""

from collections.abc import Iterator

UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters of scripts that put no spaces between words: a Latin name may stand right beside them."""

LETTER = rf"[^\W{UNSPACED}]"
"""A letter, digit or underscore of a script with spaces."""

_WITH_CASE = ((0x41, 0x250), (0x370, 0x590), (0x1E00, 0x2000))


def _capital_ranges() -> Iterator[str]:
    for first, last in _WITH_CASE:
        start = first
        while start < last:
            end = start
            while end < last and chr(end).isupper():
                end += 1
            if end > start:
                yield f"{chr(start)}-{chr(end - 1)}"
            start = end + 1


CAPITAL = "".join(_capital_ranges())
"""The capitals of Latin, Greek, Cyrillic and Armenian, to stand between brackets."""
