"""What a change of an index did, document by document."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document that was left as it was, and why."""

    ref_doc_id: str
    reason: str


@dataclass
class UpdateReport:
    """What a change did, by document id in the order given.

    Attributes:
        added: documents that were not in the index.
        updated: documents replaced by another version.
        deleted: documents removed.
        unchanged: documents whose stored version is the same.
        skipped: documents left as they were, with the reason.
        warnings: sentences about what was done otherwise than the user may expect.
        embedded: number of texts sent to the embedding model.
        reused: number of nodes whose vector was already known.
    """

    added: list[str] = field(default_factory=list[str])
    updated: list[str] = field(default_factory=list[str])
    deleted: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    warnings: list[str] = field(default_factory=list[str])
    embedded: int = 0
    reused: int = 0

    def __str__(self) -> str:
        counts = [(len(self.added), "added"), (len(self.updated), "updated"), (len(self.deleted), "deleted"), (len(self.unchanged), "unchanged")]
        counts.append((len(self.skipped), "skipped"))
        head = ", ".join(f"{number} {name}" for number, name in counts if number) or "nothing to do"
        lines = [f"{head}; {self.embedded} {'text' if self.embedded == 1 else 'texts'} embedded, {self.reused} reused"]
        lines += [f"  skipped {item.ref_doc_id}: {item.reason}" for item in self.skipped]
        return "\n".join(lines + [f"  warning: {warning}" for warning in self.warnings])

    def anything_done(self) -> bool:
        """True when at least one document is in, out or known to be current."""
        return bool(self.added or self.updated or self.deleted or self.unchanged)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dictionary."""
        skipped = [{"ref_doc_id": item.ref_doc_id, "reason": item.reason} for item in self.skipped]
        lists = {name: list(getattr(self, name)) for name in ("added", "updated", "deleted", "unchanged", "warnings")}
        return {**lists, "skipped": skipped, "embedded": self.embedded, "reused": self.reused}
