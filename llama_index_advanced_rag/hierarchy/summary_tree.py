"""Summaries of units, and if wanted of clusters of summaries, that can be searched: which documents and sections is a question about?"""

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import QueryBundle, TextNode
from typing_extensions import Self

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag._concurrency import CopyableLock, in_thread
from llama_index_advanced_rag.embeddings.identity import embedding_identity
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.hierarchy.summaries import Summarizer
from llama_index_advanced_rag.hierarchy.summary.codec import decode_tree, encode_tree
from llama_index_advanced_rag.hierarchy.summary.growth import Growth, Held, Vector
from llama_index_advanced_rag.hierarchy.summary.lookup import SummaryLookup
from llama_index_advanced_rag.hierarchy.summary.models import SummaryModels
from llama_index_advanced_rag.hierarchy.summary.node import SummaryNode, UnitText
from llama_index_advanced_rag.hierarchy.summary.shape import SummaryShape
from llama_index_advanced_rag.ranking.clustering import MAX_CLUSTER_SIZE
from llama_index_advanced_rag.ranking.tree_search import BEAM, TreeSearch, collapsed, pruned, top_down, units_below
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.trace import report

DENSE_WEIGHT = 0.7


@dataclass(frozen=True, slots=True)
class TreeUpdate:
    """What an update did.

    Attributes:
        units: units in the tree now.
        clusters: clusters in the tree now.
        summarised: summaries made in this update.
        embedded: texts embedded in this update.
        removed: units and clusters that were in the tree before and are not now.
    """

    units: int
    clusters: int
    summarised: int
    embedded: int
    removed: int


