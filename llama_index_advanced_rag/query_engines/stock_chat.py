"""LlamaIndex's own chat engines over one of our retrievers, for the chat modes that need an LLM."""

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine, SimpleChatEngine
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.llms import LLM

from llama_index_advanced_rag.errors import ConfigurationError

_OVER_A_RETRIEVER: dict[ChatMode, type[ContextChatEngine] | type[CondensePlusContextChatEngine]] = {
    ChatMode.CONTEXT: ContextChatEngine,
    ChatMode.CONDENSE_PLUS_CONTEXT: CondensePlusContextChatEngine,
}


def stock_chat_class(chat_mode: ChatMode) -> type[SimpleChatEngine] | type[ContextChatEngine] | type[CondensePlusContextChatEngine]:
    """LlamaIndex's chat engine of a mode.

    Raises:
        ConfigurationError: LlamaIndex has none any more.
    """
    if chat_mode is ChatMode.SIMPLE:
        return SimpleChatEngine
    if chat_mode not in _OVER_A_RETRIEVER:
        raise ConfigurationError(
            f"LlamaIndex has no chat engine for {chat_mode.value!r} any more. Use ChatMode.BEST, or an agent with this index's query engine as a tool."
        )
    return _OVER_A_RETRIEVER[chat_mode]


def stock_chat_engine(chat_mode: ChatMode, llm: LLM, make_retriever: Callable[[], BaseRetriever], options: Mapping[str, Any]) -> BaseChatEngine:
    """The stock chat engine of a mode.

    Args:
        chat_mode: CONTEXT, CONDENSE_PLUS_CONTEXT or SIMPLE.
        llm: used by the engine for every message.
        make_retriever: called for the modes that retrieve.
        options: passed to the engine's `from_defaults`.

    Raises:
        ConfigurationError: LlamaIndex has no engine for the mode any more.
    """
    if chat_mode in _OVER_A_RETRIEVER:
        return _OVER_A_RETRIEVER[chat_mode].from_defaults(retriever=make_retriever(), llm=llm, **options)
    return stock_chat_class(chat_mode).from_defaults(llm=llm, **options)
