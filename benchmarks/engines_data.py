"""Synthetic documents, vectors and questions for the engine benchmark: any number of them, the same in every process.

Text follows the laws that decide what an index costs: word frequencies fall as in Zipf-Mandelbrot's law, the vocabulary grows with
the corpus (Heaps), lengths vary, the most frequent words are stop words, words have endings that a stemmer cuts. It says nothing.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, Document, NodeRelationship, QueryBundle, TextNode, TransformComponent

SEED = 20261130
DIMENSION = 384
CHUNK = 10_000
SHORTEST, LONGEST = 40, 120
QUERY_WORDS = 8

_RANKS = 3_000_000
_EXPONENT, _OFFSET = 1.0, 2.7
_TAIL_FROM, _TAIL_EXPONENT = 8_000, 0.7  # rare words fall off faster, so that 100,000 documents hold a quarter of a million words
_NUMBERS = 0.01
_FREQUENT = tuple(
    re.findall(
        r"\w+",
        "the of and to a in is was for as on with by that it at from his he be this are an or which were had not her have their has its but they one been "
        "also who more when there into two will no would she some other can if than only these about between all we such over then may could our so him "
        "after during through out up most where each any do how did while against before under being very both own same should because",
    )
)
_ONSETS = ("b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "j", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v", "w", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_CODAS = ("", "n", "r", "l", "s", "t", "m", "nd", "rk", "x")
_ENDINGS = ("", "s", "ed", "ing", "", "ation", "er", "ly")

Vectors = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]


class Question(NamedTuple):
    """Words of one document, out of order, and a vector near that document's."""

    text: str
    vector: Vectors

    def bundle(self) -> QueryBundle:
        """As a LlamaIndex query whose embedding is known."""
        return QueryBundle(self.text, embedding=self.vector.tolist())


@cache
def _cumulative() -> FloatArray:
    ranks = np.arange(_RANKS)
    weights = (ranks + _OFFSET) ** -_EXPONENT * (1 + ranks / _TAIL_FROM) ** -_TAIL_EXPONENT
    return np.cumsum(weights / weights.sum())


@cache
def _made_word(rank: int) -> str:
    """A pronounceable word for each rank: frequent ones are short; eight ranks share a stem with different endings."""
    lemma, ending = divmod(rank, len(_ENDINGS))
    syllables: list[str] = []
    lemma += len(_ONSETS)
    while lemma:
        lemma, onset = divmod(lemma, len(_ONSETS))
        lemma, vowel = divmod(lemma, len(_VOWELS))
        lemma, coda = divmod(lemma, len(_CODAS))
        syllables.append(_ONSETS[onset] + _VOWELS[vowel] + _CODAS[coda])
    return "".join(syllables) + _ENDINGS[ending]


def _word(rank: int) -> str:
    return _FREQUENT[rank] if rank < len(_FREQUENT) else _made_word(rank - len(_FREQUENT))


def _sentences(words: list[str], ends: Sequence[int]) -> str:
    """The words with a capital after each full stop, which the last word has too."""
    start = 0
    for end in (*ends, len(words)):
        if start < end:
            words[start] = words[start].capitalize()
            words[end - 1] += "."
            start = end
    return " ".join(words)


def _chunk_texts(number: int) -> list[str]:
    random = np.random.default_rng((SEED, number, 1))
    lengths = random.integers(SHORTEST, LONGEST + 1, CHUNK)
    ranks = np.searchsorted(_cumulative(), random.random(int(lengths.sum()))).clip(max=_RANKS - 1)
    known, places = np.unique(ranks, return_inverse=True)
    words = np.array([_word(int(rank)) for rank in known], dtype=object)[places]
    numbers = np.flatnonzero(random.random(len(words)) < _NUMBERS)
    words[numbers] = [f"{value:,}" for value in random.integers(1, 100_000, len(numbers)).tolist()]
    bounds = np.cumsum(lengths)[:-1]
    return [_sentences(part.tolist(), range(17, len(part) - 5, 17)) for part in np.split(words, bounds)]


