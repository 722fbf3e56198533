"""Computes intervals in threads beside other work: NumPy and zlib release the interpreter lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from rag_harness.page.run import Run


@contextmanager
def intervals_beside(runs: Sequence[Run]) -> Iterator[None]:
    """Compute the interval of every mean of the scorecard while the block runs. At its end they are cached."""
    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(_intervals, runs)
        yield
        done.result()


def _intervals(runs: Sequence[Run]) -> None:
    # One measure after another: two experiments that differ only in their answers have equal values of other measures.
    for run in runs[:1]:
        tables = run.selected.values()
        for measure in dict.fromkeys(name for table in tables for name in table.columns):
            for table in tables:
                if table.has(measure):
                    table.interval(measure)
