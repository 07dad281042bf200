"""Search by words: BM25 with language-aware terms, over nodes that come and go."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode, IndexNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Self

from llama_index_advanced_rag._concurrency import in_thread
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.bm25 import K1, B
from llama_index_advanced_rag.ranking.score_scale import ScoreRange
from llama_index_advanced_rag.retrievers.row_search import RowHit, RowRetriever, common_space
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import DictNodeSource, DocstoreNodeSource, NodeSource, read_docstore_nodes, read_index_nodes, sort_key
from llama_index_advanced_rag.stores.postings.lexical_folder import read_lexical_folder, write_lexical_folder
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.stores.rows.positions import Found
from llama_index_advanced_rag.stores.rows.row_state import RowState
from llama_index_advanced_rag.text.analyzer import TextAnalyzer
from llama_index_advanced_rag.trace import Evidence, current_trace, report

_WIDEN = 4
_BATCH = 1000


class _Words(NamedTuple):
    """A question, and for each of its words the terms that it may have, with how often it occurs."""

    query: str
    groups: Counter[tuple[str, ...]]


class LexicalRetriever(RowRetriever):
    """Nodes that share words with the query, by BM25. No LLM call and no embedding.

    What is searched is `node.get_content(MetadataMode.EMBED)`, as the embedding model would see it. Scores are > 0 without an upper
    bound, higher is better; a node without a word of the query is never returned, so the result can be shorter than
    `similarity_top_k`. Filters restrict the nodes before the cut; scores are those of the whole corpus, filtered or not.
    `with_filters` and `with_top_k` give the same retriever under other settings, for one query say. Over a `CorpusIndex` rows
    are ranked, and nodes are read for the final hits only.

    Args:
        postings: the word index.
        nodes: where the nodes of its ids are read from.
        similarity_top_k: most nodes returned.
        filters: metadata filters; a node's document id is seen under "ref_doc_id", "doc_id" and "document_id".

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> nodes = [TextNode(id_="fox", text="Red foxes hunt mice."), TextNode(id_="sea", text="The deep sea.")]
        >>> retriever = LexicalRetriever.from_defaults(nodes=nodes, language="en")
        >>> [(hit.node_id, round(hit.score, 2)) for hit in retriever.retrieve("Who is hunting foxes?")]
        [('fox', 1.21)]
    """

    stage: ClassVar[str] = "lexical"

    def __init__(
        self,
        postings: PostingsStore,
        nodes: NodeSource,
        *,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            similarity_top_k=similarity_top_k, filters=filters, callback_manager=callback_manager, object_map=object_map, objects=objects, verbose=verbose
        )
        self._postings = postings
        self._nodes = nodes
        self._space = common_space(postings, nodes)
        self._added = DictNodeSource()

    @classmethod
    def from_defaults(
        cls,
        *,
        nodes: Sequence[BaseNode] | None = None,
        index: BaseIndex[Any] | None = None,
        docstore: BaseDocumentStore | None = None,
        language: str = "auto",
        analyzer: TextAnalyzer | None = None,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        k1: float = K1,
        b: float = B,
        **options: Any,
    ) -> Self:
        """Index the words of nodes, of a docstore or of an existing index (whatever its vector store), in memory.

        Nodes of a docstore are read from it again when they are found; later changes of an index or docstore are not seen,
        tell them with `add_nodes` and `delete_nodes`.

        Args:
            nodes: the nodes; one of `nodes`, `index` and `docstore` is given. An empty list is a good start.
            index: an index over the nodes.
            docstore: a docstore that holds them; documents that were split into other nodes of it are left out.
            language: of the texts and the questions, see `TextAnalyzer`.
            analyzer: in place of `language`.
            similarity_top_k: most nodes returned.
            filters: metadata filters.
            k1: see `PostingsStore`.
            b: see `PostingsStore`.
            options: further arguments of the constructor.

        Raises:
            ConfigurationError: not exactly one of the three, or both `language` and `analyzer`.
            NodeSourceError: the index cannot give its nodes.
        """
        if sum(given is not None for given in (nodes, index, docstore)) != 1:
            raise ConfigurationError("LexicalRetriever.from_defaults() needs the nodes once. Pass exactly one of nodes=, index= and docstore=.")
        if analyzer is not None and language != "auto":
            raise ConfigurationError(
                f"language is {language!r} and analyzer is {analyzer!r}. Expected one of them. Pass TextAnalyzer({language!r}, ...) alone."
            )
        found, source = _read(nodes, index, docstore)
        retriever = cls(PostingsStore(analyzer or TextAnalyzer(language), k1=k1, b=b), source, similarity_top_k=similarity_top_k, filters=filters, **options)
        retriever._index(found)
        return retriever

    @property
    def postings(self) -> PostingsStore:
        """The word index."""
        return self._postings

    @property
    def analyzer(self) -> TextAnalyzer:
        """What cuts texts and queries into terms."""
        return self._postings.analyzer

    @property
    def score_range(self) -> ScoreRange:
        """BM25 scores start at 0 and have no upper end."""
        return ScoreRange(0.0, None)

    def __len__(self) -> int:
        return len(self._postings)

    def __bool__(self) -> bool:
        return True

    def add_nodes(self, nodes: Sequence[BaseNode]) -> None:
        """Make nodes searchable; a known node id is replaced. The retriever of a `CorpusIndex` follows its index by itself."""
        self._index(nodes)
        self._added.add(nodes)

    def delete_nodes(self, node_ids: Iterable[str]) -> None:
        """Make nodes unsearchable; unknown ids are ignored."""
        gone = list(node_ids)
        self._postings.delete(gone)
        self._added.delete(gone)

    def delete_ref_doc(self, ref_doc_id: str) -> None:
        """Make all nodes of a document unsearchable; an unknown one is ignored."""
        self.delete_nodes(self._postings.node_ids(sort_key_prefix=f"{ref_doc_id}\0"))

    def persist(self, path: str | Path) -> None:
        """Write nodes, word index, analyzer and settings into a folder; what it held before is replaced at once or not at all.

        Raises:
            StorageError: the disk refused.
            ConfigurationError: metadata of a node is no JSON.
        """
        filters = None if self._filters is None else self._filters.model_dump(mode="json")
        write_lexical_folder(Path(path), self._postings, self._all_nodes(), {"similarity_top_k": self._similarity_top_k, "filters": filters})

    @classmethod
    def from_persist_dir(cls, path: str | Path, **options: Any) -> Self:
        """The retriever that `persist` wrote, with the same answers; `options` are arguments of the constructor that replace the stored ones.

        Raises:
            IndexNotFoundError: nothing there.
            IndexFormatError: damaged, or written by another format version.
        """
        postings, nodes, settings = read_lexical_folder(Path(path))
        filters = settings["filters"]
        stored: dict[str, Any] = {
            "similarity_top_k": settings["similarity_top_k"],
            "filters": None if filters is None else MetadataFilters.model_validate(filters),
        }
        return cls(postings, DictNodeSource(nodes), **{**stored, **options})

    def _index(self, nodes: Sequence[BaseNode]) -> None:
        for start in range(0, len(nodes), _BATCH):
            batch = nodes[start : start + _BATCH]
            texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in batch]
            self._postings.add([node.node_id for node in batch], texts, sort_keys=[sort_key(node) for node in batch])

    def _all_nodes(self) -> Iterator[BaseNode]:
        node_ids = self._postings.node_ids()
        for start in range(0, len(node_ids), _BATCH):
            yield from self._read_nodes(node_ids[start : start + _BATCH]).values()

    def probe(self, query_bundle: QueryBundle) -> _Words | None:
        """The words of the query."""
        groups = Counter(self.analyzer.query_groups(query_bundle.query_str))
        return _Words(query_bundle.query_str, groups) if groups else None

    def rank(self, state: RowState, probes: Sequence[_Words]) -> list[Found]:
        """The rows with the highest BM25 scores for each question."""
        mask, postings = state.mask(self._filters), state.postings
        if len(probes) == 1:
            return [postings.top(probes[0].groups, top_k=self._similarity_top_k, names=state.names, mask=mask)]
        return postings.top_batch([probe.groups for probe in probes], top_k=self._similarity_top_k, names=state.names, mask=mask)

    def row_evidence(self, state: RowState, probe: _Words, hits: Sequence[RowHit]) -> list[Evidence]:
        """The words that each hit shares with the question, with what each adds to the score."""
        surfaces = self.analyzer.query_surfaces(probe.query)
        shares = state.postings.explain_each(probe.groups, np.array([hit.position for hit in hits], dtype=np.intp))
        return [
            Evidence(hit.node.node_id, self.stage, rank, hit.score, _why(words, surfaces), words)
            for rank, (hit, words) in enumerate(zip(hits, shares, strict=True), start=1)
        ]

    async def _afind_nodes(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(self._find_nodes, query_bundle)

    def _find_nodes(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query = query_bundle.query_str
        found, missing = self._search(query)
        known: set[str] = set()
        while missing and missing != known:  # gone between the search and the reading: the word index knows by now
            known, (found, missing) = missing, self._search(query)
        if missing:
            report("warning", f"{len(missing)} nodes of the word index are gone from the node source and were left out. Tell delete_nodes().")
        self._explain(query, found)
        return [NodeWithScore(node=node, score=score) for node, score in found]

    def _search(self, query: str) -> tuple[list[tuple[BaseNode, float]], set[str]]:
        """The best nodes that match the filters, and the ids that were found and that the node source does not have.

        Looking only at hits, best first, and at more of them until there are enough, is filtering before the cut.
        """
        known: dict[str, BaseNode] = {}
        asked = self._similarity_top_k
        while True:
            hits = self._postings.search(query, top_k=asked)
            known.update(self._read_nodes([node_id for node_id, _ in hits if node_id not in known]))
            held = [(known[node_id], score) for node_id, score in hits if node_id in known]
            found = [(node, score) for node, score in held if metadata_matches(filterable_metadata(node), self._filters)]
            if len(found) >= self._similarity_top_k or len(hits) < asked:
                return found[: self._similarity_top_k], {node_id for node_id, _ in hits} - known.keys()
            asked *= _WIDEN

    def _read_nodes(self, node_ids: list[str]) -> dict[str, BaseNode]:
        nodes = {node.node_id: node for node in self._added.get_nodes(node_ids)}
        rest = [node_id for node_id in node_ids if node_id not in nodes]
        nodes.update({node.node_id: node for node in self._nodes.get_nodes(rest)} if rest else {})
        return nodes

    def _explain(self, query: str, hits: Sequence[tuple[BaseNode, float]]) -> None:
        trace = current_trace()
        if trace is None or not hits:
            return
        surfaces = self.analyzer.query_surfaces(query)
        for rank, (node, score) in enumerate(hits, start=1):
            shares = self._postings.explain(query, node.node_id)
            trace.add(Evidence(node.node_id, self.stage, rank, score, _why(shares, surfaces), shares))

    def __repr__(self) -> str:
        return f"LexicalRetriever({len(self)} nodes, language={self.analyzer.language!r}, similarity_top_k={self._similarity_top_k})"


def _why(shares: Mapping[str, float], surfaces: Mapping[str, str]) -> str:
    """The words of the query that the node holds, with what each adds; the five that add most."""
    by_word: defaultdict[str, float] = defaultdict(float)
    for term, share in shares.items():
        by_word[surfaces.get(term, term)] += share
    best = sorted(by_word.items(), key=lambda item: -item[1])
    more = f" and {len(best) - 5} more" if len(best) > 5 else ""
    return "matches: " + ", ".join(f"{word} ({share:.2f})" for word, share in best[:5]) + more


def _read(nodes: Sequence[BaseNode] | None, index: BaseIndex[Any] | None, docstore: BaseDocumentStore | None) -> tuple[Sequence[BaseNode], NodeSource]:
    if docstore is not None:
        return read_docstore_nodes(docstore), DocstoreNodeSource(docstore)
    if index is None:
        found = list(nodes or [])
        return found, DictNodeSource(found)
    found = read_index_nodes(index)
    stored = all(index.docstore.document_exists(node.node_id) for node in found)
    return found, DocstoreNodeSource(index.docstore) if stored else DictNodeSource(found)
