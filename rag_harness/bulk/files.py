"""Files and folders -> windows of files to read, and the files by which a node is asked whether it sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.bulk.values import Window
from rag_harness.dataset.library import Source

FILES, BYTES = 64, 4_000_000
"""A window has at most so many files, and no more after so many bytes."""
PROBES = 16
"""Files that each node is asked to open before the work begins, the first and the last among them."""


def windows(sources: Sequence[Source], files: int = FILES) -> Iterator[Window]:
    """Yield all files in their order, in windows."""
    group: list[Source] = []
    number = size = 0
    for source in sources:
        group.append(source)
        size += source.file.stat().st_size if source.file.is_file() else 0
        if len(group) == files or size >= BYTES:
            yield Window(number, tuple(group))
            number, group, size = number + 1, [], 0
    if group:
        yield Window(number, tuple(group))


def probes(sources: Sequence[Source]) -> dict[str, int]:
    """Return some of the files with their sizes, spread over all."""
    step = max(1, (len(sources) - 1) // (PROBES - 1))
    some = [*sources[::step][: PROBES - 1], *sources[-1:]]
    return {str(each.file.absolute()): each.file.stat().st_size for each in some if each.file.is_file()}
