"""The context of an answer: the sentences of the retrieved nodes, numbered, each resolving to node id and character span."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from llama_index.core.schema import MetadataMode, NodeWithScore

from llama_index_advanced_rag.prompts import escape_tags
from llama_index_advanced_rag.text.sentences import sentence_spans
from llama_index_advanced_rag.text.table_rows import join_head_lines

_TAGS = ("context", "question", "conversation", "message")
_WIDEST_GAP = 16  # characters, white space in practice, between nodes that follow each other
_BRACKETED_NUMBERS = re.compile(r"\[(\s*\d+(?:\s*[,;–-]\s*\d+)*\s*)\]")


@dataclass(frozen=True, slots=True)
class NumberedSentence:
    """One sentence of the context and where it stands.

    Attributes:
        number: position in the context, from 1.
        node_id: node it was read from.
        ref_doc_id: document of that node, None when the node has none.
        start: first character in the node's text.
        end: character after the last one in the node's text: `text[start:end]` is the sentence.
        document_start: first character in the document's text; None when the node does not say where it stands.
        document_end: character after the last one in the document's text, or None.
        text: the sentence as it stands in the node.
        node_rank: rank of the node among the retrieved ones, from 1.
        score: score of the node, None when it has none.
        title: title of the document, "" when unknown.
        page_label: page as printed or counted, "" when unknown.
        passage: number of the passage: nodes of a document that follow each other are read as one.
        indent: white space before it on its line, 0 when it does not begin a line.
    """

    number: int
    node_id: str
    ref_doc_id: str | None
    start: int
    end: int
    document_start: int | None
    document_end: int | None
    text: str
    node_rank: int
    score: float | None
    title: str = ""
    page_label: str = ""
    passage: int = 0
    indent: int = 0


@dataclass(frozen=True, slots=True)
class NumberedContext:
    """What the answer may be made of.

    Attributes:
        sentences: in the order of the passages, then of the text; `sentences[n - 1].number == n`.
        prompt_text: the same as text for a prompt, with a head line for each node.
        left_out: node ids of which at least one sentence did not fit.
    """

    sentences: tuple[NumberedSentence, ...] = ()
    prompt_text: str = ""
    left_out: tuple[str, ...] = ()

    def sentence(self, number: int) -> NumberedSentence | None:
        """The sentence with this number, None when there is none."""
        return self.sentences[number - 1] if 1 <= number <= len(self.sentences) else None


def number_sentences(nodes: Sequence[NodeWithScore], *, language: str = "auto") -> NumberedContext:
    """Number the sentences of nodes, best node first.

    Nodes of a document that touch or overlap are one passage, read in the order of the text in the place of the best of them,
    so that a table keeps its head and a list its announcement. A sentence that overlapping chunks of one document share is
    shown once. Text of documents is data: it stands on one line behind its number, tags of our prompts are escaped and
    bracketed numbers become `(3)`, so that neither can pass for a number or an end of the context.

    Args:
        nodes: retrieved nodes, best first; they are read, never changed.
        language: ISO code, or "auto".

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> node = NodeWithScore(node=TextNode(id_="n1", text="Foxes are red. They run.", metadata={"title": "Foxes"}))
        >>> context = number_sentences([node])
        >>> print(context.prompt_text)
        # Foxes
        [1] Foxes are red.
        [2] They run.
        >>> context.sentence(2).start
        15
    """
    sentences: list[NumberedSentence] = []
    shown = _Shown()
    for number, passage in enumerate(_passages(_distinct(nodes)), start=1):
        for rank, node in passage:
            fresh = [sentence for sentence in _sentences_of(node, rank, language) if not shown.seen(sentence)]
            sentences += [replace(sentence, passage=number) for sentence in fresh]
    return numbered_context(sentences)


def numbered_context(sentences: Sequence[NumberedSentence], *, left_out: Sequence[str] = ()) -> NumberedContext:
    """A context of these sentences, in this order, with new numbers.

    Args:
        sentences: sentences of one context.
        left_out: ids of the nodes that are not shown wholly.
    """
    numbered = tuple(replace(sentence, number=number) for number, sentence in enumerate(sentences, start=1))
    lines: list[str] = []
    for before, sentence in zip([None, *numbered], numbered, strict=False):
        if (head := head_line(sentence)) and (before is None or before.node_id != sentence.node_id):
            lines.append(head)
        lines.append(f"[{sentence.number}] {inert(sentence.text)}")
    return NumberedContext(numbered, "\n".join(lines), tuple(left_out))


def head_line(sentence: NumberedSentence) -> str:
    """The line that tells document and page above the first sentence of a node; "" when nothing is known."""
    parts = (inert(sentence.title), f"page {inert(sentence.page_label)}" if sentence.page_label else "")
    told = ", ".join(part for part in parts if part)
    return f"# {told}" if told else ""


def inert(text: str) -> str:
    """Text of a document made safe inside a prompt or an answer: one line, no tag of ours, no `[3]`.

    Example:
        >>> inert("a</context>[3]  b")
        'a&lt;/context>(3) b'
    """
    return _BRACKETED_NUMBERS.sub(r"(\1)", escape_answer_tags(" ".join(text.split())))


def escape_answer_tags(text: str) -> str:
    """The text with the tags of the prompts for answers escaped, so that it cannot end or begin a part of the prompt."""
    return escape_tags(text, *_TAGS)


@dataclass
class _Shown:
    spans: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])
    texts: set[tuple[str | None, str]] = field(default_factory=set[tuple[str | None, str]])

    def seen(self, sentence: NumberedSentence) -> bool:
        """Whether the sentence stands inside one that came before; remembers it."""
        if sentence.document_start is None or sentence.document_end is None or sentence.ref_doc_id is None:
            key = (sentence.ref_doc_id or sentence.node_id, " ".join(sentence.text.split()))
            known = key in self.texts
            self.texts.add(key)
            return known
        spans = self.spans.setdefault(sentence.ref_doc_id, [])
        inside = any(start <= sentence.document_start and sentence.document_end <= end for start, end in spans)
        spans.append((sentence.document_start, sentence.document_end))
        return inside


def _distinct(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    first: dict[str, NodeWithScore] = {}
    for node in nodes:
        first.setdefault(node.node.node_id, node)
    return list(first.values())


def _passages(nodes: Sequence[NodeWithScore]) -> list[list[tuple[int, NodeWithScore]]]:
    """Nodes with their ranks, those that follow each other in a document together."""
    ranked = {node.node.node_id: (rank, node) for rank, node in enumerate(nodes, start=1)}
    chains: dict[str, list[tuple[int, NodeWithScore]]] = {}
    last: tuple[str | None, int] | None = None
    chain: list[tuple[int, NodeWithScore]] = []
    for ref_doc_id, start, end, node_id in sorted(filter(None, map(_place, nodes))):
        if last is None or last[0] != ref_doc_id or start > last[1] + _WIDEST_GAP:
            chain, last = [], (ref_doc_id, end)
        chain.append(ranked[node_id])
        chains[node_id], last = chain, (ref_doc_id, max(end, last[1]))
    passages: dict[int, list[tuple[int, NodeWithScore]]] = {}
    for node_id, alone in ranked.items():
        passage = chains.get(node_id, [alone])
        passages.setdefault(id(passage), passage)
    return list(passages.values())


def _place(node: NodeWithScore) -> tuple[str, int, int, str] | None:
    length = len(node.node.get_content(metadata_mode=MetadataMode.NONE))
    start, ref_doc_id = _document_offset(node, length), node.node.ref_doc_id
    return None if start is None or ref_doc_id is None else (ref_doc_id, start, start + length, node.node.node_id)


def _title_and_page(node: NodeWithScore) -> tuple[str, str]:
    metadata = node.node.metadata
    title = metadata.get("title") or metadata.get("file_name") or metadata.get("file_path") or ""
    return str(title), str(metadata.get("page_label") or "")


def _sentences_of(node: NodeWithScore, rank: int, language: str) -> Iterator[NumberedSentence]:
    text = node.node.get_content(metadata_mode=MetadataMode.NONE)
    offset = _document_offset(node, len(text))
    title, page = _title_and_page(node)
    score = None if node.score is None else float(node.score)
    for start, end in join_head_lines(text, sentence_spans(text, language=language)):
        where = (None, None) if offset is None else (offset + start, offset + end)
        ids = node.node.node_id, node.node.ref_doc_id
        yield NumberedSentence(0, *ids, start, end, *where, text[start:end], rank, score, title, page, indent=_indent(text, start))


def _indent(text: str, start: int) -> int:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    return len(before) if before.isspace() else 0


def _document_offset(node: NodeWithScore, length: int) -> int | None:
    start, end = getattr(node.node, "start_char_idx", None), getattr(node.node, "end_char_idx", None)
    # A splitter that changed white space gives offsets that no longer fit the text: no document span then.
    return start if start is not None and (end is None or end - start == length) else None
