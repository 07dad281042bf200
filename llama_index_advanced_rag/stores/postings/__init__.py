"""Which texts hold a term: segments, their files, and BM25 over them."""
