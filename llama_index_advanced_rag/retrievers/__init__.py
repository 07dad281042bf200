"""Finding: one retriever a file."""
