"""The hits of all detectors gathered by region: each candidate with its evidence, and its score."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from llama_index.core.schema import BaseNode

from llama_index_advanced_rag.hierarchy.keys import PATH_SEPARATOR
from llama_index_advanced_rag.hierarchy.units import UnitTable
from llama_index_advanced_rag.ranking.anchors import RegionSignals, heading_match, nested_title, rank_regions
from llama_index_advanced_rag.ranking.score_scale import ScoreRange, scale_scores
from llama_index_advanced_rag.retrievers.anchors.lines import AnchorLine, Keywords, heading_words, read_lines
from llama_index_advanced_rag.retrievers.anchors.read_nodes import ReadHit, ReadNode
from llama_index_advanced_rag.retrievers.anchors.regions import Region, region_of_unit

_SHOWN_LINES = 5
_RUNNING_PAGES, _RUNNING_SHARE = 4, 0.5


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that a detector found.

    Attributes:
        read: its node, as it was read.
        lines: its lines with keywords.
        lexical: its lexical score, the best of the search 1; 0 when only its embedding was near.
        similarity: its embedding similarity on the scale of the search, 0 to 1; 0 when it was not found by that.
        raw_similarity: the similarity as the retriever gave it.
    """

    read: ReadNode
    lines: tuple[AnchorLine, ...] = ()
    lexical: float = 0.0
    similarity: float = 0.0
    raw_similarity: float | None = None

    @classmethod
    def of(cls, node: BaseNode) -> "Passage":
        """One that no detector found."""
        return cls(ReadNode.of(node))

    @property
    def node(self) -> BaseNode:
        """Its node."""
        return self.read.node

    @property
    def anchor(self) -> float:
        """How good its best hit is, above 0: decides which passage of a region is read first."""
        return 1e-9 + self.best_line + self.lexical + self.similarity

    @property
    def best_line(self) -> float:
        """Score of its best line; 0 when it has none."""
        return max([line.score for line in self.lines], default=0.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A region and why it may hold the answer.

    Attributes:
        region: the region.
        passages: its passages that were found, in the order of the text.
        signals: what the detectors say, each 0 to 1.
        title_words: keywords in its headings, as written.
        score: `ranking.anchors.score_region`, after an arbiter `apply_verdict`.
        reason: what the arbiter says about it; None when it did not name it.
    """

    region: Region
    passages: tuple[Passage, ...] = ()
    signals: RegionSignals = field(default_factory=RegionSignals)
    title_words: tuple[str, ...] = ()
    score: float = 0.0
    reason: str | None = None

    @property
    def known_by(self) -> str:
        """Id of the region's node; where it has none, of its first passage."""
        return self.passages[0].node.node_id if self.region.unit is None and self.passages else self.region.key

    def best_lines(self, limit: int = _SHOWN_LINES) -> list[AnchorLine]:
        """Its best lines, best first."""
        lines = [line for passage in self.passages for line in passage.lines]
        return sorted(lines, key=lambda line: (-line.score, line.start))[:limit]

    def why(self) -> str:
        """One sentence for a person."""
        parts = [f"line {line.text!r}" + ("" if line.page is None else f" (p. {line.page})") for line in self.best_lines(1)]
        parts += [f"title words: {', '.join(self.title_words)}"] if self.title_words else []
        similar = max((passage.raw_similarity for passage in self.passages if passage.raw_similarity is not None), default=None)
        parts += [] if similar is None else [f"similarity {similar:.2f}"]
        parts += [f"chosen: {self.reason}"] if self.reason else []
        return f"{self.region.name}: {', '.join(parts)}" if parts else self.region.name

    def details(self, keywords: Keywords) -> dict[str, Any]:
        """Everything as JSON values: the region, its signals, its best lines with page and offset, its passages, the arbiter's reason."""
        region, signals = self.region, self.signals
        return {
            "region": {"kind": region.kind, "ref_doc_id": region.ref_doc_id, "path": region.path, "title": region.title, "page": region.page},
            "score": self.score,
            "signals": {name: getattr(signals, name) for name in ("document", "title", "line", "together", "passage", "similarity")},
            "lines": [
                {"text": line.text, "page": line.page, "start": line.start, "node_id": line.node_id, "words": keywords.named(line.words), "score": line.score}
                for line in self.best_lines()
            ],
            "title_words": list(self.title_words),
            "passages": {one.node.node_id: {"lexical": one.lexical, "similarity": one.raw_similarity} for one in self.passages},
            "reason": self.reason,
        }


def read_passages(keywords: Keywords, lexical: Sequence[ReadHit], dense: Sequence[ReadHit] | None) -> list[Passage]:
    """The passages that the detectors found, each once; a node that was split into others is none.

    Args:
        keywords: the words of the question.
        lexical: hits by words with their scores, best first.
        dense: hits by embedding, best first; None = not asked.
    """
    found: dict[str, Passage] = {}
    for (read, _), score in zip(lexical, scale_scores([score for _, score in lexical], ScoreRange(0.0, None)), strict=True):
        if not read.is_split and read.node.node_id not in found:
            found[read.node.node_id] = Passage(read, tuple(read_lines(read.node, keywords)), lexical=score)
    near = [(read, raw) for read, raw in dense or [] if not read.is_split]
    for (read, raw), score in zip(near, scale_scores([raw for _, raw in near], natural=ScoreRange(0.0, 1.0)), strict=True):
        known = found.get(read.node.node_id) or Passage(read, tuple(read_lines(read.node, keywords)))
        similarity = max(score, known.similarity)
        found[read.node.node_id] = Passage(known.read, known.lines, known.lexical, similarity, None if raw is None else float(raw))
    return _without_running_lines(list(found.values()))


def _without_running_lines(passages: Sequence[Passage]) -> list[Passage]:
    """The passages; a line that is the same on several pages of a document, figures aside, is a head or foot of its pages and has half its score."""
    pages: dict[tuple[str, str], set[str]] = defaultdict(set)
    keys = [_running_keys(passage) for passage in passages]
    for passage, own in zip(passages, keys, strict=True):
        for line, key in zip(passage.lines, own, strict=True):
            if line.page is not None:
                pages[key].add(line.page)
    running = {key for key, on in pages.items() if len(on) >= _RUNNING_PAGES}

    def weighed(passage: Passage, own: Sequence[tuple[str, str]]) -> Passage:
        if running.isdisjoint(own):
            return passage
        lines = zip(passage.lines, own, strict=True)
        return replace(passage, lines=tuple(line._replace(score=line.score * _RUNNING_SHARE) if key in running else line for line, key in lines))

    return [weighed(passage, own) for passage, own in zip(passages, keys, strict=True)] if running else list(passages)


def _running_keys(passage: Passage) -> list[tuple[str, str]]:
    """By what each line of a passage is the same as one on another page."""
    return [(passage.read.document, line.running) for line in passage.lines]


def gather_candidates(
    passages: Iterable[Passage], titles: Iterable[int], table: UnitTable, keywords: Keywords, *, documents: Mapping[str, float], embedded: bool
) -> list[Candidate]:
    """The regions that were hit, best first; the last of a list of embeddings, which nothing else speaks for, has no score and is left out.

    Args:
        passages: what was found.
        titles: units whose heading holds keywords, as places in the table.
        table: documents and sections.
        keywords: the words of the question.
        documents: score of each document, 0 to 1; others have 0.
        embedded: embeddings were asked: a region without a hit of theirs has similarity 0.
    """
    regions: dict[str, Region] = {}
    held: dict[str, list[Passage]] = defaultdict(list)
    for passage in passages:
        region = passage.read.region(table)
        regions.setdefault(region.key, region)
        held[region.key].append(passage)
    for region in (region_of_unit(table, place) for place in titles):
        regions.setdefault(region.key, region)
    headings = _Headings(keywords, table)
    candidates = {
        key: _candidate(region, sorted(held[key], key=text_order), headings, documents.get(region.ref_doc_id, 0.0), embedded=embedded)
        for key, region in regions.items()
    }
    ranked = rank_regions({key: one.signals for key, one in candidates.items()}, {key: region.tie for key, region in regions.items()})
    found = ((candidates[key], score) for key, score in ranked if score > 0)
    return [Candidate(one.region, one.passages, one.signals, one.title_words, score) for one, score in found]


class _Heading(NamedTuple):
    """The keywords in a heading, and how well they match."""

    words: frozenset[int]
    match: float


_NO_HEADING = _Heading(frozenset(), 0.0)


class _Headings:
    """Keywords in headings; each heading is read once."""

    def __init__(self, keywords: Keywords, table: UnitTable) -> None:
        self.keywords = keywords
        self._table = table
        self._known: dict[str, _Heading] = {}
        self._paths: dict[str, _Heading] = {}

    def of(self, heading: str) -> _Heading:
        known = self._known.get(heading)
        if known is None:
            words, n_terms = heading_words(heading, self.keywords)
            known = self._known[heading] = _Heading(words, heading_match(self.keywords.share(words), len(words), n_terms))
        return known

    def above(self, path: str) -> _Heading:
        """The headings of a path together: all their keywords, and the best match."""
        known = self._paths.get(path)
        if known is None:
            found = [self.of(part) for part in path.split(PATH_SEPARATOR) if part]
            words = frozenset[int]().union(*(heading.words for heading in found))
            known = self._paths[path] = _Heading(words, max((heading.match for heading in found), default=0.0))
        return known

    def of_document(self, ref_doc_id: str) -> frozenset[int]:
        place = self._table.place_of_document(ref_doc_id)
        return frozenset() if place is None else self.of(self._table.units[place].title).words


def _candidate(region: Region, passages: Sequence[Passage], headings: _Headings, document: float, *, embedded: bool) -> Candidate:
    keywords = headings.keywords
    own = headings.of(region.title) if region.kind in ("section", "document") else _NO_HEADING
    above = headings.above(region.path.removesuffix(region.title))
    in_path = own.words | above.words
    in_headings = in_path | headings.of_document(region.ref_doc_id)
    by_page: dict[str | None, frozenset[int]] = {}
    for line in (line for passage in passages for line in passage.lines):
        by_page[line.page] = by_page.get(line.page, in_headings) | line.words
    signals = RegionSignals(
        document=document,
        title=nested_title(own.match, above.match),
        line=max((passage.best_line for passage in passages), default=0.0),
        together=max(map(keywords.share, by_page.values())) if by_page else keywords.share(in_headings),
        passage=max((passage.lexical for passage in passages), default=0.0),
        similarity=max((passage.similarity for passage in passages), default=0.0) if embedded else None,
    )
    return Candidate(region, tuple(passages), signals, tuple(keywords.named(in_path)) if in_path else ())


def text_order(passage: Passage) -> tuple[int, str]:
    """Where a passage stands in its document."""
    return getattr(passage.node, "start_char_idx", None) or 0, passage.node.node_id
