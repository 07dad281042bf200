"""Which documents and sections a question is about, by their words and their titles."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from numpy.typing import NDArray

from llama_index_advanced_rag._concurrency import CopyableLock
from llama_index_advanced_rag.corpus import Corpus
from llama_index_advanced_rag.hierarchy.units import UnitRecord, UnitTable, document_of, title_of
from llama_index_advanced_rag.ranking.coarse_to_fine import MIN_DOCUMENTS, MIN_PASSAGES, choose_documents
from llama_index_advanced_rag.ranking.unit_bm25 import UnitTree, score_units
from llama_index_advanced_rag.stores.documents.outline_rows import OutlineRows, leading_rows, read_outline
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.postings.postings_view import PostingsView
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.stores.rows.positions import Mask, Positions
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.text.analyzer import TextAnalyzer


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Where the rows of one state of a corpus stand, so that a passage need not be read to know its document and sections.

    Attributes:
        space: the corpus.
        state: its rows.
        tree: the unit that holds each row, and what is above it.
        leading: (n_rows,) True where a node may lead to something else (`IndexNode`); None = nowhere.
    """

    space: Corpus
    state: RowState
    tree: UnitTree
    leading: Mask | None

    def positions_of(self, node_ids: Sequence[str]) -> Positions | None:
        """The position of each node; None where one has come or gone since this state, stands nowhere, or may lead to something else."""
        rows = self.space.rows.table.rows_of_nodes(node_ids)
        if len(rows) < len(node_ids):
            return None
        wanted = np.array([rows[node_id] for node_id in node_ids], dtype=np.int64)
        positions = np.searchsorted(self.state.row_ids, wanted)
        if positions.max(initial=-1) == self.state.n_rows or (self.state.row_ids[positions] != wanted).any():
            return None
        known = (self.tree.unit_of[positions] >= 0).all() and (self.leading is None or not self.leading[positions].any())
        return positions if known else None

    def nodes_at(self, positions: Positions) -> list[BaseNode] | None:
        """The nodes at positions; None where one has gone since."""
        nodes = [node for node in self.space.nodes_at(self.state, positions) if node is not None]
        return nodes if len(nodes) == len(positions) else None


@dataclass(frozen=True)
class UnitScores:
    """How well each document and section fits a question.

    Attributes:
        table: the units.
        units: (n_units,) BM25 of the unit's whole text plus BM25 of its title (of a section: its heading path), >= 0, higher is better.
        titles: (n_units,) the second part alone.
        n_passages: (n_units,) passages in each unit that may be returned.
        loose: passages that have no document, and so count as documents.
        rows: where the passages stand; None where they are no rows of a corpus.
    """

    table: UnitTable
    units: NDArray[np.float64]
    titles: NDArray[np.float64]
    n_passages: NDArray[np.int64]
    loose: frozenset[str] = frozenset()
    rows: UnitRows | None = None

    def choose_documents(
        self, more: NDArray[np.float64] | None = None, *, min_documents: int = MIN_DOCUMENTS, min_passages: int = MIN_PASSAGES
    ) -> dict[str, float]:
        """The documents worth looking into, best first, with their shares; see `ranking.coarse_to_fine`.

        Args:
            more: (n_units,) scores of 0 to 1 that count as much as the words (those put on 0 to 1 too); None = words only.
            min_documents: see there.
            min_passages: see there.
        """
        documents = np.flatnonzero(self.table.parents < 0)
        sizes, scores = self.n_passages[documents], self.units[documents]
        if more is not None:
            scores = scores / max(float(scores.max(initial=0.0)), np.finfo(float).tiny) + more[documents]
        places, shares = choose_documents(np.where(sizes > 0, scores, 0.0), sizes, min_documents=min_documents, min_passages=min_passages)
        return {self.table.units[place].ref_doc_id: share for place, share in zip(documents[places].tolist(), shares.tolist(), strict=True)}

    def are_enough(self, documents: Collection[str], *, min_documents: int = MIN_DOCUMENTS, min_passages: int = MIN_PASSAGES) -> bool:
        """Whether there are as many documents of several passages, and as many passages, as were asked for; else there is no reason to look nowhere else."""
        places = [place for place in map(self.table.place_of_document, documents) if place is not None]
        sizes = self.n_passages[places]
        return int(np.count_nonzero(sizes > 1)) >= min_documents and int(sizes.sum()) >= min_passages

    @cached_property
    def documents(self) -> dict[str, float]:
        """The score of each document, by its id; documents without a word of the question are left out."""
        places = np.flatnonzero((self.table.parents < 0) & (self.units > 0)).tolist()
        return {self.table.units[place].ref_doc_id: float(self.units[place]) for place in places}

    def only(self, documents: Collection[str]) -> MetadataFilters:
        """Filters that let passages of these documents through; if one of them is a loose passage, all loose ones."""
        named = MetadataFilter(key="ref_doc_id", value=list(documents), operator=FilterOperator.IN)
        if self.loose.isdisjoint(documents):
            return MetadataFilters(filters=[named])
        nameless = MetadataFilter(key="ref_doc_id", value=None, operator=FilterOperator.IS_EMPTY)
        return MetadataFilters(filters=[named, nameless], condition=FilterCondition.OR)


