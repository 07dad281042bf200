"""Who writes and embeds the summaries of a tree: the answers to what its growth asks for, sync and async."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import QueryBundle

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.embeddings.async_calls import aembed_query, aembed_texts
from llama_index_advanced_rag.embeddings.requests import checked, embed
from llama_index_advanced_rag.hierarchy.summaries import Summarizer, Summary
from llama_index_advanced_rag.hierarchy.summary.growth import Growth, Request, ToSummarize, Vector
from llama_index_advanced_rag.hierarchy.summary.node import SummaryNode, UnitText

_Steps = Generator[Request, Any, list[SummaryNode]]
_Answer = list[Summary] | list[Vector]


@dataclass(frozen=True)
class SummaryModels:
    """A summarizer and an embedding model."""

    summarizer: Summarizer
    embed_model: BaseEmbedding

    def grow(self, growth: Growth, units: Sequence[UnitText], *, show_progress: bool = False) -> list[SummaryNode]:
        """All nodes of the grown tree.

        Raises:
            ConfigurationError: two units have one id, or the model gave no usable vectors.
            Exception: what the embedding model raised.
        """
        steps, answer = growth.steps(units), None
        while True:
            request = _advance(steps, answer)
            if isinstance(request, list):
                return request
            answer = self._answer(request, show_progress)

    async def agrow(self, growth: Growth, units: Sequence[UnitText], *, show_progress: bool = False) -> list[SummaryNode]:
        """The async twin of `grow`: models are awaited, everything else runs in a thread."""
        steps, answer = growth.steps(units), None
        while True:
            request = await in_thread(_advance, steps, answer)
            if isinstance(request, list):
                return request
            answer = await self._aanswer(request, show_progress)

    def query_vector(self, bundle: QueryBundle) -> list[float]:
        """The vector of a question: the one it brings, else the model's."""
        return bundle.embedding or self.embed_model.get_agg_embedding_from_queries(bundle.embedding_strs)

    async def aquery_vector(self, bundle: QueryBundle) -> list[float]:
        """The async twin of `query_vector`."""
        return bundle.embedding or await aembed_query(self.embed_model, bundle.embedding_strs)

    def _answer(self, request: Request, show_progress: bool) -> _Answer:
        if isinstance(request, ToSummarize):
            return self.summarizer.write(request.items, show_progress=show_progress)
        return _usable(embed(self.embed_model, request.texts, show_progress=show_progress), len(request.texts))

    async def _aanswer(self, request: Request, show_progress: bool) -> _Answer:
        if isinstance(request, ToSummarize):
            return await self.summarizer.awrite(request.items, show_progress=show_progress)
        with np.errstate(over="ignore"):  # what is too large for float32 is found to be infinite
            vectors = [np.asarray(vector, dtype=np.float32) for vector in await aembed_texts(self.embed_model, request.texts)]
        return _usable(vectors, len(request.texts))


def _advance(steps: _Steps, answer: object) -> Request | list[SummaryNode]:
    """The next request, or the finished nodes."""
    try:
        return steps.send(answer)
    except StopIteration as done:
        return done.value


def _usable(answer: list[Vector] | Exception, expected: int) -> list[Vector]:
    vectors = checked(answer, expected)
    if isinstance(vectors, Exception):
        raise vectors
    return vectors
