"""Windows of long texts, which a model reads one at a time, cut at given borders."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence


def windows(starts: Sequence[int], borders: Sequence[int], size: int) -> Iterator[range]:
    """Yield the pieces of each window, at most ``size``. A window ends at the last border in reach, if there is one.

    Args:
        starts: the start of each word piece in the text, ascending.
        borders: places in the text where a window may begin, ascending, e.g. the starts of sentences.
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
