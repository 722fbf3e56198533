"""Work that is done beside other work: NumPy and zlib let go of the interpreter while they are at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from rag_harness.page.run import Run


@contextmanager
def intervals_beside(runs: Sequence[Run]) -> Iterator[None]:
    """Work out the interval of every mean that the scorecard has, while the block runs; at its end they are there."""
    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(_intervals, runs)
        yield
        done.result()


def _intervals(runs: Sequence[Run]) -> None:
    # Measure by measure: two experiments that differ in the answers alone have equal values of all else.
    for run in runs[:1]:
        tables = run.selected.values()
        for measure in dict.fromkeys(name for table in tables for name in table.columns):
            for table in tables:
                if table.has(measure):
                    table.interval(measure)
