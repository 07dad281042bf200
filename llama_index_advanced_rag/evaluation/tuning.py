"""Choosing the numbers of a retriever on labelled questions, with the gain measured on questions that did not choose them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index_advanced_rag._choices import whole_number
from llama_index_advanced_rag._concurrency import with_progress
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.retrievers.guarded import GuardedRetriever

Setting = dict[str, Any]
Measure = Callable[[Sequence[frozenset[str]], frozenset[str]], float]
Scores = NDArray[np.float64]

WALK_GRID: Mapping[str, Sequence[Any]] = {"prior_share": (0.2, 0.4, 0.6), "damping": (0.5, 0.7, 0.85), "guard": (0, 1, 2), "second_hop": (0.0, 0.5)}
VOTE_GRID: Mapping[str, Sequence[Any]] = {"top_n": (30, 35, 40), "document_weight": (0.0, 0.15, 0.3), "share_weight": (0.2, 0.4, 0.6), "guard": (0, 1, 2)}
_MOST_SETTINGS = 1000
_RESAMPLES = 10_000


class LabelledQuestion(NamedTuple):
    """A question and what should be found for it: ids of nodes, or of documents, any node of which will do."""

    question: str
    gold: frozenset[str]


class TuningCase(NamedTuple):
    """A retriever and its questions; several cases are tuned together to one setting."""

    retriever: GuardedRetriever[Any]
    questions: Sequence[LabelledQuestion]


@dataclass(frozen=True)
class TuningReport:
    """What tuning chose, and what that is worth.

    Attributes:
        parameters: the setting that is best on all questions; the retriever's own where none is better.
        before: mean score of the retriever's own setting.
        after: mean score of settings that were chosen without the question they are scored on (cross-validation): the figure to quote.
        interval: 95 % bootstrap interval of `after - before`, paired by question.
        best: mean score of `parameters` on all questions, which chose them: too good to quote.
        chosen: the setting that each fold chose.
        scores: for each question its score before and after, in the order of the cases.
    """

    parameters: Setting
    before: float
    after: float
    interval: tuple[float, float]
    best: float
    chosen: Sequence[Setting]
    scores: Sequence[tuple[float, float]] = field(repr=False)

    @property
    def gain(self) -> float:
        """Mean of after - before."""
        return self.after - self.before

    def __str__(self) -> str:
        low, high = self.interval
        lines = [
            f"{len(self.scores)} questions: {self.before:.3f} before, {self.after:.3f} after tuning (cross-validated),",
            f"gain {self.gain:+.3f} [{low:+.3f}, {high:+.3f}]; {self.best:.3f} on the questions that chose.",
            f"best: {self.parameters}",
        ]
        return "\n".join(lines + [f"fold {number}: {setting}" for number, setting in enumerate(self.chosen, start=1)])


def recall_at(k: int) -> Measure:
    """A measure: the share of the gold among the first k.

    Example:
        >>> recall_at(2)([frozenset({"a"}), frozenset({"b"}), frozenset({"c"})], frozenset({"a", "c"}))
        0.5
    """
    least = whole_number("k", k)

    def measure(ranked: Sequence[frozenset[str]], gold: frozenset[str]) -> float:
        return len(gold & frozenset().union(*ranked[:least])) / len(gold) if gold else 0.0

    return measure


def tune(
    retriever: GuardedRetriever[Any],
    questions: Sequence[LabelledQuestion],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    measure: Measure | None = None,
    folds: int = 5,
    seed: int = 0,
    show_progress: bool = False,
) -> TuningReport:
    """Choose the numbers of an `EntityGraphRetriever` or `EntityVoteRetriever` on labelled questions.

    Every setting of the grid is tried on every question; the other retriever is asked once a question. The questions are dealt into `folds`, and each
    fold is scored with the setting that is best on the others. No LLM call.

    Args:
        retriever: what is tuned; stays as it is. `retriever.with_parameters(**report.parameters)` is the tuned one.
        questions: at least one for each fold.
        grid: values to try for each number; None = `WALK_GRID` or `VOTE_GRID`.
        measure: of a ranking, higher is better; None = recall at 5.
        folds: at least 2.
        seed: deals the questions.
        show_progress: draw a progress bar.

    Raises:
        ConfigurationError: too few questions, a question without gold, gold that is no set, or a grid that cannot be tried.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag import EntityGraphRetriever
        >>> nodes = [TextNode(id_="a", text="Acme owns Beta."), TextNode(id_="b", text="Beta is in Rome."), TextNode(id_="c", text="Rome is old.")]
        >>> asked = [LabelledQuestion("Where is Acme's firm?", frozenset({"b"})), LabelledQuestion("Is the city of Beta old?", frozenset({"c"}))]
        >>> report = tune(EntityGraphRetriever.from_nodes(nodes, language="en"), asked, grid={"damping": (0.5, 0.7)}, folds=2)
        >>> report.before, report.after
        (1.0, 1.0)
    """
    return tune_together([TuningCase(retriever, questions)], grid=grid, measure=measure, folds=folds, seed=seed, show_progress=show_progress)


def tune_together(
    cases: Sequence[TuningCase],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    measure: Measure | None = None,
    folds: int = 5,
    seed: int = 0,
    show_progress: bool = False,
) -> TuningReport:
    """One setting for several retrievers, each with questions of its own; arguments and errors as in `tune`."""
    settings = _settings(cases, grid)
    asked = [(case.retriever, question) for case in cases for question in case.questions]
    _check(asked, whole_number("folds", folds, least=2))
    each = with_progress(asked, total=len(asked), description="Tuning", show_progress=show_progress)
    scores = np.array([_scores(retriever, question, settings, measure or recall_at(5)) for retriever, question in each])
    return _report(scores, settings, folds, seed)


def _settings(cases: Sequence[TuningCase], grid: Mapping[str, Sequence[Any]] | None) -> list[Setting]:
    """The settings to try; the retriever's own is the first."""
    if not cases:
        raise ConfigurationError("There are no cases to tune. Give at least one retriever with questions.")
    own = cases[0].retriever.parameters
    tried = grid if grid is not None else (WALK_GRID if "damping" in own else VOTE_GRID)
    combined = [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]
    if not 0 < len(combined) <= _MOST_SETTINGS:
        raise ConfigurationError(f"The grid has {len(combined)} settings. Expected 1 to {_MOST_SETTINGS}; give fewer values.")
    named = {name: own[name] for name in tried if name in own}
    return [named, *(setting for setting in combined if setting != named)]


