"""What the anchor retriever is made of."""
