"""What summaries of documents and sections are made of."""
