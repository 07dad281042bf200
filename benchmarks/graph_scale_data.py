"""A synthetic entity graph of any size, the same in every process: names by Zipf's law, a title for every few passages, names that mean the same."""

from collections.abc import Sequence

import numpy as np
from engines_data import SEED, Question, questions
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from llama_index_advanced_rag.graph.entity_graph import EntityGraph
from llama_index_advanced_rag.graph.fold_arrays import GraphFacts
from llama_index_advanced_rag.text.gazetteer import Gazetteer

MENTIONS = 10
CHUNKS_OF_A_TITLE = 5
ENTITIES = 0.3
ALIASES = 0.1
_LETTERS = "bcdfghjklmnpqrstvwxz"


def synthetic_graph(chunk_ids: Sequence[str], *, entities: float = ENTITIES) -> EntityGraph:
    """Ten names in each passage, one of them the title of its document; the most frequent name stands in half of all passages.

    Args:
        chunk_ids: the passages.
        entities: how many names there are, as a share of the number of passages.
    """
    rng = np.random.default_rng((SEED, len(chunk_ids), 4))
    n_chunks, n_entities = len(chunk_ids), max(10, int(entities * len(chunk_ids)))
    keys = sorted(_key(number) for number in range(n_entities))
    popularity = np.cumsum(1.0 / np.arange(1, n_entities + 1))
    drawn = np.searchsorted(popularity / popularity[-1], rng.random(n_chunks * (MENTIONS - 1))).clip(max=n_entities - 1)
    order = rng.permutation(n_entities)
    titles = order[::-1][np.arange(n_chunks) // CHUNKS_OF_A_TITLE % n_entities]
    chunks = np.arange(n_chunks, dtype=np.int32)
    mentions = _sparse(np.concatenate([np.repeat(chunks, MENTIONS - 1), chunks]), np.concatenate([order[drawn], titles]), (n_chunks, n_entities))
    own = _sparse(chunks, titles, (n_chunks, n_entities))
    pairs = rng.integers(0, n_entities, (int(ALIASES * n_entities), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    alike = _sparse(pairs[:, 0], pairs[:, 1], (n_entities, n_entities))
    none = np.zeros(0, dtype=np.int64)
    facts, aliases = GraphFacts(none, none, none, []), csr_array(((alike + alike.T) > 0).astype(np.float64) * 0.9)
    return EntityGraph(list(chunk_ids), keys, [key.title() for key in keys], mentions, own, titles.astype(np.int64), facts, aliases, Gazetteer(keys), {})


def naming_questions(graph: EntityGraph, size: int, count: int) -> list[Question]:
    """Questions of the engine benchmark, each of which also names two of the entities of a passage drawn at random."""
    rng = np.random.default_rng((SEED, size, 5))
    asked: list[Question] = []
    for question in questions(size, count):
        chunk = int(rng.integers(0, graph.n_chunks))
        named = graph.mentions.indices[graph.mentions.indptr[chunk] : graph.mentions.indptr[chunk + 1]]
        names = " and ".join(graph.names[entity] for entity in rng.choice(named, 2).tolist())
        asked.append(Question(f"{question.text} {names}", question.vector))
    return asked


def naming_texts(size: int) -> list[str]:
    """Short passages in which names stand as in `synthetic_graph`, for reading and folding."""
    rng = np.random.default_rng((SEED, size, 6))
    n_entities = int(ENTITIES * size)
    popularity = np.cumsum(1.0 / np.arange(1, n_entities + 1))
    drawn = np.searchsorted(popularity / popularity[-1], rng.random((size, MENTIONS))).clip(max=n_entities - 1)
    return [" ".join(f"They met {_key(number).title()} there." for number in row) for row in drawn.tolist()]


def _key(number: int) -> str:
    """Two words for each number; different numbers have different ones."""
    first, second = divmod(number, 1000)
    return f"{_word(first)} {_word(second)}"


def _word(number: int) -> str:
    syllables = ""
    while number or not syllables:
        number, place = divmod(number, len(_LETTERS))
        syllables += _LETTERS[place] + "ao"[place % 2]
    return syllables + "n"


def _sparse(rows: NDArray[np.integer], columns: NDArray[np.integer], shape: tuple[int, int]) -> csr_array:
    """Ones at these places, added up where they are equal."""
    return coo_array((np.ones(len(rows)), (rows.astype(np.int32), columns.astype(np.int32))), shape=shape).tocsr()
