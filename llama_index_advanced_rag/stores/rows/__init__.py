"""The searchable rows: one numbering of vectors, postings and metadata, committed with the nodes."""
