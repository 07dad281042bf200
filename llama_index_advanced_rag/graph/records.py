"""What one chunk says: the names in it, and the relations between them. Everything else that is known of entities is computed from records."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAME = "name"
PropertyValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in the text of a chunk.

    Attributes:
        surface: the name as it is written there.
        kind: "name", "number", "date", "identifier", or what the model of an extractor calls it.
        start: its first character in the text of the chunk.
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
    """What one chunk says.

    Attributes:
        mentions: the names in it, in the order of the text.
        relations: the facts in it.
        names: names that it gives to others to be found by: the title of its document, the headings above it.

    Example:
        >>> record = ExtractionRecord((Mention("Claude", "name", 0, 6),), (Relation("Claude", "created by", "Anthropic"),), ("Claude",))
        >>> ExtractionRecord.from_json(record.to_json()) == record
        True
    """

    mentions: tuple[Mention, ...] = ()
    relations: tuple[Relation, ...] = ()
    names: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The record as compact JSON; characters outside ASCII are kept."""
        mentions = [[mention.surface, mention.kind, mention.start, mention.end] for mention in self.mentions]
        relations = [[fact.subject, fact.predicate, fact.object, dict(fact.properties)] for fact in self.relations]
        return json.dumps({"mentions": mentions, "relations": relations, "names": self.names}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "ExtractionRecord":
        """The record that `to_json` wrote."""
        stored: Mapping[str, Any] = json.loads(text)
        relations = tuple(Relation(*fact) for fact in stored["relations"])
        return cls(tuple(Mention(*mention) for mention in stored["mentions"]), relations, tuple(stored["names"]))
