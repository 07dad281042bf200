"""From retrieved nodes and the texts around them to the passages that are shown: what is wanted, what fits, what becomes one."""

import copy
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import BaseNode, Node, NodeRelationship, RelatedNodeInfo, TextNode

from llama_index_advanced_rag.hierarchy.keys import PAGE_LABEL
from llama_index_advanced_rag.postprocessors.strips import Strip, Unit, Want, cut_units, grow_ranges, touching_groups
from llama_index_advanced_rag.postprocessors.surroundings import page_range, text_of
from llama_index_advanced_rag.text.lines import Span

_PREVIOUS, _NEXT, _PARENT = NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.PARENT


@dataclass(frozen=True, slots=True)
class Placed:
    """A retrieved node and where it lies.

    Attributes:
        node: the node.
        rank: its place among the given ones, from 0.
        strip: number of the strip.
        span: where its text lies in the strip.
        wanted: the part of the strip that is wanted; None = so many sentences on each side.
        in_section: the wanted part is the node's section.
    """

    node: BaseNode
    rank: int
    strip: int
    span: Span
    wanted: Span | None = None
    in_section: bool = False


@dataclass(frozen=True, slots=True)
class Expansion:
    """A passage to show.

    Attributes:
        node: a new node, or the retrieved one where nothing was added.
        ranks: places of the retrieved nodes in it, best first.
        before: sentences that were added before the retrieved ones.
        after: sentences that were added after them.
        whole: it holds the whole section of each of them.
    """

    node: BaseNode
    ranks: tuple[int, ...]
    before: int = 0
    after: int = 0
    whole: bool = False


class Expander:
    """Works out the passages; counts each sentence once.

    Args:
        strips: the texts.
        hits: the retrieved nodes in them, best first.
        nodes: the nodes of the strips by id, the retrieved ones at least.
        sentences: how many are wanted on each side of a hit without a wanted part.
        reach: characters around a hit in which sentences are looked for, see `cut_units`.
        count_tokens: tokens of a text.
        language: of the texts, see `sentence_spans`.
    """

    def __init__(
        self,
        strips: Sequence[Strip],
        hits: Sequence[Placed],
        nodes: Mapping[str, BaseNode],
        *,
        sentences: int,
        reach: int | None,
        count_tokens: Callable[[str], int],
        language: str,
    ) -> None:
        self._strips, self._hits, self._nodes, self._count_tokens = strips, hits, nodes, count_tokens
        spans: list[list[Span]] = [[] for _ in strips]
        for hit in hits:
            spans[hit.strip].append(hit.span)
        self._units = [cut_units(strip.text, held, reach=reach, language=language) for strip, held in zip(strips, spans, strict=True)]
        self._wants = [self._want(hit, sentences) for hit in hits]
        self._costs: dict[tuple[int, int], int] = {}

    def _want(self, hit: Placed, sentences: int) -> Want:
        units = self._units[hit.strip]
        first, last = _units_in(units, hit.span)
        if hit.wanted is not None:
            low, high = _units_in(units, hit.wanted)
        else:
            low = bisect_left(units, units[first].sentence - sentences, key=lambda unit: unit.sentence)
            high = bisect_right(units, units[last - 1].sentence + sentences, key=lambda unit: unit.sentence)
        return Want(hit.strip, first, last, min(low, first), max(high, last))

    def _cost(self, strip: int, unit: int) -> int:
        """Tokens of a sentence and the white space before it."""
        key = (strip, unit)
        if key not in self._costs:
            units = self._units[strip]
            self._costs[key] = self._count_tokens(self._strips[strip].text[units[unit - 1].end if unit else 0 : units[unit].end])
        return self._costs[key]

    def given_tokens(self) -> int:
        """Tokens of the retrieved nodes, what they share counted once."""
        return sum(self._cost(*unit) for unit in {(want.strip, unit) for want in self._wants for unit in range(want.first, want.last)})

    def expansions(self, room: int | None) -> list[Expansion]:
        """The passages, by the place of their best node.

        Args:
            room: most tokens that are added to what is given; None = no limit.
        """
        ranges = grow_ranges(self._wants, self._cost, room)
        groups = touching_groups([(want.strip, *grown) for want, grown in zip(self._wants, ranges, strict=True)], self._breaks())
        passages = [self._expansion(sorted(group), min(ranges[i][0] for i in group), max(ranges[i][1] for i in group)) for group in groups]
        return sorted(passages, key=lambda passage: passage.ranks[0])

    def _breaks(self) -> frozenset[tuple[int, int]]:
        """Where text of the document is left out between two pieces."""
        return frozenset(
            (number, bisect_left(self._units[number], segment.place, key=lambda unit: unit.start))
            for number, strip in enumerate(self._strips)
            for segment in strip.segments[1:]
            if segment.start is not None
        )

    def _expansion(self, group: Sequence[int], low: int, high: int) -> Expansion:
        hits = [self._hits[number] for number in group]
        best, strip, units = hits[0], self._strips[hits[0].strip], self._units[hits[0].strip]
        ranks = tuple(hit.rank for hit in hits)
        start = min(units[low].start, *(hit.span[0] for hit in hits))
        end = max(units[high - 1].end, *(hit.span[1] for hit in hits))
        if all((start, end) == hit.span for hit in hits):
            return Expansion(best.node, ranks)
        first = min(self._wants[number].first for number in group)
        last = max(self._wants[number].last for number in group)
        return Expansion(
            passage_node(best.node, self._nodes, strip, (start, end)),
            ranks,
            before=len({unit.sentence for unit in units[low:first]}),
            after=len({unit.sentence for unit in units[last:high]}),
            whole=all(hit.in_section for hit in hits) and all(low <= self._wants[number].low and self._wants[number].high <= high for number in group),
        )


