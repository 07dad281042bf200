"""Transactions of tasks, threads and processes on one file."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from llama_index_advanced_rag import SQLiteKVStore
from llama_index_advanced_rag._concurrency import run_all
from llama_index_advanced_rag.errors import IndexClosedError, StorageError

PAIRS = [(str(number), {"n": number}) for number in range(500)]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "stores é?#%" / "cache.sqlite"
    with SQLiteKVStore(file) as store:
        store.put("language", {"code": "fr"})
    return file


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    with SQLiteKVStore(tmp_path / "kv.sqlite" if request.param == "file" else None) as opened:
        yield opened


def in_other_thread(function):
    (outcome,) = run_all([function], timeouts_s=[60.0])
    return outcome.unwrap()


def fail_after(store, *keys):
    with store.transaction():
        for key in keys:
            store.put(key, {"lost": "x" * 1000})
        raise KeyError


def delete_and_fail(store, key):
    with store.transaction():
        with store.transaction():
            store.delete(key)
        raise KeyError


def close_inside(store):
    with store.transaction():
        store.put("language", {"code": "en"})
        store.close()


def test_a_transaction_is_all_or_nothing_and_nests(store):
    with pytest.raises(KeyError):
        fail_after(store, "a")
    with store.transaction():
        store.put("a", {"n": 1})
        with pytest.raises(KeyError):
            fail_after(store, "a", "b")
        with store.transaction(), store.transaction():
            store.put("c", {"n": 3})
        assert store.get("c") == {"n": 3}
    assert store.to_dict() == {"data": {"a": {"n": 1}, "c": {"n": 3}}}
    with pytest.raises(KeyError):
        delete_and_fail(store, "a")
    assert store.get("a") == {"n": 1}


def test_other_threads_read_beside_a_transaction(path):
    with SQLiteKVStore(path) as store:
        seen = []
        with store.transaction():
            store.put("language", {"code": "en"})
            thread = threading.Thread(target=lambda: seen.append(store.get("language")))
            thread.start()
            thread.join()
            assert in_other_thread(lambda: store.get("language")) == {"code": "en"}  # it was started inside
        assert seen == [{"code": "fr"}]
        assert store.get("language") == {"code": "en"}


def test_writers_of_many_threads_take_turns(store):
    store.put("count", {"n": 0})

    def work():
        for _ in range(25):
            with store.transaction():
                store.put("count", {"n": store.get("count")["n"] + 1})

    assert all(outcome.ok for outcome in run_all([work] * 4))
    assert store.get("count") == {"n": 100}


async def test_one_writer_lock_serves_concurrent_batches(store):
    batches = [[(f"{batch}-{key}", {"n": batch}) for key in range(40)] for batch in range(20)]
    await asyncio.gather(*(store.aput_all(batch, f"c{index % 3}") for index, batch in enumerate(batches)))
    assert sum(len(pairs) for pairs in store.to_dict().values()) == 800


async def test_the_loop_is_free_while_a_write_waits(path):
    with SQLiteKVStore(path) as store:
        inside, done = threading.Event(), threading.Event()

        def hold():
            with store.transaction():
                store.put("held", {})
                inside.set()
                assert done.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        inside.wait()
        waiting = asyncio.create_task(store.aput_all(PAIRS))
        assert await store.aget("language") == {"code": "fr"}  # the loop runs, and reads do not wait
        assert await store.aget("held") is None
        assert not waiting.done()
        done.set()
        await waiting
        thread.join()
        assert len(store.get_all()) == 502


async def test_async_calls_in_a_transaction_belong_to_it_while_many_others_wait(store):
    begin, begun = asyncio.Event(), asyncio.Event()

    async def other(number):
        await begin.wait()
        begun.set()
        await store.aput(f"other {number}", {})

    async def work():
        with store.transaction():
            begin.set()
            await begun.wait()
            await asyncio.gather(store.aput("a", {}), store.aput_all(PAIRS), asyncio.to_thread(store.put, "b", {}))
            assert len(await store.aget_all()) == 502
            raise KeyError

    others = [asyncio.create_task(other(number)) for number in range(100)]
    with pytest.raises(KeyError):
        await asyncio.wait_for(work(), 60)
    await asyncio.gather(*others)
    assert set(store.get_all()) == {f"other {number}" for number in range(100)}


async def test_a_transaction_of_another_task_of_the_thread_is_an_error_and_not_a_deadlock(store):
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hold():
        with store.transaction():
            store.put("mine", {})
            begun.set()
            await ended.wait()

    task = asyncio.create_task(hold())
    await begun.wait()
    with pytest.raises(StorageError, match=r"Another task of this thread.*Use the async methods"):
        store.put("yours", {})
    ended.set()
    await task
    assert store.to_dict() == {"data": {"mine": {}}}


async def test_interleaved_inner_transactions_are_taken_back_whole(store):
    async def inner(entered: asyncio.Event, end: asyncio.Event):
        with store.transaction():
            store.put("inner", {})
            entered.set()
            await end.wait()

    async def outer():
        with store.transaction():
            events = [(asyncio.Event(), asyncio.Event()) for _ in range(2)]
            tasks = [asyncio.create_task(inner(*pair)) for pair in events]
            for entered, _ in events:
                await entered.wait()
            for (_, end), task in zip(events, tasks, strict=True):
                end.set()
                await asyncio.wait([task])
            assert [type(task.exception()) for task in tasks] == [StorageError, StorageError]

    with pytest.raises(StorageError, match="another order than that of a stack"):
        await outer()
    assert store.to_dict() == {}
    store.put("a", {})


def test_what_a_transaction_has_started_is_free_when_it_ended(store):
    with store.transaction():
        context = contextvars.copy_context()
    context.run(store.put, "a", {"n": 1})
    with pytest.raises(KeyError):
        context.run(fail_after, store, "a")
    assert store.get("a") == {"n": 1}


READER = """
import sys
from llama_index_advanced_rag import SQLiteKVStore
store = SQLiteKVStore({path!r}, read_only=True)
for line in sys.stdin:
    print(store.get("language"), flush=True)
