import asyncio
import contextvars
import copy
import functools
import pickle
import threading
import time

import pytest

from llama_index_advanced_rag._concurrency import CopyableLock, arun_all, in_search_thread, in_thread, never_awaits, run_all, run_coroutine, with_progress

WHO = contextvars.ContextVar("who", default="nobody")


def fail() -> int:
    raise LookupError("no such thing")


def exit_now() -> int:
    raise SystemExit(3)


async def afail() -> int:
    raise LookupError("no such thing")


def test_outcomes_are_in_the_order_of_the_jobs_whoever_is_first():
    done = threading.Event()

    def last() -> str:
        assert done.wait(5)
        return "slow"

    def first() -> str:
        done.set()
        return "fast"

    assert [outcome.unwrap() for outcome in run_all([last, first])] == ["slow", "fast"]


@pytest.mark.parametrize("jobs", [[fail], [fail, lambda: 1]], ids=["alone", "beside another"])
def test_an_exception_is_returned_and_raised_again_as_it_was(jobs: list):
    outcome = run_all(jobs)[0]
    assert not outcome.ok
    assert outcome.value is None
    with pytest.raises(LookupError, match="no such thing") as caught:
        outcome.unwrap()
    assert caught.value is outcome.error


@pytest.mark.parametrize("timeouts", [None, [5.0, 5.0]])
def test_a_job_that_ends_its_thread_is_no_late_answer(timeouts: list[float] | None):
    outcome, other = run_all([exit_now, lambda: 1], timeouts_s=timeouts)
    assert isinstance(outcome.error, SystemExit)
    assert other.value == 1


def test_a_single_job_runs_in_the_calling_thread_and_can_end_it():
    assert run_all([threading.get_ident])[0].value == threading.get_ident()
    with pytest.raises(SystemExit):
        run_all([exit_now])


def test_a_late_job_is_a_timeout_that_names_the_limit_and_the_others_go_on():
    release = threading.Event()
    late, quick = run_all([lambda: release.wait(5), lambda: True], timeouts_s=[0.02, None])
    release.set()
    assert isinstance(late.error, TimeoutError)
    assert str(late.error) == "no answer within 0.02 s"
    assert late.elapsed_ms >= 20
    assert quick.value is True


def test_the_timeouts_run_side_by_side():
    release, started = threading.Event(), time.perf_counter()
    outcomes = run_all([lambda: release.wait(5)] * 10, timeouts_s=[0.1] * 10)
    elapsed = time.perf_counter() - started
    release.set()
    assert not any(outcome.ok for outcome in outcomes)
    assert elapsed < 0.9


def test_threads_see_the_callers_context_and_do_not_change_it():
    def rename() -> str:
        before = WHO.get()
        WHO.set("thread")
        return before

    token = WHO.set("caller")
    try:
        assert [outcome.value for outcome in run_all([rename, rename])] == ["caller", "caller"]
        assert WHO.get() == "caller"
    finally:
        WHO.reset(token)


def test_no_jobs_no_outcomes():
    assert run_all([]) == []


async def test_arun_all_overlaps_and_returns_exceptions():
    both = asyncio.Event()
    count = 0

    async def meet() -> str:
        nonlocal count
        count += 1
        if count == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 5)
        return "met"

    outcomes = await arun_all([meet, afail, meet])
    assert [outcome.value for outcome in outcomes] == ["met", None, "met"]
    assert isinstance(outcomes[1].error, LookupError)


async def test_arun_all_cancels_what_is_late():
    cancelled = asyncio.Event()

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    outcome = (await arun_all([stuck], timeouts_s=[0.02]))[0]
    assert str(outcome.error) == "no answer within 0.02 s"
    assert cancelled.is_set()


async def test_a_timeout_of_the_job_itself_stays_what_it_is():
    async def own() -> None:
        raise TimeoutError("the database did not answer")

    outcome = (await arun_all([own], timeouts_s=[60.0]))[0]
    assert str(outcome.error) == "the database did not answer"


async def test_in_thread_leaves_the_loop_free_and_carries_the_context():
    token = WHO.set("task")
    try:
        reached = threading.Event()
        work = asyncio.ensure_future(in_thread(lambda: (reached.wait(5), WHO.get(), threading.get_ident())))
        await asyncio.sleep(0)
        reached.set()
        waited, who, thread = await work
    finally:
        WHO.reset(token)
    assert (waited, who) == (True, "task")
    assert thread != threading.get_ident()


async def answer() -> str:
    await asyncio.sleep(0)
    return WHO.get()


def test_run_coroutine_without_a_loop():
    assert run_coroutine(answer()) == "nobody"


async def test_run_coroutine_inside_a_loop_sees_the_context_and_raises_what_it_raised():
    token = WHO.set("inside")
    try:
        assert run_coroutine(answer()) == "inside"
    finally:
        WHO.reset(token)
    with pytest.raises(LookupError, match="no such thing"):
        run_coroutine(afail())


def test_never_awaits_reads_the_code_behind_a_decorator():
    async def blocks() -> int:
        return 1

    async def waits() -> int:
        async with asyncio.Lock():
            return 1

    async def iterates(source) -> list:
        return [item async for item in source]

    @functools.wraps(blocks)
    async def decorated() -> int:
        return await blocks()

    assert never_awaits(blocks)
    assert never_awaits(decorated)
    assert not never_awaits(waits)
    assert not never_awaits(iterates)
    assert not never_awaits(lambda: 1)
    assert not never_awaits(len)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
def test_a_copied_lock_is_a_new_free_lock(again):
    lock = CopyableLock()
    with lock, lock:
        other = again(lock)
        taken = []
        thread = threading.Thread(target=lambda: taken.append(other.__enter__()))
        thread.start()
        thread.join(5)
    assert taken == [None]


def test_the_lock_keeps_others_out():
    lock, order = CopyableLock(), []
    with lock:
        thread = threading.Thread(target=lambda: (lock.__enter__(), order.append("other"), lock.__exit__()))
        thread.start()
        order.append("owner")
    thread.join(5)
    assert order == ["owner", "other"]


def test_progress_is_the_items_themselves(capsys: pytest.CaptureFixture[str]):
    items = [1, 2]
    assert with_progress(items, total=2, description="Counting", show_progress=False) is items
    assert list(with_progress(items, total=2, description="Counting", show_progress=True)) == items
    assert "Counting" in capsys.readouterr().err


class TestSearchThread:
    async def test_few_at_a_time_off_the_loop(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr("llama_index_advanced_rag._concurrency._SEARCHES_AT_ONCE", 2)
        running, most, lock, both = 0, 0, threading.Lock(), threading.Barrier(2)

        def search(number: int) -> int:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            both.wait(10)
            with lock:
                running -= 1
            return number

        assert await asyncio.gather(*(in_search_thread(search, number) for number in range(6))) == list(range(6))
        assert most == 2

    async def test_context_and_errors_come_along(self):
        WHO.set("me")
        assert await in_search_thread(WHO.get) == "me"
        assert await in_search_thread(threading.get_ident) != threading.get_ident()
        with pytest.raises(LookupError, match="no such thing"):
            await in_search_thread(fail)

    def test_each_loop_has_its_own(self):
        assert [asyncio.run(in_search_thread(int, text)) for text in ("1", "2")] == [1, 2]
