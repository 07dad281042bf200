"""A sentence-transformers cross-encoder behind `PairScorer`: loaded at first use, once, and never truncating a passage."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from llama_index_advanced_rag.errors import ConfigurationError, RerankerUnavailableError
from llama_index_advanced_rag.postprocessors.pair_scorers import Pair, PairScorer, PassageScore, checked_scores
from llama_index_advanced_rag.ranking.windows import Span, cut_windows
from llama_index_advanced_rag.trace import report

# A fast tokenizer must not be used by two threads at once, and two rerankers may share one model.
_model_locks: "WeakKeyDictionary[Any, threading.RLock]" = WeakKeyDictionary()  # pyright: ignore[reportInvalidTypeForm]
_load_lock = threading.Lock()
_POSITIONS_START_AFTER_PADDING = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet"}


class EncoderScorer(PairScorer):
    """Raw scores (logits) of a cross-encoder.

    Args:
        model: name or folder of the model, or a loaded `sentence_transformers.CrossEncoder`, which is used as it is.
        max_length: most tokens of question and passage together; None = what the model says.
        window_overlap: tokens shared by neighbouring windows of a long passage.
        device: "cpu", "cuda", ...; None = the library's choice.
        trust_remote_code: run code that comes with the model.
        model_kwargs: further arguments of `CrossEncoder(...)`.
    """

    def __init__(
        self, model: Any, *, max_length: int | None, window_overlap: int, device: str | None, trust_remote_code: bool, model_kwargs: Mapping[str, Any]
    ) -> None:
        self._source = model
        self._max_length = max_length
        self._window_overlap = window_overlap
        self._load_kwargs: dict[str, Any] = {**model_kwargs, "device": device, "trust_remote_code": trust_remote_code}
        self._encoder: Any = None
        self._window: int | None = None
        self._lock = threading.Lock()
        self.name = model if isinstance(model, str) else _name_of(model)

    def __getstate__(self) -> dict[str, Any]:
        """A copy loads for itself: locks and loaded weights stay here."""
        return {**self.__dict__, "_encoder": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def score(self, query: str, passages: Sequence[str], *, batch_size: int, show_progress: bool) -> list[PassageScore]:
        """One score for each passage, in their order; other threads with the same model wait.

        Raises:
            RerankerUnavailableError: the model cannot be loaded.
            ConfigurationError: it is no cross-encoder with one score, or cannot read `max_length` tokens.
            ScorerOutputError: a score is not finite.
        """
        with _lock_of(self._loaded()):
            return super().score(query, passages, batch_size=batch_size, show_progress=show_progress)

    def describe(self) -> str:
        """Name, device and window."""
        window = "no limit" if self._window is None else f"{self._window} tokens"
        return self.name if self._encoder is None else f"{self.name} on {self._encoder.device}, window {window}"

    def _loaded(self) -> Any:
        with self._lock:
            if self._encoder is None:
                encoder = load_encoder(self._source, max_length=self._max_length, **self._load_kwargs) if isinstance(self._source, str) else self._source
                check_encoder(encoder, self.name)
                self._window = reading_window(encoder, max_length=self._max_length, name=self.name)
                self._encoder = encoder
            return self._encoder

    def _score_pairs(self, pairs: list[Pair], *, batch_size: int, show_progress: bool) -> list[float]:
        return checked_scores(logits(self._encoder, pairs, batch_size=batch_size, show_progress=show_progress), expected=len(pairs), name=self.name)

    def _windows(self, query: str, passages: Sequence[str]) -> tuple[str, list[list[str]]]:
        if self._window is None:
            return query, [[passage] for passage in passages]
        asked = self._asked(query, self._window)
        room = max(1, self._window - pair_length(self._encoder, asked))
        return asked, [self._cut(passage, room) for passage in passages]

    def _asked(self, query: str, window: int) -> str:
        room = (window - pair_length(self._encoder, "")) // 2
        pieces = self._cut(query, room)
        if len(pieces) > 1:
            report(
                "warning",
                f"The question is longer than half of the {window} tokens {self.name!r} reads; it is scored by its first {len(pieces[0])} characters.",
            )
        return pieces[0]

    def _cut(self, text: str, size: int) -> list[str]:
        return cut_windows(text, self._spans(text), size=size, overlap=self._window_overlap, count_tokens=lambda piece: len(self._spans(piece)))

    def _spans(self, text: str) -> list[Span]:
        return token_spans(self._encoder.tokenizer, text)


def _name_of(encoder: Any) -> str:
    config = getattr(getattr(encoder, "model", None), "config", None)
    return getattr(config, "_name_or_path", "") or type(encoder).__name__


def _lock_of(encoder: Any) -> threading.RLock:  # pyright: ignore[reportInvalidTypeForm]
    with _load_lock:
        return _model_locks.setdefault(encoder, threading.RLock())


def load_encoder(model: str, *, max_length: int | None, **kwargs: Any) -> Any:
    """Load a `CrossEncoder`; weights that are not on this machine are fetched from the hub.

    Raises:
        RerankerUnavailableError: it is not there, or not readable.
    """
    from sentence_transformers import CrossEncoder

    try:
        return CrossEncoder(model, max_length=max_length, **kwargs)
    except (OSError, ValueError) as error:
        raise RerankerUnavailableError(
            f"The cross-encoder {model!r} could not be loaded: {error} Give the name of a model on the hub that this machine can reach, "
            "the folder of a saved one, a loaded CrossEncoder, or a function that scores pairs."
        ) from error


def check_encoder(encoder: Any, name: str) -> None:
    """Refuse what would rank at random or cannot rank.

    Raises:
        ConfigurationError: the weights hold no scoring head, or it gives more than one score.
    """
    transformer = getattr(encoder, "model", None)
    architectures: list[str] = getattr(getattr(transformer, "config", None), "architectures", None) or []
    has_head = any("Classification" in item or "CausalLM" in item or "ConditionalGeneration" in item for item in architectures)
    if architectures and not has_head and type(transformer).__name__.endswith("ForSequenceClassification"):
        raise ConfigurationError(
            f"{name!r} holds the weights of {architectures[0]}, which has no scoring head: its scores would be random. "
            "A cross-encoder is expected (for example 'cross-encoder/ms-marco-MiniLM-L6-v2'), not an embedding model."
        )
    if encoder.num_labels != 1:
        raise ConfigurationError(
            f"{name!r} gives {encoder.num_labels} scores for each pair. A reranker with one score is expected; "
            "wrap this one in a function that returns the one that counts."
        )


def reading_window(encoder: Any, *, max_length: int | None, name: str) -> int | None:
    """Most tokens of question and passage together; None when the model has no limit.

    Raises:
        ConfigurationError: `max_length` is more than the model or its tokenizer takes, or too little for any text.
    """
    limits = [limit for limit in (encoder.tokenizer.model_max_length, _positions(encoder)) if limit is not None and limit < 10**9]
    own = min(limits, default=None)
    if max_length is not None and own is not None and max_length > own:
        raise ConfigurationError(f"max_length is {max_length}, but {name!r} reads {own} tokens. Leave max_length out, or give at most {own}.")
    window = own if max_length is None else max_length
    least = pair_length(encoder, "") + 2
    if window is not None and window < least:
        raise ConfigurationError(f"max_length is {window}. {name!r} needs at least {least} tokens for a question and a passage.")
    return window


def _positions(encoder: Any) -> int | None:
    config = getattr(getattr(encoder, "model", None), "config", None)
    positions = getattr(config, "max_position_embeddings", None)
    if not positions or positions < 0:
        return None
    offset = (config.pad_token_id or 0) + 1 if config.model_type in _POSITIONS_START_AFTER_PADDING else 0  # pyright: ignore[reportOptionalMemberAccess]
    return int(positions) - offset


def logits(encoder: Any, pairs: list[Pair], *, batch_size: int, show_progress: bool) -> Any:
    """What the model gives before any activation, one for each pair; the encoder stays as it was."""
    from torch.nn import Identity

    own = encoder.activation_fn
    try:
        return encoder.predict(pairs, batch_size=batch_size, show_progress_bar=show_progress, activation_fn=Identity())
    finally:
        encoder.activation_fn = own  # sentence-transformers before 5.4 keeps the activation of the last call


def pair_length(encoder: Any, query: str) -> int:
    """Tokens of a question with an empty passage: special tokens and the model's own prompt are counted."""
    prepare = getattr(encoder, "preprocess", None)  # sentence-transformers before 5.4 has none, and no prompts
    return len(encoder.tokenizer([query], [""])["input_ids"][0]) if prepare is None else int(prepare([(query, "")])["input_ids"].shape[-1])


def token_spans(tokenizer: Any, text: str) -> list[Span]:
    """Character start and end of each token, without special tokens.

    A tokenizer that keeps no offsets counts word by word, and each token of a word gets the span of the word.
    """
    if getattr(tokenizer, "is_fast", False):
        return tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False)["offset_mapping"]
    spans: list[Span] = []
    start = 0
    for word in text.split():
        start = text.index(word, start)
        spans += [(start, start + len(word))] * len(tokenizer.tokenize(word))
        start += len(word)
    return spans
