"""Embedding that leaves the event loop free, also by a model whose async methods do their work in one step.

LlamaIndex's `BaseEmbedding`, and the usual way to write a class on top of it, embed inside the coroutine: a local model
then stops every other task of a server. Such a method is known by its code, which holds no `await`; its model is asked
through the sync methods in a worker thread. Models that await (services, `HuggingFaceEmbedding`) are awaited.
"""

from collections.abc import Sequence

from llama_index.core.base.embeddings.base import BaseEmbedding

from llama_index_advanced_rag._concurrency import in_thread, never_awaits


async def aembed_query(model: BaseEmbedding, texts: Sequence[str]) -> list[float]:
    """The embedding of a query: of its one text, or the mean over its texts."""
    if never_awaits(type(model)._aget_query_embedding):  # noqa: SLF001
        return await in_thread(model.get_agg_embedding_from_queries, list(texts))
    return await model.aget_agg_embedding_from_queries(list(texts))


async def aembed_texts(model: BaseEmbedding, texts: Sequence[str]) -> list[list[float]]:
    """The embeddings of passages, in their order."""
    kind = type(model)
    batched = kind._aget_text_embeddings is not BaseEmbedding._aget_text_embeddings  # noqa: SLF001
    if never_awaits(kind._aget_text_embeddings if batched else kind._aget_text_embedding):  # noqa: SLF001
        return await in_thread(model.get_text_embedding_batch, list(texts))
    return await model.aget_text_embedding_batch(list(texts))
