"""The properties of a fact as clauses, and what may be said of a name or a value that comes from a document."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from llama_index_advanced_rag.graph.templates import WORDS, predicate_key, readable_predicate

MAX_CHARS = 200
MAX_PROPERTIES = 12

# Control characters, line ends of any kind, marks that turn the direction of what follows, and halves of characters.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_PERIOD = re.compile(r"\d{3,4}(?:-\d{2})?|[^\W\d]+\.? \d{4}|\d{4}[ -]?[QT]\d|[QT]\d[ -]\d{4}", re.IGNORECASE)
_DATE_PART = re.compile(
    r"january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|"
    r"janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|janv|févr|avr|juil|déc|"
    r"s|st|nd|rd|th|er|e|q|t|of|the|le|du|de|circa|c|about|vers|early|late|début|fin|bce?|ad|ce|quarter|trimestre",
    re.IGNORECASE,
)
_DATE_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_DATE = 40
_MOST_DIGITS = 1e15

_DAYS = ("date", "day", "on", "when", "signed on", "signature date", "event date", "jour", "quand")
_YEARS = ("year", "period", "année", "an", "période")
_STARTS = ("since", "start", "start date", "started on", "start year", "valid from", "from", "depuis", "début", "date de début")
_ENDS = ("until", "end", "end date", "ended on", "end year", "valid to", "to", "fin", "date de fin", "jusqu'à")
_AMOUNTS = ("amount", "price", "value", "sum", "cost", "montant", "prix", "valeur", "somme")
_ROLES = ("role", "position", "job title", "rôle", "poste", "fonction")
_PLACES = ("place", "location", "lieu", "endroit")
_CURRENCIES = ("currency", "devise", "unit", "unité")
# What LlamaIndex's graph stores keep with a relation for themselves.
_BOOKKEEPING = ("triplet source id", "ref doc id", "doc id", "document id", "source id")


def clean_name(text: str) -> str:
    r"""A name in one line, without control characters, of at most 200 characters.

    Example:
        >>> clean_name("Acme\r\n  {Corp}\x00"), len(clean_name("a" * 5000)), clean_name("a" * 5000)[-1]
        ('Acme {Corp}', 200, '…')
    """
    line = " ".join(_CONTROLS.sub(" ", text).split())
    return line if len(line) <= MAX_CHARS else line[: MAX_CHARS - 1].rstrip() + "…"


def is_date(value: str) -> bool:
    """Whether a value is a day, a month, a quarter or a year and nothing else, in English or French.

    Example:
        >>> [is_date(value) for value in ("1960", "2026-01-15", "5 mai 2020", "Q3 2023", "Paris", "Boeing 747")]
        [True, True, True, True, False, False]
    """
    if len(value) > _LONGEST_DATE or not any(char.isdigit() for char in value):
        return False
    return all(_DATE_PART.fullmatch(word) for word in _DATE_WORD.findall(value))


def property_clauses(properties: Mapping[str, Any], *, language: str) -> list[str]:
    """What is said of a fact beside its ends: when, for how much, as what, where, then everything else in the order given; at most 12 clauses.

    Args:
        properties: values may be of any type; empty ones are not told.
        language: one of `templates.WORDS`.

    Example:
        >>> property_clauses({"amount": 300, "currency": "EUR", "start_date": "2020", "checked": True}, language="en")
        ['(since 2020)', 'for 300 EUR', '(checked: yes)']
    """
    words = WORDS[language]
    values = {key: text for key, value in properties.items() if not key.startswith("_") and (text := _text(value, words))}
    left = {name: (key, text) for key, text in values.items() if (name := predicate_key(clean_name(key)))}
    for key in _BOOKKEEPING:
        left.pop(key, None)
    clauses = [*_times(left, words), *_amounts(left, words), *_taken(left, _ROLES, words["as"]), *_taken(left, _PLACES, words["at"])]
    clauses += [words["property"].format(key=readable_predicate(clean_name(key)), value=text) for key, text in left.values()]
    return clauses[:MAX_PROPERTIES]


_Left = dict[str, tuple[str, str]]


def _text(value: Any, words: Mapping[str, str]) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return words["yes" if value else "no"]
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < _MOST_DIGITS else clean_name(str(value))


def _taken(left: _Left, keys: tuple[str, ...], template: str) -> Iterator[str]:
    value = _take(left, keys)
    if value is not None:
        yield template.format(value=value)


def _take(left: _Left, keys: tuple[str, ...], *, with_digit: bool = False) -> str | None:
    """The value of the first of these properties, which is then told; only one that holds a digit, if so asked."""
    for key in keys:
        if key in left and (not with_digit or any(char.isdigit() for char in left[key][1])):
            return left.pop(key)[1]
    return None


def _times(left: _Left, words: Mapping[str, str]) -> Iterator[str]:
    day = _take(left, _DAYS, with_digit=True)
    if day is not None:
        yield words["in" if _PERIOD.fullmatch(day) else "on"].format(value=day)
    year = _take(left, _YEARS, with_digit=True)
    if year is not None:
        yield words["in"].format(value=year)
    start, end = _take(left, _STARTS, with_digit=True), _take(left, _ENDS, with_digit=True)
    if start is not None and end is not None:
        yield words["from_to"].format(value=start, end=end)
    elif start is not None or end is not None:
        yield words["since" if start is not None else "until"].format(value=start or end)


def _amounts(left: _Left, words: Mapping[str, str]) -> Iterator[str]:
    amount = _take(left, _AMOUNTS, with_digit=True)
    if amount is None:
        return
    is_bare = not any(char.isalpha() for char in amount)
    currency = _take(left, _CURRENCIES) if is_bare else None
    yield words["for"].format(value=f"{amount} {currency}" if currency is not None else amount)