class SummaryTree:
    """Summaries of documents and sections, each embedded once, searched by words and meaning together.

    With `tree=True` the summaries are clustered by meaning, each cluster is summarised, and so on upwards until one root is left. A search
    returns units in either case; how clusters lead to them says `ranking.tree_search`.

    `update` makes what is missing and only that: a unit whose title and text are known keeps its summary and its vector, and so does a
    cluster whose members are unchanged. What is new joins the nearest cluster, so that one changed section costs a summary or two for
    each level; when more than a quarter of the units is new, all is clustered afresh. (A tree built at once may have other clusters than one
    that grew.) A summary that an LLM failed to write is tried again at the next update. When a model fails, what was paid for before is
    kept for the next attempt, and searches go on with the tree as it was.

    LLM calls: one for each new or changed unit and cluster when the summarizer has an LLM, else none; none in a search. Any number
    of threads may search during an update.

    Args:
        summarizer: writes the summaries; None = `Summarizer()`, which takes sentences of the texts.
        embed_model: embeds titles with summaries, and questions.
        tree: whether to cluster.
        cluster_size: most members of a cluster, at least 2.
        dense_weight: share of the meaning in a score, 0 to 1; the rest is that of the words.

    Raises:
        ConfigurationError: an argument is out of range.

    Source: Sarthi et al. 2024, "RAPTOR" (arXiv:2401.18059). Our deviations: the leaves are summaries of units and not chunks, clusters are hard,
    bounded and deterministic (`ranking.clustering`), scores are hybrid, and results are units.

    Example:
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> tree = SummaryTree(embed_model=DeterministicEmbedding())
        >>> units = [UnitText("s1", "farm.txt", "Foxes", 1, "The fox hunts at night."), UnitText("s2", "farm.txt", "Hens", 1, "The hen sleeps.")]
        >>> tree.update(units).embedded, tree.update(units).embedded
        (2, 0)
        >>> [(unit_id, round(score, 2)) for unit_id, score in tree.search("a fox at night", top_k=1)]
        [('s1', 1.0)]
    """

    def __init__(
        self,
        summarizer: Summarizer | None = None,
        *,
        embed_model: BaseEmbedding,
        tree: bool = False,
        cluster_size: int = MAX_CLUSTER_SIZE,
        dense_weight: float = DENSE_WEIGHT,
    ) -> None:
        if not 0.0 <= dense_weight <= 1.0:
            raise ConfigurationError(f"dense_weight is {dense_weight!r}. Expected a number from 0 to 1.")
        self._models = SummaryModels(summarizer or Summarizer(), embed_model)
        self._cluster_size = whole_number("cluster_size", cluster_size, least=2) if tree else None
        self._lookup = SummaryLookup(TextAnalyzer(self._models.summarizer.language), dense_weight=dense_weight)
        self._shape = SummaryShape()
        self._drafts: dict[str, Held] = {}
        self._writing = CopyableLock()

    @classmethod
    def build(
        cls, units: Sequence[UnitText], summarizer: Summarizer | None = None, *, embed_model: BaseEmbedding, show_progress: bool = False, **options: Any
    ) -> Self:
        """A tree over these units; `options` are arguments of the constructor."""
        built = cls(summarizer, embed_model=embed_model, **options)
        built.update(units, show_progress=show_progress)
        return built

    @classmethod
    async def abuild(
        cls, units: Sequence[UnitText], summarizer: Summarizer | None = None, *, embed_model: BaseEmbedding, show_progress: bool = False, **options: Any
    ) -> Self:
        """The async twin of `build`."""
        built = cls(summarizer, embed_model=embed_model, **options)
        await built.aupdate(units, show_progress=show_progress)
        return built

    def __len__(self) -> int:
        return len(self._shape.nodes)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._shape.nodes

    @property
    def summarizer(self) -> Summarizer:
        """Who writes the summaries."""
        return self._models.summarizer

    @property
    def children(self) -> dict[str, list[str]]:
        """The members of each cluster."""
        return {cluster: list(members) for cluster, members in self._shape.children.items()}

    @property
    def roots(self) -> list[str]:
        """What is in no cluster."""
        return list(self._shape.roots)

    def summaries(self) -> list[SummaryNode]:
        """All summaries: units in the order given, then clusters from the bottom up."""
        return list(self._shape.nodes.values())

    def nodes(self) -> list[TextNode]:
        """All summaries as LlamaIndex nodes without embedding: id of the unit or cluster, metadata `title`, `level` and `summary_of`."""
        return [node.to_text_node() for node in self.summaries()]

    def vectors(self) -> dict[str, Vector]:
        """Copies of the vectors, by id."""
        shape = self._shape
        return {node_id: shape.vector(node).copy() for node_id, node in shape.nodes.items()}

    def descend(self, cluster_id: str) -> list[str]:
        """The units under a cluster; of a unit itself, and of an unknown id nothing."""
        shape = self._shape
        return units_below(cluster_id, shape.children) if cluster_id in shape.nodes else []

    def update(self, units: Sequence[UnitText], *, show_progress: bool = False) -> TreeUpdate:
        """Make the tree one over these units; what is not among them goes.

        Raises:
            ConfigurationError: two units have one id, or the model gave no usable vectors.
            Exception: what the embedding model raised.
        """
        growth = self._growth()
        with self._keeping(growth):
            nodes = self._models.grow(growth, units, show_progress=show_progress)
        return self._become(nodes, growth)

    async def aupdate(self, units: Sequence[UnitText], *, show_progress: bool = False) -> TreeUpdate:
        """The async twin of `update`: models are awaited, everything else runs in a thread."""
        growth = self._growth()
        with self._keeping(growth):
            nodes = await self._models.agrow(growth, units, show_progress=show_progress)
        return await in_thread(self._become, nodes, growth)

    def search(
        self, query: QueryBundle | str, *, top_k: int, mode: TreeSearch | str = TreeSearch.COLLAPSED, beam: int = BEAM, unit_ids: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The units whose summaries answer a question best. One embedding of the question, unless it brings it; no LLM call.

        Args:
            query: a bundle or a text; an empty one finds nothing.
            top_k: most units returned, at least 1.
            mode: "collapsed" (all levels in one list) or "top_down" (under the best clusters only).
            beam: clusters opened at each level, for "top_down".
            unit_ids: only these units are candidates; None = all.

        Returns:
            (unit id, score), best first, scores in (0, 1]; equal ones by document and place in it.

        Raises:
            ConfigurationError: an argument is out of range.
        """
        bundle, parsed = _checked(query, top_k, mode, beam)
        if not self._shape.nodes or _is_empty(bundle):
            return []
        vector = self._models.query_vector(bundle)
        return self._found(bundle.query_str, vector, parsed, top_k, beam, unit_ids)

    async def asearch(
        self, query: QueryBundle | str, *, top_k: int, mode: TreeSearch | str = TreeSearch.COLLAPSED, beam: int = BEAM, unit_ids: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        """The async twin of `search`."""
        bundle, parsed = _checked(query, top_k, mode, beam)
        if not self._shape.nodes or _is_empty(bundle):
            return []
        vector = await self._models.aquery_vector(bundle)
        return await in_thread(self._found, bundle.query_str, vector, parsed, top_k, beam, unit_ids)

    def to_dict(self) -> dict[str, Any]:
        """Summaries and vectors as JSON values, without texts, models and settings."""
        shape = self._shape
        return encode_tree(list(shape.nodes.values()), shape.held, embedding=embedding_identity(self._models.embed_model))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], summarizer: Summarizer | None = None, *, embed_model: BaseEmbedding, **options: Any) -> Self:
        """The tree that `to_dict` described; `options` are arguments of the constructor.

        With another embedding model the tree is empty and a warning is reported; `update(units)` then embeds the stored summaries anew.

        Raises:
            IndexFormatError: damaged, or of another format version.
        """
        loaded = cls(summarizer, embed_model=embed_model, **options)
        nodes, held = decode_tree(data)
        before, now = data.get("embedding"), embedding_identity(embed_model)
        if before == now:
            loaded._show(nodes, held)
            return loaded
        loaded._drafts = {digest: Held(one.summary) for digest, one in held.items()}
        report("warning", f"The summaries were embedded with {before!r}, not with {now!r}. None is found before update(units).")
        return loaded

    def _growth(self) -> Growth:
        return Growth({**self._shape.held, **self._drafts}, self._models.summarizer.identity, self._cluster_size, self._shape.nodes)

    @contextmanager
    def _keeping(self, growth: Growth) -> Generator[None, None, None]:
        """What was made before a failure, or before a task was cancelled, is kept for the next attempt."""
        try:
            yield
        except BaseException:
            self._drafts = growth.held
            raise

    def _become(self, nodes: Sequence[SummaryNode], growth: Growth) -> TreeUpdate:
        with self._writing:
            gone = self._show(nodes, growth.held)
            self._drafts = {}
        clusters = sum(bool(node.members) for node in nodes)
        return TreeUpdate(len(nodes) - clusters, clusters, growth.summarised, growth.embedded, len(gone))

    def _show(self, nodes: Sequence[SummaryNode], held: Mapping[str, Held]) -> list[str]:
        before, after = self._shape, SummaryShape.of(nodes, held)
        self._lookup.add([(node, after.vector(node)) for node in nodes if before.nodes.get(node.node_id) != node])
        self._shape = after
        gone = [node_id for node_id in before.nodes if node_id not in after.nodes]
        self._lookup.delete(gone)
        return gone

    def _found(self, query: str, vector: Sequence[float], mode: TreeSearch, top_k: int, beam: int, unit_ids: Collection[str] | None) -> list[tuple[str, float]]:
        shape = self._shape
        allowed = shape.nodes.keys() - shape.children.keys() if unit_ids is None else set(unit_ids)
        children = shape.children if unit_ids is None else pruned(shape.children, allowed)
        found = self._lookup.scores(query, vector)
        scores = {node_id: score for node_id, score in found.items() if node_id in children or (node_id in allowed and node_id in shape.nodes)}
        if mode is TreeSearch.COLLAPSED:
            return collapsed(scores, children, top_k=top_k, tie_key=shape.places.__getitem__)
        roots = [root for root in shape.roots if root in children or root in allowed]
        return top_down(scores, children, roots=roots, top_k=top_k, beam=beam, tie_key=shape.places.__getitem__)

    def __repr__(self) -> str:
        shape = self._shape
        return f"SummaryTree({len(shape.nodes) - len(shape.children)} units, {len(shape.children)} clusters, {self._models.summarizer!r})"


def _checked(query: QueryBundle | str, top_k: int, mode: TreeSearch | str, beam: int) -> tuple[QueryBundle, TreeSearch]:
    whole_number("top_k", top_k)
    whole_number("beam", beam)
    return QueryBundle(query) if isinstance(query, str) else query, parse_choice(TreeSearch, mode, argument="mode")


def _is_empty(bundle: QueryBundle) -> bool:
    return bundle.embedding is None and not any(text.strip() for text in bundle.embedding_strs)
