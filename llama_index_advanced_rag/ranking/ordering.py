"""In which order a reader meets the passages: best at both ends, or as they stand in their documents.

Both functions answer with positions (indices from 0 into the incoming list). The incoming *order* is the rank; scores
are never looked at, so that the work of a reranker that only orders is kept and missing scores do no harm.
"""

from collections.abc import Hashable, Sequence


def order_lost_in_the_middle(count: int, *, best_first: bool = True) -> list[int]:
    """Put the best items at the two ends and the worst in the middle.

    Args:
        count: how many items there are, best first; 0 or more.
        best_first: True puts the best item first and the second best last; False the other way round.

    Returns:
        A permutation of `range(count)`: element `i` is the rank (from 0) of the item that stands at place `i`.

    Source: Liu et al. 2023, "Lost in the Middle" (arXiv:2307.03172), section 4, found that readers use the ends of a long
        context best. The paper proposes no order; alternating inwards from both ends is the usual answer. For an odd
        and an even number of items the best one stands at the same end.

    Example:
        >>> [rank + 1 for rank in order_lost_in_the_middle(5)]
        [1, 3, 5, 4, 2]
        >>> [rank + 1 for rank in order_lost_in_the_middle(4)]
        [1, 3, 4, 2]
    """
    inwards = [*range(0, count, 2), *reversed(range(1, count, 2))]
    return inwards if best_first else inwards[::-1]


def order_by_document(places: Sequence[tuple[Hashable, int | None]]) -> list[int]:
    """Put items in the order of the text they come from.

    Documents follow each other in the order of their best item. Within one document items are sorted by offset; items
    without an offset follow those that have one; equal places keep the incoming order.

    Args:
        places: for each item, best first, its document and its start offset there (None = unknown).

    Returns:
        A permutation of `range(len(places))`.

    Example:
        >>> order_by_document([("b", 900), ("a", 10), ("b", 100), ("b", None)])
        [2, 0, 3, 1]
    """
    documents = {document: order for order, document in enumerate(dict.fromkeys(document for document, _ in places))}

    def key(index: int) -> tuple[int, bool, int]:
        document, start = places[index]
        return documents[document], start is None, start or 0

    return sorted(range(len(places)), key=key)
