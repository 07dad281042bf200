"""What a message of a conversation refers to, without an LLM; and a conversation kept in a list."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory.types import BaseMemory
from typing_extensions import Self

from llama_index_advanced_rag.answering.citations import MARKER
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

_REFERS_BACK = re.compile(
    r"^\W*(?:and|but|or|what about|how about|et|mais|ou|qu'en est-il)\b|"
    r"\b(?:it|its|he|him|his|she|her|hers|they|them|their|theirs|this|these|those|"
    r"il|elle|ils|elles|lui|leur|leurs|son|sa|ses|cela|ça|celui|celle|ceux|celles)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_](?:[\w'’.&-]*\w)?")
_NAME_OR_NUMBER = re.compile(r"(?<=[\w,;:] )[A-ZÀ-ÖØ-Þ]\w|\d")
_FEW_WORDS = 2
_TURNS_READ = 2
_MOST_WORDS = 10
_MOST_NAMES = 5


class ListMemory(BaseMemory):
    """A conversation in a list: no database, no token limit, gone with the process.

    Example:
        >>> memory = ListMemory.from_defaults()
        >>> memory.put(ChatMessage(role="user", content="Hello"))
        >>> len(memory.get())
        1
    """

    messages: list[ChatMessage] = Field(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "ListMemory"

    @classmethod
    def from_defaults(cls, chat_history: Sequence[ChatMessage] | None = None, **kwargs: Any) -> Self:
        """A memory holding copies of these messages."""
        return cls(messages=[message.model_copy(deep=True) for message in chat_history or ()])

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        """All messages, oldest first."""
        return list(self.messages)

    def get_all(self) -> list[ChatMessage]:
        """All messages, oldest first."""
        return list(self.messages)

    def put(self, message: ChatMessage) -> None:
        """Add a message."""
        self.messages.append(message)

    def set(self, messages: list[ChatMessage]) -> None:
        """Replace all messages."""
        self.messages = list(messages)

    def reset(self) -> None:
        """Forget all messages."""
        self.messages = []


def refers_back(message: str, *, analyzer: TextAnalyzer) -> bool:
    """Whether a message (English or French) needs the conversation: a pronoun, a beginning like "And ...", or very few words.

    Example:
        >>> analyzer = TextAnalyzer("en")
        >>> refers_back("When was she born?", analyzer=analyzer), refers_back("What is the capital of France?", analyzer=analyzer)
        (True, False)
    """
    if _REFERS_BACK.search(message):
        return True
    return len(set(analyzer.query_groups(message))) <= _FEW_WORDS and _NAME_OR_NUMBER.search(message) is None


def with_history_terms(message: str, history: Sequence[ChatMessage], *, analyzer: TextAnalyzer) -> str:
    """The message and, when it refers back, words of the last two questions and names of the last answer behind it.

    Args:
        message: the message as it was typed.
        history: the conversation before it, oldest first.
        analyzer: tells content words from stop words.

    Example:
        >>> history = [ChatMessage(role="user", content="Who founded Acme?"), ChatMessage(role="assistant", content="Acme was founded by Jane Doe [1].")]
        >>> with_history_terms("When was she born?", history, analyzer=TextAnalyzer("en"))
        'When was she born? founded Acme Jane Doe'
    """
    if not history or not message.strip() or not refers_back(message, analyzer=analyzer):
        return message
    known = set(analyzer.query_tokens(message))
    terms = [*_fresh(_asked(history), known, analyzer, _MOST_WORDS), *_fresh(_answered(history), known, analyzer, _MOST_NAMES)]
    return " ".join([message, *terms])


def _asked(history: Sequence[ChatMessage]) -> list[str]:
    questions = [message.content or "" for message in history if message.role == MessageRole.USER]
    return [word for question in reversed(questions[-_TURNS_READ:]) for word in _WORD.findall(question)]


def _answered(history: Sequence[ChatMessage]) -> list[str]:
    answers = [message.content or "" for message in history if message.role == MessageRole.ASSISTANT]
    words = _WORD.findall(MARKER.sub(" ", answers[-1])) if answers else []
    return [word for word in words if word[0].isupper()]


def _fresh(words: Sequence[str], known: set[str], analyzer: TextAnalyzer, limit: int) -> Iterator[str]:
    """Content words not yet known, at most `limit`; what is given is known from then on."""
    given = 0
    for word in words:
        tokens = set(analyzer.query_tokens(word))
        if given < limit and tokens and not tokens <= known:
            known |= tokens
            given += 1
            yield word
