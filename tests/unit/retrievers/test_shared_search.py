"""Searches that wait in line are made together; what one comes to is its own."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from llama_index_advanced_rag._concurrency import Outcome
from llama_index_advanced_rag.retrievers.shared_search import in_shared_search


class Gate:
    """A search that waits until it is opened, and remembers what it was asked together."""

    def __init__(self) -> None:
        self.open, self.begun, self.calls = threading.Event(), threading.Event(), list[list[int]]()

    def search(self, items: Sequence[int]) -> list[Outcome[int]]:
        self.calls.append(list(items))
        self.begun.set()
        self.open.wait(10)
        return [Outcome(None, LookupError("odd"), 0.0) if item % 2 else Outcome(item * 10, None, 0.0) for item in items]

    async def hold(self, item: int) -> "asyncio.Task[int]":
        """A first search under way, so that others wait."""
        task = asyncio.create_task(in_shared_search("key", self.search, item))
        await asyncio.to_thread(self.begun.wait, 10)
        return task


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("llama_index_advanced_rag._concurrency._SEARCHES_AT_ONCE", 1)


async def test_who_waits_is_searched_together():
    gate = Gate()
    first = await gate.hold(0)
    others = [asyncio.create_task(in_shared_search("key", gate.search, item)) for item in (2, 3, 4)]
    await asyncio.sleep(0)
    gate.open.set()
    assert await first == 0
    found = await asyncio.gather(*others, return_exceptions=True)
    assert (found[0], str(found[1]), found[2]) == (20, "odd", 40)
    assert gate.calls == [[0], [2, 3, 4]]


async def test_other_keys_are_searched_apart():
    gate = Gate()
    gate.open.set()
    assert await asyncio.gather(*(in_shared_search(key, gate.search, 2) for key in ("a", "b"))) == [20, 20]
    assert gate.calls == [[2], [2]]


async def test_one_who_gives_up_leaves_the_others_their_answer():
    gate = Gate()
    first = await gate.hold(0)
    leaving, staying = (asyncio.create_task(in_shared_search("key", gate.search, item)) for item in (2, 4))
    await asyncio.sleep(0)
    leaving.cancel()
    gate.open.set()
    assert (await first, await staying) == (0, 40)
    assert leaving.cancelled()


async def test_an_error_of_the_search_is_raised_by_all():
    def broken(items: Sequence[int]) -> list[Outcome[int]]:
        raise ValueError("no search")

    found = await asyncio.gather(*(in_shared_search("key", broken, item) for item in range(3)), return_exceptions=True)
    assert [str(error) for error in found] == ["no search"] * 3


def test_each_loop_has_its_own_line():
    gate = Gate()
    gate.open.set()
    assert [asyncio.run(in_shared_search("key", gate.search, item)) for item in (2, 4)] == [20, 40]
