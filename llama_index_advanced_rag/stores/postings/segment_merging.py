"""When small segments become a larger one."""

from collections.abc import Sequence

_FAN_IN = 8


def tail_to_merge(sizes: Sequence[int]) -> int:
    """How many of the segments before the last one are merged with it, so that there are at most seven of each order of magnitude (base 8).

    Example:
        >>> tail_to_merge([64, 1, 1, 1]), tail_to_merge([1] * 8), tail_to_merge([8] * 7 + [1] * 8)
        (0, 7, 14)
    """
    merged, total = 0, sizes[-1]
    while True:
        before = sizes[: len(sizes) - 1 - merged]
        alike = next((place for place, size in enumerate(reversed(before)) if _magnitude(size) > _magnitude(total)), len(before))
        if alike < _FAN_IN - 1:
            return merged
        merged, total = merged + alike, total + sum(before[len(before) - alike :])


def _magnitude(size: int) -> int:
    return (size.bit_length() - 1) // 3
