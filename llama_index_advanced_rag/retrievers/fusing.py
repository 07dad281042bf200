"""One list from the lists of several retrievers, whatever their hits are named by, and the words that explain it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from llama_index.core.schema import NodeWithScore

from llama_index_advanced_rag._choices import parse_choice
from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.ranking.fusion import FusionMode, concatenate_all_guarded, fused_scores, reciprocal_rank_scores
from llama_index_advanced_rag.retrievers.children import Child
from llama_index_advanced_rag.stores.node_source import sort_key
from llama_index_advanced_rag.trace import Evidence

Id = TypeVar("Id", bound=Hashable)
Ranked = Sequence[tuple[Id, float | None]]
Ordered = Callable[[Mapping[Id, float], int | None], list[tuple[Id, float]]]
"""Orders scored ids, best first, with its own rule for equal scores; at most so many, None = all."""


@dataclass(frozen=True, slots=True)
class ListFusion:
    """How lists become one, see `HybridRetriever`."""

    mode: FusionMode
    rrf_k: int
    guard: int

    @classmethod
    def checked(cls, mode: FusionMode | str, *, weights: object, rrf_k: int, guard: int) -> "ListFusion":
        """The fusion with these options.

        Raises:
            ConfigurationError: an option cannot work.
        """
        parsed = parse_choice(FusionMode, mode, argument="fusion")
        if parsed is FusionMode.GUARDED and weights is not None:
            raise ConfigurationError(f"weights {weights!r} have no effect with fusion='guarded'. Leave them out, or set guard.")
        if rrf_k < 0 or guard < 0:
            raise ConfigurationError(f"rrf_k is {rrf_k!r} and guard is {guard!r}. Both must be at least 0.")
        return cls(parsed, rrf_k, guard)

    def fuse(self, children: Sequence[Child], lists: Sequence[Ranked[Id]], ordered: Ordered[Id], top_k: int) -> list[tuple[Id, float]]:
        """The best of the lists, best first.

        Args:
            children: whose list each is; under "guarded" the lists of one child are first fused by rank.
            lists: ids, each once, and scores, best first.
            ordered: puts scored ids in order.
            top_k: most ids returned.
        """
        if self.mode is not FusionMode.GUARDED:
            weights, own = [child.weight for child in children], [child.own_range for child in children]
            natural = [child.natural_range for child in children]
            return ordered(fused_scores(self.mode, lists, weights=weights, ranges=own, natural_ranges=natural, k=self.rrf_k), top_k)
        by_child: dict[str, list[list[Id]]] = {}
        for child, ranked in zip(children, lists, strict=True):
            by_child.setdefault(child.name, []).append([item for item, _ in ranked])
        finished = [ordered(reciprocal_rank_scores(rankings, k=self.rrf_k), None) for rankings in by_child.values()]
        return concatenate_all_guarded([[item for item, _ in ranked] for ranked in finished], self.guard)[:top_k]


def fuse_hits(
    fusion: ListFusion, found: Sequence[tuple[Child, str, Sequence[NodeWithScore]]], key_of: Callable[[NodeWithScore], str], top_k: int
) -> tuple[dict[str, NodeWithScore], list[tuple[str, list[tuple[str, float | None]]]]]:
    """The nodes of several lists as one list; equal scores stand in the order of the documents.

    Args:
        fusion: how lists become one.
        found: whose list each is, what it is called, and its hits, best first.
        key_of: what makes two hits one.
        top_k: most hits returned.

    Returns:
        The hits by key, best first, in new objects; and each list by its name, as keys and scores.
    """
    first: dict[str, NodeWithScore] = {}
    lists: list[list[tuple[str, float | None]]] = []
    for _, _, hits in found:
        ranked: dict[str, float | None] = {}
        for hit in hits:
            key = key_of(hit)
            first.setdefault(key, hit)
            ranked.setdefault(key, None if hit.score is None else float(hit.score))
        lists.append(list(ranked.items()))

    def ordered(scores: Mapping[str, float], limit: int | None) -> list[tuple[str, float]]:
        return sorted(scores.items(), key=lambda item: (-item[1], sort_key(first[item[0]].node)))[:limit]

    fused = fusion.fuse([child for child, _, _ in found], lists, ordered, top_k)
    named = [(label, ranked) for (_, label, _), ranked in zip(found, lists, strict=True)]
    return {key: NodeWithScore(node=first[key].node, score=score) for key, score in fused}, named


def fusion_evidence(
    stage: str, results: Sequence[tuple[Id, float | None]], lists: Sequence[tuple[str, Ranked[Id]]], node_id: Callable[[Id], str]
) -> list[Evidence]:
    """For each result the place and the score it has in each list."""
    places = {label: {item: (rank, score) for rank, (item, score) in enumerate(ranked, start=1)} for label, ranked in lists}
    found: list[Evidence] = []
    for rank, (item, score) in enumerate(results, start=1):
        seen = {label: ranked[item] for label, ranked in places.items() if item in ranked}
        why = ", ".join(f"{label} #{place}" if value is None else f"{label} #{place} ({value:.3g})" for label, (place, value) in seen.items())
        details = {label: {"rank": place, "score": value} for label, (place, value) in seen.items()}
        found.append(Evidence(node_id(item), stage, rank, score, why, details))
    return found
