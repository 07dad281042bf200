"""Passages put in order by where their rows stand: nodes are read for the final list only."""

from dataclasses import dataclass

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore

from llama_index_advanced_rag.retrievers.base import ScoredIds, TracedRetriever
from llama_index_advanced_rag.retrievers.placing import Chosen, Placing
from llama_index_advanced_rag.retrievers.unit_scores import UnitRows
from llama_index_advanced_rag.stores.rows.positions import Found, best_first


@dataclass(frozen=True, slots=True)
class RowPlacing:
    """`Placing.in_place` for passages of which only the ids are known.

    Attributes:
        retriever: finds them, in the chosen documents.
        rows: where they stand.
        chosen: the documents and sections that the question is about.
        placing: how much these count.
        top_k: most passages given.
    """

    retriever: TracedRetriever
    rows: UnitRows
    chosen: Chosen
    placing: Placing
    top_k: int

    @classmethod
    def over(cls, retriever: BaseRetriever, chosen: Chosen, placing: Placing, top_k: int) -> "RowPlacing | None":
        """For a retriever that searches the rows of the corpus whose documents were chosen, and tells nobody of each search by itself; else None."""
        rows = None if chosen.scores is None else chosen.scores.rows
        if rows is None or not isinstance(retriever, TracedRetriever) or retriever.object_map or retriever.callback_manager.handlers:
            return None
        return cls(retriever, rows, chosen, placing, top_k) if retriever.row_space is rows.space else None

    def ids(self, found: ScoredIds) -> ScoredIds | None:
        """The best of what was found, best first; None where some of it has come or gone since the documents were chosen, or may lead to something else."""
        best = self._best(found)
        return None if best is None else list(zip(best[0], best[1].scores.tolist(), strict=True))

    def hits(self, found: ScoredIds) -> list[NodeWithScore] | None:
        """The same with their nodes."""
        best = self._best(found)
        nodes = None if best is None else self.rows.nodes_at(best[1].positions)
        if best is None or nodes is None:
            return None
        return [NodeWithScore(node=node, score=score) for node, score in zip(nodes, best[1].scores.tolist(), strict=True)]

    def _best(self, found: ScoredIds) -> tuple[list[str], Found] | None:
        positions = self.rows.positions_of([node_id for node_id, _ in found])
        if positions is None:
            return None
        scores = self.placing.of_places(self.chosen, self.rows.tree, self.rows.tree.unit_of[positions], [score for _, score in found], self.retriever)
        best = best_first(positions, scores, self.top_k, self.rows.state.names)
        names = {position: node_id for position, (node_id, _) in zip(positions.tolist(), found, strict=True)}
        return [names[position] for position in best.positions.tolist()], best
