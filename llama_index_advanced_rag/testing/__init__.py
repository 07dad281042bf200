"""Test doubles, contract checks and markers for this package and for anybody who builds a component on it.

- `ScriptedLLM`, `DeterministicEmbedding`, `RendezvousEmbedding`: no network, no model, every call recorded.
- `check_retriever_contract`, `check_postprocessor_contract`, `check_query_engine_contract`: the contract of a component.
- `stock_fault`: marks a test that shows a known fault of a stock LlamaIndex component.
"""

from llama_index_advanced_rag.testing.clauses import ContractError
from llama_index_advanced_rag.testing.contract import check_postprocessor_contract, check_query_engine_contract, check_retriever_contract
from llama_index_advanced_rag.testing.doubles import DeterministicEmbedding, RendezvousEmbedding, ScriptedLLM
from llama_index_advanced_rag.testing.observing import count_events, forbidden_settings_llm
from llama_index_advanced_rag.testing.stock import stock_fault

__all__ = [
    "ContractError",
    "DeterministicEmbedding",
    "RendezvousEmbedding",
    "ScriptedLLM",
    "check_postprocessor_contract",
    "check_query_engine_contract",
    "check_retriever_contract",
    "count_events",
    "forbidden_settings_llm",
    "stock_fault",
]
