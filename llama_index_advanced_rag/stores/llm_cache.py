"""The answers of LLM calls in a key-value store."""

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore

LLM_CACHE_COLLECTION = "llm_cache"
# What says who asks or how patiently, and not what the answer is; secrets must not reach the file, not even as a hash.
_NOT_IDENTITY = re.compile(
    r"(^|_)(key|secret|password|credentials?|auth|authorization|(api|access|auth|bearer|hf|session|security)_token|headers?"
    r"|timeout|max_retries|callback_manager|rate_limiter)($|_)|^token$|api_?key",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class LLMCache:
    """Answers by model, prompt name and formatted prompt, in the collection "llm_cache" of a key-value store.

    Used with `llama_index_advanced_rag.usage.use_llm_cache`. Two calls share an answer when the class of the LLM, its
    settings (name, temperature, limits, server and everything else it serialises, without credentials, headers, timeouts and
    retries), its system prompt and wrappers, the name of the prompt and the messages sent are equal. The file holds prompts
    as hashes only, and answers as text.

    Args:
        kvstore: where the answers are kept, such as `SQLiteKVStore("cache.sqlite")`; it may serve other purposes besides.
        collection: its namespace in the store.

    Example:
        >>> from llama_index.core import PromptTemplate
        >>> from llama_index_advanced_rag.stores.sqlite_kvstore import SQLiteKVStore
        >>> from llama_index_advanced_rag.testing import ScriptedLLM
        >>> cache = LLMCache(SQLiteKVStore())
        >>> key = cache.key(ScriptedLLM(), "capital", PromptTemplate("Capital of {country}?"), {"country": "France"})
        >>> cache.put(key, "Paris")
        >>> cache.get(key), len(cache)
        ('Paris', 1)
    """

    def __init__(self, kvstore: BaseKVStore, *, collection: str = LLM_CACHE_COLLECTION) -> None:
        self._kvstore = kvstore
        self._collection = collection

    def key(self, llm: LLM, name: str, prompt: BasePromptTemplate, variables: Mapping[str, Any]) -> str:
        """SHA-256, as 64 hexadecimal digits, of what the answer depends on; the same in every process."""
        messages = [message.model_dump(mode="json") for message in prompt.format_messages(llm=llm, **variables)]
        return hashlib.sha256(_canonical([_identity(llm), name, messages]).encode("utf-8", "surrogatepass")).hexdigest()

    def get(self, key: str) -> str | None:
        """The answer kept under a key, or None."""
        return _completion(self._kvstore.get(key, self._collection))

    async def aget(self, key: str) -> str | None:
        """The async twin of `get`."""
        return _completion(await self._kvstore.aget(key, self._collection))

    def put(self, key: str, completion: str) -> None:
        """Keep an answer; an older one is replaced."""
        self._kvstore.put(key, {"completion": completion}, self._collection)

    async def aput(self, key: str, completion: str) -> None:
        """The async twin of `put`."""
        await self._kvstore.aput(key, {"completion": completion}, self._collection)

    def clear(self) -> int:
        """Forget all answers; their number."""
        with self._kvstore.transaction() if isinstance(self._kvstore, SQLiteKVStore) else nullcontext():
            return sum(self._kvstore.delete(key, self._collection) for key in self._kvstore.get_all(self._collection))

    def __len__(self) -> int:
        return len(self._kvstore.get_all(self._collection))

    def __repr__(self) -> str:
        return f"LLMCache({self._kvstore!r}, collection={self._collection!r})"


def _completion(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else value["completion"]


def _identity(llm: LLM) -> dict[str, Any]:
    """What the answers of an LLM depend on, without credentials."""
    return {
        "class": _name_of(type(llm)),
        "settings": _without_credentials(llm.model_dump()),
        "metadata": llm.metadata.model_dump(mode="json"),
        "system_prompt": llm.system_prompt,
        "wrapper": None if llm.query_wrapper_prompt is None else llm.query_wrapper_prompt.get_template(llm=llm),
        "parser": llm.output_parser,
        "functions": [_name_of(llm.messages_to_prompt), _name_of(llm.completion_to_prompt)],
    }


def _without_credentials(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _without_credentials(part) for name, part in value.items() if not _NOT_IDENTITY.search(str(name))}
    if isinstance(value, (list, tuple)):
        return [_without_credentials(part) for part in value]
    return value


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=_description)


def _description(value: object) -> str:
    """What is not JSON enters by its name or text, without the address in memory, which is another one in each process."""
    if isinstance(value, (set, frozenset)):
        return _canonical(sorted(map(repr, cast("set[object]", value))))
    return _name_of(value) if callable(value) else f"{_name_of(type(value))} {_ADDRESS.sub('', repr(value))}"


def _name_of(value: object) -> str:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
