"""Where a question is looked for: the documents it is about, and the headings that hold its words."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import MetadataFilters

from llama_index_advanced_rag.hierarchy.units import UnitTable, document_of
from llama_index_advanced_rag.ranking.anchors import LEAST_DOCUMENTS, pick_documents
from llama_index_advanced_rag.retrievers.unit_scores import UnitScores
from llama_index_advanced_rag.stores.filters.metadata_filters import filterable_metadata, metadata_matches
from llama_index_advanced_rag.stores.node_source import NodeSource

_MOST_TITLES = 50
_MOST_NAMED = 1000
_MOST_CHECKED = 50
_MOST_OUTLINES = 5


@dataclass(frozen=True)
class Scope:
    """The documents and headings of one question.

    Attributes:
        scores: how well documents and sections fit.
        nodes: where nodes are read from.
        filters: metadata filters.
        documents: the picked documents, best first, with their `pick_documents` scores.
        titles: units whose heading holds words of the question, best first, as places in the table.
        outline_documents: documents whose outline is worth a look, best first; what does not match the filters is not taken from it.
    """

    scores: UnitScores
    nodes: NodeSource
    filters: MetadataFilters | None
    documents: Mapping[str, float] = field(default_factory=dict[str, float])
    titles: tuple[int, ...] = ()
    outline_documents: tuple[str, ...] = ()

    @property
    def table(self) -> UnitTable:
        """Documents and sections."""
        return self.scores.table

    @property
    def document_filters(self) -> MetadataFilters | None:
        """Only the picked documents; None where they are all that hold a word, or too many to be named, or metadata filters decide."""
        if self.filters is not None or len(self.documents) >= len(self.scores.documents) or len(self.documents) > _MOST_NAMED:
            return None
        return self.scores.only(self.documents)

    def narrowed(self, found: Sequence[BaseNode], *, with_outline: bool) -> "Scope":
        """The scope once passages are known: with metadata filters only what holds one of them, or matches itself.

        Args:
            found: passages that the retrievers found.
            with_outline: an arbiter reads the outline, also of documents in which nothing was found.
        """
        others = (unit.ref_doc_id for unit in self.table.units if unit.level == 0)
        if self.filters is None:
            return replace(self, titles=self._titles(self.documents), outline_documents=_filled(self.documents, others))
        allowed = dict.fromkeys(map(document_of, found))
        matching = self._matching_documents() if with_outline else []
        documents = pick_documents({name: score for name, score in self.scores.documents.items() if name in allowed}, {}, least=len(allowed))
        inside = {place for node in found if (inner := self.table.index_of(node)) is not None for place in self.table.ancestors(inner)}
        titles = self._titles(documents)
        kept = inside | set(self._matching_places([place for place in titles if place not in inside]))
        return replace(
            self,
            documents=documents,
            titles=tuple(place for place in titles if place in kept),
            outline_documents=_filled([*documents, *matching[:_MOST_OUTLINES]], others),
        )

    def _titles(self, documents: Collection[str]) -> tuple[int, ...]:
        """The sections of these documents with the best headings."""
        titles, units = self.scores.titles, self.table.units
        places = np.flatnonzero(titles > 0)
        order = places[np.lexsort((places, -titles[places]))].tolist()
        return tuple(islice((place for place in order if units[place].level > 0 and units[place].ref_doc_id in documents), _MOST_TITLES))

    def _matching_documents(self) -> list[str]:
        """Of the best documents, and of the first, those whose own node matches the filters."""
        first = islice((unit.ref_doc_id for unit in self.table.units if unit.level == 0), _MOST_CHECKED)
        checked = dict.fromkeys([*islice(self.documents, _MOST_CHECKED), *first])
        places = [place for name in checked if (place := self.table.place_of_document(name)) is not None]
        return [self.table.units[place].ref_doc_id for place in self._matching_places(places)]

    def _matching_places(self, places: Sequence[int]) -> list[int]:
        found = {node.node_id: node for node in self.nodes.get_nodes([self.table.units[place].unit_id for place in places])} if places else {}
        held = [(place, found.get(self.table.units[place].unit_id)) for place in places]
        return [place for place, node in held if node is not None and metadata_matches(filterable_metadata(node), self.filters)]


def open_scope(scores: UnitScores, nodes: NodeSource, filters: MetadataFilters | None) -> Scope:
    """The documents a question is about; with metadata filters all that hold a word of it, until it is known what matches.

    Args:
        scores: how well documents and sections fit.
        nodes: where nodes are read from.
        filters: metadata filters.
    """
    held = scores.documents
    if filters is not None:
        return Scope(scores, nodes, filters, pick_documents(held, {}, least=len(held)))
    places = ((name, scores.table.place_of_document(name)) for name in held)
    sizes = {name: scores.table.units[place].end for name, place in places if place is not None}
    return Scope(scores, nodes, None, pick_documents(held, sizes))


def _filled(best: Iterable[str], others: Iterable[str], least: int = LEAST_DOCUMENTS) -> tuple[str, ...]:
    """The best, and others until there are enough."""
    names = dict.fromkeys(best)
    for name in others:
        if len(names) >= least:
            break
        names.setdefault(name)
    return tuple(names)
