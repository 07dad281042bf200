"""What extractors around models share: long texts in windows, batches, and the names that rules find where a model fails."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.graph.reading_windows import Place, mention_at, merged_mentions
from llama_index_advanced_rag.graph.records import ExtractionRecord, Mention
from llama_index_advanced_rag.graph.span_extractor import SpanExtractor
from llama_index_advanced_rag.trace import report

Found = tuple[int, int, str]
"""Start, end and label of what a model found in a window."""


class ModelExtractor(ABC):
    """Loads once, reads windows in batches, puts offsets right, and has the spans of rules where the model fails.

    Args:
        model: the loaded model, or a name that `_load` knows.
        batch_size: windows that are read at once.

    Raises:
        ConfigurationError: `batch_size` is below 1.
    """

    def __init__(self, model: Any, *, batch_size: int) -> None:
        if batch_size < 1:
            raise ConfigurationError(f"batch_size is {batch_size!r}. It must be at least 1.")
        self._source = model
        self._batch_size = batch_size
        self._model: Any = None
        self._lock = threading.RLock()
        self._instead = SpanExtractor()

    def __getstate__(self) -> dict[str, Any]:
        """A copy loads for itself: a lock stays here, and so does what was loaded by name."""
        return {**self.__dict__, "_lock": None, "_model": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock())

    @property
    @abstractmethod
    def identity(self) -> str:
        """The class and the model."""

    def extract(self, texts: Sequence[str]) -> list[ExtractionRecord]:
        """One record for each text, with the model's labels as kinds; mentions in order, none over another. Other threads wait.

        Raises:
            MissingExtraError: the library is not installed.
            ConfigurationError: the model cannot be loaded.
        """
        with self._lock:
            model = self._loaded()
            found, failures = self._read_all(model, texts)
        if failures:
            first = failures[min(failures)]
            report(
                "warning",
                f"{self.identity} could not read {len(failures)} of {len(texts)} texts; they have the names that rules find. "
                f"The first error: {type(first).__name__}: {first}",
            )
        return [
            ExtractionRecord(mentions=self._instead.mentions(text) if place in failures else merged_mentions(found[place])) for place, text in enumerate(texts)
        ]

    def _loaded(self) -> Any:
        if self._model is None:
            self._model = self._load(self._source) if isinstance(self._source, str) else self._source
        return self._model

    def _read_all(self, model: Any, texts: Sequence[str]) -> tuple[list[list[Mention]], dict[int, Exception]]:
        """What was found in each text, and the error for each text that the model failed on."""
        found: list[list[Mention]] = [[] for _ in texts]
        failures: dict[int, Exception] = {}
        windows: list[tuple[int, Place]] = []
        for place, text in enumerate(texts):
            cut = self._cut(model, text)
            if isinstance(cut, Exception):
                failures[place] = cut
            else:
                windows.extend((place, window) for window in cut)
        for start in range(0, len(windows), self._batch_size):
            batch = windows[start : start + self._batch_size]
            for (place, window), spans in zip(batch, self._read_batch(model, texts, batch), strict=True):
                if isinstance(spans, Exception):
                    failures.setdefault(place, spans)
                else:
                    found[place].extend(_placed(texts[place], window[0], spans))
        return found, failures

    def _cut(self, model: Any, text: str) -> list[Place] | Exception:
        try:
            return self._windows(model, text)
        except Exception as error:  # noqa: BLE001 - a tokenizer may fail on a text as a model may
            return error

    def _read_batch(self, model: Any, texts: Sequence[str], batch: Sequence[tuple[int, Place]]) -> "list[list[Found] | Exception]":
        """What is in each window; when the model fails on a batch, each of its windows is read alone."""
        pieces = [texts[place][start:end] for place, (start, end) in batch]
        try:
            return list(self._read(model, pieces))
        except Exception as error:  # noqa: BLE001 - models have errors of their own, and one text must not spoil the others
            if len(batch) == 1:
                return [error]
        return [result for one in batch for result in self._read_batch(model, texts, [one])]

    @abstractmethod
    def _load(self, name: str) -> Any:
        """The model of this name."""

    @abstractmethod
    def _windows(self, model: Any, text: str) -> list[Place]:
        """Places of pieces that the model can read whole."""

    @abstractmethod
    def _read(self, model: Any, pieces: list[str]) -> list[list[Found]]:
        """What the model finds in each piece."""

    def __repr__(self) -> str:
        return f"<{self.identity}>"


def _placed(text: str, offset: int, spans: Iterable[Found]) -> Iterable[Mention]:
    for start, end, label in spans:
        mention = mention_at(text, offset + start, offset + end, label)
        if mention is not None:
            yield mention