@dataclass(frozen=True, eq=False)
class _Indexed:
    """What scores are computed from, of one state."""

    table: UnitTable
    tree: UnitTree
    view: PostingsView
    mask: Callable[[MetadataFilters], Mask]
    titles: tuple[tuple[NDArray[np.intp], PostingsStore], ...]  # of documents, of sections: their places, their titles
    loose: frozenset[str]
    rows: UnitRows | None = None


class UnitScorer:
    """Scores documents and sections: each is the sum of its passages, whose postings are there already, and its title.

    Nothing is stored for it, so it is exact through every change. What stands in what is read at the first question, and again after a
    change. 0 LLM calls, nothing is embedded.

    Args:
        analyzer: cuts questions and titles into terms.
        load: what scores are computed from, as of now.
    """

    def __init__(self, analyzer: TextAnalyzer, load: Callable[[], _Indexed]) -> None:
        self._analyzer = analyzer
        self._load = load

    @classmethod
    def of_corpus(cls, corpus: Corpus) -> "UnitScorer":
        """Over the documents of a corpus; follows its changes."""
        return cls(corpus.analyzer, _CorpusUnits(corpus))

    @classmethod
    def of_nodes(cls, nodes: Sequence[BaseNode], *, language: str = "auto") -> "UnitScorer":
        """Over nodes in memory: of all levels, as `HierarchicalNodeParser` and LlamaIndex's own give them, or flat ones.

        Example:
            >>> from llama_index.core.schema import Document, TextNode, NodeRelationship, RelatedNodeInfo
            >>> def passage(text, document):
            ...     return TextNode(text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)})
            >>> scorer = UnitScorer.of_nodes([passage("Foxes hunt.", "a"), passage("Mice hide from foxes.", "a"), passage("Whales sing.", "b")])
            >>> sorted(scorer.scores("Do whales sing?").documents)
            ['b']
        """
        analyzer = TextAnalyzer(language)
        indexed = _of_nodes(nodes, analyzer)
        return cls(analyzer, lambda: indexed)

    @property
    def table(self) -> UnitTable:
        """The documents and sections of this moment."""
        return self._load().table

    def scores(self, query: str, *, filters: MetadataFilters | None = None) -> UnitScores:
        """The scores of all documents and sections for a question.

        Args:
            query: the question.
            filters: passages that do not match are not counted in `n_passages`; scores stay those of the whole units.
        """
        indexed = self._load()
        groups = Counter(self._analyzer.query_groups(query))
        titles = np.zeros(len(indexed.table.units))
        for places, store in indexed.titles:
            titles[places] = store.scores(groups)
        units = score_units(indexed.tree, indexed.view.matches(groups)) + titles
        n_passages = indexed.tree.count(None if filters is None or not filters.filters else indexed.mask(filters))
        return UnitScores(indexed.table, units, titles, n_passages, indexed.loose, indexed.rows)


