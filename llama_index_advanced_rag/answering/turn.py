"""One question on its way to an answer.

Everything hangs on this object and not on context variables, because a stream may end in another context than it began in.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_advanced_rag.answering.citations import CitationWriter
from llama_index_advanced_rag.answering.context import NumberedContext, NumberedSentence, escape_answer_tags
from llama_index_advanced_rag.answering.support import SupportReport, check_support
from llama_index_advanced_rag.postprocessors.subgraph_context import tells_of_the_graph
from llama_index_advanced_rag.retrievers.base import own_bundle
from llama_index_advanced_rag.text.analyzer import TextAnalyzer, detect_language
from llama_index_advanced_rag.text.both_ends import both_ends
from llama_index_advanced_rag.text.languages import FALLBACK
from llama_index_advanced_rag.trace import Evidence, Level, RetrievalTrace, capture_trace
from llama_index_advanced_rag.usage import UsageLedger, capture_usage

MAX_QUESTION_CHARS = 4000
logger = logging.getLogger(__name__)


@dataclass
class Turn:
    """A question, what was found for it, and the answer as it grows.

    Attributes:
        question: the question, shortened to 4000 characters.
        bundle: a query bundle of our own with that question.
        language: ISO code or "auto"; the analyzer and the messages follow the question where it is "auto".
        trace: records the turn.
        ledger: counts the LLM calls of the turn.
        nodes: what was retrieved, best first.
        additional: nodes to be listed behind the cited ones.
        context: their numbered sentences.
        fallback: None, or why the answer is extractive although there is an LLM.
        text: the answer so far.
        source_nodes: the cited nodes; filled when the turn closes.
        metadata: `citations`, `retrieved`, `support`, `usage`, `fallback`, `trace`; filled when the turn closes.
        more: further metadata, JSON values.
    """

    question: str
    bundle: QueryBundle
    language: str
    trace: RetrievalTrace
    ledger: UsageLedger
    nodes: Sequence[NodeWithScore] = ()
    additional: Sequence[NodeWithScore] = ()
    context: NumberedContext = field(default_factory=NumberedContext)
    fallback: str | None = None
    text: str = ""
    source_nodes: list[NodeWithScore] = field(default_factory=list[NodeWithScore])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    more: dict[str, Any] = field(default_factory=dict[str, Any])
    _writer: CitationWriter = field(default_factory=lambda: CitationWriter(NumberedContext()))
    _started: float = field(default_factory=perf_counter)

    def note(self, level: Level, message: str) -> None:
        """Say what happened besides the answer, in the trace and in the log."""
        self.trace.note(level, message)
        logger.log(getattr(logging, level.upper()), "%s", message)

    def read(self, context: NumberedContext) -> None:
        """Take the context the answer is made from."""
        self.context = context
        self._writer = CitationWriter(context)
        if context.left_out:
            self.note("info", f"{len(context.left_out)} of {len(self.nodes)} nodes did not fit the context wholly; raise max_context_tokens to read them.")

    def fall_back(self, reason: str) -> None:
        """Say that the LLM gave no usable answer."""
        self.fallback = f"extractive answer, because {reason}"
        self.note("warning", f"The answer is extractive, because {reason}")

    @property
    def message_language(self) -> str:
        """Language of our own sentences: that of the question, else that of the corpus, else English."""
        return detect_language(self.question) or (self.language if self.language not in {"auto", "none"} else "en")

    @property
    def analyzer(self) -> TextAnalyzer:
        """One analyzer for question and sentences."""
        if self.language != "auto":
            return TextAnalyzer(self.language)
        sample = " ".join(sentence.text for sentence in self.context.sentences[:20])
        return TextAnalyzer(detect_language(self.question) or detect_language(sample) or FALLBACK)

    @property
    def quotable(self) -> list[NumberedSentence]:
        """The sentences of documents; what `SubgraphContext` says stands in none, and is there for an LLM to read."""
        made = {hit.node_id for hit in self.nodes if tells_of_the_graph(hit.node)}
        return [sentence for sentence in self.context.sentences if sentence.node_id not in made]

    @property
    def prompt_variables(self) -> dict[str, str]:
        """Variables of the answer prompt."""
        return {"context_str": self.context.prompt_text, "query_str": escape_answer_tags(self.question)}

    def write(self, delta: str) -> str:
        """Take a piece of the answer; returns the text that can be shown by now."""
        return self._wrote(self._writer.feed(delta))

    def end_text(self) -> str:
        """The text held back so far."""
        return self._wrote(self._writer.finish())

    def _wrote(self, piece: str) -> str:
        self.text += piece
        return piece

    def close(self) -> None:
        """Complete `source_nodes`, `metadata` and the trace; the second call changes nothing."""
        if "support" in self.metadata:
            return
        citations = self._writer.citations
        support = self._support()
        by_id = {node.node.node_id: node for node in reversed(self.nodes)}
        cited = list(dict.fromkeys(citation.node_id for citation in citations))
        for rank, node_id in enumerate(cited, start=1):
            node = by_id[node_id]
            score = None if node.score is None else float(node.score)
            self.source_nodes.append(NodeWithScore(node=node.node, score=score))
            marks = "".join(f"[{citation.number}]" for citation in citations if citation.node_id == node_id)
            self.trace.add(Evidence(node_id, "answer", rank, None, f"cited as {marks}"))
        self.source_nodes += [NodeWithScore(node=node.node, score=node.score) for node in self.additional]
        if support.dangling:
            self.note("warning", f"The answer cited sentences that do not exist: {', '.join(map(str, support.dangling))}. The marks were taken out.")
        self.trace.elapsed_ms = (perf_counter() - self._started) * 1000
        self.metadata.update(citations=[citation.to_dict() for citation in citations], support=support.to_dict())
        self.refresh_metadata()

    def refresh_metadata(self) -> None:
        """Bring the parts of the metadata that are known before the answer up to date."""
        self.metadata.setdefault("citations", [])
        self.metadata["retrieved"] = [node.node.node_id for node in self.nodes]
        self.metadata.update(self.more, usage=self.ledger.to_dict(), fallback=self.fallback, trace=self.trace.to_dict())

    def _support(self) -> SupportReport:
        return check_support(self.text, self._writer.citations, analyzer=self.analyzer, question=self.question, dangling=self._writer.dangling)


@contextmanager
def open_turn(query_bundle: QueryBundle, *, language: str, stage: str) -> Generator[Turn, None, None]:
    """Begin a turn: trace and usage are captured for the block; the given bundle is only read."""
    question = both_ends(query_bundle.query_str.strip(), MAX_QUESTION_CHARS)
    bundle = own_bundle(query_bundle)
    bundle.query_str = question
    with capture_trace(question, stage=stage) as trace, capture_usage() as ledger:
        turn = Turn(question, bundle, language, trace, ledger)
        if len(question) < len(query_bundle.query_str.strip()):
            turn.note("warning", f"The question has {len(query_bundle.query_str)} characters; its first and last words, {len(question)} characters, are used.")
        yield turn
