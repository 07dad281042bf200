"""Exact vector search, and vector stores of others."""
