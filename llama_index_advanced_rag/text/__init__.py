"""Text to tokens, sentences and spans: pure functions, no LlamaIndex type."""
