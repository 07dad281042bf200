"""Measures of the stored state: building, changing and opening an index, and the memory of a process that only asks it."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from common import Row
from engines_data import CHUNK, DIMENSION, OneNodeEach, PreparedEmbedding, Question, Vectors, document, node_of, texts
from engines_measures import TOP_K
from engines_reference import open_stock
from engines_rows import compared, timed
from llama_index.core.schema import Document

from llama_index_advanced_rag import CorpusIndex
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

CHANGES = 10
OPENINGS = 3
MEMORY_QUERIES = 100


def documents(size: int, first: int = 0) -> Iterator[list[Document]]:
    """Documents `first` to size - 1, ten thousand at a time."""
    made = islice(((number, text) for number, text in enumerate(texts(size))), first, None)
    while chunk := [document(number, text) for number, text in islice(made, CHUNK)]:
        yield chunk


def build_ours(folder: Path, size: int, vectors: Vectors, *, ready_nodes: bool = False) -> tuple[CorpusIndex, float]:
    """The index in a new folder, and the milliseconds it took, not counting the making of documents or nodes.

    Names and facts are not read (`extractor=None`): what it is compared with does not read them either.
    """
    model, started = PreparedEmbedding(vectors), time.perf_counter()
    index = CorpusIndex(persist_dir=folder, embed_model=model, language="en", transformations=[OneNodeEach()], extractor=None)
    elapsed, done = (time.perf_counter() - started) * 1000, 0
    for chunk in documents(size):
        model.expect(done, [item.get_content() for item in chunk])
        done += len(chunk)
        if ready_nodes:
            nodes = [node_of(item) for item in chunk]
            for node, vector in zip(nodes, vectors[done - len(chunk) : done], strict=True):
                node.embedding = vector.tolist()
            elapsed += timed(lambda nodes=nodes: index.insert_nodes(nodes, use_embeddings=True))
        else:
            elapsed += timed(lambda chunk=chunk: index.apply(added=chunk))
            if len(index.last_report.added) != len(chunk):
                raise RuntimeError(f"{len(index.last_report.added)} of {len(chunk)} documents were added: {index.last_report.skipped[:3]}.")
    return index, elapsed


def build_words(size: int) -> float:
    """Milliseconds that the words alone take: what bm25s does, without nodes, vectors or a disk."""
    store, elapsed, done = PostingsStore(TextAnalyzer("en")), 0.0, 0
    for chunk in documents(size):
        held = [item.get_content() for item in chunk]
        names = [item.id_ for item in chunk]
        elapsed += timed(lambda names=names, held=held: store.add(names, held))
        done += len(chunk)
    if len(store) != done:
        raise RuntimeError(f"{len(store)} of {done} texts are held.")
    return elapsed


def changed(index: CorpusIndex, model: PreparedEmbedding, size: int, rebuild_ms: float) -> list[Row]:
    """New documents in one by one, and out again one by one."""
    fresh = next(documents(size + CHANGES, size))
    model.expect(0, [item.get_content() for item in fresh])
    inserted = statistics.median(timed(lambda item=item: index.insert(item)) for item in fresh)
    deleted = statistics.median(timed(lambda item=item: index.delete_ref_doc(item.id_)) for item in fresh)
    return [
        compared(size, "insert one document against a rebuild", inserted, rebuild_ms, "ms"),
        compared(size, "delete one document against a rebuild", deleted, rebuild_ms, "ms"),
    ]


def save_questions(path: Path, questions: Sequence[Question]) -> None:
    """Questions for another process."""
    np.savez(path, texts=np.array([item.text for item in questions]), vectors=np.stack([item.vector for item in questions]))


def _read_questions(path: Path) -> list[Question]:
    stored = np.load(path, allow_pickle=False)
    return [Question(str(text), vector) for text, vector in zip(stored["texts"], stored["vectors"], strict=True)]


def _in_new_process(*arguments: str | Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} failed in its own process: {done.stderr[-1000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def opened(size: int, ours: Path, stock: Path, questions: Path, *, stock_openings: int) -> list[Row]:
    """Open from disk and answer one question, each time in a new process, in turns; the best of all. Imports are not counted."""
    mine, theirs = list[float](), list[float]()
    for number in range(OPENINGS):
        mine.append(_in_new_process("open", ours, questions)["ms"])
        if stock.exists() and number < stock_openings:
            theirs.append(_in_new_process("open-stock", stock, questions)["ms"])
    notes = {0: "stock is not built at this size", 1: "stock opened once only: it takes minutes"}
    more = {"note": notes[len(theirs)]} if len(theirs) in notes else {}
    return [compared(size, "open and first query against stock", min(mine), min(theirs) if theirs else None, "ms", **more)]


def remembered(size: int, ours: Path, questions: Path) -> list[Row]:
    """Anonymous memory of a new process that opens the index and asks it, against the bytes of the float32 vectors."""
    memory = _in_new_process("memory", ours, questions)
    name = f"private memory after {MEMORY_QUERIES} queries against the vectors"
    note = f"{_mb(memory['anonymous_before_opening'])} of it before opening; {_mb(memory['file_backed'])} backed by files besides"
    return [compared(size, name, memory["anonymous"], 4 * DIMENSION * size, "bytes", note=note)]


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f} MB"


def _open_ours(folder: Path, questions: Sequence[Question]) -> float:
    started = time.perf_counter()
    index = CorpusIndex.load(folder, embed_model=PreparedEmbedding(questions[0].vector[None]))
    found = index.as_retriever("hybrid", similarity_top_k=TOP_K).retrieve(questions[0].bundle())
    elapsed = time.perf_counter() - started
    index.close()
    if len(found) != TOP_K:
        raise RuntimeError(f"Ours found {len(found)} nodes, not {TOP_K}.")
    return elapsed


def _pages() -> dict[str, int]:
    """Bytes of this process by kind, from the kernel's own account."""
    lines = (line.split() for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:])
    return {parts[0].rstrip(":"): int(parts[1]) * 1024 for parts in lines}


def _memory(folder: Path, questions: Sequence[Question]) -> dict[str, int]:
    before = _pages()
    index = CorpusIndex.load(folder, embed_model=PreparedEmbedding(questions[0].vector[None]))
    retriever = index.as_retriever("hybrid", similarity_top_k=TOP_K)
    for number in range(MEMORY_QUERIES):
        retriever.retrieve(questions[number % len(questions)].bundle())
    after = _pages()
    index.close()
    return {
        "anonymous": after["Anonymous"],
        "private_dirty": after["Private_Dirty"],
        "file_backed": after["Rss"] - after["Anonymous"],
        "anonymous_before_opening": before["Anonymous"],
    }


def main() -> None:
    """What runs in a process of its own; the result is one line of JSON."""
    what, folder, questions = sys.argv[1], Path(sys.argv[2]), _read_questions(Path(sys.argv[3]))
    if what == "memory":
        result: dict[str, Any] = _memory(folder, questions)
    else:
        seconds = _open_ours(folder, questions) if what == "open" else open_stock(folder, questions[0], top_k=TOP_K)
        result = {"ms": seconds * 1000}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
