"""Where a question is looked for: the documents it is about, and the headings that hold its words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag.hierarchy.units import UnitTable
from llama_index_advanced_rag.ranking.coarse_to_fine import MIN_DOCUMENTS
from llama_index_advanced_rag.retrievers.unit_scores import UnitScores

_MOST_TITLES = 50
_MOST_NAMED = 1000


@dataclass(frozen=True)
class Scope:
    """The documents and headings of one question; with metadata filters only what holds a passage that matches.

    Attributes:
        scores: how well documents and sections fit, and how many passages in them may be returned.
        documents: the chosen documents, best first, with their shares of 0 to 1, see `UnitScores.choose_documents`.
        titles: sections of these documents whose heading holds words of the question, best first, as places in the table.
        outline_documents: documents whose outline is worth a look: the chosen ones, and the first others where these are few.
    """

    scores: UnitScores
    documents: Mapping[str, float]
    titles: tuple[int, ...]
    outline_documents: tuple[str, ...]

    @property
    def table(self) -> UnitTable:
        """Documents and sections."""
        return self.scores.table

    @property
    def document_filters(self) -> MetadataFilters | None:
        """Only the chosen documents; None where there are none, they are all that hold a word, or too many to be named."""
        if not 0 < len(self.documents) < len(self.scores.documents) or len(self.documents) > _MOST_NAMED:
            return None
        return self.scores.only(self.documents)


def open_scope(scores: UnitScores) -> Scope:
    """The scope of a question.

    Args:
        scores: how well documents and sections fit, under the metadata filters of the search.

    Example:
        >>> from llama_index.core.schema import TextNode, NodeRelationship, RelatedNodeInfo
        >>> from llama_index_advanced_rag.retrievers.unit_scores import UnitScorer
        >>> def passage(text, document):
        ...     return TextNode(text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)})
        >>> scorer = UnitScorer.of_nodes([passage("Foxes hunt.", "a"), passage("Whales sing.", "b")])
        >>> scope = open_scope(scorer.scores("Do whales sing?"))
        >>> dict(scope.documents), scope.outline_documents
        ({'b': 1.0}, ('b', 'a'))
    """
    documents, units = scores.choose_documents(), scores.table.units
    others = np.flatnonzero((scores.table.parents < 0) & (scores.n_passages > 0))
    return Scope(scores, documents, _titles(scores, documents), _filled(documents, (units[place].ref_doc_id for place in others.tolist())))


def _titles(scores: UnitScores, documents: Mapping[str, float]) -> tuple[int, ...]:
    """The sections of these documents with the best headings."""
    units = scores.table.units
    places = np.flatnonzero((scores.titles > 0) & (scores.n_passages > 0) & (scores.table.parents >= 0))
    order = places[np.lexsort((places, -scores.titles[places]))].tolist()
    return tuple(islice((place for place in order if units[place].ref_doc_id in documents), _MOST_TITLES))


def _filled(best: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """The best, and others until there are enough."""
    names = dict.fromkeys(best)
    for name in others:
        if len(names) >= MIN_DOCUMENTS:
            break
        names.setdefault(name)
    return tuple(names)
