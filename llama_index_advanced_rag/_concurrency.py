"""Threads and tasks: every one of ours starts here, so that the trace and the usage ledger follow it."""

import asyncio
import contextvars
import dis
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

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


class CopyableLock:
    """A re-entrant lock of which every copy and every pickle is a new lock, so that what holds it can be copied and pickled.

    Example:
        >>> import copy
        >>> lock = CopyableLock()
        >>> with lock:
        ...     copy.deepcopy(lock) is lock
        False
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["CopyableLock"], tuple[()]]:
        return (CopyableLock, ())


def run_all(jobs: Sequence[Callable[[], T]], *, timeouts_s: Sequence[float | None] | None = None) -> list[Outcome[T]]:
    """Run callables side by side in threads and wait for all; exceptions are returned, never raised.

    A job that exceeds its timeout is reported as `TimeoutError`; its thread is a daemon and is left to end by itself.
    The caller's context variables are copied into each thread. One job without a timeout runs in the calling thread,
    where only `SystemExit` and `KeyboardInterrupt` are raised.

    Example:
        >>> [outcome.value for outcome in run_all([lambda: 1, lambda: 2])]
        [1, 2]
    """
    limits = list(timeouts_s) if timeouts_s is not None else [None] * len(jobs)
    if len(jobs) == 1 and limits[0] is None:
        return [_run_one(jobs[0])]
    started = time.perf_counter()
    running = [_Running(job) for job in jobs]
    return [one.outcome(started, limit) for one, limit in zip(running, limits, strict=True)]


class _Running(Generic[T]):
    """A job in a thread of its own, in a copy of the caller's context."""

    def __init__(self, job: Callable[[], T]) -> None:
        self._outcomes: list[Outcome[T]] = []
        self._thread = threading.Thread(target=contextvars.copy_context().run, args=(self._run, job), daemon=True)
        self._thread.start()

    def _run(self, job: Callable[[], T]) -> None:
        self._outcomes.append(_run_one(job, caught=BaseException))  # what ends a thread must not look like an answer that is late

    def outcome(self, started: float, limit_s: float | None) -> Outcome[T]:
        """What it came to, waiting for it until `limit_s` seconds after `started`; None waits for ever."""
        self._thread.join(None if limit_s is None else max(0.0, limit_s - (time.perf_counter() - started)))
        if limit_s is None or self._outcomes:
            return self._outcomes[0]
        return Outcome(None, _timeout(limit_s), (time.perf_counter() - started) * 1000)


def _run_one(job: Callable[[], T], *, caught: type[BaseException] = Exception) -> Outcome[T]:
    started = time.perf_counter()
    try:
        value = job()
    except caught as error:
        return Outcome(None, error, (time.perf_counter() - started) * 1000)
    return Outcome(value, None, (time.perf_counter() - started) * 1000)


def _timeout(seconds: float) -> TimeoutError:
    return TimeoutError(f"no answer within {seconds:g} s")


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


async def in_search_thread(function: Callable[..., T], *args: Any) -> T:
    """As `in_thread`, for work that keeps all cores busy by itself (products of matrices): a few at a time, the others wait in line.

    Many such calls at once only take the cores from each other, and finish later than one after the other.
    """
    loop = asyncio.get_running_loop()
    executor = _searchers.get(loop)
    if executor is None:
        executor = _searchers[loop] = ThreadPoolExecutor(_SEARCHES_AT_ONCE, thread_name_prefix="search")
    return await loop.run_in_executor(executor, partial(contextvars.copy_context().run, function, *args))


_SEARCHES_AT_ONCE = max(1, min(4, (os.cpu_count() or 1) // 2))  # on two cores one at a time was fastest, six took twice as long
_searchers: WeakKeyDictionary[asyncio.AbstractEventLoop, ThreadPoolExecutor] = WeakKeyDictionary()  # its threads end with the loop


def one_ahead(items: Iterable[T]) -> Iterator[T]:
    """The items, the next of which is made in another thread while the caller works with one; errors come where the item would.

    Example:
        >>> list(one_ahead(number * number for number in range(3)))
        [0, 1, 4]
    """
    iterator, context = iter(items), contextvars.copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as executor:
        coming = executor.submit(context.run, next, iterator, _END)
        while (item := coming.result()) is not _END:
            coming = executor.submit(context.run, next, iterator, _END)
            yield cast(T, item)


_END = object()


def never_awaits(function: Callable[..., Any]) -> bool:
    """True for an `async def` whose code holds no `await`: called in the event loop, it blocks it until it is done.

    Example:
        >>> async def blocks() -> int:
        ...     return 1
        >>> async def waits() -> int:
        ...     return await blocks()
        >>> never_awaits(blocks), never_awaits(waits)
        (True, False)
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not code.co_flags & inspect.CO_COROUTINE:
        return False
    return not any(instruction.opname in ("GET_AWAITABLE", "GET_AITER") for instruction in dis.get_instructions(code))


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
    return _Running(lambda: asyncio.run(coroutine)).outcome(time.perf_counter(), None).unwrap()


def with_progress(items: Iterable[T], *, total: int, description: str, show_progress: bool) -> Iterable[T]:
    """The items, behind a tqdm bar when asked for (LlamaIndex's own bar, so notebooks draw it as widgets)."""
    if not show_progress:
        return items
    from tqdm.auto import tqdm

    return tqdm(items, total=total, desc=description)