"""
WRITER = """
import sys
from llama_index_advanced_rag import SQLiteKVStore
store = SQLiteKVStore({path!r})
with store.transaction():
    store.put("language", {{"code": "de"}})
    print("inside", flush=True)
    sys.stdin.readline()
print("committed", flush=True)
sys.stdin.readline()
"""


def start(script, path):
    return subprocess.Popen([sys.executable, "-c", script.format(path=str(path))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(process, line="\n"):
    process.stdin.write(line)
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_a_reader_in_another_process_answers_while_a_writer_writes(path):
    with start(READER, path) as process, SQLiteKVStore(path) as store:
        assert say(process) == "{'code': 'fr'}"
        with store.transaction():
            store.put("language", {"code": "en"})
            assert say(process) == "{'code': 'fr'}"
        assert say(process) == "{'code': 'en'}"
        process.stdin.close()


def test_a_second_writer_in_another_process_gets_a_clear_error(path):
    with start(WRITER, path) as process, SQLiteKVStore(path) as store:
        assert process.stdout.readline() == "inside\n"
        assert store.get("language") == {"code": "fr"}
        assert store._file._number("PRAGMA busy_timeout") == 10_000
        store._file._on_writer("PRAGMA busy_timeout = 50")
        with pytest.raises(StorageError, match=r"Another process is writing to this key-value store.*within 10 s"):
            store.put("a", {})
        assert say(process) == "committed"
        assert store.get("language") == {"code": "de"}
        store.put("a", {})
        process.stdin.close()


KILLED = """
import os, signal
from llama_index_advanced_rag import SQLiteKVStore
store = SQLiteKVStore({path!r})
store._file._writer.execute("PRAGMA cache_size = 10")  # so that pages go to the disk before the commit
left = {after}
def kill():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
store._file._writer.set_progress_handler(kill, 1000)
store.put_all([(str(number), {{"new": "x" * 1000}}) for number in range(500)])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(("after", "code"), [(1, -9), (9, -9), (10**9, 0)])
def test_killed_in_the_middle_of_put_all(path, after, code):
    with SQLiteKVStore(path) as store:
        store.put_all(PAIRS)
    assert subprocess.run([sys.executable, "-c", KILLED.format(path=str(path), after=after)], check=False).returncode == code
    with SQLiteKVStore(path) as store:
        values = store.get_all()
        assert len(values) == 501
        assert {"new" in values[key] for key, _ in PAIRS} == {code == 0}
        assert store._file.read("PRAGMA integrity_check") == [("ok",)]


def test_closing_in_a_transaction_takes_it_back(path):
    store = SQLiteKVStore(path)
    with pytest.raises(IndexClosedError):
        close_inside(store)
    with SQLiteKVStore(path) as again:
        assert again.get("language") == {"code": "fr"}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_fork_must_open_its_own(path):
    script = f"""
import os, sys
from llama_index_advanced_rag import SQLiteKVStore
store = SQLiteKVStore({str(path)!r})
child = os.fork()
if not child:
    try:
        store.get("language")
    except OSError as error:
        os._exit(7 if "Open it in each process" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), store.get("language"))
"""
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "7 {'code': 'fr'}"