def _check(asked: Sequence[tuple[GuardedRetriever[Any], LabelledQuestion]], folds: int) -> None:
    if len(asked) < folds:
        raise ConfigurationError(f"There are {len(asked)} questions for {folds} folds. Give at least one for each fold.")
    without = [question.question for _, question in asked if not question.gold]
    if without:
        raise ConfigurationError(f"The question {without[0]!r} has no gold. Name the nodes or documents that should be found.")
    strings = [question for _, question in asked if isinstance(question.gold, str)]
    if strings:
        raise ConfigurationError(f"The gold of the question {strings[0].question!r} is {strings[0].gold!r}. It must be a set of ids: frozenset({{...}}).")


def _scores(retriever: GuardedRetriever[Any], asked: LabelledQuestion, settings: Sequence[Setting], measure: Measure) -> list[float]:
    return [measure(names, frozenset(asked.gold)) for names in retriever.rankings(asked.question, settings)]


def _report(scores: Scores, settings: Sequence[Setting], folds: int, seed: int) -> TuningReport:
    """The report from (n_questions, n_settings) scores."""
    random = np.random.default_rng(seed)
    fold_of = random.permutation(len(scores)) % folds
    before, after = scores[:, 0], np.zeros(len(scores))
    chosen: list[Setting] = []
    for fold in range(folds):
        setting = _best(scores[fold_of != fold])
        after[fold_of == fold] = scores[fold_of == fold, setting]
        chosen.append(settings[setting])
    differences = after - before
    resampled = [differences[random.integers(0, len(scores), len(scores))].mean() for _ in range(_RESAMPLES)]
    low, high = np.quantile(resampled, [0.025, 0.975])
    best = _best(scores)
    pairs = list(zip(before.tolist(), after.tolist(), strict=True))
    return TuningReport(settings[best], float(before.mean()), float(after.mean()), (float(low), float(high)), float(scores[:, best].mean()), chosen, pairs)


def _best(scores: Scores) -> int:
    """The setting with the highest mean; of equal ones the first, and so the retriever's own where none is better."""
    return int(np.argmax(np.round(scores.mean(axis=0), 12)))
