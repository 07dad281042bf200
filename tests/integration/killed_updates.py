"""Runs a long update again and again, each time in a process that is killed at another instant, and looks at what is left.

Started by `test_crash_safety.py` in a process of its own: everything is imported once, and each victim is forked from it.
An instant is the n-th of all the points where something reaches the disk: half of an array is written, a file is synced or
deleted, a statement runs, a transaction begins or is committed. Some of the victims live on for a random moment after that
point, and die inside of SQLite or of a write. Prints one JSON document: what was found after each kill.
"""

import json
import mmap
import os
import random
import shutil
import signal
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import wraps
from pathlib import Path
from typing import Any

from llama_index.core.schema import Document, TextNode

from llama_index_advanced_rag import CorpusIndex, indexing
from llama_index_advanced_rag.stores import segment_files
from llama_index_advanced_rag.stores.rows import row_compaction
from llama_index_advanced_rag.stores.rows.row_generation import ARRAY_FILE, KINDS, file_name
from llama_index_advanced_rag.stores.sqlite.database import CorpusDatabase
from llama_index_advanced_rag.testing import DeterministicEmbedding

SEED = 20
MODES = ("lexical", "dense", "hybrid")
model = DeterministicEmbedding(dimensions=16)
shared = mmap.mmap(-1, 16)  # points passed and transactions committed, by the victim, for whoever comes after it


def counted() -> tuple[int, int]:
    """Points passed and commits that have returned."""
    return struct.unpack("<qq", shared[:16])


def count(points: int, commits: int) -> None:
    shared[:16] = struct.pack("<qq", points, commits)


def document(number: int, version: int) -> Document:
    return Document(text=f"word{number} is here. It has version{version} now. word{number} ends the third sentence.", id_=f"d{number}")


def load(folder: Path) -> CorpusIndex:
    return CorpusIndex.load(folder, embed_model=model)


def build(folder: Path) -> None:
    documents = [document(number, 0) for number in range(10)]
    CorpusIndex.from_documents(documents, persist_dir=folder, embed_model=model, chunk_size=12, chunk_overlap=2, overwrite=True).close()


def update(folder: Path) -> None:
    """All that changes an index, in small batches."""
    with load(folder) as index:
        index.apply(updated=[document(number, 1) for number in range(8)], deleted=["d9"])
        index.insert_nodes([TextNode(text=f"word{100 + number} stands alone", id_=f"n{number}") for number in range(3)])
        index.compact()
        index.apply(added=[document(number, 2) for number in (20, 21)], updated=[document(number, 2) for number in range(0, 8, 2)])
        index.delete_nodes(["n1"])
        for number in (1, 3):
            index.update_ref_doc(document(number, 3))
        index.delete_ref_doc("d20")
        index.compact()


