"""Long texts in windows that a model reads one at a time, cut where their reader says."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence


def windows(starts: Sequence[int], borders: Sequence[int], size: int) -> Iterator[range]:
    """Yield the pieces of each window: at most ``size`` of them, ended in front of a border wherever one is in reach.

    Args:
        starts: where in the text each word piece begins, ascending.
        borders: where in the text a window may begin, ascending: the begins of sentences, say.
        size: most pieces of a window.
    """
    allowed = sorted({bisect_left(starts, border) for border in borders})
    first = 0
    while first < len(starts):
        last = min(first + size, len(starts))
        if last < len(starts):
            nearest = bisect_right(allowed, last) - 1
            last = allowed[nearest] if nearest >= 0 and allowed[nearest] > first else last
        yield range(first, last)
        first = last