def texts(size: int) -> Iterator[str]:
    """The texts of documents 0 to size - 1; those of a smaller size are the first ones of a larger."""
    for number in range(-(-size // CHUNK)):
        yield from _chunk_texts(number)[: size - number * CHUNK]


def vector_chunk(number: int) -> Vectors:
    """Unit vectors of documents number * CHUNK and on; shape (CHUNK, 384)."""
    values = np.random.default_rng((SEED, number, 2)).standard_normal((CHUNK, DIMENSION), dtype=np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def vector_file(folder: Path, size: int) -> Path:
    """The vectors of `size` documents as one .npy file, made if it is missing; shape (size, 384), float32."""
    path = folder / f"vectors-{size}.npy"
    if not path.exists():
        partial = path.with_suffix(".partial.npy")
        matrix = np.lib.format.open_memmap(partial, mode="w+", dtype=np.float32, shape=(size, DIMENSION))
        for start in range(0, size, CHUNK):
            matrix[start : start + CHUNK] = vector_chunk(start // CHUNK)[: size - start]
        matrix.flush()
        partial.rename(path)
    return path


def metadata_of(number: int) -> dict[str, Any]:
    """Columns on which one value, or range, holds one document in a hundred, in no order of place."""
    mixed = (number * 7919 + 13) % 10_000
    shelf = mixed % 100
    return {
        "shelf": f"s{shelf:02}",
        "box": f"b{mixed % 1000:03}",
        "weight": mixed,
        "tags": [f"row{shelf % 10}", f"bay{shelf // 10}", f"shelf{shelf:02}"],
        "note": f"kept on shelf {shelf:02} of the long hall",
    }


def document_id(number: int) -> str:
    """The id of one document."""
    return f"doc-{number:07}"


def document(number: int, text: str) -> Document:
    """One document whose metadata are for filters only, not part of what is embedded or searched by words."""
    metadata = metadata_of(number)
    hidden = list(metadata)
    return Document(id_=document_id(number), text=text, metadata=metadata, excluded_embed_metadata_keys=hidden, excluded_llm_metadata_keys=hidden)


def node_of(source: BaseNode) -> TextNode:
    """The one node of a document."""
    hidden = list(source.metadata)
    return TextNode(
        id_=f"{source.node_id}-n",
        text=source.get_content(),
        metadata=source.metadata,
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
        relationships={NodeRelationship.SOURCE: source.as_related_node_info()},
    )


class OneNodeEach(TransformComponent):
    """Makes one node of each document."""

    def __call__(self, nodes: Sequence[BaseNode], **_: Any) -> list[BaseNode]:
        """The nodes, one for each document."""
        return [node_of(source) for source in nodes]


class PreparedEmbedding(BaseEmbedding):
    """Hands out vectors made beforehand, so that no figure holds the cost of a model.

    Vectors are given as arrays, not as lists of Python floats: the lists alone would take as long as cutting the text into words.
    """

    model_name: str = "prepared"
    _rows: dict[int, int] = PrivateAttr(default_factory=dict)
    _vectors: Vectors = PrivateAttr()

    def __init__(self, vectors: Vectors, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._vectors = np.asarray(vectors)  # rows of a memory map would be maps themselves, which are slow to make

    def expect(self, first: int, coming: Sequence[str]) -> None:
        """Texts that will be embedded next; theirs are the vectors from row `first` on, round again at the end."""
        self._rows.clear()
        self._rows.update((hash(text), (first + place) % len(self._vectors)) for place, text in enumerate(coming))

    def get_text_embedding_batch(self, texts: list[str], show_progress: bool = False, **_: Any) -> list[Any]:
        """The prepared vectors; as arrays, and without LlamaIndex's events, which would check each number."""
        return [self._vectors[self._rows[hash(text)]] for text in texts]

    async def aget_text_embedding_batch(self, texts: list[str], show_progress: bool = False, **_: Any) -> list[Any]:
        """The async twin."""
        return self.get_text_embedding_batch(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vectors[self._rows[hash(text)]].tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def questions(size: int, count: int) -> list[Question]:
    """Questions about documents spread over the corpus: eight of their words, stop words among them, and their vector with noise."""
    random = np.random.default_rng((SEED, size, 3))
    chosen = np.sort(random.choice(size, count, replace=False))
    found: list[Question] = []
    for number in sorted({int(item) // CHUNK for item in chosen}):
        chunk, vectors = _chunk_texts(number), vector_chunk(number)
        for place in (int(item) % CHUNK for item in chosen if item // CHUNK == number):
            noisy = vectors[place] + random.standard_normal(DIMENSION).astype(np.float32) / np.float32(np.sqrt(DIMENSION))
            words = random.choice(chunk[place].replace(".", "").lower().split(), QUERY_WORDS, replace=False)
            found.append(Question(" ".join(words.tolist()), (noisy / np.linalg.norm(noisy)).astype(np.float32)))
    return found
