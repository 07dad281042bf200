"""Searches that wait for a thread at the same time are made together."""

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from llama_index_advanced_rag._concurrency import Outcome, in_search_thread

T = TypeVar("T")

_Waiting = dict[Hashable, list[tuple[Any, asyncio.Future[Any]]]]

_waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waiting] = WeakKeyDictionary()
_searching: set[asyncio.Task[None]] = set()
_lock = threading.Lock()  # what waits is added in the loop and taken in the thread


async def in_shared_search(key: Hashable, search: Callable[[Sequence[Any]], Sequence[Outcome[T]]], item: Any) -> T:
    """As `in_search_thread`, for searches that can be made together: all items that wait in line under one key are searched in one call.

    Args:
        key: what can be searched together, in this event loop.
        search: called in the thread with the items; gives what each came to, in their order.
        item: what is to be searched.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    with _lock:
        waiting = _waiting.setdefault(loop, {}).setdefault(key, [])
        waiting.append((item, future))
        is_first = len(waiting) == 1
    if is_first:
        task = loop.create_task(_search_waiting(loop, key, search))  # not in this task: it may be cancelled, and the others wait on
        _searching.add(task)
        task.add_done_callback(_searching.discard)
    return await future


async def _search_waiting(loop: asyncio.AbstractEventLoop, key: Hashable, search: Callable[[Sequence[Any]], Sequence[Outcome[Any]]]) -> None:
    taken: list[tuple[Any, asyncio.Future[Any]]] = []

    def take() -> Sequence[Outcome[Any]]:
        with _lock:
            taken.extend(_waiting[loop].pop(key))
        return search([item for item, _ in taken])

    try:
        outcomes = await in_search_thread(take)
    except Exception as error:  # noqa: BLE001 - each of those who wait raises it
        failed: Outcome[Any] = Outcome(None, error, 0.0)
        outcomes = [failed] * len(taken)
    for (_, future), outcome in zip(taken, outcomes, strict=True):
        if not future.done():
            future.set_exception(outcome.error) if outcome.error is not None else future.set_result(outcome.value)
