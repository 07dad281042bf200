"""Summaries of the documents and sections of a corpus: made when they are first needed, and again where something has changed."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, MetadataMode, QueryBundle, TextNode
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag._concurrency import CopyableLock, in_thread
from llama_index_advanced_rag.errors import IndexFormatError, StorageError
from llama_index_advanced_rag.hierarchy.keys import HEADING
from llama_index_advanced_rag.hierarchy.summaries import Summarizer, Summary
from llama_index_advanced_rag.hierarchy.summary.node import TITLE, UnitText
from llama_index_advanced_rag.hierarchy.summary_tree import SummaryTree
from llama_index_advanced_rag.hierarchy.units import Unit, UnitTable
from llama_index_advanced_rag.ranking.tree_search import TreeSearch
from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
from llama_index_advanced_rag.stores.node_source import NodeSource
from llama_index_advanced_rag.trace import report

_KEY = "summary_tree"
_COLLECTION = "summaries"
_BATCH = 500


class UnitSummaries:
    """Keeps a `SummaryTree` over the documents and sections that a `UnitScorer` knows.

    Nothing is made before the first question; then each unit is summarised and embedded once, and after a change only what has changed.
    With a store the finished summaries are kept for the next process, those of each summarizer (`Summarizer.identity`) and each value of
    `tree` by themselves. When a model fails, what was made before it failed is kept in memory only, for the next attempt. One LLM call for
    each new or changed unit (and cluster) when the summarizer has an LLM, else none.

    Args:
        units: says which documents and sections there are.
        nodes: gives their texts.
        embed_model: embeds summaries and questions.
        summarizer: writes the summaries; None takes sentences of the texts.
        tree: cluster the summaries and summarise the clusters, level by level (RAPTOR).
        store: keeps the tree; None = in memory only. What it holds and cannot be read is reported and made anew; one opened with
            `read_only=True` is only read.
        beside: summaries by the same summarizer with the other value of `tree`: what they hold is not made again.
        top_k: units that a question may find.
        search: "collapsed" or "top_down", see `SummaryTree.search`.
        show_progress: draw a progress bar while summaries are made.
    """

    def __init__(
        self,
        units: UnitScorer,
        nodes: NodeSource,
        *,
        embed_model: BaseEmbedding,
        summarizer: Summarizer | None = None,
        tree: bool = False,
        store: BaseKVStore | None = None,
        beside: "UnitSummaries | None" = None,
        top_k: int = 50,
        search: TreeSearch | str = TreeSearch.COLLAPSED,
        show_progress: bool = False,
    ) -> None:
        self._tree = SummaryTree(summarizer, embed_model=embed_model, tree=tree)
        self._embed_model, self._clusters = embed_model, tree
        self._units, self._nodes, self._store, self._beside = units, nodes, store, beside
        self._top_k = whole_number("top_k", top_k)
        self._search = parse_choice(TreeSearch, search, argument="search")
        self._show_progress = show_progress
        self._made_for: UnitTable | None = None
        self._loaded = self._try_again = False
        self._lock = CopyableLock()

    @property
    def tree(self) -> SummaryTree:
        """The summaries as they are; the next question may make more."""
        return self._tree

    def scores(self, query: QueryBundle) -> dict[str, float]:
        """The units that the question finds by their summaries (and those of clusters), best first, with scores of 0 to 1."""
        self.update()
        return dict(self._tree.search(query, top_k=self._top_k, mode=self._search))

    async def ascores(self, query: QueryBundle) -> dict[str, float]:
        """The async twin of `scores`; what has to be made is made in a thread."""
        await in_thread(self.update)
        return dict(await self._tree.asearch(query, top_k=self._top_k, mode=self._search))

    def update(self) -> None:
        """Make what is missing.

        Raises:
            Exception: what the models raised; what was made before is kept in memory for the next attempt.
        """
        with self._lock:
            table = self._units.table
            if table is self._made_for and not self._try_again:
                return
            self._try_again = False
            if not self._loaded:
                self._load()
                self._loaded = True
            done = self._tree.update(_unit_texts(table, self._nodes), show_progress=self._show_progress)
            self._made_for = table
            if self._store is not None and (done.summarised or done.embedded or done.removed):
                self._keep(self._store)

    def try_again(self) -> None:
        """Let the next question try once more what an LLM failed to write."""
        self._try_again = True

    def nodes(self, scores: Mapping[str, float]) -> list[BaseNode]:
        """The summaries of these units as nodes; filters see the metadata of the unit itself."""
        found = [node for node in self._tree.nodes() if node.node_id in scores]
        units = {unit.node_id: unit for unit in self._nodes.get_nodes([node.node_id for node in found])}
        return [_with_metadata_of(units[node.node_id], node) for node in found if node.node_id in units]

    def _load(self) -> None:
        try:
            data = self._held_before()
            if data is not None:
                self._tree = SummaryTree.from_dict(data, self._tree.summarizer, embed_model=self._embed_model, tree=self._clusters)
        except (IndexFormatError, StorageError) as error:
            report("warning", f"The kept summaries cannot be read and are made anew: {error}")

    def _held_before(self) -> Any:
        """The summaries that were made before, if need be with clusters that this tree has not, or without those it has; None = there are none."""
        stored = self._stored(self._clusters)
        if stored is None and self._beside is not None and len(self._beside.tree):
            return self._beside.tree.to_dict()
        return self._stored(not self._clusters) if stored is None else stored

    def _stored(self, clusters: bool) -> Any:
        return None if self._store is None else self._store.get(_key(self._tree.summarizer, clusters), collection=_COLLECTION)

    def _keep(self, store: BaseKVStore) -> None:
        """Write the tree; a disk that refuses does not cost the answer."""
        if getattr(store, "read_only", False):
            return
        try:
            store.put(_key(self._tree.summarizer, self._clusters), self._tree.to_dict(), collection=_COLLECTION)
        except (IndexFormatError, StorageError) as error:
            report("warning", f"The summaries could not be kept for the next process: {error}")


class SharedSummaries:
    """The `UnitSummaries` of an index, one for each summarizer and value of `tree`, so that no retriever pays for what another one has made.

    LLMs of the same class and model name write the same summaries; of several such the one given last is asked.

    Args:
        units: says which documents and sections there are.
        nodes: gives their texts.
        embed_model: embeds summaries and questions.
        language: of the texts, see `Summarizer`.
        store: keeps the summaries; None = in memory only.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index_advanced_rag.stores.node_source import DictNodeSource
        >>> from llama_index_advanced_rag.testing import DeterministicEmbedding
        >>> nodes = [TextNode(text="The fox hunts.")]
        >>> shared = SharedSummaries(UnitScorer.of_nodes(nodes), DictNodeSource(nodes), embed_model=DeterministicEmbedding())
        >>> shared.written_by(None) is shared.written_by(None), shared.written_by(None) is shared.written_by(None, tree=True)
        (True, False)
    """

    def __init__(self, units: UnitScorer, nodes: NodeSource, *, embed_model: BaseEmbedding, language: str = "auto", store: BaseKVStore | None = None) -> None:
        self._units, self._nodes, self._embed_model = units, nodes, embed_model
        self._language, self._store = language, store
        self._writers: dict[tuple[str, bool], _Writer] = {}
        self._made: dict[tuple[str, bool], UnitSummaries] = {}
        self._lock = CopyableLock()

    def written_by(self, llm: LLM | None, *, tree: bool = False) -> UnitSummaries:
        """The summaries that this LLM writes. What it failed to write for an earlier caller is tried again at the next question.

        Args:
            llm: writes the summaries; None takes sentences of the texts.
            tree: cluster the summaries and summarise the clusters.
        """
        writer = _Writer(llm, language=self._language)
        key = (writer.identity, tree)
        with self._lock:
            if key not in self._made:
                self._writers[key], self._made[key] = writer, self._new(writer, tree=tree)
            elif self._writers[key].becomes(llm):
                self._made[key].try_again()
            return self._made[key]

    def _new(self, writer: "_Writer", *, tree: bool) -> UnitSummaries:
        beside = self._made.get((writer.identity, not tree))
        return UnitSummaries(self._units, self._nodes, embed_model=self._embed_model, summarizer=writer, tree=tree, store=self._store, beside=beside)


class _Writer(Summarizer):
    """A summarizer that remembers whether its LLM failed, and whose LLM gives way to one of the same identity."""

    _failed = False

    def becomes(self, llm: LLM | None) -> bool:
        """Ask this LLM from now on; whether the one before failed."""
        failed, self._failed, self._llm = self._failed, False, llm
        return failed

    def write(self, items: Sequence[tuple[str, str]], *, show_progress: bool = False) -> list[Summary]:
        written = super().write(items, show_progress=show_progress)
        self._failed = self._failed or any(summary.is_fallback for summary in written)
        return written


def _key(summarizer: Summarizer, clusters: bool) -> str:
    """Under which summaries are kept: those of another writer, and those with clusters, have another key."""
    return f"{_KEY}/{hashlib.sha256(f'{int(clusters)}|{summarizer.identity}'.encode()).hexdigest()}"


def _unit_texts(table: UnitTable, nodes: NodeSource) -> list[UnitText]:
    """The texts of all units that have any."""
    found: list[UnitText] = []
    for start in range(0, len(table.units), _BATCH):
        units = table.units[start : start + _BATCH]
        texts = {node.node_id: node for node in nodes.get_nodes([unit.unit_id for unit in units])}
        found += [_text_of(unit, texts[unit.unit_id]) for unit in units if unit.unit_id in texts]
    return [unit for unit in found if unit.text.strip()]


def _text_of(unit: Unit, node: BaseNode) -> UnitText:
    return UnitText(unit.unit_id, unit.ref_doc_id, unit.path or unit.title, unit.level, node.get_content(metadata_mode=MetadataMode.NONE))


def _with_metadata_of(unit: BaseNode, summary: TextNode) -> TextNode:
    """The summary with the metadata of its unit, which win; of these only the title and the heading are shown with the text."""
    hidden = [name for name in unit.metadata if name not in (TITLE, HEADING)]
    return summary.model_copy(
        update={
            "metadata": {**summary.metadata, **unit.metadata},
            "excluded_embed_metadata_keys": [*summary.excluded_embed_metadata_keys, *hidden],
            "excluded_llm_metadata_keys": [*summary.excluded_llm_metadata_keys, *hidden],
        }
    )
