"""What scores a question and a passage together: a function, or a sentence-transformers cross-encoder (`encoder_scorer`)."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from llama_index_advanced_rag._concurrency import with_progress
from llama_index_advanced_rag.errors import ScorerOutputError
from llama_index_advanced_rag.ranking.windows import batch_by_length

Pair = tuple[str, str]
ScoreFunction = Callable[[list[Pair]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class PassageScore:
    """The score of one passage.

    Attributes:
        value: score of its best window, on the scorer's own scale, higher is better.
        window: number of that window, from 1.
        windows: how many windows the passage was cut into.
    """

    value: float
    window: int = 1
    windows: int = 1


class PairScorer(ABC):
    """Scores passages against one question: equal texts once, long ones by their best window.

    A child implements `_score_pairs`, and `_windows` if it reads a limited number of tokens.
    """

    name: str

    def score(self, query: str, passages: Sequence[str], *, batch_size: int, show_progress: bool) -> list[PassageScore]:
        """One score for each passage, in their order.

        Raises:
            ScorerOutputError: the scorer did not return one finite number for each pair.
        """
        asked, windows = self._windows(query, passages)
        texts = list(dict.fromkeys(text for cut in windows for text in cut))
        values = self._score_pairs([(asked, text) for text in texts], batch_size=batch_size, show_progress=show_progress)
        by_text = dict(zip(texts, values, strict=True))
        return [best_window([by_text[text] for text in cut]) for cut in windows]

    def _windows(self, query: str, passages: Sequence[str]) -> tuple[str, list[list[str]]]:
        """The question as it is asked, and the pieces of each passage."""
        return query, [[passage] for passage in passages]

    @abstractmethod
    def _score_pairs(self, pairs: list[Pair], *, batch_size: int, show_progress: bool) -> list[float]:
        """One finite score for each pair, in their order."""

    def describe(self) -> str:
        """What scored, for a person."""
        return self.name


class FunctionScorer(PairScorer):
    """A user's function from (question, passage) pairs to scores; it sees passages whole, in batches of like length.

    Example:
        >>> scorer = FunctionScorer(lambda pairs: [float(len(passage)) for _, passage in pairs])
        >>> [score.value for score in scorer.score("q", ["abc", "a"], batch_size=8, show_progress=False)]
        [3.0, 1.0]
    """

    def __init__(self, function: ScoreFunction) -> None:
        self._function = function
        self.name: str = getattr(function, "__qualname__", type(function).__name__)

    def _score_pairs(self, pairs: list[Pair], *, batch_size: int, show_progress: bool) -> list[float]:
        batches = batch_by_length([len(passage) for _, passage in pairs], batch_size=batch_size)
        values = [0.0] * len(pairs)
        for batch in with_progress(batches, total=len(batches), description="Reranking", show_progress=show_progress):
            found = self._function([pairs[index] for index in batch])
            for index, value in zip(batch, checked_scores(found, expected=len(batch), name=self.name), strict=True):
                values[index] = value
        return values


def best_window(values: Sequence[float]) -> PassageScore:
    """The highest score and where it stands; the first of equal ones."""
    best = max(range(len(values)), key=lambda index: values[index])
    return PassageScore(values[best], best + 1, len(values))


def checked_scores(scores: Any, *, expected: int, name: str) -> list[float]:
    """The scores as plain floats.

    Args:
        scores: a sequence, numpy array or tensor of shape (n,) or (n, 1).
        expected: how many there must be.
        name: of the scorer, for the message.

    Raises:
        ScorerOutputError: another number of scores, or one that is not a finite number.

    Example:
        >>> checked_scores([1, 0.5], expected=2, name="mine")
        [1.0, 0.5]
    """
    try:
        values = [_plain_float(score) for score in _rows(scores)]
    except (TypeError, ValueError) as error:
        raise ScorerOutputError(f"The scorer {name!r} returned {_short(scores)} ({error}). It must return one number for each pair.") from error
    if len(values) != expected:
        raise ScorerOutputError(
            f"The scorer {name!r} returned {len(values)} scores for {expected} pairs. It must return one number for each pair, in their order."
        )
    return values


def _rows(scores: Any) -> Iterable[Any]:
    listed: Any = scores.tolist() if hasattr(scores, "tolist") else scores
    if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
        raise TypeError(f"a {type(scores).__name__}, not a sequence of numbers")
    return cast("Iterable[Any]", listed)


def _plain_float(score: Any) -> float:
    column = cast("list[Any]", score) if isinstance(score, list) else [score]
    single: Any = column[0] if len(column) == 1 else column
    if isinstance(single, str | bytes):
        raise TypeError(f"{single!r} is text, not a number")
    value = float(single)
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."
