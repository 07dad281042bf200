"""The tables of a corpus file. A change here is a new format version."""

from collections.abc import Callable

from llama_index_advanced_rag.errors import IndexFormatError

FORMAT_VERSION = 3
APPLICATION_ID = 0x41524147  # "ARAG"

STATEMENTS = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE documents (ref_doc_id TEXT PRIMARY KEY, hash TEXT, text TEXT, metadata TEXT NOT NULL DEFAULT '{}', body TEXT)",
    """CREATE TABLE nodes (
        node_id TEXT PRIMARY KEY, ref_doc_id TEXT REFERENCES documents ON DELETE CASCADE, ordinal INTEGER NOT NULL,
        start_char INTEGER, end_char INTEGER, text TEXT, body TEXT, hash TEXT, embed_hash TEXT, row INTEGER UNIQUE)""",
    "CREATE INDEX nodes_by_document ON nodes (ref_doc_id, ordinal)",
    "CREATE INDEX nodes_by_embedding ON nodes (embed_hash)",
    "CREATE TABLE dead (seq INTEGER PRIMARY KEY AUTOINCREMENT, row INTEGER NOT NULL UNIQUE)",
    "CREATE TABLE blocks (file TEXT, start INTEGER, n_rows INTEGER NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (file, start)) WITHOUT ROWID",
    "CREATE TABLE segments (name TEXT PRIMARY KEY, first INTEGER NOT NULL, size INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE pending (ref_doc_id TEXT NOT NULL, node_id TEXT NOT NULL, PRIMARY KEY (ref_doc_id, node_id)) WITHOUT ROWID",
    "CREATE TABLE records (row INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    # Whoever deletes a node, by whatever way, its row is dead and its record gone from the same transaction on.
    """CREATE TRIGGER node_deleted AFTER DELETE ON nodes WHEN OLD.row IS NOT NULL
        BEGIN INSERT INTO dead (row) VALUES (OLD.row); DELETE FROM records WHERE row = OLD.row; END""",
    """CREATE TRIGGER node_replaced AFTER UPDATE OF row ON nodes WHEN OLD.row IS NOT NULL AND OLD.row IS NOT NEW.row
        BEGIN INSERT INTO dead (row) VALUES (OLD.row); DELETE FROM records WHERE row = OLD.row; END""",
)


def check_format(application: int, version: Callable[[], object], file_name: str) -> None:
    """Refuse a file that is not ours, or of another version.

    Raises:
        IndexFormatError: it is; the message says what to do.
    """
    if application != APPLICATION_ID:
        raise IndexFormatError(
            f"The {file_name!r} in this folder belongs to another application (id {application:#x}, expected {APPLICATION_ID:#x}). Give another folder."
        )
    found = version()
    if found != FORMAT_VERSION:
        raise IndexFormatError(
            f"This index has format version {found!r}, and this release reads version {FORMAT_VERSION}. "
            "Give another folder, or delete this one and build the index again with CorpusIndex.from_documents(...)."
        )
