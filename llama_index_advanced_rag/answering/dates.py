"""Days and quarters, English and French, in one form, so that "June 30, 1862" and "30th June, 1862" are the same."""

import re
from collections.abc import Sequence

Date = tuple[int | None, int, int]
"""Year (None when the text names none), month, day; the quarters of a year are its months 13 to 16, without a day (0)."""

_MONTH_NAMES = (
    ("january", "janvier", "jan"),
    ("february", "février", "feb"),
    ("march", "mars", "mar"),
    ("april", "avril", "apr"),
    ("may", "mai"),
    ("june", "juin", "jun"),
    ("july", "juillet", "jul"),
    ("august", "août", "aug"),
    ("september", "septembre", "sept", "sep"),
    ("october", "octobre", "oct"),
    ("november", "novembre", "nov"),
    ("december", "décembre", "dec"),
)
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, start=1) for name in names}
_MONTH = rf"({'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_DAY = r"([12]\d|3[01]|0?[1-9])(?:st|nd|rd|th|er)?"
_YEAR = r"(?:,?\s+((?:1\d|20)\d\d)\b)?"
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+{_DAY}\b{_YEAR}", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}\b{_YEAR}", re.IGNORECASE)
_QUARTERS = {
    name: number
    for number, names in enumerate(
        ("first 1st premier 1er q1", "second 2nd deuxième 2e q2", "third 3rd troisième 3e q3", "fourth 4th quatrième 4e q4"), start=1
    )
    for name in names.split()
}
_QUARTER = re.compile(
    rf"\b(?:({'|'.join(name for name in _QUARTERS if name[0] != 'q')})\s+(?:fiscal\s+)?(?:quarter|trimestre)|(q[1-4]))\b"
    r"(?:\s+(?:of\s+|de\s+|du\s+)?(?:the\s+)?(?:fiscal\s+)?(?:years?\s+|l['’](?:année|exercice)\s+)?((?:1\d|20)\d\d)\b)?",
    re.IGNORECASE,
)
_YEAR_FIRST = re.compile(r"\b((?:19|20)\d\d)[\s_-]*(q[1-4])\b", re.IGNORECASE)
_ANY_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_HAS_MONTH = re.compile(_MONTH, re.IGNORECASE)


def dates_of(text: str) -> dict[Date, str]:
    """The dates and quarters of a text with the words they are written in.

    Example:
        >>> dates_of("in the first quarter of fiscal year 2024 and in Q2")
        {(2024, 13, 0): 'first quarter of fiscal year 2024', (None, 14, 0): 'Q2'}
        >>> dates_of("from June 30, 1862 to 4 July; in May"), dates_of("le 1er juillet 2023")
        ({(1862, 6, 30): 'June 30, 1862', (None, 7, 4): '4 July'}, {(2023, 7, 1): '1er juillet 2023'})
    """
    found: dict[Date, str] = {}
    for match in _YEAR_FIRST.finditer(text):
        found.setdefault((int(match.group(1)), 12 + _QUARTERS[match.group(2).lower()], 0), match.group())
    for match in _QUARTER.finditer(_YEAR_FIRST.sub(" ", text)):
        found.setdefault((int(match.group(3)) if match.group(3) else None, 12 + _QUARTERS[(match.group(1) or match.group(2)).lower()], 0), match.group())
    if _HAS_MONTH.search(text) is None:
        return found
    for match in _MONTH_FIRST.finditer(text):
        found.setdefault(_date(match.group(3), match.group(1), match.group(2)), match.group())
    for match in _DAY_FIRST.finditer(_MONTH_FIRST.sub(" ", text)):
        found.setdefault(_date(match.group(3), match.group(2), match.group(1)), match.group())
    return found


def says_date(text: str, date: Date) -> bool:
    """Whether a text says a date; a day without its year fits when the text has that year elsewhere, or no year at all.

    Example:
        >>> head = "Three Months Ended July 1, 2022 2023"
        >>> says_date(head, (2023, 7, 1)), says_date(head, (2021, 7, 1)), says_date("on 1 July", (2023, 7, 1))
        (True, False, True)
    """
    there = dates_of(text)
    if date[0] is None:
        return any(other[1:] == date[1:] for other in there)
    years = set(_ANY_YEAR.findall(text))
    return any(other[1:] == date[1:] for other in there) and (not years or str(date[0]) in years)


def says_another(text: str, dates: Sequence[Date]) -> bool:
    """Whether a text says days, or quarters, but none of these.

    Example:
        >>> says_another("In Q2 2023", [(2023, 13, 0)]), says_another("On July 1", [(2023, 13, 0)])
        (True, False)
    """
    there, quarters = dates_of(text), {date[2] == 0 for date in dates}
    return any((other[2] == 0) in quarters for other in there) and not any(says_date(text, date) for date in dates)


def _date(year: str | None, month: str, day: str) -> Date:
    return int(year) if year else None, _MONTHS[month.lower()], int(day)
