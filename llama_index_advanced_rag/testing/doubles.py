"""Doubles of a language model and an embedding model.

`ScriptedLLM` answers what it is told, records what it was asked and can fail, stall or talk nonsense.
`DeterministicEmbedding` maps equal words to equal directions, needs no model and counts its calls.
"""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseAsyncGen, CompletionResponseGen, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CustomLLM

from llama_index_advanced_rag._concurrency import CopyableLock

Answer = str | BaseException | Callable[[str], str]


class ScriptedLLM(CustomLLM):
    """An LLM whose answers are written beforehand.

    Args:
        answers: used one after the other, the last one for ever; a string is the answer, an exception is raised, a
            callable receives the prompt. Text that is not what the prompt asked for plays a malformed answer.
        delay_s: how long each call takes (a sleep in sync calls, an await in async ones).

    Attributes:
        prompts: every prompt received, in order.

    Example:
        >>> llm = ScriptedLLM(["Paris [1]."])
        >>> llm.complete("Capital of France?").text
        'Paris [1].'
        >>> llm.prompts
        ['Capital of France?']
    """

    delay_s: float = 0.0
    _answers: list[Answer] = PrivateAttr()
    _lock: CopyableLock = PrivateAttr(default_factory=CopyableLock)
    _prompts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, answers: Sequence[Answer] = ("scripted answer",), *, delay_s: float = 0.0, **kwargs: Any) -> None:
        super().__init__(delay_s=delay_s, **kwargs)  # type: ignore[call-arg]
        self._answers = list(answers)

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "ScriptedLLM"

    @property
    def metadata(self) -> LLMMetadata:
        """Context window and name."""
        return LLMMetadata(model_name="scripted", context_window=32_000, num_output=512)

    @property
    def prompts(self) -> list[str]:
        """Every prompt received, in order."""
        return self._prompts

    def _answer(self, prompt: str) -> str:
        with self._lock:
            answer = self._answers[min(len(self._prompts), len(self._answers) - 1)]
            self._prompts.append(prompt)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, str) else answer(prompt)

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The next answer."""
        time.sleep(self.delay_s)
        return CompletionResponse(text=self._answer(prompt))

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The next answer, after an awaited delay."""
        await asyncio.sleep(self.delay_s)
        return CompletionResponse(text=self._answer(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """The next answer word by word."""
        time.sleep(self.delay_s)
        return _stream(self._answer(prompt))

    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        """The next answer word by word."""
        await asyncio.sleep(self.delay_s)
        return _astream(self._answer(prompt))


def _pieces(text: str) -> list[str]:
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:]


def _stream(text: str) -> CompletionResponseGen:
    so_far = ""
    for piece in _pieces(text):
        so_far += piece
        yield CompletionResponse(text=so_far, delta=piece)


async def _astream(text: str) -> CompletionResponseAsyncGen:
    for response in _stream(text):
        yield response


class DeterministicEmbedding(BaseEmbedding):
    """Bag of hashed words: texts that share words are close, equal texts are equal, in every process.

    Args:
        dimensions: length of the unit vectors.
        fail_on: raise `ConnectionError` when a text contains this string.
        delay_s: how long each call takes.

    Attributes:
        texts: every text embedded, in order (queries too).

    Example:
        >>> model = DeterministicEmbedding(dimensions=64)
        >>> one, two = model.get_text_embedding("red fox"), model.get_text_embedding("fox red")
        >>> one == two
        True
    """

    dimensions: int = 64
    fail_on: str | None = None
    delay_s: float = 0.0
    _texts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, dimensions: int = 64, *, fail_on: str | None = None, delay_s: float = 0.0, model_name: str = "deterministic", **kwargs: Any) -> None:
        super().__init__(dimensions=dimensions, fail_on=fail_on, delay_s=delay_s, model_name=model_name, **kwargs)  # type: ignore[call-arg]

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "DeterministicEmbedding"

    @property
    def texts(self) -> list[str]:
        """Every text embedded, in order."""
        return self._texts

    def _vector(self, text: str) -> list[float]:
        self._texts.append(text)
        if self.fail_on is not None and self.fail_on in text:
            raise ConnectionError("the embedding service is down")
        vector = np.zeros(self.dimensions)
        for word in sorted(text.lower().split()):
            digest = hashlib.sha256(word.strip(".,;:!?()").encode()).digest()
            vector += np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(self.dimensions)
        norm = float(np.linalg.norm(vector))
        unit = vector / norm if norm else np.full(self.dimensions, self.dimensions**-0.5)
        return [float(value) for value in unit]

    def _get_text_embedding(self, text: str) -> list[float]:
        time.sleep(self.delay_s)
        return self._vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        time.sleep(self.delay_s)
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        await asyncio.sleep(self.delay_s)
        return self._vector(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        await asyncio.sleep(self.delay_s)
        return self._vector(text)


class RendezvousEmbedding(DeterministicEmbedding):
    """Embeds a query only once `parties` queries are being embedded at the same time: proves that calls overlap.

    Args:
        parties: how many query embeddings must wait together.
        timeout_s: `TimeoutError` when the others do not come.
        dimensions: length of the unit vectors.

    Example:
        >>> async def two() -> int:
        ...     model = RendezvousEmbedding(2)
        ...     return len(await asyncio.gather(model.aget_query_embedding("a"), model.aget_query_embedding("b")))
        >>> asyncio.run(two())
        2
    """

    timeout_s: float = 5.0
    _parties: int = PrivateAttr()
    _arrived: int = PrivateAttr(default=0)
    _condition: threading.Condition = PrivateAttr(default_factory=threading.Condition)

    def __init__(self, parties: int, *, timeout_s: float = 5.0, dimensions: int = 64, **kwargs: Any) -> None:
        super().__init__(dimensions, timeout_s=timeout_s, **kwargs)
        self._parties = parties

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "RendezvousEmbedding"

    def _arrive(self) -> int:
        with self._condition:
            self._arrived += 1
            self._condition.notify_all()
            return -(-self._arrived // self._parties) * self._parties

    def _late(self) -> TimeoutError:
        return TimeoutError(f"{self._arrived} of {self._parties} query embeddings were in flight together within {self.timeout_s:g} s")

    def _get_query_embedding(self, query: str) -> list[float]:
        quorum = self._arrive()
        with self._condition:
            if not self._condition.wait_for(lambda: self._arrived >= quorum, self.timeout_s):
                raise self._late()
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        quorum = self._arrive()
        deadline = time.monotonic() + self.timeout_s
        while self._arrived < quorum:
            if time.monotonic() > deadline:
                raise self._late()
            await asyncio.sleep(0.001)
        return self._vector(query)
