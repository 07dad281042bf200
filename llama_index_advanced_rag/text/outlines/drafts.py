"""Headings before they are a tree: where each stands, what it says, and how high it ranks."""

from dataclasses import dataclass
from enum import Enum

MAX_TITLE = 200
RANK_TOP = 0.0
RANK_GROUP = 0.3
RANK_ENTRY = 0.5
RANK_BELOW = 20.0
RANK_CAPITALS = 30.0
RANK_TITLE_CASE = 31.0


class HeadingSource(str, Enum):
    """What says that a line is a heading, surest first."""

    MARKUP = "markup"
    BOOKMARK = "bookmark"
    NUMBER = "number"
    CONTENTS = "contents"
    TYPOGRAPHY = "typography"


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A bookmark of a document: its title, its level (1 = top), and the offset of the page or place in the text that it points to."""

    title: str
    level: int
    start: int


@dataclass(frozen=True, slots=True)
class Draft:
    """One heading that was found; of two drafts the one with the lower rank stands above. `leads` is true for a first number (1, A, I)."""

    start: int
    body: int
    title: str
    rank: float
    source: HeadingSource
    leads: bool = False


def clean_title(title: str) -> str:
    r"""One line of at most 200 characters.

    Example:
        >>> clean_title("  Risk   factors\n of the year ")
        'Risk factors of the year'
    """
    return " ".join(title[: 4 * MAX_TITLE].split())[:MAX_TITLE].rstrip()
