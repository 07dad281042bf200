"""The chosen sentences as the text of an answer."""

import re
from collections.abc import Sequence

from llama_index_advanced_rag.answering.context import NumberedSentence, inert
from llama_index_advanced_rag.answering.extractive import Extract
from llama_index_advanced_rag.text.table_rows import is_data_row

_BULLET = re.compile(r"^(?:[-*+•·▪◦‣●○■□–—]|#{1,6})\s+")
_EMPHASIS = re.compile(r"\*\*(.+?)\*\*")
_ONE_BAR = re.compile(r"^([^|]+?) \| ([^|]+)$")
_FULL_STOPS = (".", "!", "?", "…")


def compose_answer(extracts: Sequence[Extract]) -> list[str]:
    """The extracts as pieces of text, each sentence followed by its `[number]` in the context; joined they are the answer.

    Sentences follow each other on a line; rows and items have lines of their own. A row comes before the head of its table,
    an item after what announces it; an announcement brings all it announces. A lead is said once.
    """
    pieces: list[str] = []
    said = set[int]()
    for extract in extracts:
        piece = _piece(extract, said)
        joint = "" if not pieces else " " if _runs_on(extract) and pieces[-1].rstrip(" ]0123456789[").endswith(_FULL_STOPS) else "\n"
        pieces.append(joint + piece)
    return pieces


def _runs_on(extract: Extract) -> bool:
    return extract.lead is None and not extract.items and extract.sentence.text.endswith(_FULL_STOPS)


def _piece(extract: Extract, said: set[int]) -> str:
    lead = extract.lead if extract.lead is not None and extract.lead.number not in said else None
    said.add(extract.sentence.number)
    own = "\n".join([_quoted(extract.sentence), *(f"  {_quoted(item)}" for item in extract.items)])
    if lead is None:
        return own
    said.add(lead.number)
    return f"{own} ({_quoted(lead)})" if is_data_row(extract.sentence.text) else f"{_quoted(lead)}\n  {own}"


def _quoted(sentence: NumberedSentence) -> str:
    return f"{readable(sentence.text)} [{sentence.number}]"


def readable(text: str) -> str:
    """A sentence as it is quoted: on one line, without the marks of its format and without a semicolon at its end.

    Example:
        >>> readable("- **head of government**: Jane Doe"), readable("Capital | Reykjavik"), readable("de trois mois ;")
        ('head of government: Jane Doe', 'Capital: Reykjavik', 'de trois mois')
    """
    plain = _EMPHASIS.sub(r"\1", _BULLET.sub("", inert(text)))
    return _ONE_BAR.sub(r"\1: \2", plain).rstrip(" ;")
