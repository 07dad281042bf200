"""Answers of an LLM that are kept: a call that was answered before is not made again."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from llama_index_advanced_rag.trace import report

if TYPE_CHECKING:
    from llama_index.core.llms import LLM
    from llama_index.core.prompts import BasePromptTemplate


class CompletionCache(Protocol):
    """Where the answers to LLM calls are kept: `llama_index_advanced_rag.stores.llm_cache.LLMCache`, or one of your own."""

    def key(self, llm: "LLM", name: str, prompt: "BasePromptTemplate", variables: Mapping[str, Any]) -> str:
        """What stands for this call; equal for two calls whose answers are interchangeable."""
        ...

    def get(self, key: str) -> str | None:
        """The answer kept, or None."""
        ...

    def put(self, key: str, completion: str) -> None:
        """Keep an answer."""
        ...

    async def aget(self, key: str) -> str | None:
        """The async twin of `get`."""
        ...

    async def aput(self, key: str, completion: str) -> None:
        """The async twin of `put`."""
        ...


_cache: ContextVar[CompletionCache | None] = ContextVar("advanced_rag_llm_cache", default=None)


@contextmanager
def use_llm_cache(cache: CompletionCache | None) -> Generator[None, None, None]:
    """In the block an LLM call of this package that was answered before is answered from the cache, without a call.

    Ledgers count it as `cached` and budgets do not. A call that failed, a stream that did not end and an empty answer are not
    kept. A cache that fails is noted in the trace and the LLM is asked. None switches an outer cache off.

    Example:
        >>> from llama_index.core import PromptTemplate
        >>> from llama_index_advanced_rag.stores.llm_cache import LLMCache
        >>> from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore
        >>> from llama_index_advanced_rag.testing import ScriptedLLM
        >>> from llama_index_advanced_rag.usage import capture_usage, predict
        >>> llm, prompt = ScriptedLLM(["Paris"]), PromptTemplate("Capital of {country}?")
        >>> with use_llm_cache(LLMCache(SQLiteKVStore())), capture_usage() as usage:
        ...     [predict(llm, "capital", prompt, country="France") for _ in range(3)]
        ['Paris', 'Paris', 'Paris']
        >>> usage.calls, usage.cached
        (1, 2)
    """
    token = _cache.set(cache)
    try:
        yield
    finally:
        _cache.reset(token)


@dataclass(frozen=True, slots=True)
class KeptCompletion:
    """The place of one call in the current cache; without a cache it is empty and stays so."""

    cache: CompletionCache | None
    key: str = ""

    @classmethod
    def of(cls, llm: "LLM", name: str, prompt: "BasePromptTemplate", variables: Mapping[str, Any]) -> "KeptCompletion":
        """The place of this call."""
        cache = _cache.get()
        if cache is not None:
            with _cache_failures():
                return cls(cache, cache.key(llm, name, prompt, variables))
        return cls(None)

    def get(self) -> str | None:
        """The answer kept, or None."""
        answer = None
        if self.cache is not None:
            with _cache_failures():
                answer = self.cache.get(self.key)
        return answer

    async def aget(self) -> str | None:
        """The async twin of `get`."""
        answer = None
        if self.cache is not None:
            with _cache_failures():
                answer = await self.cache.aget(self.key)
        return answer

    def put(self, answer: str) -> None:
        """Keep an answer, unless it is empty."""
        if self.cache is not None and answer:
            with _cache_failures():
                self.cache.put(self.key, answer)

    async def aput(self, answer: str) -> None:
        """The async twin of `put`."""
        if self.cache is not None and answer:
            with _cache_failures():
                await self.cache.aput(self.key, answer)


@contextmanager
def _cache_failures() -> Generator[None, None, None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the LLM can be asked without the cache, and the trace says so
        report("warning", f"The LLM cache failed with {type(error).__name__}: {error}")