def _units_in(units: Sequence[Unit], span: Span) -> Span:
    return bisect_right(units, span[0], key=lambda unit: unit.end), bisect_left(units, span[1], key=lambda unit: unit.start)


def passage_node(best: BaseNode, nodes: Mapping[str, BaseNode], strip: Strip, span: Span) -> TextNode:
    """A new node with a part of a strip as its text, and all else from the best node in it.

    Its offsets are those of the part, None where the part does not run on in the document. PREVIOUS and NEXT are those of
    the outermost nodes that lie in it whole, where these are known. Pages become a range when all nodes have one.

    Args:
        best: the node that lends its id and metadata.
        nodes: nodes of the strip by id, as many as are known.
        strip: the text.
        span: the part.
    """
    start, end = strip.document_span(*span) or (None, None)
    shape: dict[str, Any] = {"text_template": best.text_template} if isinstance(best, (TextNode, Node)) else {}
    return TextNode(
        id_=best.node_id,
        text=strip.text[span[0] : span[1]],
        start_char_idx=start,
        end_char_idx=end,
        metadata=copy.deepcopy(best.metadata) | _pages(nodes, strip, span),
        excluded_embed_metadata_keys=list(best.excluded_embed_metadata_keys),
        excluded_llm_metadata_keys=list(best.excluded_llm_metadata_keys),
        metadata_template=best.metadata_template,
        metadata_seperator=best.metadata_separator,
        relationships=_relations(best, nodes, strip, span),
        **shape,
    )


def _inside(nodes: Mapping[str, BaseNode], strip: Strip, span: Span, *, whole: bool) -> list[tuple[Span, BaseNode]]:
    """Known nodes that lie in a part of a strip, in the order of the text."""
    placed = [(held, nodes[node_id]) for node_id, held in strip.spans.items() if node_id in nodes]
    inside = [(held, node) for held, node in placed if held[1] > span[0] and held[0] < span[1]]
    return sorted(((held, node) for held, node in inside if not whole or (held[0] >= span[0] and held[1] <= span[1])), key=lambda item: item[0])


def _pages(nodes: Mapping[str, BaseNode], strip: Strip, span: Span) -> dict[str, str]:
    labels = [node.metadata.get(PAGE_LABEL) for _, node in _inside(nodes, strip, span, whole=False)]
    return {PAGE_LABEL: page_range([str(label) for label in labels])} if all(labels) and len(labels) > 1 else {}


def _relations(best: BaseNode, nodes: Mapping[str, BaseNode], strip: Strip, span: Span) -> dict[NodeRelationship, Any]:
    held = _inside(nodes, strip, span, whole=True)
    (first, head), tail_end = held[0], max(place[1] for place, _ in held)
    tail = next(node for place, node in reversed(held) if place[1] == tail_end)
    kept = {relation: info for relation, info in best.relationships.items() if relation is NodeRelationship.SOURCE}
    parents = {related.node_id for _, node in held if isinstance(related := node.relationships.get(_PARENT), RelatedNodeInfo)}
    wanted = [(_PARENT, best, len(parents) == 1)]
    wanted += [(_PREVIOUS, head, strip.complete or first[0] <= span[0]), (_NEXT, tail, strip.complete or tail_end >= span[1])]
    kept.update({relation: node.relationships[relation] for relation, node, known in wanted if known and relation in node.relationships})
    return kept


def is_expandable(node: BaseNode) -> bool:
    """Whether a node is a passage of text, and not a picture or a pointer to something else."""
    return type(node).__name__ not in ("ImageNode", "IndexNode", "ImageDocument") and isinstance(node, (TextNode, Node)) and bool(text_of(node).strip())
