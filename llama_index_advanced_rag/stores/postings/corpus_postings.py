"""The postings of a corpus, for searching; what changes them is the corpus."""

from collections.abc import Iterable, Mapping, Sequence

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.stores.postings.postings_view import PostingsView
from llama_index_advanced_rag.stores.postings_store import PostingsStore
from llama_index_advanced_rag.stores.rows.positions import RowNames
from llama_index_advanced_rag.stores.rows.row_files import RowFiles
from llama_index_advanced_rag.stores.rows.row_state import RowSpace
from llama_index_advanced_rag.text.analyzer import TextAnalyzer


class CorpusPostings(PostingsStore):
    """A `PostingsStore` that reads the rows of a corpus.

    Args:
        analyzer: cuts texts and queries into terms.
        rows: the searchable rows.
        row_space: who holds them, for retrievers that search positions.
    """

    def __init__(self, analyzer: TextAnalyzer, rows: RowFiles, row_space: RowSpace) -> None:
        super().__init__(analyzer)
        self._rows = rows
        self.row_space = row_space

    def _view(self) -> tuple[PostingsView, RowNames]:
        state = self._rows.state()
        return state.postings, state.names

    def node_ids(self, *, sort_key_prefix: str = "") -> list[str]:
        """The ids held, in the order of their sort keys; with a prefix those whose sort key begins with it."""
        return self._rows.table.node_ids(sort_key_prefix)

    def add_term_counts(
        self, node_ids: Sequence[str], counts: Sequence[Mapping[str, int]], *, sort_keys: Sequence[str] | None = None, replacing: Iterable[str] = ()
    ) -> None:
        """Refused.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError("These postings belong to a CorpusIndex and follow it. Call index.insert(document) or index.insert_nodes(nodes).")

    def delete(self, node_ids: Iterable[str]) -> None:
        """Refused.

        Raises:
            ConfigurationError: always.
        """
        raise ConfigurationError("These postings belong to a CorpusIndex and follow it. Call index.delete_ref_doc(ref_doc_id) or index.delete_nodes(node_ids).")
