"""A conversation over documents: each message becomes a question of its own, each answer is grounded and cited."""

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.llms.generic_utils import messages_to_history_str
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE, AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.llms import LLM
from llama_index.core.memory.types import BaseMemory
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.tools import ToolOutput

from llama_index_advanced_rag.answering.context import escape_answer_tags
from llama_index_advanced_rag.answering.history import ListMemory, with_history_terms
from llama_index_advanced_rag.prompts import CONDENSE_QUESTION, CONDENSE_QUESTION_PROMPT
from llama_index_advanced_rag.query_engines.adaptive import AdaptiveQueryEngine
from llama_index_advanced_rag.query_engines.grounded import GroundedQueryEngine
from llama_index_advanced_rag.text.analyzer import TextAnalyzer, detect_language
from llama_index_advanced_rag.text.question_routes.signals import read_question_signals
from llama_index_advanced_rag.trace import RetrievalTrace, capture_trace, report
from llama_index_advanced_rag.usage import UsageLedger, apredict, capture_usage, predict

_MESSAGES_CONDENSED = 10
_HISTORY_CHARS = 8000


@dataclass
class _Talk:
    """One message on its way to an answer."""

    message: str
    trace: RetrievalTrace
    ledger: UsageLedger
    question: str = ""

    def metadata_of(self, response: RESPONSE_TYPE) -> dict[str, Any]:
        metadata = response.metadata or {}
        metadata.update(question=self.question, usage=self.ledger.to_dict(), trace=self.trace.to_dict())
        return metadata

    def source_of(self, response: RESPONSE_TYPE, content: str) -> ToolOutput:
        return ToolOutput(content=content, tool_name="query_engine", raw_input={"query": self.question}, raw_output=response)


