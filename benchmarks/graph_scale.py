"""What the entity graph costs: a question beside one to the hybrid, building, opening and changing, on 6,000 passages and on a million synthetic ones.

Ratios are medians of questions asked in turns in one run. The synthetic index is built in --cache, or in a temporary folder (a million: minutes,
8 GiB of disk, 10 GiB of memory).

usage: python benchmarks/graph_scale.py --data ../shared/data/multihop [--cache FOLDER] [--sizes 1000000] [--fold-sizes 100000] --json OUT
"""

import argparse
import ctypes
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from common import Row, parser, print_table, read_jsonl, write_result
from engines_data import DIMENSION, PreparedEmbedding, document_id, vector_file
from engines_rows import Target, taking_turns, timed
from engines_state import build_ours
from graph_scale_data import naming_questions, naming_texts, synthetic_graph
from llama_index.core.schema import BaseNode, QueryBundle, TextNode
from multihop import build_index, passages

from llama_index_advanced_rag import CorpusIndex, EntityGraphRetriever
from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.extraction import SPANS, read_records, resolve_extractor
from llama_index_advanced_rag.graph.graph_walk import GraphWalk, entity_weights
from llama_index_advanced_rag.graph.name_fold import ChunkText
from llama_index_advanced_rag.retrievers.graph_search import Walked
from llama_index_advanced_rag.retrievers.graph_source import CorpusGraph
from llama_index_advanced_rag.retrievers.graph_views import GraphWalks
from llama_index_advanced_rag.retrievers.walk_options import WalkOptions

T = TypeVar("T")
DATASET = "2wikimultihopqa"
TOP_K = 10
ROUNDS = 2
CHANGES = 5
QUESTIONS = 60
QUERY_AT_6K, QUERY_AT_1M, BUILD_S = Target(5.0, sizes=(0, 10_000)), Target(3.0, sizes=(1_000_000, 1_000_000)), 10.0
MEMORY = "memory of the graph against the vectors"
WITHOUT, WITH = "vectors of questions given", "questions embedded"
COLUMNS = ("chunks", "measure", "ours", "reference", "ratio", "unit", "target", "met", "note")
NOTE = (
    "`ours` is the graph as delivered (its hybrid asked for 100, names linked, the walk, the merge, nodes read), `reference` the hybrid alone for the "
    "same 10 nodes, in turns in one run. Rows of parts are shares of what the whole question to the graph takes in the same turns. The smallest size is "
    "the corpus of 2WikiMultihopQA with its questions and the packaged embedding; other sizes are synthetic: ten names a passage by Zipf's law, the first in "
    "half of all, random vectors, questions that name two entities. `edges` counts those of the walk."
    " A waiting time is the median of changes, less a usual question."
)


def compared(chunks: int, measure: str, ours: float, reference: float | None, target: Target | None, unit: str = "ms", **more: object) -> Row:
    """One row; the ratio is ours / reference."""
    ratio = ours / reference if reference else None
    met = None if target is None or ratio is None else target.met(chunks, ratio)
    row: Row = {"chunks": chunks, "measure": measure, "ours": _short(ours), "reference": None if reference is None else _short(reference)}
    return row | {"ratio": None if ratio is None else _short(ratio), "unit": unit, "target": str(target) if target else None, "met": met} | more


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def anonymous_bytes() -> int:
    """Memory of this process that no file backs, what was freed being given back first."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    lines = (line.split() for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:])
    return next(int(parts[1]) * 1024 for parts in lines if parts[0] == "Anonymous:")


def seconds(call: Callable[[], T]) -> tuple[float, T]:
    """How long a call took, and its result."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def both(index: CorpusIndex, graph: object) -> tuple[Any, EntityGraphRetriever]:
    """The hybrid, and the graph retriever over it as the mode "graph" makes it."""
    hybrid: Any = index.as_retriever("hybrid", similarity_top_k=TOP_K)
    return hybrid, EntityGraphRetriever(hybrid, graph, nodes=index.corpus, similarity_top_k=TOP_K, language="en")


