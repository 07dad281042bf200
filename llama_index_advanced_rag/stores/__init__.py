"""Where state lives: database, documents, postings, vectors, and the filters that restrict them."""