def watch(at: Callable[[int], None], committed: Callable[[], None]) -> None:
    """Call `at` with the number of each point as it is reached, and `committed` after each COMMIT."""

    def point() -> None:
        points, commits = counted()
        count(points + 1, commits)
        at(points + 1)

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            point()
            result = function(*args, **kwargs)
            point()
            return result

        return watched

    write_at, run = segment_files._write_at, CorpusDatabase._run

    def write_in_halves(path: Path, data: Any, offset: int) -> None:
        write_at(path, data[: len(data) // 2], offset)
        point()
        write_at(path, data, offset)

    def run_watched(self: CorpusDatabase, sql: str, parameters: Any = ()) -> Any:
        if sql.startswith(("SELECT", "PRAGMA data_version")):
            return run(self, sql, parameters)
        point()
        result = run(self, sql, parameters)
        if sql == "COMMIT":
            points, commits = counted()
            count(points, commits + 1)
            committed()
        point()
        return result

    os.fsync = around(os.fsync)
    Path.unlink = around(Path.unlink)
    CorpusDatabase.execute = around(CorpusDatabase.execute)
    CorpusDatabase.executemany = around(CorpusDatabase.executemany)
    segment_files.npy.write_array = around(segment_files.npy.write_array)
    segment_files._write_at, CorpusDatabase._run = write_in_halves, run_watched


def fingerprint(folder: Path) -> str:
    """What is committed, read with plain SQLite."""
    if not (folder / "corpus.sqlite").exists():
        return ""
    with closing(sqlite3.connect(folder / "corpus.sqlite")) as connection:
        try:
            documents = connection.execute("SELECT ref_doc_id, hash FROM documents ORDER BY ref_doc_id").fetchall()
            nodes = "SELECT node_id, ref_doc_id, nodes.row IS NULL, hex(records.body) FROM nodes LEFT JOIN records USING (row) ORDER BY node_id"
            return json.dumps([documents, connection.execute(nodes).fetchall(), connection.execute("SELECT count(*) FROM records").fetchone()])
        except sqlite3.OperationalError:
            return ""  # no tables yet


def in_child(work: Callable[[], None]) -> bool:
    """Run in a forked process; True when it was killed."""
    count(0, 0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def rehearse(work: Callable[[], None], folder: Path) -> tuple[int, list[str]]:
    """Number of points of the whole update, and what is committed after each number of commits."""
    states = [fingerprint(folder)]
    reader, writer = os.pipe()

    def whole() -> None:
        with os.fdopen(writer, "w") as out:
            watch(lambda _point: None, lambda: print(fingerprint(folder), file=out, flush=True))
            work()

    collected = threading.Thread(target=lambda: states.extend(line.rstrip("\n") for line in os.fdopen(reader)))
    collected.start()
    in_child(whole)
    os.close(writer)
    collected.join()
    return counted()[0], states


def kill_at(instant: int, delay_s: float, work: Callable[[], None]) -> tuple[bool, int]:
    """Kill the update at a point, or a moment after it; whether it came to that, and how many commits had returned."""

    def die() -> None:
        time.sleep(delay_s)
        os.kill(os.getpid(), signal.SIGKILL)

    def at(point: int) -> None:
        if point == instant:
            threading.Thread(target=die).start() if delay_s else die()

    def victim() -> None:
        watch(at, lambda: None)
        work()

    return in_child(victim), counted()[1]


def unanswered(index: CorpusIndex) -> list[str]:
    """Documents and nodes that some way of searching does not find by their own words."""
    named = [(node.get_content().split()[0], node) for node in index.corpus.documents.docs.values()]
    named = [(word, node) for word, node in named if word.startswith("word")]
    found = sorted({info.ref_doc_id for info in index.list_documents()} - {str(node.ref_doc_id) for _, node in named})
    for word, node in named:
        for mode in MODES:
            hits = {hit.node.node_id: hit.node for hit in index.as_retriever(mode, similarity_top_k=200).retrieve(word)}
            found += [] if hits.get(node.node_id) == node else [f"{node.node_id} ({mode})"]
    return found


def leftovers(index: CorpusIndex, folder: Path) -> list[str]:
    """Array files that nothing refers to."""
    used = {file.name for file in index.corpus.rows.table.segments()} | {file_name(kind, index.corpus.rows.manifest.generation) for kind in KINDS}
    return sorted({path.name for path in folder.iterdir() if ARRAY_FILE.fullmatch(path.name)} - used)


def look(folder: Path) -> dict[str, Any]:
    """What is left, before and after one more update."""
    with load(folder) as index:
        problems, silent = index.verify().problems, unanswered(index)
        report = index.apply(updated=[document(0, 9), document(30, 9)])
        word = index.as_retriever("lexical", similarity_top_k=1).retrieve("word30")[0].node.ref_doc_id
        after = {"skipped": len(report.skipped), "found": word, "leftovers": leftovers(index, folder), "problems": index.verify().problems}
    return {"problems": problems, "unanswered": silent, "after": after}


def main(place: Path, n_instants: int, what: str) -> None:
    indexing.BATCH_NODES = indexing.MOST_BATCH_NODES = 4  # a commit for each one or two documents
    row_compaction._SMALL, row_compaction._UNORDERED = 12, 10  # compactions and orders of few rows
    base, folder = place / "base", place / "index"
    if what == "update":
        build(base)

    def start() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if base.exists():
            shutil.copytree(base, folder)

    def work() -> None:
        (update if what == "update" else build)(folder)

    start()
    n_points, states = rehearse(work, folder)
    choice = random.Random(SEED)
    found: list[dict[str, Any]] = []
    for number in range(n_instants):
        instant = 1 + int((number + choice.random()) * (n_points - 1) / n_instants)  # all over the run
        delay_s = choice.choice([0.0, 0.0, choice.random() * 0.004])
        start()
        killed, commits = kill_at(instant, delay_s, work)
        left = fingerprint(folder)
        if what == "build":
            build(folder)
        known = left in states[commits : commits + 2]  # all that was committed, and the next one if it was being committed
        found.append({"instant": instant, "delay_s": delay_s, "killed": killed, "commits": commits, "known": known, **look(folder)})
    sys.stdout.write(json.dumps({"points": n_points, "states": len(states), "kills": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
