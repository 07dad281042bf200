"""Answers made of what was retrieved, with citations that resolve to node and character span, with or without an LLM."""

import copy
import inspect
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llama_index.core import Settings
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import resolve_llm
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import Self

from llama_index_advanced_rag.answering.turn import Turn, open_turn
from llama_index_advanced_rag.answering.writer import AnswerWriter
from llama_index_advanced_rag.errors import ConfigurationError, UnknownArgumentError
from llama_index_advanced_rag.nested_prompts import update_nested_prompts
from llama_index_advanced_rag.prompts import GROUNDED_ANSWER, GROUNDED_ANSWER_PROMPT
from llama_index_advanced_rag.query_engines.query_event import query_event
from llama_index_advanced_rag.query_engines.responding import arespond, respond
from llama_index_advanced_rag.text.analyzer import TextAnalyzer

dispatcher = get_dispatcher(__name__)
logger = logging.getLogger(__name__)
_said_unused: list[bool] = []


class GroundedQueryEngine(BaseQueryEngine):
    """Answers a question from what a retriever finds; every statement can carry `[n]`, and each `[n]` resolves.

    With an LLM: one call; the sentences of the retrieved nodes are numbered, the LLM cites numbers, they are renumbered in
    order of use, marks of sentences that do not exist are taken out and reported, and cited statements are checked by
    words, numbers and names. Without: no call; the best sentences of the best nodes are quoted and cited, and where none
    answers, that is said. An LLM that fails or says nothing is replaced by the quoted sentences (`metadata["fallback"]`).
    A retriever or postprocessor that fails raises: what it was to keep out must not slip in. An empty question is answered
    by a sentence that says so; of a question above 4000 characters the beginning and the end are used.

    The response has `source_nodes` = the cited nodes in order of first use (none cited: empty) and JSON-serialisable
    `metadata`: `citations` (see `Citation`), `retrieved` (node ids), `support` (see `SupportReport`), `usage`, `fallback`,
    `trace`. In a stream both are completed, in place, when the stream ends or is dropped.

    Args:
        retriever: finds the nodes.
        llm: writes the answer; None = quoted sentences, and `Settings.llm` is not touched.
        node_postprocessors: applied to the nodes, in order.
        embed_model: helps to choose sentences to quote, beside their words: it finds a paraphrase, and takes the time of 16 to 48
            embeddings; None = words only. Not used while the LLM answers.
        language: ISO code, or "auto" = as the question.
        max_context_tokens: most tokens of numbered sentences sent to the LLM; less where its context window is smaller.
        max_sentences: most sentences quoted without an LLM.
        answer_prompt: template with `context_str` and `query_str`; None = `prompts.GROUNDED_ANSWER_PROMPT`.
        streaming: return `StreamingResponse` (`AsyncStreamingResponse` from `aquery`), with or without an LLM.
        callback_manager: LlamaIndex's; None = `Settings.callback_manager`.

    Raises:
        ConfigurationError: a limit is below 1, or the language is unknown.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.retrievers.lexical import LexicalRetriever
        >>> retriever = LexicalRetriever.from_defaults(nodes=[TextNode(id_="n1", text="Foxes eat mice. Cats sleep all day.")], language="en")
        >>> response = GroundedQueryEngine(retriever, language="en").query("What do foxes eat?")
        >>> str(response), response.metadata["citations"][0]["end"]
        ('Foxes eat mice. [1]', 15)
    """

    def __init__(
        self,
        retriever: BaseRetriever,
        *,
        llm: LLM | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        embed_model: BaseEmbedding | None = None,
        language: str = "auto",
        max_context_tokens: int = 3000,
        max_sentences: int = 3,
        answer_prompt: BasePromptTemplate | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        for name, value in (("max_context_tokens", max_context_tokens), ("max_sentences", max_sentences)):
            if value < 1:
                raise ConfigurationError(f"{name} is {value!r}. It must be at least 1.")
        TextAnalyzer(language)  # refuses an unknown one now, not at the first question
        super().__init__(callback_manager=callback_manager or Settings.callback_manager)
        self._retriever = retriever
        self._node_postprocessors = list(node_postprocessors or [])
        self._writer = AnswerWriter(
            llm, embed_model, answer_prompt or GROUNDED_ANSWER_PROMPT, language=language, max_context_tokens=max_context_tokens, max_sentences=max_sentences
        )
        self._streaming = streaming
        if llm is None:
            report_unused_llm()

    @classmethod
    def from_args(cls, retriever: BaseRetriever, llm: LLM | str | None = None, **kwargs: Any) -> Self:
        """An engine from LlamaIndex's way of naming an LLM.

        Args:
            retriever: finds the nodes.
            llm: an LLM or its name as in `Settings.llm`; None = no LLM.
            **kwargs: arguments of the constructor.

        Raises:
            UnknownArgumentError: the constructor has no such argument.
        """
        names = sorted(set(inspect.signature(cls).parameters) - {"retriever", "llm"})
        unknown = sorted(set(kwargs) - set(names))
        if unknown:
            raise UnknownArgumentError(f"{cls.__name__} has no argument {', '.join(map(repr, unknown))}. It takes {', '.join(names)}.")
        return cls(retriever, llm=None if llm is None else resolve_llm(llm), **kwargs)

    from_defaults = from_args

    @property
    def retriever(self) -> BaseRetriever:
        """The retriever."""
        return self._retriever

    @property
    def language(self) -> str:
        """ISO code, "auto" or "none"."""
        return self._writer.language

    @property
    def llm(self) -> LLM | None:
        """What writes the answer; None = sentences are quoted."""
        return self._writer.llm

    @property
    def answer_prompt(self) -> BasePromptTemplate:
        """The prompt that the LLM answers."""
        return self._writer.prompt

    def with_retriever(self, retriever: BaseRetriever) -> Self:
        """The same engine over another retriever; this object stays as it is."""
        other = copy.copy(self)
        other._retriever = retriever  # noqa: SLF001
        return other

    def with_streaming(self, streaming: bool) -> Self:
        """The same engine with or without streaming; this object stays as it is."""
        other = copy.copy(self)
        other._streaming = streaming  # noqa: SLF001
        return other

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The nodes for a question, after the postprocessors."""
        return self.refine(query_bundle, self._retriever.retrieve(query_bundle))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The async twin of `retrieve`."""
        return await self.arefine(query_bundle, await self._retriever.aretrieve(query_bundle))

    def refine(self, query_bundle: QueryBundle, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """What the postprocessors make of nodes, best first."""
        for postprocessor in self._node_postprocessors:
            nodes = postprocessor.postprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    async def arefine(self, query_bundle: QueryBundle, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        """The async twin of `refine`."""
        for postprocessor in self._node_postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_bundle=query_bundle)
        return nodes

    def synthesize(
        self, query_bundle: QueryBundle, nodes: Sequence[NodeWithScore], additional_source_nodes: Sequence[NodeWithScore] | None = None
    ) -> RESPONSE_TYPE:
        """Answer from given nodes, best first; `additional_source_nodes` are listed behind the cited ones."""
        with open_turn(query_bundle, language=self._writer.language, stage="answer") as turn:
            turn.nodes, turn.additional = list(nodes), additional_source_nodes or ()
            return self.answer_turn(turn)

    async def asynthesize(
        self, query_bundle: QueryBundle, nodes: Sequence[NodeWithScore], additional_source_nodes: Sequence[NodeWithScore] | None = None
    ) -> RESPONSE_TYPE:
        """The async twin of `synthesize`."""
        with open_turn(query_bundle, language=self._writer.language, stage="answer") as turn:
            turn.nodes, turn.additional = list(nodes), additional_source_nodes or ()
            return await self.aanswer_turn(turn)

    @dispatcher.span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with query_event(self.callback_manager, query_bundle) as outcome, open_turn(query_bundle, language=self._writer.language, stage="grounded") as turn:
            turn.nodes = self.retrieve(turn.bundle) if turn.question else []
            outcome.append(self.answer_turn(turn))
        return outcome[0]

    @dispatcher.span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with query_event(self.callback_manager, query_bundle) as outcome, open_turn(query_bundle, language=self._writer.language, stage="grounded") as turn:
            turn.nodes = await self.aretrieve(turn.bundle) if turn.question else []
            outcome.append(await self.aanswer_turn(turn))
        return outcome[0]

    def answer_turn(self, turn: Turn) -> RESPONSE_TYPE:
        """The answer of a turn whose nodes are known, as a stream where this engine streams."""
        return respond(self._writer, turn, streaming=self._streaming)

    async def aanswer_turn(self, turn: Turn) -> RESPONSE_TYPE:
        """The async twin of `answer_turn`."""
        return await arespond(self._writer, turn, streaming=self._streaming)

    def update_prompts(self, prompts_dict: PromptDictType) -> None:
        """Replace prompts by the names that `get_prompts` gives; the others stay.

        Raises:
            ValueError: a name speaks of a part that does not exist.
        """
        update_nested_prompts(self, prompts_dict)

    def _get_prompts(self) -> PromptDictType:
        return {GROUNDED_ANSWER: self._writer.prompt}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        unknown = sorted(name for name in prompts if name != GROUNDED_ANSWER and ":" not in name)
        if unknown:
            raise ConfigurationError(f"There is no prompt {', '.join(map(repr, unknown))} here. The prompts are {', '.join(map(repr, self.get_prompts()))}.")
        if GROUNDED_ANSWER in prompts:
            self._writer = replace(self._writer, prompt=prompts[GROUNDED_ANSWER])

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"retriever": self._retriever}


def report_unused_llm() -> None:
    """Say, once a process, that `Settings.llm` is set and is not used because no LLM was given."""
    if Settings._llm is None or _said_unused:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the property would resolve a default LLM
        return
    _said_unused.append(True)
    logger.warning("Settings.llm is set, but no LLM was given here, so none is used: answers quote the documents. Pass llm=Settings.llm to use it.")
