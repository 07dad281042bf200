"""Writes the answer of a turn: by an LLM that cites numbered sentences, or by quoting the best of them."""

from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.answering.budget import fit_context
from llama_index_advanced_rag.answering.context import NumberedSentence, inert, number_sentences
from llama_index_advanced_rag.answering.extractive import extract_sentences, rank_sentences, sentences_to_compare
from llama_index_advanced_rag.answering.quoting import compose_answer
from llama_index_advanced_rag.answering.turn import Turn
from llama_index_advanced_rag.answering.wording import broken_off, empty_question, no_answer
from llama_index_advanced_rag.prompts import GROUNDED_ANSWER
from llama_index_advanced_rag.usage import apredict, astream, count_tokens, predict, stream

_LEAST_CONTEXT_TOKENS = 200
_SPARE_TOKENS = 64
_DEFAULT_OUTPUT_TOKENS = 256


@dataclass(frozen=True)
class AnswerWriter:
    """How answers are written; holds no state of a question.

    Attributes:
        llm: one call an answer; None = sentences are quoted, no call.
        embed_model: helps to choose sentences to quote; None = by their words.
        prompt: template with `context_str` and `query_str`.
        language: ISO code, "auto" or "none".
        max_context_tokens: most tokens of numbered sentences sent to the LLM.
        max_sentences: most sentences quoted.
    """

    llm: LLM | None
    embed_model: BaseEmbedding | None
    prompt: BasePromptTemplate
    language: str = "auto"
    max_context_tokens: int = 3000
    max_sentences: int = 3
    prompt_name: ClassVar[str] = GROUNDED_ANSWER

    def write(self, turn: Turn) -> str:
        """The whole answer; the turn is closed."""
        self._read(turn)
        reason = ""
        if self.llm is not None and self._asks(turn):
            try:
                turn.write(predict(self.llm, self.prompt_name, self.prompt, **self._variables(turn)))
            except Exception as error:  # noqa: BLE001 - what was retrieved still answers; the turn says what happened
                reason = _failure(error)
        turn.end_text()
        if not turn.text:
            self._finish_with(turn, self._quote(turn, reason, self._similarities(turn)))
        turn.close()
        return turn.text

    async def awrite(self, turn: Turn) -> str:
        """The async twin of `write`."""
        await in_thread(self._read, turn)
        reason = ""
        if self.llm is not None and self._asks(turn):
            try:
                turn.write(await apredict(self.llm, self.prompt_name, self.prompt, **self._variables(turn)))
            except Exception as error:  # noqa: BLE001 - as in write
                reason = _failure(error)
        turn.end_text()
        if not turn.text:
            self._finish_with(turn, await in_thread(self._quote, turn, reason, await self._asimilarities(turn)))
        await in_thread(turn.close)
        return turn.text

    def stream(self, turn: Turn) -> Generator[str, None, None]:
        """The answer in pieces; the LLM is asked now, the turn is closed when the pieces end or are dropped."""
        self._read(turn)
        tokens: Iterable[str] = ()
        reason = ""
        if self.llm is not None and self._asks(turn):
            try:
                tokens = stream(self.llm, self.prompt_name, self.prompt, **self._variables(turn))
            except Exception as error:  # noqa: BLE001 - as in write
                reason = _failure(error)
        return self._pieces(turn, tokens, reason)

    async def astream(self, turn: Turn) -> AsyncGenerator[str, None]:
        """The async twin of `stream`: await it, then iterate."""
        await in_thread(self._read, turn)
        tokens: AsyncIterable[str] | None = None
        reason = ""
        if self.llm is not None and self._asks(turn):
            try:
                tokens = await astream(self.llm, self.prompt_name, self.prompt, **self._variables(turn))
            except Exception as error:  # noqa: BLE001 - as in write
                reason = _failure(error)
        return self._apieces(turn, tokens, reason)

    def _pieces(self, turn: Turn, tokens: Iterable[str], reason: str) -> Generator[str, None, None]:
        try:
            try:
                for token in tokens:
                    yield from _shown(turn.write(token))
            except Exception as error:  # noqa: BLE001 - as in write
                reason = _failure(error)
            yield from _shown(turn.end_text())
            if reason or not turn.text:
                for piece in self._quote(turn, reason, self._similarities(turn)):
                    yield from _shown(turn.write(piece))
                yield from _shown(turn.end_text())
        finally:
            if isinstance(tokens, Generator):
                tokens.close()
            turn.close()

    async def _apieces(self, turn: Turn, tokens: AsyncIterable[str] | None, reason: str) -> AsyncGenerator[str, None]:
        try:
            try:
                if tokens is not None:
                    async for token in tokens:
                        for piece in _shown(turn.write(token)):
                            yield piece
            except Exception as error:  # noqa: BLE001 - as in write
                reason = _failure(error)
            for piece in _shown(turn.end_text()):
                yield piece
            if reason or not turn.text:
                for quoted in await in_thread(self._quote, turn, reason, await self._asimilarities(turn)):
                    for piece in _shown(turn.write(quoted)):
                        yield piece
                for piece in _shown(turn.end_text()):
                    yield piece
        finally:
            if isinstance(tokens, AsyncGenerator):
                await tokens.aclose()
            turn.close()

    def _asks(self, turn: Turn) -> bool:
        """Whether there is something to ask an LLM."""
        return bool(turn.context.sentences)

    def _variables(self, turn: Turn) -> dict[str, str]:
        return turn.prompt_variables

    def _read(self, turn: Turn) -> None:
        turn.read(number_sentences(turn.nodes, language=self.language))
        if self.llm is not None and turn.context.sentences:
            ranked = rank_sentences(turn.question, turn.context.sentences, analyzer=turn.analyzer)
            turn.read(fit_context(turn.context, ranked, max_tokens=self._context_budget(turn, self.llm)))

    def _context_budget(self, turn: Turn, llm: LLM) -> int:
        """Tokens for the context: what was asked for, or what the LLM's window leaves."""
        about_llm = llm.metadata
        output = about_llm.num_output if about_llm.num_output > 0 else _DEFAULT_OUTPUT_TOKENS
        frame = count_tokens(self.prompt.format(llm=llm, context_str="", query_str=turn.question))
        room = max(_LEAST_CONTEXT_TOKENS, about_llm.context_window - output - frame - _SPARE_TOKENS)
        if room < self.max_context_tokens:
            turn.note("info", f"The context has {room} instead of {self.max_context_tokens} tokens, because the LLM's window has {about_llm.context_window}.")
        return min(room, self.max_context_tokens)

    def _quote(self, turn: Turn, reason: str, similarities: Mapping[int, float] | None) -> list[str]:
        """Pieces of the quoted answer, or the sentence that says why there is none."""
        language = turn.message_language
        if not turn.question:
            return [empty_question(language)]
        if self.llm is not None and self._asks(turn):
            turn.fall_back(reason or "the LLM answered nothing.")
        instead = self._without_llm(turn, similarities)
        return self._after_break(instead, language) if turn.text else instead

    def _after_break(self, instead: list[str], language: str) -> list[str]:
        """What follows the beginning of an answer that the LLM did not end."""
        return [f"\n\n{broken_off(language)}\n", *instead]

    def _without_llm(self, turn: Turn, similarities: Mapping[int, float] | None) -> list[str]:
        """Pieces of the answer that no LLM writes."""
        extracts = extract_sentences(turn.question, turn.quotable, analyzer=turn.analyzer, similarities=similarities, max_sentences=self.max_sentences)
        return compose_answer(extracts) or [no_answer(turn.message_language)]

    def _finish_with(self, turn: Turn, pieces: Sequence[str]) -> None:
        for piece in pieces:
            turn.write(piece)
        turn.end_text()

    def _similarities(self, turn: Turn) -> dict[int, float] | None:
        sentences = self._to_compare(turn)
        if self.embed_model is None or not sentences:
            return None
        try:
            query = self.embed_model.get_query_embedding(turn.question)
            return _cosines(query, self.embed_model.get_text_embedding_batch(_texts(sentences)), sentences)
        except Exception as error:  # noqa: BLE001 - words alone choose then; the turn says so
            return _without_similarities(turn, error)

    async def _asimilarities(self, turn: Turn) -> dict[int, float] | None:
        sentences = await in_thread(self._to_compare, turn)
        if self.embed_model is None or not sentences:
            return None
        try:
            query = await self.embed_model.aget_query_embedding(turn.question)
            return _cosines(query, await self.embed_model.aget_text_embedding_batch(_texts(sentences)), sentences)
        except Exception as error:  # noqa: BLE001 - as in _similarities
            return _without_similarities(turn, error)

    def _to_compare(self, turn: Turn) -> list[NumberedSentence]:
        if self.embed_model is None or not turn.question:
            return []
        return sentences_to_compare(turn.question, turn.quotable, analyzer=turn.analyzer)


def _without_similarities(turn: Turn, error: Exception) -> None:
    turn.note("warning", f"Sentences are chosen by their words only, because the embedding model failed: {error!r}")


def _failure(error: Exception) -> str:
    return f"the LLM failed: {type(error).__name__}: {error}"


def _shown(piece: str) -> list[str]:
    return [piece] if piece else []


def _texts(sentences: Sequence[NumberedSentence]) -> list[str]:
    return [inert(sentence.text) for sentence in sentences]


def _cosines(query: Sequence[float], vectors: Sequence[Sequence[float]], sentences: Sequence[NumberedSentence]) -> dict[int, float]:
    import numpy as np

    matrix: Any = np.asarray(vectors, dtype=np.float32)
    row: Any = np.asarray(query, dtype=np.float32)
    norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(row)
    values = (matrix @ row) / np.where(norms == 0, 1, norms)
    return {sentence.number: float(value) for sentence, value in zip(sentences, values, strict=True)}