def asked(index: CorpusIndex, graph: object, walk: GraphWalk, asking: dict[str, Sequence[Any]], target: Target) -> list[Row]:
    """The graph against the hybrid, and the parts of its question."""
    hybrid, retriever = both(index, graph)
    rows: list[Row] = []
    for name, questions in asking.items():
        count = ROUNDS * len(questions)
        ours, reference = taking_turns(
            count,
            lambda at, questions=questions: retriever.retrieve(questions[at % len(questions)]),
            lambda at, questions=questions: hybrid.retrieve(questions[at % len(questions)]),
        )
        rows.append(compared(walk.graph.n_chunks, f"question to the graph against the hybrid, {name}", ours, reference, target, edges=walk.walk.edges.nnz // 2))
    return rows + parts(index, retriever, hybrid, walk, asking[WITHOUT])


def parts(index: CorpusIndex, retriever: EntityGraphRetriever, hybrid: Any, walk: GraphWalk, questions: Sequence[QueryBundle]) -> list[Row]:
    """What each part of a question to the graph takes, in turns with the whole."""
    graph, options = walk.graph, WalkOptions()
    child = hybrid.with_top_k(options.prior_top_n)
    found = [[node_id for node_id, _ in child.retrieve_ids(question)] for question in questions]
    places = [[graph.place_of_chunk[node_id] for node_id in ids] for ids in found]
    linked = [graph.link(question.query_str) for question in questions]
    walked = [Walked(walk, _reached(walk, entities, at), options.damping, "") for entities, at in zip(linked, places, strict=True)]
    calls: dict[str, Callable[[int], object]] = {
        "the hybrid, for 100 ids": lambda at: child.retrieve_ids(questions[at]),
        "names of the question": lambda at: graph.link(questions[at].query_str),
        "the walk": lambda at: _reached(walk, linked[at], places[at]),
        "the best of the walk": lambda at: walked[at].best(TOP_K),
        "nodes": lambda at: index.corpus.get_nodes(found[at][:TOP_K]),
        "whole": lambda at: retriever.retrieve(questions[at]),
    }
    *times, whole = taking_turns(ROUNDS * len(questions), *(lambda at, call=call: call(at % len(questions)) for call in calls.values()))
    return [compared(graph.n_chunks, f"part of a question: {name}", value, whole, None) for name, value in zip(calls, times, strict=False)]


def _reached(walk: GraphWalk, entities: Sequence[int], places: Sequence[int]) -> Any:
    return walk.reach(entity_weights(walk.graph, entities), places)


def built(nodes: Sequence[BaseNode], folder: Path, index: CorpusIndex) -> list[Row]:
    """Building with names, their vectors being given; the first question to the graph; one document in and out again."""
    first = QueryBundle(nodes[0].get_content()[:80], embedding=nodes[0].embedding)
    without, plain = seconds(lambda: _index_of(nodes, folder / "plain", index, extractor=None))
    plain.close()
    took, names = seconds(lambda: _index_of(nodes, folder / "names", index, extractor=SPANS))
    retriever, size = names.as_retriever("graph", similarity_top_k=TOP_K), len(nodes)
    folding, _ = seconds(lambda: retriever.retrieve(first))
    rows = [
        compared(size, "index with names and their records against one without", took, without, None, "s"),
        compared(size, "index with names, and the graph folded by the first question", took + folding, None, None, "s")
        | {"target": f"<= {BUILD_S:g} s", "met": took + folding <= BUILD_S, "note": f"of which the first question {folding:.2f} s"},
    ]
    usual = statistics.median(timed(lambda: retriever.retrieve(first)) for _ in range(CHANGES))
    inserting, deleting = list[float](), list[float]()
    for number in range(CHANGES):
        fresh = TextNode(id_=f"fresh-{number}", text=f"Wolkenkuckucksheim {number} is named in no other passage.", embedding=nodes[0].embedding)
        names.insert_nodes([fresh], use_embeddings=True)
        inserting.append(timed(lambda: retriever.retrieve(first)) - usual)
        names.delete_nodes([fresh.node_id])
        deleting.append(timed(lambda: retriever.retrieve(first)) - usual)
    for name, times in (("inserted", inserting), ("deleted", deleting)):
        rows.append(compared(size, f"one passage {name}: the next question waits, against the first fold", statistics.median(times), 1000 * folding, None))
    names.close()
    return rows


def _index_of(nodes: Sequence[BaseNode], folder: Path, model: CorpusIndex, *, extractor: Any) -> CorpusIndex:
    index = CorpusIndex(persist_dir=folder, embed_model=model.embed_model, language="en", extractor=extractor)
    index.insert_nodes(nodes, use_embeddings=True)
    return index


def opened(size: int, cache: Path, question: QueryBundle) -> list[Row]:
    """Opening and the first question, in this process, after its imports."""

    def first(mode: str) -> None:
        index = CorpusIndex.load(cache, read_only=True)
        index.as_retriever(mode, similarity_top_k=TOP_K).retrieve(question)
        index.close()

    graph, hybrid = taking_turns(3, lambda _: first("graph"), lambda _: first("hybrid"), warm_up=1)
    return [compared(size, "open and first question, the graph folded, against the hybrid", graph, hybrid, None)]


def real(folder: Path, cache: Path | None) -> Iterator[list[Row]]:
    """All rows of the corpus of 2WikiMultihopQA."""
    corpus = read_jsonl(folder / "corpus.jsonl")
    texts = [row["question"] for row in read_jsonl(folder / "questions.jsonl")]
    with tempfile.TemporaryDirectory() as temporary:
        kept = (cache or Path(temporary)) / DATASET
        if not (kept / "corpus.sqlite").exists():
            build_index(corpus, kept).close()
        index = CorpusIndex.load(kept, read_only=True)
        bundles = [QueryBundle(text, embedding=index.embed_model.get_query_embedding(text)) for text in texts]
        before = anonymous_bytes()
        source = CorpusGraph(index.corpus)
        walk = GraphWalks(source).walk(None)
        yield [compared(len(corpus), MEMORY, anonymous_bytes() - before, 4 * DIMENSION * len(corpus), None, "bytes")]
        yield asked(index, source, walk, {WITHOUT: bundles, WITH: texts}, QUERY_AT_6K)
        nodes = passages(corpus)
        for node, vector in zip(nodes, index.corpus.vectors_of_nodes([node.node_id for node in nodes]), strict=True):
            node.embedding = np.asarray(vector).tolist()
        yield built(nodes, Path(temporary), index)
        yield opened(len(corpus), kept, bundles[0])
        index.close()


def synthetic(size: int, cache: Path | None) -> Iterator[list[Row]]:
    """The rows of a synthetic index and graph."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = cache or Path(temporary)
        vectors = np.load(vector_file(folder, size), mmap_mode="r")
        kept = folder / f"graph-scale-{size}"
        if not (kept / "corpus.sqlite").exists():
            build_ours(kept, size, vectors)[0].close()
        index = CorpusIndex.load(kept, read_only=True, embed_model=PreparedEmbedding(vectors[:1]))
        before = anonymous_bytes()
        graph = synthetic_graph([f"{document_id(number)}-n" for number in range(size)])
        ready, walk = seconds(lambda: GraphWalk.of(graph))
        bundles = [question.bundle() for question in naming_questions(graph, size, QUESTIONS)]
        memory = compared(size, MEMORY, anonymous_bytes() - before, 4 * DIMENSION * size, None, "bytes")
        yield [memory, compared(size, "making the walk ready, once for a state", ready, None, None, "s")]
        yield asked(index, graph, walk, {WITHOUT: bundles}, QUERY_AT_1M)
        index.close()


def folded(size: int) -> Iterator[list[Row]]:
    """Reading names of synthetic passages, and folding them, as the first question does."""
    texts = naming_texts(size)
    extractor = resolve_extractor(SPANS, language="en")
    if extractor is None:
        raise RuntimeError("There is no extractor.")
    reading, records = seconds(lambda: read_records(extractor, [TextNode(text=text) for text in texts]))
    said = {str(number): ChunkText(text, record) for number, (text, record) in enumerate(zip(texts, records, strict=True))}
    folding, graph = seconds(lambda: EntityGraph.from_records(said))
    ready, _ = seconds(lambda: GraphWalk.of(graph))
    yield [
        compared(size, "reading names of synthetic passages", reading, None, None, "s"),
        compared(size, "folding their records, and the walk", folding + ready, None, None, "s", note=repr(graph)),
    ]


def arguments() -> argparse.Namespace:
    """The options of the command."""
    options = parser(__doc__ or "", "../shared/data/multihop")
    options.add_argument("--sizes", nargs="*", type=int, default=[1_000_000], help="numbers of synthetic passages that are asked")
    options.add_argument("--fold-sizes", nargs="*", type=int, default=[100_000], help="numbers of synthetic passages that are read and folded")
    options.add_argument("--skip-data", action="store_true", help="synthetic passages only")
    return options.parse_args()


def main() -> None:
    options = arguments()
    folder, rows = options.data / DATASET, list[Row]()
    jobs = [] if options.skip_data else [real(folder, options.cache)]
    jobs += [folded(size) for size in options.fold_sizes] + [synthetic(size, options.cache) for size in options.sizes]
    for found in chain.from_iterable(jobs):
        print_table(found, COLUMNS)
        print(flush=True)
        rows += found
        data = {} if options.skip_data else {DATASET: folder / "corpus.jsonl", f"{DATASET}-questions": folder / "questions.jsonl"}
        write_result(options.json, benchmark="graph_scale", data=data, rows=rows, extra={"note": NOTE})


if __name__ == "__main__":
    main()
