"""Threads and tasks: every one of ours starts here, so that the trace and the usage ledger follow it."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What one part of a parallel job came to: a value or the exception it raised, and its duration."""

    value: T | None
    error: BaseException | None
    elapsed_ms: float

    @property
    def ok(self) -> bool:
        """True when the part returned."""
        return self.error is None

    def unwrap(self) -> T:
        """The value, or the original exception raised again as it was."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]


def _timeout(seconds: float) -> TimeoutError:
    return TimeoutError(f"no answer within {seconds:g} s")


def _timed_out(timeout_s: float, started: float) -> Outcome[Any]:
    return Outcome(None, _timeout(timeout_s), (time.perf_counter() - started) * 1000)


def run_all(jobs: Sequence[Callable[[], T]], *, timeouts_s: Sequence[float | None] | None = None) -> list[Outcome[T]]:
    """Run callables side by side in threads and wait for all; exceptions are returned, never raised.

    A job that exceeds its timeout is reported as `TimeoutError`; its thread is a daemon and is left to end by itself.
    The caller's context variables are copied into each thread. One job without a timeout runs in the calling thread.

    Example:
        >>> [outcome.value for outcome in run_all([lambda: 1, lambda: 2])]
        [1, 2]
    """
    limits = list(timeouts_s) if timeouts_s is not None else [None] * len(jobs)
    if len(jobs) == 1 and limits[0] is None:
        return [_run_one(jobs[0])]
    started = time.perf_counter()
    slots: list[list[Outcome[T]]] = [[] for _ in jobs]
    threads: list[threading.Thread] = []
    for slot, job in zip(slots, jobs, strict=True):
        thread = threading.Thread(target=_run_into, args=(slot, job, contextvars.copy_context()), daemon=True)
        thread.start()
        threads.append(thread)
    outcomes: list[Outcome[T]] = []
    for thread, slot, limit in zip(threads, slots, limits, strict=True):
        thread.join(None if limit is None else max(0.0, limit - (time.perf_counter() - started)))
        outcomes.append(slot[0] if slot else _timed_out(limit or 0.0, started))
    return outcomes


def _run_into(slot: list[Outcome[T]], job: Callable[[], T], context: contextvars.Context) -> None:
    slot.append(context.run(_run_one, job))


def _run_one(job: Callable[[], T]) -> Outcome[T]:
    started = time.perf_counter()
    try:
        value = job()
    except Exception as error:  # noqa: BLE001 - the outcome carries it to the caller
        return Outcome(None, error, (time.perf_counter() - started) * 1000)
    return Outcome(value, None, (time.perf_counter() - started) * 1000)


async def arun_all(jobs: Sequence[Callable[[], Awaitable[T]]], *, timeouts_s: Sequence[float | None] | None = None) -> list[Outcome[T]]:
    """The async twin of `run_all`: one task a job, each in a copy of the caller's context; a late task is cancelled."""
    limits = list(timeouts_s) if timeouts_s is not None else [None] * len(jobs)

    async def one(job: Callable[[], Awaitable[T]], limit: float | None) -> Outcome[T]:
        started = time.perf_counter()
        try:
            value = await asyncio.wait_for(job(), limit)
        except asyncio.TimeoutError as error:
            own = limit is not None and time.perf_counter() - started >= limit * 0.99
            failure: BaseException = _timeout(limit) if own and limit is not None else error
            return Outcome(None, failure, (time.perf_counter() - started) * 1000)
        except Exception as error:  # noqa: BLE001 - the outcome carries it to the caller
            return Outcome(None, error, (time.perf_counter() - started) * 1000)
        return Outcome(value, None, (time.perf_counter() - started) * 1000)

    return list(await asyncio.gather(*(one(job, limit) for job, limit in zip(jobs, limits, strict=True))))


async def in_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run blocking work in a worker thread with the caller's context; the event loop stays free."""
    return await asyncio.to_thread(function, *args, **kwargs)


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from sync code, also inside a running event loop (then in a thread of its own).

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run_coroutine(answer())
        42
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return run_all([lambda: asyncio.run(coroutine), lambda: None])[0].unwrap()  # type: ignore[return-value]


def with_progress(items: Iterable[T], *, total: int, description: str, show_progress: bool) -> Iterable[T]:
    """The items, behind a tqdm bar when asked for (LlamaIndex's own bar, so notebooks draw it as widgets)."""
    if not show_progress:
        return items
    from tqdm.auto import tqdm

    return tqdm(items, total=total, desc=description)
