"""Documents and nodes as rows of SQL tables."""