class _CorpusUnits:
    """Reads what stands in what from a corpus, once for each state."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._lock = CopyableLock()
        self._state: RowState | None = None
        self._indexed: _Indexed | None = None

    def __call__(self) -> _Indexed:
        with self._lock:
            state = self._corpus.state()  # another one after each commit, also after one that changed sections or empty documents only
            if self._indexed is None or self._state is not state:
                self._indexed, self._state = self._read(state), state
            return self._indexed

    def _read(self, state: RowState) -> _Indexed:
        outline = read_outline(self._corpus.database)
        table = UnitTable.build((UnitRecord.of(*node) for node in outline.nodes), _titles(outline))
        unit_of = np.full(state.n_rows, -1, dtype=np.int32)
        rows = np.fromiter((passage.row for passage in outline.passages), dtype=np.int64, count=len(outline.passages))
        units = np.array([_place(table, passage.parent_id, passage.ref_doc_id) for passage in outline.passages], dtype=np.int32)
        held = np.isin(rows, state.row_ids)  # another process may have committed since the state
        unit_of[np.searchsorted(state.row_ids, rows[held])] = units[held]
        tree = UnitTree(unit_of, table.parents, state.postings.lengths)
        loose = frozenset({one.ref_doc_id for one in outline.passages} - outline.documents.keys())
        titles = _title_stores(table, self._corpus.analyzer)
        leading = _at_rows(state, np.array(leading_rows(self._corpus.database), dtype=np.int64))
        rows_at = UnitRows(self._corpus, state, tree, leading if leading.any() else None)
        return _Indexed(table, tree, state.postings, lambda filters: state.columns.mask(filters, state.n_rows), titles, loose, rows_at)


def _at_rows(state: RowState, rows: NDArray[np.int64]) -> Mask:
    """(n_rows,) True at these rows."""
    return np.isin(state.row_ids, rows)


def _place(table: UnitTable, parent_id: str | None, ref_doc_id: str) -> int:
    place = table.place_of(parent_id, ref_doc_id)
    return -1 if place is None else place


def _titles(outline: OutlineRows) -> dict[str, str]:
    titles = {ref_doc_id: title_of(metadata, ref_doc_id) for ref_doc_id, metadata in outline.documents.items()}
    for passage in outline.passages:
        titles.setdefault(passage.ref_doc_id, passage.ref_doc_id)
    return titles


def _of_nodes(nodes: Sequence[BaseNode], analyzer: TextAnalyzer) -> _Indexed:
    table = UnitTable.from_nodes(nodes)
    leaves = list({node.node_id: node for node in nodes if not node.child_nodes}.values())
    store = PostingsStore(analyzer)
    store.add([node.node_id for node in leaves], [node.get_content(metadata_mode=MetadataMode.EMBED) for node in leaves])
    unit_of = np.array([_place(table, None if node.parent_node is None else node.parent_node.node_id, document_of(node)) for node in leaves], dtype=np.int32)
    metadata = [filterable_metadata(node) for node in leaves]
    view, loose = store.view(), frozenset(node.node_id for node in leaves if node.ref_doc_id is None)

    def mask(filters: MetadataFilters) -> Mask:
        return np.array([metadata_matches(item, filters) for item in metadata], dtype=bool)

    return _Indexed(table, UnitTree(unit_of, table.parents, view.lengths), view, mask, _title_stores(table, analyzer), loose)


def _title_stores(table: UnitTable, analyzer: TextAnalyzer) -> tuple[tuple[NDArray[np.intp], PostingsStore], ...]:
    documents, sections = np.flatnonzero(table.parents < 0), np.flatnonzero(table.parents >= 0)
    kinds = ((documents, [table.units[place].title for place in documents]), (sections, [table.units[place].path for place in sections]))
    return tuple((places, _title_store(texts, analyzer)) for places, texts in kinds)


def _title_store(texts: Sequence[str], analyzer: TextAnalyzer) -> PostingsStore:
    store = PostingsStore(analyzer)
    store.add([str(place) for place in range(len(texts))], texts)
    return store