class GroundedChatEngine(BaseChatEngine):
    """Chat over a `GroundedQueryEngine` or an `AdaptiveQueryEngine`: answers cite what was retrieved, with or without an LLM.

    With an LLM a message that has a conversation before it is first rewritten as one question (one call; when that fails
    the message is used as it is, and the trace says so), then answered (one call more). Without one, a message that refers
    back ("And in 2022?", "Who founded it?") gets words of the last two questions and names of the last answer, and the
    answer quotes the documents; no call. A message that only thanks or greets is left as it is, with an LLM too. One object
    is one conversation: do not answer two messages of it at a time.

    `chat` returns an `AgentChatResponse` whose `metadata` are those of the query engine and `question` (what was asked of
    the documents). A stream keeps them in `response.sources[0].raw_output.metadata`, complete when the stream ends or is
    dropped; the message and the answer so far enter the conversation then.

    Args:
        query_engine: answers the questions; its streaming setting does not matter.
        llm: rewrites messages; None = no rewriting by an LLM.
        memory: keeps the conversation; None = a list in memory.
        chat_history: messages to begin with.
        condense_prompt: template with `chat_history` and `question`; None = `prompts.CONDENSE_QUESTION_PROMPT`.
        callback_manager: LlamaIndex's; None = the query engine's.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
        >>> retriever = LexicalRetriever.from_defaults(nodes=[TextNode(id_="n1", text="Foxes eat mice. Cats sleep all day.")], language="en")
        >>> chat = GroundedChatEngine(GroundedQueryEngine(retriever, language="en"))
        >>> str(chat.chat("What do foxes eat?")), len(chat.chat_history)
        ('Foxes eat mice. [1]', 2)
    """

    def __init__(
        self,
        query_engine: GroundedQueryEngine | AdaptiveQueryEngine,
        *,
        llm: LLM | None = None,
        memory: BaseMemory | None = None,
        chat_history: Sequence[ChatMessage] | None = None,
        condense_prompt: BasePromptTemplate | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        self._query_engine = query_engine
        self._llm = llm
        self._memory = memory if memory is not None else ListMemory.from_defaults()
        if chat_history is not None:
            self._memory.set([message.model_copy(deep=True) for message in chat_history])
        self._condense_prompt = condense_prompt or CONDENSE_QUESTION_PROMPT
        self.callback_manager = callback_manager or query_engine.callback_manager

    @property
    def chat_history(self) -> list[ChatMessage]:
        """The conversation, oldest message first."""
        return self._memory.get_all()

    def reset(self) -> None:
        """Forget the conversation."""
        self._memory.reset()

    def chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> AgentChatResponse:
        """Answer a message; `chat_history` replaces the conversation before it."""
        with self._talk(message) as talk:
            if chat_history is not None:
                self._memory.set(list(chat_history))
            talk.question = self._condense(message, self._memory.get(input=message))
            response = self._query_engine.with_streaming(False).query(talk.question)
            self._memory.put_messages(_exchange(message, str(response)))
        return AgentChatResponse(str(response), [talk.source_of(response, str(response))], list(response.source_nodes), metadata=talk.metadata_of(response))

    async def achat(self, message: str, chat_history: list[ChatMessage] | None = None) -> AgentChatResponse:
        """The async twin of `chat`."""
        with self._talk(message) as talk:
            if chat_history is not None:
                await self._memory.aset(list(chat_history))
            talk.question = await self._acondense(message, await self._memory.aget(input=message))
            response = await self._query_engine.with_streaming(False).aquery(talk.question)
            await self._memory.aput_messages(_exchange(message, str(response)))
        return AgentChatResponse(str(response), [talk.source_of(response, str(response))], list(response.source_nodes), metadata=talk.metadata_of(response))

    def stream_chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> StreamingAgentChatResponse:
        """Answer a message in pieces: read `response_gen`."""
        with self._talk(message) as talk:
            if chat_history is not None:
                self._memory.set(list(chat_history))
            talk.question = self._condense(message, self._memory.get(input=message))
            response = self._query_engine.with_streaming(True).query(talk.question)
        return StreamingAgentChatResponse(
            sources=[talk.source_of(response, "")],
            chat_stream=self._chat_stream(talk, _pieces(response), response),
            source_nodes=response.source_nodes,
            is_writing_to_memory=False,
        )

    async def astream_chat(self, message: str, chat_history: list[ChatMessage] | None = None) -> StreamingAgentChatResponse:
        """The async twin of `stream_chat`: read `async_response_gen()`."""
        with self._talk(message) as talk:
            if chat_history is not None:
                await self._memory.aset(list(chat_history))
            talk.question = await self._acondense(message, await self._memory.aget(input=message))
            response = await self._query_engine.with_streaming(True).aquery(talk.question)
        return StreamingAgentChatResponse(
            sources=[talk.source_of(response, "")],
            achat_stream=self._achat_stream(talk, _apieces(response), response),
            source_nodes=response.source_nodes,
            is_writing_to_memory=False,
        )

    @contextmanager
    def _talk(self, message: str) -> Generator[_Talk, None, None]:
        with (
            self.callback_manager.as_trace("chat"),
            capture_trace(message, stage="chat") as trace,
            capture_usage() as ledger,
        ):
            yield _Talk(message, trace, ledger)

    def _condense(self, message: str, history: Sequence[ChatMessage]) -> str:
        if self._llm is None or not history or _stands_alone(message):
            return self._with_terms(message, history)
        try:
            question = predict(self._llm, CONDENSE_QUESTION, self._condense_prompt, **_condense_variables(message, history))
        except Exception as error:  # noqa: BLE001 - the message itself is a question; the trace says what happened
            return _as_it_is(message, f"{type(error).__name__}: {error}")
        return question.strip() or _as_it_is(message, "it answered nothing")

    async def _acondense(self, message: str, history: Sequence[ChatMessage]) -> str:
        if self._llm is None or not history or _stands_alone(message):
            return self._with_terms(message, history)
        try:
            question = await apredict(self._llm, CONDENSE_QUESTION, self._condense_prompt, **_condense_variables(message, history))
        except Exception as error:  # noqa: BLE001 - as in _condense
            return _as_it_is(message, f"{type(error).__name__}: {error}")
        return question.strip() or _as_it_is(message, "it answered nothing")

    def _with_terms(self, message: str, history: Sequence[ChatMessage]) -> str:
        if _stands_alone(message):
            return message
        language = self._query_engine.language
        analyzer = TextAnalyzer(language if language != "auto" else detect_language(_last_words(message, history)) or "en")
        return with_history_terms(message, history, analyzer=analyzer)

    def _chat_stream(self, talk: _Talk, pieces: Generator[str, None, None], response: RESPONSE_TYPE) -> Generator[ChatResponse, None, None]:
        text = ""
        try:
            for piece in pieces:
                text += piece
                yield _delta(text, piece)
        finally:
            pieces.close()
            talk.metadata_of(response)
            self._memory.put_messages(_exchange(talk.message, text))

    async def _achat_stream(self, talk: _Talk, pieces: AsyncGenerator[str, None], response: RESPONSE_TYPE) -> AsyncGenerator[ChatResponse, None]:
        text = ""
        try:
            async for piece in pieces:
                text += piece
                yield _delta(text, piece)
        finally:
            await pieces.aclose()
            talk.metadata_of(response)
            await self._memory.aput_messages(_exchange(talk.message, text))


def _pieces(response: RESPONSE_TYPE) -> Generator[str, None, None]:
    """The answer in pieces; in one where another engine has written it as a whole."""
    return response.response_gen if isinstance(response, StreamingResponse) else (text for text in [str(response)])  # type: ignore[return-value]


def _apieces(response: RESPONSE_TYPE) -> AsyncGenerator[str, None]:
    async def whole() -> AsyncGenerator[str, None]:
        yield str(response)

    return response.response_gen if isinstance(response, AsyncStreamingResponse) else whole()  # type: ignore[return-value]


def _exchange(message: str, answer: str) -> list[ChatMessage]:
    return [ChatMessage(role=MessageRole.USER, content=message), ChatMessage(role=MessageRole.ASSISTANT, content=answer)]


def _delta(text: str, piece: str) -> ChatResponse:
    return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=piece)


def _stands_alone(message: str) -> bool:
    """Whether a message needs nothing of the conversation: nothing is said, or "Thank you!" and the like."""
    return not message.strip() or bool(read_question_signals(message).talk)


def _condense_variables(message: str, history: Sequence[ChatMessage]) -> dict[str, str]:
    told = messages_to_history_str(list(history[-_MESSAGES_CONDENSED:]))
    return {"chat_history": escape_answer_tags(told[-_HISTORY_CHARS:]), "question": escape_answer_tags(message)}


def _as_it_is(message: str, reason: str) -> str:
    report("warning", f"The message is used as it is, because the LLM could not rewrite it: {reason}")
    return message


def _last_words(message: str, history: Sequence[ChatMessage]) -> str:
    return " ".join([message, *(told.content or "" for told in history[-2:])])
