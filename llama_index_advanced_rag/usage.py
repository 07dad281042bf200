"""What the LLM cost: calls and tokens, counted for every call this package makes, a budget that stops it, and answers kept."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from llama_index_advanced_rag.completion_cache import KeptCompletion
from llama_index_advanced_rag.completion_cache import use_llm_cache as use_llm_cache
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
        calls: calls made.
        prompt_tokens: tokens sent.
        completion_tokens: tokens received.
        by_prompt: calls per prompt name.
        cached: answers that came from the cache of `use_llm_cache`; they are no calls and cost no tokens.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    by_prompt: dict[str, int] = field(default_factory=dict[str, int])
    cached: int = 0
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

    def take_back(self, prompt_name: str, prompt: str) -> None:
        """Undo `start`, for a call that another ledger has refused."""
        tokens = count_tokens(prompt)
        with self._lock:
            self.calls -= 1
            self.prompt_tokens -= tokens
            self.by_prompt[prompt_name] -= 1
            if not self.by_prompt[prompt_name]:
                del self.by_prompt[prompt_name]

    def finish(self, completion: str) -> None:
        """Count what came back."""
        tokens = count_tokens(completion)
        with self._lock:
            self.completion_tokens += tokens

    def count_cached(self) -> None:
        """Count an answer that came from a cache."""
        with self._lock:
            self.cached += 1

    def to_dict(self) -> dict[str, Any]:
        """`llm_calls`, `prompt_tokens`, `completion_tokens`, the calls per prompt name and the `cached` answers."""
        return {
            "llm_calls": self.calls,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "by_prompt": dict(self.by_prompt),
            "cached": self.cached,
        }


_ledgers: ContextVar[tuple[UsageLedger, ...]] = ContextVar("advanced_rag_usage", default=())


@contextmanager
def capture_usage(ledger: UsageLedger | None = None) -> Generator[UsageLedger, None, None]:
    """Count every LLM call of this package in the block; give a ledger with limits to bound them.

    Blocks nest: a call counts in each of them, and the limits of each hold.

    Example:
        >>> with capture_usage(UsageLedger(max_calls=3)) as usage:
        ...     with capture_usage() as part:
        ...         pass
        >>> usage.calls, part.calls
        (0, 0)
    """
    own = UsageLedger() if ledger is None else ledger
    around = _ledgers.get()
    token = _ledgers.set(around if any(other is own for other in around) else (*around, own))
    try:
        yield own
    finally:
        _ledgers.reset(token)


def current_ledger() -> UsageLedger | None:
    """The ledger of the innermost running block, or None."""
    ledgers = _ledgers.get()
    return ledgers[-1] if ledgers else None


def count_tokens(text: str) -> int:
    """Tokens of a text in LlamaIndex's global tokenizer."""
    from llama_index.core.utils import get_tokenizer

    return len(get_tokenizer()(text)) if text else 0


def predict(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> str:
    """One counted LLM call: format the prompt, ask, return the text; no call when the cache holds it.

    Raises:
        BudgetExceededError: a ledger has no room for it.
    """
    kept = KeptCompletion.of(llm, name, prompt, variables)
    answer = _hit(kept.get())
    if answer is None:
        ledgers = _started(llm, name, prompt, variables)
        answer = llm.predict(prompt, **variables)
        _finish(ledgers, answer)
        kept.put(answer)
    return answer


async def apredict(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> str:
    """The async twin of `predict`."""
    kept = KeptCompletion.of(llm, name, prompt, variables)
    answer = _hit(await kept.aget())
    if answer is None:
        ledgers = _started(llm, name, prompt, variables)
        answer = await llm.apredict(prompt, **variables)
        _finish(ledgers, answer)
        await kept.aput(answer)
    return answer


def stream(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> "TokenGen":
    """One counted LLM call whose text arrives in pieces; the completion is counted when the stream ends or is dropped.

    What the cache holds comes in one piece; the text of a stream that ended by itself is kept.
    """
    kept = KeptCompletion.of(llm, name, prompt, variables)
    answer = _hit(kept.get())
    if answer is not None:
        return _whole(answer)
    ledgers = _started(llm, name, prompt, variables)
    tokens = llm.stream(prompt, **variables)
    return _followed(tokens, ledgers, kept) if ledgers or kept.cache is not None else tokens


async def astream(llm: "LLM", name: str, prompt: "BasePromptTemplate", **variables: Any) -> "TokenAsyncGen":
    """The async twin of `stream`."""
    kept = KeptCompletion.of(llm, name, prompt, variables)
    answer = _hit(await kept.aget())
    if answer is not None:
        return _awhole(answer)
    ledgers = _started(llm, name, prompt, variables)
    tokens = await llm.astream(prompt, **variables)
    return _afollowed(tokens, ledgers, kept) if ledgers or kept.cache is not None else tokens


def _hit(answer: str | None) -> str | None:
    if answer is not None:
        for ledger in _ledgers.get():
            ledger.count_cached()
    return answer


def _whole(answer: str) -> "TokenGen":
    yield answer


async def _awhole(answer: str) -> "TokenAsyncGen":
    yield answer


def _started(llm: "LLM", name: str, prompt: "BasePromptTemplate", variables: Mapping[str, Any]) -> tuple[UsageLedger, ...]:
    """The ledgers that count the call; when one refuses it, none does."""
    ledgers = _ledgers.get()
    text = prompt.format(llm=llm, **variables) if ledgers else ""
    counted: list[UsageLedger] = []
    try:
        for ledger in ledgers:
            ledger.start(name, text)
            counted.append(ledger)
    except BudgetExceededError:
        for ledger in counted:
            ledger.take_back(name, text)
        raise
    return ledgers


def _finish(ledgers: Sequence[UsageLedger], completion: str) -> None:
    for ledger in ledgers:
        ledger.finish(completion)


def _followed(tokens: "TokenGen", ledgers: Sequence[UsageLedger], kept: KeptCompletion) -> "TokenGen":
    parts: list[str] = []
    try:
        for token in tokens:
            parts.append(token)
            yield token
        kept.put("".join(parts))
    finally:
        _finish(ledgers, "".join(parts))


async def _afollowed(tokens: "TokenAsyncGen", ledgers: Sequence[UsageLedger], kept: KeptCompletion) -> "TokenAsyncGen":
    parts: list[str] = []
    try:
        async for token in tokens:
            parts.append(token)
            yield token
        await kept.aput("".join(parts))
    finally:
        _finish(ledgers, "".join(parts))
