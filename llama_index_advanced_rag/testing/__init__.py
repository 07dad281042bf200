"""Test doubles, contract checks and markers for this package and for anybody who builds a component on it.

- `ScriptedLLM`, `DeterministicEmbedding`: no network, no model, every call recorded.
- `stock_fault`: marks a test that shows a known fault of a stock LlamaIndex component.
"""

from llama_index_advanced_rag.testing.doubles import DeterministicEmbedding, ScriptedLLM
from llama_index_advanced_rag.testing.stock import stock_fault

__all__ = ["DeterministicEmbedding", "ScriptedLLM", "stock_fault"]
