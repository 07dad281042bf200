"""The tables of a corpus file. A change here is a new format version."""

FORMAT_VERSION = 1
APPLICATION_ID = 0x41524147  # "ARAG"

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (ref_doc_id TEXT PRIMARY KEY, hash TEXT, text TEXT, metadata TEXT NOT NULL DEFAULT '{}', body TEXT);
CREATE TABLE nodes (
    node_id TEXT PRIMARY KEY, ref_doc_id TEXT REFERENCES documents ON DELETE CASCADE, ordinal INTEGER NOT NULL,
    start_char INTEGER, end_char INTEGER, text TEXT, body TEXT, hash TEXT, embed_hash TEXT);
CREATE INDEX nodes_by_document ON nodes (ref_doc_id, ordinal);
CREATE INDEX nodes_by_embedding ON nodes (embed_hash);
CREATE TABLE vectors (embed_hash TEXT PRIMARY KEY, vector BLOB NOT NULL);
CREATE TABLE postings (node_id TEXT PRIMARY KEY REFERENCES nodes ON DELETE CASCADE, counts NOT NULL);
"""
