"""What reads the names and facts in chunks: ours, a model, or somebody's own."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from llama_index_advanced_rag.graph.records import ExtractionRecord


@runtime_checkable
class Extractor(Protocol):
    """Reads what chunks say.

    The same text must give the same record each time: an index that was updated answers like one that was built at once.
    """

    @property
    def identity(self) -> str:
        """What the records depend on (rules, language, model), as a short name; saved with the index, which refuses another one's records."""
        ...

    def extract(self, texts: Sequence[str]) -> list[ExtractionRecord]:
        """One record for each text, with spans in its characters; `names` is filled in by the caller.

        Args:
            texts: contents of chunks, without metadata.
        """
        ...
