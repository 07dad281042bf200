"""Which embedding model is used, what it can hold, and how it is recognised."""
