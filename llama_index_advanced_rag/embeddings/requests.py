"""Answering code that asks for embeddings: written once as a generator, driven by sync or by async calls of the model."""

from collections.abc import Callable, Generator, Sequence

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.embeddings.async_calls import aembed_texts
from llama_index_advanced_rag.errors import ConfigurationError

Vector = npt.NDArray[np.float32]
EmbedRequest = list[str]
EmbedAnswer = list[Vector] | Exception
Steps = Generator[EmbedRequest, EmbedAnswer, None]
Embedding = Generator[EmbedRequest, EmbedAnswer, Exception | None]


def drive(steps: Steps, embed_model: Callable[[], BaseEmbedding], *, show_progress: bool = False) -> None:
    """Run the steps to their end, embedding with the model (resolved at the first text); a progress bar counts the texts embedded."""
    answer: EmbedAnswer | None = None
    while True:
        try:
            texts = next(steps) if answer is None else steps.send(answer)
        except StopIteration:
            return
        answer = embed(embed_model(), texts, show_progress=show_progress)


async def adrive(steps: Steps, embed_model: Callable[[], BaseEmbedding]) -> None:
    """The async twin of `drive`: embedding is awaited, everything else runs in a thread."""
    answer: EmbedAnswer | None = None
    while True:
        texts = await in_thread(_advance, steps, answer)
        if texts is None:
            return
        model = await in_thread(embed_model)
        try:
            answer = _arrays(await aembed_texts(model, texts))
        except Exception as error:  # noqa: BLE001 - the steps decide what a failure means
            answer = error


def _advance(steps: Steps, answer: EmbedAnswer | None) -> EmbedRequest | None:
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration:
        return None


def embed(model: BaseEmbedding, texts: EmbedRequest, *, show_progress: bool = False) -> EmbedAnswer:
    """The vectors of the texts, or the exception of the attempt."""
    try:
        return _arrays(_embed_visibly(model, texts) if show_progress else model.get_text_embedding_batch(texts))
    except Exception as error:  # noqa: BLE001 - the steps decide what a failure means
        return error


def _embed_visibly(model: BaseEmbedding, texts: EmbedRequest) -> list[list[float]]:
    """The same batches one by one; LlamaIndex's own bar would leave a line behind for each request."""
    from tqdm.auto import tqdm

    vectors: list[list[float]] = []
    with tqdm(total=len(texts), desc="Embedding", unit="text", leave=False) as bar:
        for start in range(0, len(texts), model.embed_batch_size):
            batch = texts[start : start + model.embed_batch_size]
            vectors += model.get_text_embedding_batch(batch)
            bar.update(len(batch))
    return vectors


def _arrays(vectors: Sequence[Sequence[float]]) -> list[Vector]:
    with np.errstate(over="ignore"):  # what is too large for float32 is found to be infinite
        return [np.asarray(vector, dtype=np.float32).reshape(-1) for vector in vectors]


def checked(answer: EmbedAnswer, expected: int) -> EmbedAnswer:
    """The answer of an embedding model, or the error that says why it cannot be used."""
    if isinstance(answer, Exception):
        return answer
    if len(answer) != expected:
        return ConfigurationError(f"The embedding model gave {len(answer)} vectors for {expected} texts. It must give one a text.")
    if not all(np.isfinite(vector).all() for vector in answer):
        return ConfigurationError("The embedding model gave a vector with NaN or infinite values. Check the model and the text.")
    if not all(vector.any() for vector in answer):
        return ConfigurationError("The embedding model gave a vector of zeros, which has no direction to compare. Check the model and the text.")
    return answer
