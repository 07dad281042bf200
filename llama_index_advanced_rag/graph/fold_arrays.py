"""Folded records as arrays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag.graph.name_fold import FoldedChunk
from llama_index_advanced_rag.graph.records import Relation

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_NAMESAKES = 32
Ids = NDArray[np.int64]
Edge = tuple[int, int, float]


class GraphFacts(NamedTuple):
    """Relations as arrays: of each its subject, its object, the chunk that says it, and the words."""

    subjects: Ids
    objects: Ids
    chunks: Ids
    relations: Sequence[Relation]


class FoldArrays(NamedTuple):
    """What `EntityGraph` is made of; see there."""

    keys: list[str]
    mentions: "csr_array"
    own: "csr_array"
    titles: Ids
    facts: GraphFacts
    aliases: "csr_array"
    namesakes: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Meanings:
    """Which entities a name stands for."""

    places: Mapping[str, int]
    namesakes: Mapping[str, tuple[int, ...]]

    def of(self, key: str) -> tuple[int, ...]:
        return self.namesakes[key] if key in self.namesakes else (self.places[key],)


def fold_arrays(chunks: Sequence[FoldedChunk], aliases: Mapping[tuple[str, str], float]) -> FoldArrays:
    """The arrays of chunks in this order; entities are sorted by key, so that the history of the fold leaves no trace."""
    meant = _titles_meant(chunks)
    used = {key for chunk in chunks for key in (*chunk.found, *(key for key, _ in chunk.own), *chunk.unwritten)}
    keys = sorted({meaning for key in used for meaning in meant.get(key, (key,))})
    places = {key: place for place, key in enumerate(keys)}
    namesakes = {plain: tuple(places[key] for key in titles) for plain, titles in meant.items()}
    meanings, shape = _Meanings(places, namesakes), (len(chunks), len(keys))
    mentions = sparse((edge for place, chunk in enumerate(chunks) for edge in _mentions(place, chunk, meanings)), shape)
    own = sparse(((place, places[key], 1.0) for place, chunk in enumerate(chunks) for key, _ in chunk.own), shape)
    known = ((places[one], places[other], weight) for (one, other), weight in aliases.items() if one in places and other in places)
    both = (edge for one, other, weight in known for edge in ((one, other, weight), (other, one, weight)))
    titles = np.array([places[chunk.own[0][0]] if chunk.own else -1 for chunk in chunks], dtype=np.int64)
    return FoldArrays(keys, mentions, own, titles, _facts(chunks, meanings), sparse(both, (len(keys), len(keys))), namesakes)


def sparse(edges: Iterable[Edge], shape: tuple[int, int]) -> "csr_array":
    """A matrix of (row, column, weight); of equal places the weights are added."""
    from scipy.sparse import csr_array

    listed = np.array([*edges], dtype=np.float64).reshape(-1, 3)
    rows, columns = listed[:, 0].astype(np.int64), listed[:, 1].astype(np.int64)
    return csr_array((listed[:, 2], (rows, columns)), shape=shape)


def _titles_meant(chunks: Sequence[FoldedChunk]) -> dict[str, tuple[str, ...]]:
    """The titles that a name without parentheses stands for ("Jurassic Park": the book and the film); a title stands for itself too.

    A name that more than 32 titles have ("Invoice (4711)") tells of none of them, and is an entity of its own: were it shared among all, each
    passage that says it would be bound to every one.
    """
    meant: dict[str, set[str]] = {}
    for key, plain in {own for chunk in chunks for own in chunk.own}:
        for name in (plain or key, key):
            meant.setdefault(name, set()).add(key)
    return {plain: tuple(sorted(keys)) for plain, keys in meant.items() if keys != {plain} and len(keys) <= MOST_NAMESAKES}


def _mentions(place: int, chunk: FoldedChunk, meanings: _Meanings) -> Iterable[Edge]:
    counts = {**dict.fromkeys(chunk.unwritten, 1), **chunk.found}
    for key, count in counts.items():
        meant = meanings.of(key)
        for entity in meant:
            yield place, entity, count / len(meant)
    for key, _ in chunk.own:
        yield place, meanings.places[key], 1.0


def _facts(chunks: Sequence[FoldedChunk], meanings: _Meanings) -> GraphFacts:
    facts = [(place, fact) for place, chunk in enumerate(chunks) for fact in chunk.facts]
    ends = [(meanings.of(fact.subject)[0], meanings.of(fact.object)[0], place) for place, fact in facts]
    columns = np.array(ends, dtype=np.int64).reshape(-1, 3)
    return GraphFacts(columns[:, 0], columns[:, 1], columns[:, 2], [fact.relation for _, fact in facts])
