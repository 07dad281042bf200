"""What one chunk says: the names in it, and the relations between them. Everything else that is known of entities is computed from records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

NAME = "name"
PropertyValue = str | int | float | bool


class Mention(NamedTuple):
    """A name in the text of a chunk.

    Attributes:
        surface: the name as it is written there.
        kind: "name", "number", "date", "identifier", or what the model of an extractor calls it.
        start: its first character in the text of the chunk; -1 when the name is not written there.
        end: one past its last character.
    """

    surface: str
    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A fact: subject, predicate, object, and what else is said of it.

    Attributes:
        subject: name of what the fact is about.
        predicate: how the two are related, in any spelling ("works for", "WORKS_FOR", "worksFor").
        object: name of the other end.
        properties: further values, such as a date or an amount.
    """

    subject: str
    predicate: str
    object: str
    properties: Mapping[str, PropertyValue] = field(default_factory=dict[str, PropertyValue])


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    """What one chunk says; `record_codec` writes it as bytes.

    Attributes:
        mentions: the names in it, in the order of the text.
        relations: the facts in it.
        names: names that it can be found by and need not hold itself: the title of its document, the heading it stands under.

    Example:
        >>> record = ExtractionRecord((Mention("Claude", "name", 0, 6),), (Relation("Claude", "created by", "Anthropic"),), ("Models",))
        >>> [mention.surface for mention in record.mentions], record.names
        (['Claude'], ('Models',))
    """

    mentions: tuple[Mention, ...] = ()
    relations: tuple[Relation, ...] = ()
    names: tuple[str, ...] = ()
