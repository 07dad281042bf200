"""Summaries of the documents and sections of a corpus: made when they are first needed, and again where something has changed."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, MetadataMode, QueryBundle, TextNode
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index_advanced_rag._choices import parse_choice, whole_number
from llama_index_advanced_rag._concurrency import CopyableLock, in_thread
from llama_index_advanced_rag.errors import IndexFormatError, StorageError
from llama_index_advanced_rag.hierarchy.keys import HEADING
from llama_index_advanced_rag.hierarchy.summaries import Summarizer
from llama_index_advanced_rag.hierarchy.summary_node import TITLE, UnitText
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
    With a store the summaries are kept for the next process. One LLM call for each new or changed unit (and cluster) when the
    summarizer has an LLM, else none.

    Args:
        units: says which documents and sections there are.
        nodes: gives their texts.
        embed_model: embeds summaries and questions.
        summarizer: writes the summaries; None takes sentences of the texts.
        tree: cluster the summaries and summarise the clusters, level by level (RAPTOR).
        store: keeps the tree; None = in memory only. What it holds and cannot be read is reported and made anew; one opened with
            `read_only=True` is only read.
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
        top_k: int = 50,
        search: TreeSearch | str = TreeSearch.COLLAPSED,
        show_progress: bool = False,
    ) -> None:
        self._tree = SummaryTree(summarizer, embed_model=embed_model, tree=tree)
        self._embed_model, self._clusters = embed_model, tree
        self._units, self._nodes, self._store = units, nodes, store
        self._top_k = whole_number("top_k", top_k)
        self._search = parse_choice(TreeSearch, search, argument="search")
        self._show_progress = show_progress
        self._made_for: UnitTable | None = None
        self._lock = CopyableLock()

    @property
    def tree(self) -> SummaryTree:
        """The summaries as they are; the next question may make more."""
        return self._tree

    def scores(self, query: QueryBundle) -> dict[str, float]:
        """Units and clusters that the question finds by their summaries, best first, with scores of 0 to 1."""
        self.update()
        return dict(self._tree.search(query, top_k=self._top_k, mode=self._search))

    async def ascores(self, query: QueryBundle) -> dict[str, float]:
        """The async twin of `scores`; what has to be made is made in a thread."""
        await in_thread(self.update)
        return dict(await self._tree.asearch(query, top_k=self._top_k, mode=self._search))

    def update(self) -> None:
        """Make what is missing.

        Raises:
            Exception: what the models raised; what was made before is kept.
        """
        with self._lock:
            table = self._units.table
            if table is self._made_for:
                return
            if self._made_for is None:
                self._load()
            done = self._tree.update(_unit_texts(table, self._nodes), show_progress=self._show_progress)
            self._made_for = table
            if self._store is not None and (done.summarised or done.embedded or done.removed):
                self._keep(self._store)

    def nodes(self, scores: Mapping[str, float]) -> list[BaseNode]:
        """The summaries of these units as nodes; filters see the metadata of the unit itself."""
        found = [node for node in self._tree.nodes() if node.node_id in scores]
        units = {unit.node_id: unit for unit in self._nodes.get_nodes([node.node_id for node in found])}
        return [_with_metadata_of(units[node.node_id], node) for node in found if node.node_id in units]

    def _load(self) -> None:
        try:
            data: Any = None if self._store is None else self._store.get(_KEY, collection=_COLLECTION)
            if data is not None:
                self._tree = SummaryTree.from_dict(data, self._tree.summarizer, embed_model=self._embed_model, tree=self._clusters)
        except (IndexFormatError, StorageError) as error:
            report("warning", f"The kept summaries cannot be read and are made anew: {error}")

    def _keep(self, store: BaseKVStore) -> None:
        """Write the tree; a disk that refuses does not cost the answer."""
        if getattr(store, "read_only", False):
            return
        try:
            store.put(_KEY, self._tree.to_dict(), collection=_COLLECTION)
        except (IndexFormatError, StorageError) as error:
            report("warning", f"The summaries could not be kept for the next process: {error}")


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
