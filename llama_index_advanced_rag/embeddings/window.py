"""How much text an embedding model reads, counted in its own tokenizer."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.utils import get_tokenizer  # pyright: ignore[reportUnknownVariableType]

from llama_index_advanced_rag.embeddings.multilingual import MultilingualE5Embedding

_OPENAI_TOKENS = 8191
_OPENAI_CLASSES = frozenset({"OpenAIEmbedding", "AzureOpenAIEmbedding"})
_WORD = re.compile(r"[^ \t\r\n]+")
_CACHED_WORDS = 200_000
_CACHED_WORD_LENGTH = 64


@dataclass(frozen=True, slots=True)
class EmbeddingWindow:
    """What fits into one embedding.

    Attributes:
        max_tokens: tokens of text that the model reads; its special tokens and its own text prefix are already taken
            off. None when the model does not say.
        count_tokens: tokens of a text in the model's own tokenizer, special tokens not counted; never warns, never cuts.

    Example:
        >>> window = EmbeddingWindow(max_tokens=3, count_tokens=lambda text: len(text.split()))
        >>> window.overflows("one two three"), window.overflows("one two three four")
        (False, True)
    """

    max_tokens: int | None
    count_tokens: Callable[[str], int]

    def overflows(self, text: str) -> bool:
        """True when the end of the text would not be read in full (a text of fewer characters than tokens fits always)."""
        return self.max_tokens is not None and len(text) > self.max_tokens and self.count_tokens(text) > self.max_tokens


class WordCachedCounter:
    """Counts tokens word by word and remembers each word, for tokenizers that never join words across white space.

    Args:
        count_words: tokens of each of several words.

    Example:
        >>> counter = WordCachedCounter(lambda words: [len(word) for word in words])
        >>> counter("to be or not to be")
        13
    """

    def __init__(self, count_words: Callable[[list[str]], list[int]]) -> None:
        self._count_words = count_words
        self._known: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """Tokens of the text: the sum over its words."""
        words = _WORD.findall(text)
        known = self._known
        unknown = [word for word in dict.fromkeys(words) if word not in known]
        counted = dict(zip(unknown, self._count_words(unknown), strict=True)) if unknown else {}
        total = sum(known[word] if word in known else counted[word] for word in words)
        if len(known) < _CACHED_WORDS:
            known.update((word, count) for word, count in counted.items() if len(word) <= _CACHED_WORD_LENGTH)
        return total


class _FastTokenizer:
    """A private copy of a Hugging Face tokenizer without truncation: the model's own one is used by other threads."""

    def __init__(self, backend: Any) -> None:
        self._tokenizer: Any = type(backend).from_str(backend.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count_each(self, texts: list[str]) -> list[int]:
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch([_encodable(text) for text in texts], add_special_tokens=False)]

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(_encodable(text), add_special_tokens=False).ids)

    def splits_at_white_space(self) -> bool:
        kind = str(self._tokenizer.pre_tokenizer)
        return "BertPreTokenizer" in kind or "WhitespaceSplit" in kind


class _E5Counter:
    def __init__(self, model: MultilingualE5Embedding) -> None:
        self._model = model

    def count_each(self, texts: list[str]) -> list[int]:
        return [self._model.count_tokens(text) for text in texts]


class _GlobalTokenizer:
    """LlamaIndex's global tokenizer, looked up at each call so that it is the user's and can be pickled."""

    def __call__(self, text: str) -> int:
        tokenize = cast(Callable[[str], Sequence[Any]], get_tokenizer())
        return len(tokenize(_encodable(text)))


def default_window() -> EmbeddingWindow:
    """No limit, counted in LlamaIndex's global tokenizer."""
    return EmbeddingWindow(None, _GlobalTokenizer())


def embedding_window(model: BaseEmbedding) -> EmbeddingWindow:
    """The window of a model.

    A model with an attribute `embedding_window` of this class says it itself. Hugging Face models answer with their maximum
    length and tokenizer, the multilingual E5 with its own, OpenAI's with 8191 tokens. Any other model: `max_tokens` None and
    LlamaIndex's global tokenizer.
    """
    own = getattr(model, "embedding_window", None)
    if isinstance(own, EmbeddingWindow):
        return own
    if isinstance(model, MultilingualE5Embedding):
        return EmbeddingWindow(model.max_tokens, WordCachedCounter(_E5Counter(model).count_each))
    transformer = getattr(model, "_model", None)
    backend = getattr(getattr(transformer, "tokenizer", None), "backend_tokenizer", None)
    if transformer is not None and backend is not None:
        return _hugging_face_window(model, transformer, backend)
    if model.class_name() in _OPENAI_CLASSES:
        return EmbeddingWindow(_OPENAI_TOKENS, _GlobalTokenizer())
    return default_window()


def _hugging_face_window(model: BaseEmbedding, transformer: Any, backend: Any) -> EmbeddingWindow:
    tokenizer = _FastTokenizer(backend)
    count = WordCachedCounter(tokenizer.count_each) if tokenizer.splits_at_white_space() else tokenizer.count
    limit = getattr(model, "max_length", None) or transformer.max_seq_length
    if not limit:
        return EmbeddingWindow(None, count)
    special = int(transformer.tokenizer.num_special_tokens_to_add(pair=False))
    prompts: dict[str, str] = getattr(transformer, "prompts", None) or {}
    return EmbeddingWindow(max(1, int(limit) - special - tokenizer.count(prompts.get("text") or "")), count)


def _encodable(text: str) -> str:
    """Half a surrogate pair cannot be given to a tokenizer."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def overlong_node_ids(nodes: Iterable[BaseNode], window: EmbeddingWindow) -> list[str]:
    """The nodes whose text, with the metadata that is embedded in front of it, does not fit the model's window."""
    return [node.node_id for node in nodes if window.overflows(node.get_content(metadata_mode=MetadataMode.EMBED))]


def overlong_warning(nodes: Sequence[BaseNode], window: EmbeddingWindow) -> str | None:
    """One sentence when nodes are longer than the model's window, None when all fit; works with anybody's splitter."""
    overlong = overlong_node_ids(nodes, window)
    if not overlong:
        return None
    return (
        f"{len(overlong)} of {len(nodes)} chunks are longer than the {window.max_tokens} tokens the embedding model reads (metadata in front included): "
        "what is beyond is not embedded. Use SentenceChunkParser.for_model(embed_model), smaller chunks, or exclude metadata from embedding."
    )
