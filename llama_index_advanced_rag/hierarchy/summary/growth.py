"""How a tree of summaries grows: what is missing is summarised and embedded, level by level.

The work is written once, as a generator that asks for summaries and vectors; the tree answers it, sync or async.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.summaries import Summary
from llama_index_advanced_rag.hierarchy.summary.cluster_history import ClusterHistory
from llama_index_advanced_rag.hierarchy.summary.node import SummaryNode, UnitText, cluster_id, digest_of, embedded_text
from llama_index_advanced_rag.ranking.clustering import place_in_clusters
from llama_index_advanced_rag.trace import report

REQUEST_TEXTS = 2048
_SHOWN_TITLES = 3

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ToSummarize:
    """A request for summaries of (title, text) pairs."""

    items: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ToEmbed:
    """A request for the vectors of texts."""

    texts: list[str]


Request = ToSummarize | ToEmbed


@dataclass(slots=True)
class Held:
    """A summary and the vector of its title and text; None until it is embedded."""

    summary: Summary
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What a summary is made of."""

    node_id: str
    title: str
    level: int
    text: str
    digest: str
    ref_doc_id: str | None = None
    members: tuple[str, ...] = ()


@dataclass
class Growth:
    """One update of a tree.

    Attributes:
        held: summaries and vectors by digest; those that are made are added at once, so that nothing is paid for twice when the model fails later.
        identity: of the summarizer.
        cluster_size: most members of a cluster; None = no clusters.
        before: the nodes of the tree before, whose clusters are kept as far as they can be.
        summarised: summaries made.
        embedded: texts embedded.
    """

    held: dict[str, Held]
    identity: str
    cluster_size: int | None
    before: Mapping[str, SummaryNode] = field(default_factory=dict[str, SummaryNode])
    summarised: int = 0
    embedded: int = 0
    nodes: dict[str, SummaryNode] = field(default_factory=dict[str, SummaryNode])

    def steps(self, units: Sequence[UnitText]) -> Generator[Request, Any, list[SummaryNode]]:
        """The whole update; yields requests, receives a list of `Summary` or of vectors, returns all nodes: units as given, then clusters from the bottom up.

        Raises:
            ConfigurationError: two units have one id.
        """
        level = yield from self._made([self._unit_source(unit) for unit in _with_text(units)])
        if self.cluster_size is not None:
            yield from self._clustered(level, self.cluster_size)
        return list(self.nodes.values())

    def _clustered(self, level: list[SummaryNode], size: int) -> Generator[Request, Any, None]:
        unchanged = [node.node_id for node in level if self.before.get(node.node_id) == node]
        history, height = ClusterHistory.of(children_of(self.before), unchanged=unchanged, count=len(level)), 0
        while len(level) > 1:
            height += 1
            groups = self._groups(level, size, history, height)
            if not groups and height > history.height:
                break
            made = yield from self._made([self._cluster_source(group) for group in groups])
            for node in made:
                history.follow(node.node_id, node.members)
            inside = {member for group in groups for member in group}
            level = [node for node in level if node.node_id not in inside] + made

    def vector(self, node: SummaryNode) -> Vector:
        """The vector of a node that is finished."""
        return cast(Vector, self.held[node.digest].vector)

    def _unit_source(self, unit: UnitText) -> Source:
        return Source(unit.unit_id, unit.title, unit.level, unit.text, digest_of(self.identity, unit.title, unit.text), unit.ref_doc_id)

    def _groups(self, level: Sequence[SummaryNode], size: int, history: ClusterHistory, height: int) -> list[list[str]]:
        """The clusters of one level, without those of one member."""
        ids = [node.node_id for node in level]
        waiting = history.waiting(ids, height)
        free = [node for node in level if node.node_id not in waiting]
        if not free:
            return []
        kept = [group for group in history.kept_groups(ids, height) if len(group) <= size]
        if waiting and not kept:  # what is new finds its place where the others have theirs
            return []
        vectors = np.stack([self.vector(node) for node in free])
        return [group for group in place_in_clusters([node.node_id for node in free], vectors, kept, max_size=size) if len(group) > 1]

    def _cluster_source(self, members: Sequence[str]) -> Source:
        nodes = [self.nodes[member] for member in members]
        title, text = self._common_title(nodes), "\n\n".join(node.embedded_text for node in nodes)
        level = min(0, *(node.level for node in nodes)) - 1
        return Source(cluster_id(members), title, level, text, digest_of(self.identity, title, text), members=tuple(members))

    def _common_title(self, nodes: Sequence[SummaryNode]) -> str:
        """The titles of the members nearest to the middle."""
        vectors = np.stack([self.vector(node) for node in nodes]).astype(np.float64)
        units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        order = np.argsort(-np.round(units @ units.mean(axis=0), 9), kind="stable").tolist()
        titles = list(dict.fromkeys(nodes[index].title for index in order if nodes[index].title))
        return "; ".join(titles[:_SHOWN_TITLES])

    def _made(self, sources: Sequence[Source]) -> Generator[Request, Any, list[SummaryNode]]:
        yield from self._summarised(sources)
        yield from self._embedded(sources)
        made = [_node(source, self.held[source.digest]) for source in sources]
        self.nodes.update((node.node_id, node) for node in made)
        return made

    def _summarised(self, sources: Sequence[Source]) -> Generator[Request, Any, None]:
        """Ask for the summaries that are not held, and once more for those that an LLM failed to write."""
        missing = {source.digest: source for source in sources if self._is_missing(source.digest)}
        if not missing:
            return
        summaries: Sequence[Summary] = yield ToSummarize([(source.title, source.text) for source in missing.values()])
        for digest, summary in zip(missing, summaries, strict=True):
            before = self.held.get(digest)
            if before is None or before.summary.text != summary.text:
                self.held[digest] = Held(summary)
        self.summarised += len(missing)

    def _is_missing(self, digest: str) -> bool:
        held = self.held.get(digest)
        return held is None or held.summary.is_fallback

    def _embedded(self, sources: Sequence[Source]) -> Generator[Request, Any, None]:
        """Ask for the vectors that are not held, short texts first, a bounded number at once."""
        texts = {source.digest: embedded_text(source.title, self.held[source.digest].summary.text) for source in sources}
        missing = sorted((digest for digest in texts if self.held[digest].vector is None), key=lambda digest: (len(texts[digest]), digest))
        for start in range(0, len(missing), REQUEST_TEXTS):
            asked = missing[start : start + REQUEST_TEXTS]
            vectors: Sequence[Vector] = yield ToEmbed([texts[digest] for digest in asked])
            for digest, vector in zip(asked, vectors, strict=True):
                self.held[digest].vector = vector
            self.embedded += len(asked)


def _with_text(units: Sequence[UnitText]) -> Iterator[UnitText]:
    repeated = [unit_id for unit_id, count in Counter(unit.unit_id for unit in units).items() if count > 1]
    if repeated:
        raise ConfigurationError(f"{len(repeated)} unit ids occur more than once, {repeated[0]!r} for example. Expected one unit for each id.")
    empty = 0
    for unit in units:
        if unit.title.strip() or unit.text.strip():
            yield unit
        else:
            empty += 1
    if empty:
        report("info", f"{empty} units have neither a title nor a text and get no summary.")


def _node(source: Source, held: Held) -> SummaryNode:
    return SummaryNode(source.node_id, source.title, source.level, held.summary.text, source.digest, source.ref_doc_id, source.members)


def children_of(nodes: Mapping[str, SummaryNode]) -> dict[str, tuple[str, ...]]:
    """The members of each cluster."""
    return {node.node_id: node.members for node in nodes.values() if node.members}
