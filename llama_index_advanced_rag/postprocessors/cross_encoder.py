"""Rerank with a model that reads question and passage together."""

import math
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, cast

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.postprocessors.encoder_scorer import EncoderScorer
from llama_index_advanced_rag.postprocessors.pair_scorers import FunctionScorer, PairScorer, PassageScore, ScoreFunction
from llama_index_advanced_rag.postprocessors.rerank_events import rerank_events
from llama_index_advanced_rag.trace import Evidence, current_trace, report, stage_trace


class ScoreActivation(str, Enum):
    """What becomes of a raw score.

    `AUTO` is `SIGMOID` for a cross-encoder and `NONE` for a function. None of them changes the ranking.
    """

    AUTO = "auto"
    SIGMOID = "sigmoid"
    NONE = "none"


class OnScorerError(str, Enum):
    """What happens when the scorer fails: raise, or keep the incoming order and say so."""

    RAISE = "raise"
    KEEP_ORDER = "keep_order"


class CrossEncoderRerank(BaseNodePostprocessor):
    """Keep the `top_n` nodes that a scorer of (question, passage) pairs likes best.

    Any sentence-transformers cross-encoder works, or any function from pairs to numbers. A cross-encoder is loaded at
    first use, once. A passage longer than its window is scored by overlapping windows and gets the score of the best
    one; a function sees passages whole. Equal passages are scored once; equal scores keep the incoming order.
    Input nodes stay as they are: the result holds new `NodeWithScore` objects with plain floats, best first.
    0 LLM calls. The async call works in a thread; calls that share one cross-encoder take turns.

    Args:
        model: name or folder of a cross-encoder, a loaded `CrossEncoder`, or a function that takes a list of (question,
            passage) pairs and returns one number for each, higher is better.
        top_n: most nodes returned, at least 1.
        batch_size: pairs scored at once.
        max_length: most tokens of question and passage together; None = what the model reads. Cross-encoder only.
        window_overlap: tokens that neighbouring windows share (at most half a window is used). Cross-encoder only.
        activation: see `ScoreActivation`; by default the scores of a cross-encoder lie between 0 and 1.
        score_threshold: nodes whose new score is lower are dropped; None = none are.
        keep_retrieval_score: write the incoming score into the trace (never into the metadata of the node).
        metadata_mode: which text of the node is scored; EMBED is what a dense retriever saw, titles included.
        on_error: see `OnScorerError`; wrong arguments are raised in both cases.
        device: "cpu", "cuda", "mps", ...; None = the library's choice. Cross-encoder by name only.
        trust_remote_code: run code that comes with the model. Cross-encoder by name only.
        show_progress: show a progress bar.
        model_kwargs: further arguments of `sentence_transformers.CrossEncoder`, for example `{"backend": "onnx"}` or
            `{"revision": ...}`. Cross-encoder by name only.
        callback_manager: receives `CBEventType.RERANKING`.

    Raises:
        ConfigurationError: an argument cannot work (at construction, or at first use if only the loaded model tells),
            or nodes came without a question.
        RerankerUnavailableError: the model cannot be loaded (at first use).
        ScorerOutputError: the scorer did not return one finite number for each pair.

    An empty question cannot be scored: the first `top_n` nodes are returned in their order, with a note in the trace.
    A reranker made with a function or a loaded model needs it again: `CrossEncoderRerank.from_dict(data, model=...)`.

    Source: Nogueira and Cho 2019, "Passage Re-ranking with BERT" (arXiv:1901.04085); windows with the maximum: Dai and
        Callan 2019 (arXiv:1905.09217), "MaxP", section 3. Deviation: windows are counted in tokens of the model.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> def shared_words(pairs: list[tuple[str, str]]) -> list[float]:
        ...     return [float(len(set(query.split()) & set(passage.split()))) for query, passage in pairs]
        >>> rerank = CrossEncoderRerank(shared_words, top_n=1)
        >>> nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in ("blue sea", "red fox")]
        >>> [(item.node.get_content(), item.score) for item in rerank.postprocess_nodes(nodes, query_str="red fox den")]
        [('red fox', 2.0)]
    """

    # `model` is LlamaIndex's own name for this argument, so pydantic's prefix must be another one.
    model_config = ConfigDict(arbitrary_types_allowed=True, protected_namespaces=("pydantic_model_",))
    stage: ClassVar[str] = "rerank"

    model: str | None = Field(default=None, description="Name or folder of the cross-encoder; None when an object was given.")
    top_n: int = Field(default=5, description="Most nodes returned.")
    batch_size: int = Field(default=32, description="Pairs scored at once.")
    max_length: int | None = Field(default=None, description="Most tokens of question and passage together.")
    window_overlap: int = Field(default=64, description="Tokens shared by neighbouring windows.")
    activation: ScoreActivation = Field(default=ScoreActivation.AUTO, description="What becomes of a raw score.")
    score_threshold: float | None = Field(default=None, description="Nodes below are dropped.")
    keep_retrieval_score: bool = Field(default=True, description="Write the incoming score into the trace.")
    metadata_mode: MetadataMode = Field(default=MetadataMode.EMBED, description="Which text of the node is scored.")
    on_error: OnScorerError = Field(default=OnScorerError.RAISE, description="What happens when the scorer fails.")
    device: str | None = Field(default=None, description="Where the model runs.")
    trust_remote_code: bool = Field(default=False, description="Run code that comes with the model.")
    show_progress: bool = Field(default=False, description="Show a progress bar.")
    model_kwargs: dict[str, Any] = Field(default_factory=dict, description="Further arguments of CrossEncoder.")
    _scorer: PairScorer = PrivateAttr()

    def __init__(
        self,
        model: Any,
        *,
        top_n: int = 5,
        batch_size: int = 32,
        max_length: int | None = None,
        window_overlap: int = 64,
        activation: ScoreActivation | str = ScoreActivation.AUTO,
        score_threshold: float | None = None,
        keep_retrieval_score: bool = True,
        metadata_mode: MetadataMode | str = MetadataMode.EMBED,
        on_error: OnScorerError | str = OnScorerError.RAISE,
        device: str | None = None,
        trust_remote_code: bool = False,
        show_progress: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        source = str(model) if isinstance(model, Path) else model
        fields: dict[str, Any] = {
            "model": source if isinstance(source, str) else None,
            "top_n": whole_number("top_n", top_n),
            "batch_size": whole_number("batch_size", batch_size),
            "max_length": max_length if max_length is None else whole_number("max_length", max_length),
            "window_overlap": whole_number("window_overlap", window_overlap, least=0),
            "activation": parse_choice(ScoreActivation, activation, argument="activation"),
            "score_threshold": _threshold(score_threshold),
            "keep_retrieval_score": keep_retrieval_score,
            "metadata_mode": parse_choice(MetadataMode, metadata_mode, argument="metadata_mode"),
            "on_error": parse_choice(OnScorerError, on_error, argument="on_error"),
            "device": device,
            "trust_remote_code": trust_remote_code,
            "show_progress": show_progress,
            "model_kwargs": dict(model_kwargs or {}),
            "callback_manager": callback_manager or CallbackManager(),
        }
        super().__init__(**fields)
        self._scorer = self._make_scorer(source)

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "CrossEncoderRerank"

    def _make_scorer(self, source: Any) -> PairScorer:
        is_encoder = not isinstance(source, str) and hasattr(source, "predict") and hasattr(source, "tokenizer")
        if (isinstance(source, str) and source.strip()) or is_encoder:
            self._refuse_unused("a loaded model", {"device", "trust_remote_code", "model_kwargs"} if is_encoder else set())
            return EncoderScorer(
                source,
                max_length=self.max_length,
                window_overlap=self.window_overlap,
                device=self.device,
                trust_remote_code=self.trust_remote_code,
                model_kwargs=checked_model_kwargs(self.model_kwargs),
            )
        if callable(source):
            self._refuse_unused("a function", {"device", "trust_remote_code", "model_kwargs", "max_length"})
            return FunctionScorer(cast("ScoreFunction", source))
        raise ConfigurationError(
            f"model is {source!r}. It must be the name or folder of a cross-encoder, a loaded CrossEncoder or a function from pairs to scores; "
            "a reranker restored with from_dict needs the object it was made with: from_dict(data, model=...)."
        )

    def _refuse_unused(self, given: str, names: set[str]) -> None:
        unused = sorted(name for name in names if getattr(self, name))
        if unused:
            raise ConfigurationError(
                f"{', '.join(unused)} cannot be used: model is {given}, not the name of one. Leave it out, or configure the object itself."
            )

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        if nodes and query_bundle is None:
            raise ConfigurationError("query_bundle is None. A reranker needs the question: pass query_str or query_bundle.")
        query = query_bundle.query_str if query_bundle is not None else ""
        with (
            stage_trace(self.stage, query),
            rerank_events(self.callback_manager, nodes, query_bundle, top_n=self.top_n, model_name=self._scorer.name) as result,
        ):
            result.extend(self._rerank(nodes, query) if nodes else [])
        return result

    async def _apostprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        return await in_thread(self._postprocess_nodes, nodes, query_bundle)

    def _rerank(self, nodes: Sequence[NodeWithScore], query: str) -> list[NodeWithScore]:
        if not query.strip():
            return self._as_they_came(nodes, "The question is empty, so there is nothing to score against")
        passages = [item.node.get_content(metadata_mode=self.metadata_mode) for item in nodes]
        try:
            scores = self._scorer.score(query, passages, batch_size=self.batch_size, show_progress=self.show_progress)
        except ConfigurationError:
            raise
        except Exception as error:
            if self.on_error is OnScorerError.RAISE:
                raise
            return self._as_they_came(nodes, f"The scorer failed ({type(error).__name__}: {error})")
        return self._best(nodes, scores)

    def _as_they_came(self, nodes: Sequence[NodeWithScore], reason: str) -> list[NodeWithScore]:
        report("warning", f"{reason}: the first {self.top_n} nodes are kept in their order.")
        kept = [NodeWithScore(node=item.node, score=None if item.score is None else float(item.score)) for item in nodes[: self.top_n]]
        trace = current_trace()
        if trace is not None:
            trace.evidence += [Evidence(item.node.node_id, self.stage, rank, item.score, "not reranked") for rank, item in enumerate(kept, start=1)]
        return kept

    def _best(self, nodes: Sequence[NodeWithScore], scores: Sequence[PassageScore]) -> list[NodeWithScore]:
        ranked = sorted(range(len(nodes)), key=lambda index: -scores[index].value)
        final = {index: self._activated(scores[index].value) for index in ranked}
        passed = [index for index in ranked if self.score_threshold is None or final[index] >= self.score_threshold]
        kept = passed[: self.top_n]
        self._explain(nodes, scores, kept, final, below=len(ranked) - len(passed))
        return [NodeWithScore(node=nodes[index].node, score=final[index]) for index in kept]

    def _activated(self, value: float) -> float:
        as_it_is = self.activation is ScoreActivation.NONE or (self.activation is ScoreActivation.AUTO and isinstance(self._scorer, FunctionScorer))
        return value if as_it_is else sigmoid(value)

    def _explain(self, nodes: Sequence[NodeWithScore], scores: Sequence[PassageScore], kept: list[int], final: dict[int, float], *, below: int) -> None:
        trace = current_trace()
        if trace is None:
            return
        trace.note("info", f"{self._scorer.describe()}: {len(nodes)} nodes scored, {below} below the threshold, {len(kept)} kept")
        for rank, index in enumerate(kept, start=1):
            score, came = scores[index], nodes[index].score
            details: dict[str, Any] = {"raw_score": score.value, "window": score.window, "windows": score.windows, "retrieval_rank": index + 1}
            if self.keep_retrieval_score:
                details["retrieval_score"] = None if came is None else float(came)
            part = f" (window {score.window} of {score.windows})" if score.windows > 1 else ""
            why = f"reads as {final[index]:.3f} relevant to the question{part}; it was number {index + 1}"
            trace.add(Evidence(nodes[index].node.node_id, self.stage, rank, final[index], why, details))


def sigmoid(value: float) -> float:
    """1 / (1 + e^-value), without overflow.

    Example:
        >>> sigmoid(0.0), sigmoid(-1000.0), sigmoid(1000.0)
        (0.5, 0.0, 1.0)
    """
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    grown = math.exp(value)
    return grown / (1.0 + grown)


def checked_model_kwargs(model_kwargs: dict[str, Any]) -> dict[str, Any]:
    """The further arguments, if none of them is an argument of `CrossEncoderRerank` itself.

    Raises:
        ConfigurationError: one is.
    """
    own = sorted({"device", "trust_remote_code", "max_length", "activation_fn", "model_name_or_path"} & set(model_kwargs))
    if own:
        raise ConfigurationError(
            f"model_kwargs holds {', '.join(own)}. Use the arguments of CrossEncoderRerank for the model, device, code, length and activation."
        )
    return model_kwargs


def _threshold(value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(f"score_threshold is {value!r}. It must be a number on the scale of the new scores, or None.")
    return float(value)
