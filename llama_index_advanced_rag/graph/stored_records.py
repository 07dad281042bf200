"""The records of a corpus: written beside the nodes, read back with their texts."""

from collections.abc import Iterator, Sequence

from llama_index_advanced_rag.errors import IndexFormatError
from llama_index_advanced_rag.graph.record_codec import decode_record
from llama_index_advanced_rag.graph.records import ExtractionRecord
from llama_index_advanced_rag.hierarchy.units import title_of
from llama_index_advanced_rag.stores.documents.document_rows import DocumentRows
from llama_index_advanced_rag.stores.documents.record_rows import RecordRows
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase

_BATCH = 2000


class StoredRecords:
    """Reads the records of rows; writing them is the business of `rows`, in the transaction that writes the nodes.

    Args:
        database: where they are kept.

    Attributes:
        rows: the table of records, as bytes.
    """

    def __init__(self, database: CorpusDatabase) -> None:
        self._database = database
        self._documents = DocumentRows(database)
        self.rows = RecordRows(database)

    def of_rows(self, rows: Sequence[int]) -> dict[int, ExtractionRecord]:
        """What the nodes of rows say; rows without a record are left out.

        Raises:
            IndexFormatError: a record is damaged; the message names the row.
        """
        return {row: record for row, (_, record) in self.with_texts(rows).items() if record is not None}

    def with_texts(self, rows: Sequence[int]) -> dict[int, tuple[str, ExtractionRecord | None]]:
        """The content of the nodes of rows, and what they say; None where a row has no record, rows that are gone are left out.

        Raises:
            IndexFormatError: a record is damaged; the message names the row.
        """
        with self._database.snapshot():
            bodies, texts = self.rows.of_rows(rows), self.texts_of_rows(rows)
        return {row: (texts[row], _decoded(row, bodies[row], texts[row]) if row in bodies else None) for row in rows if row in texts}

    def texts_of_rows(self, rows: Sequence[int]) -> dict[int, str]:
        """The content of the nodes of rows, without metadata; rows that are gone are left out."""
        return self._documents.texts_of_rows(rows)

    def titles_of_rows(self, rows: Sequence[int]) -> dict[int, str]:
        """What the document of each row is called; rows that are gone are left out."""
        titles: dict[str, str] = {}
        found: dict[int, str] = {}
        for row, (ref_doc_id, metadata) in self._documents.sources_of_rows(rows).items():
            if ref_doc_id not in titles:
                titles[ref_doc_id] = title_of(metadata, ref_doc_id)
            found[row] = titles[ref_doc_id]
        return found

    def damaged(self) -> Iterator[int]:
        """The rows whose record cannot be read, ascending; reads all of them."""
        rows = self.rows.all_rows()
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            with self._database.snapshot():
                bodies, texts = self.rows.of_rows(batch), self.texts_of_rows(batch)
            yield from (row for row in batch if row in bodies and row in texts and not _is_sound(row, bodies[row], texts[row]))


def _decoded(row: int, body: bytes, text: str) -> ExtractionRecord:
    try:
        return decode_record(body, text)
    except IndexFormatError as error:
        raise IndexFormatError(f"The record of row {row} is damaged: {error}") from error


def _is_sound(row: int, body: bytes, text: str) -> bool:
    try:
        _decoded(row, body, text)
    except IndexFormatError:
        return False
    return True
