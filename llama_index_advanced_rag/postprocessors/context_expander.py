"""Give retrieved passages the text around them: sentences, neighbours or the whole section, nothing twice and within a budget."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.embeddings.window import default_window
from llama_index_advanced_rag.postprocessors.expansion import Expander, Expansion, Placed, is_expandable
from llama_index_advanced_rag.postprocessors.strips import Strip
from llama_index_advanced_rag.postprocessors.surroundings import Surroundings, piece_of, text_of
from llama_index_advanced_rag.retrievers.merging import Nodes, node_source_of, related_id
from llama_index_advanced_rag.stores.node_source import NodeSource
from llama_index_advanced_rag.text.sentences import MAX_SENTENCE_CHARS, sentence_spans
from llama_index_advanced_rag.trace import Evidence, report, stage_trace

_SECTION_STEPS = 16
_CHARS_PER_TOKEN = 16
_TRIES = 3


class ExpansionMode(str, Enum):
    """What is added: so many sentences or nodes on each side, or the section that a node stands in."""

    SENTENCES = "sentences"
    NEIGHBOURS = "neighbours"
    SECTION = "section"


class ContextExpander(BaseNodePostprocessor):
    """Adds to retrieved nodes the text around them, from the same document.

    Expansions that overlap or touch become one node, in which no sentence comes twice: with the id, the metadata, the score and
    the place of the best node in it, and with the true offsets where its text runs on in the document. Neighbours are found by
    PREVIOUS and NEXT relations, sections by PARENT, and read in one batch a step. Retrieved nodes are never dropped or cut; the
    best ones are expanded first, sentence by sentence, as far as `max_tokens` allows. Results are new objects, nothing given is
    changed. Pictures and pointers to other objects pass through. 0 LLM calls.

    Args:
        nodes: where the text around is read: a node source, a docstore, an index or a list of nodes.
        mode: "sentences": `window` sentences on each side; "neighbours": `window` nodes on each side; "section": the node's
            PARENT where it fits, else as many sentences of it around the node as fit.
        window: at least 1; not used for sections.
        max_tokens: most tokens of all texts together, in LlamaIndex's global tokenizer; what was retrieved is kept even
            when it is more. None = no limit.
        filters: what is added must come from nodes that match these: what a retriever may not find must not slip in here.
        language: of the texts, as ISO code; "auto" looks at each.
        callback_manager: kept for LlamaIndex; no event is emitted.

    Raises:
        ConfigurationError: an argument cannot work.

    Example:
        >>> from llama_index.core.schema import Document
        >>> from llama_index_advanced_rag.hierarchy.chunk_parser import SentenceChunkParser
        >>> document = Document(text="It was late. The fox slept. The hen did not. It was cold.", id_="fable")
        >>> nodes = SentenceChunkParser(chunk_size=5, chunk_overlap=0, language="en").get_nodes_from_documents([document])
        >>> expander = ContextExpander(nodes, mode="sentences", window=1)
        >>> [hit.text for hit in expander.postprocess_nodes([NodeWithScore(node=nodes[1], score=0.5)])]
        ['It was late. The fox slept. The hen did not.']
    """

    stage: ClassVar[str] = "expand"

    mode: ExpansionMode = Field(description="What is added.")
    window: int = Field(default=2, description="Sentences or nodes on each side.")
    max_tokens: int | None = Field(default=1024, description="Most tokens of all texts together.")
    language: str = Field(default="auto", description="ISO code of the language, or auto.")
    _nodes: NodeSource = PrivateAttr()
    _filters: MetadataFilters | None = PrivateAttr()
    _count_tokens: Callable[[str], int] = PrivateAttr()

    def __init__(
        self,
        nodes: Nodes,
        *,
        mode: ExpansionMode | str = ExpansionMode.SENTENCES,
        window: int = 2,
        max_tokens: int | None = 1024,
        filters: MetadataFilters | None = None,
        language: str = "auto",
        callback_manager: CallbackManager | None = None,
    ) -> None:
        fields: dict[str, Any] = {
            "mode": parse_choice(ExpansionMode, mode, argument="mode"),
            "window": whole_number("window", window),
            "max_tokens": None if max_tokens is None else whole_number("max_tokens", max_tokens),
            "language": language,
        }
        super().__init__(**fields, callback_manager=callback_manager or CallbackManager())
        self._nodes, self._filters = node_source_of(nodes), filters
        self._count_tokens = default_window().count_tokens

    @classmethod
    def class_name(cls) -> str:
        """Name used in serialised form."""
        return "ContextExpander"

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        with stage_trace(self.stage, query_bundle.query_str if query_bundle is not None else None) as trace:
            expansions = self._expanded(nodes)
            result = [NodeWithScore(node=expansion.node, score=_plain(nodes[expansion.ranks[0]].score)) for expansion in expansions]
            if trace is not None:
                trace.evidence += [_evidence(place, hit, expansion) for place, (hit, expansion) in enumerate(zip(result, expansions, strict=True), start=1)]
        return result

    async def _apostprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None) -> list[NodeWithScore]:
        return await in_thread(self._postprocess_nodes, nodes, query_bundle)

    def _expanded(self, nodes: Sequence[NodeWithScore]) -> list[Expansion]:
        """The passages in the order of their best nodes."""
        best_first = sorted(range(len(nodes)), key=lambda rank: (nodes[rank].score is None, -(nodes[rank].score or 0.0), rank))
        ranks = [rank for rank in best_first if is_expandable(nodes[rank].node)]
        left_alone = [Expansion(nodes[rank].node, (rank,)) for rank in best_first if not is_expandable(nodes[rank].node)]
        surroundings = Surroundings([nodes[rank].node for rank in ranks], self._nodes, self._filters)
        strips, hits = self._placed({rank: nodes[rank].node for rank in ranks}, surroundings)
        if surroundings.refused:
            some = next(iter(surroundings.refused))
            report("info", f"{len(surroundings.refused)} nodes around could not be read or do not match the filters, as {some!r}.")
        expander = Expander(
            strips, hits, surroundings.passages, sentences=self.window, reach=self._reach, count_tokens=self._count_tokens, language=self.language
        )
        taken = sum(self._count_tokens(text_of(expansion.node)) for expansion in left_alone)
        return sorted(left_alone + self._fitting(expander, taken), key=lambda expansion: expansion.ranks[0])

    def _fitting(self, expander: Expander, taken: int) -> list[Expansion]:
        """As much as the budget holds; the sum over sentences is checked against the real count."""
        if self.max_tokens is None:
            return expander.expansions(None)
        room = max(0, self.max_tokens - taken - expander.given_tokens())
        for _ in range(_TRIES):
            expansions = expander.expansions(room)
            excess = taken + sum(self._count_tokens(text_of(expansion.node)) for expansion in expansions) - self.max_tokens
            if excess <= 0 or room == 0:
                return expansions
            room = max(0, room - excess)
        return expander.expansions(0)

    def _placed(self, nodes: Mapping[int, BaseNode], surroundings: Surroundings) -> tuple[list[Strip], list[Placed]]:
        """The texts around the nodes, and where the nodes lie in them, best first."""
        hits = list(nodes.values())
        sections = self._sections(hits, surroundings) if self.mode is ExpansionMode.SECTION else {}
        self._walk([node for node in hits if node.node_id not in sections], surroundings)
        strips = surroundings.strips(hits, sections)
        strip_of = {node_id: number for number, strip in enumerate(strips) for node_id in strip.spans}
        placed: list[Placed] = []
        for rank, node in nodes.items():
            number, section = strip_of[node.node_id], sections.get(node.node_id)
            spans = strips[number].spans
            around = [node.node_id, *surroundings.around[node.node_id]] if section is None else [section.node_id]
            held = [spans[other] for other in around if strip_of[other] == number]
            wanted = None if self.mode is ExpansionMode.SENTENCES else (min(start for start, _ in held), max(end for _, end in held))
            placed.append(Placed(node, rank, number, spans[node.node_id], wanted, in_section=section is not None))
        return strips, placed

    def _walk(self, nodes: Sequence[BaseNode], surroundings: Surroundings) -> None:
        if self.mode is ExpansionMode.SENTENCES:
            surroundings.walk(nodes, far=self.window + 1, gain=self._count_sentences, steps=self.window + 2, reach=self._reach)
        elif self.mode is ExpansionMode.NEIGHBOURS:
            surroundings.walk(nodes, far=self.window, gain=lambda _: 1, steps=self.window)
        else:
            below = [node for node in nodes if related_id(node, NodeRelationship.PARENT) is not None]
            far = float("inf") if self.max_tokens is None else self.max_tokens
            surroundings.walk(below, far=far, gain=self._count_tokens, steps=_SECTION_STEPS, reach=self._reach, same_parent=True)

    def _count_sentences(self, text: str) -> int:
        return len(sentence_spans(text, language=self.language))

    @property
    def _reach(self) -> int | None:
        """Characters on each side of a node in which all lies that can be added."""
        if self.mode is ExpansionMode.SENTENCES:
            return (self.window + 2) * MAX_SENTENCE_CHARS
        return None if self.max_tokens is None else self.max_tokens * _CHARS_PER_TOKEN

    def _sections(self, hits: Sequence[BaseNode], surroundings: Surroundings) -> dict[str, BaseNode]:
        """The sections of nodes whose text is found in them, by the id of the node."""
        parents = {node.node_id: related_id(node, NodeRelationship.PARENT) for node in hits}
        surroundings.read(parent for parent in parents.values() if parent is not None)
        found = {node.node_id: surroundings.node(parents[node.node_id], of=node) for node in hits}
        return {node.node_id: section for node in hits if (section := found[node.node_id]) is not None and _holds(section, node)}

    def __repr__(self) -> str:
        return f"ContextExpander(mode={self.mode.value!r}, window={self.window}, max_tokens={self.max_tokens})"


def _holds(section: BaseNode, node: BaseNode) -> bool:
    """Whether the text of a node is found in its section, at its offsets where both are known."""
    whole, part = piece_of(section), piece_of(node)
    if whole.start is not None and part.start is not None and part.start >= whole.start:
        return whole.text.startswith(part.text, part.start - whole.start)
    return part.text in whole.text


def _plain(score: float | None) -> float | None:
    return None if score is None else float(score)


def _evidence(place: int, hit: NodeWithScore, expansion: Expansion) -> Evidence:
    details = {"before": expansion.before, "after": expansion.after, "hits": len(expansion.ranks)}
    return Evidence(hit.node_id, ContextExpander.stage, place, hit.score, _why(expansion), details)


def _why(expansion: Expansion) -> str:
    before, after = expansion.before, expansion.after
    several = f"{len(expansion.ranks)} retrieved nodes in one" if len(expansion.ranks) > 1 else ""
    if expansion.whole:
        added = "with its whole section"
    elif before == after:
        added = f"with {_sentences(before)} before and after" if before else ""
    else:
        added = "with " + " and ".join(f"{_sentences(count)} {side}" for count, side in ((before, "before"), (after, "after")) if count)
    return ", ".join(part for part in (several, added) if part) or "as it was retrieved"


def _sentences(count: int) -> str:
    return f"{count} sentence{'s' if count > 1 else ''}"
