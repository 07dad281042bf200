"""What the LLM cost: calls and tokens, counted for every call this package makes, and a budget that stops it."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from llama_index_advanced_rag.errors import BudgetExceededError

if TYPE_CHECKING:
    from llama_index.core.llms import LLM
    from llama_index.core.prompts import BasePromptTemplate
    from llama_index.core.types import TokenAsyncGen, TokenGen


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What a job would cost, before any call is made."""

    calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass
class UsageLedger:
    """Counts LLM calls and tokens; with limits it refuses the call that would exceed them.

    Tokens are counted with LlamaIndex's global tokenizer on the text sent and received.

    Attributes:
        max_calls: refuse further calls after this many; None = no limit.
        max_tokens: refuse further calls once prompt + completion tokens reach this; None = no limit.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    by_prompt: dict[str, int] = field(default_factory=dict[str, int])
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @property
    def total_tokens(self) -> int:
        """Prompt plus completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def start(self, prompt_name: str, prompt: str) -> None:
        """Count a call that is about to be made.

        Raises:
            BudgetExceededError: a limit is reached; the call must not be made.
        """
        tokens = count_tokens(prompt)
        with self._lock:
            if self.max_calls is not None and self.calls >= self.max_calls:
                raise BudgetExceededError(
                    f"The budget of {self.max_calls} LLM call(s) is used up before prompt {prompt_name!r}. Raise max_calls or accept the answer so far."
                )
            if self.max_tokens is not None and self.total_tokens + tokens > self.max_tokens:
                raise BudgetExceededError(
                    f"The budget of {self.max_tokens} tokens does not hold prompt {prompt_name!r} ({tokens} tokens, {self.total_tokens} used). "
                    "Raise max_tokens or accept the answer so far."
                )
            self.calls += 1
            self.prompt_tokens += tokens
            self.by_prompt[prompt_name] = self.by_prompt.get(prompt_name, 0) + 1

    def finish(self, completion: str) -> None:
        """Count what came back."""
        tokens = count_tokens(completion)
        with self._lock:
            self.completion_tokens += tokens

    def to_dict(self) -> dict[str, Any]:
        """`llm_calls`, `prompt_tokens`, `completion_tokens` and the calls per prompt name."""
        return {"llm_calls": self.calls, "prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens, "by_prompt": dict(self.by_prompt)}


_ledger: ContextVar[UsageLedger | None] = ContextVar("advanced_rag_usage", default=None)


@contextmanager
def capture_usage(ledger: UsageLedger | None = None) -> Generator[UsageLedger, None, None]:
    """Count every LLM call of this package in the block; give a ledger with limits to bound them.

    Example:
        >>> with capture_usage(UsageLedger(max_calls=3)) as usage:
        ...     pass
        >>> usage.calls
        0
    """
    own = UsageLedger() if ledger is None else ledger
    token = _ledger.set(own)
    try:
        yield own
    finally:
        _ledger.reset(token)


def current_ledger() -> UsageLedger | None:
    """The ledger of the running block, or None."""
    return _ledger.get()


def count_tokens(text: str) -> int:
    """Tokens of a text in LlamaIndex's global tokenizer."""
    from llama_index.core.utils import get_tokenizer

    return len(get_tokenizer()(text)) if text else 0


def predict(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> str:
    """One counted LLM call: format the prompt, ask, return the text.

    Raises:
        BudgetExceededError: the current ledger has no room for it.
    """
    ledger = _ledger.get()
    if ledger is not None:
        ledger.start(name, prompt.format(llm=llm, **variables))
    answer = llm.predict(prompt, **variables)
    if ledger is not None:
        ledger.finish(answer)
    return answer


async def apredict(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> str:
    """The async twin of `predict`."""
    ledger = _ledger.get()
    if ledger is not None:
        ledger.start(name, prompt.format(llm=llm, **variables))
    answer = await llm.apredict(prompt, **variables)
    if ledger is not None:
        ledger.finish(answer)
    return answer


def stream(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> "TokenGen":
    """One counted LLM call whose text arrives in pieces; the completion is counted when the stream ends or is dropped."""
    ledger = _ledger.get()
    if ledger is not None:
        ledger.start(name, prompt.format(llm=llm, **variables))
    tokens = llm.stream(prompt, **variables)
    return tokens if ledger is None else _counted(tokens, ledger)


def _counted(tokens: "TokenGen", ledger: UsageLedger) -> "TokenGen":
    parts: list[str] = []
    try:
        for token in tokens:
            parts.append(token)
            yield token
    finally:
        ledger.finish("".join(parts))


async def astream(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> "TokenAsyncGen":
    """The async twin of `stream`."""
    ledger = _ledger.get()
    if ledger is not None:
        ledger.start(name, prompt.format(llm=llm, **variables))
    tokens = await llm.astream(prompt, **variables)
    return tokens if ledger is None else _acounted(tokens, ledger)


async def _acounted(tokens: "TokenAsyncGen", ledger: UsageLedger) -> "TokenAsyncGen":
    parts: list[str] = []
    try:
        async for token in tokens:
            parts.append(token)
            yield token
    finally:
        ledger.finish("".join(parts))
