"""Runs commands in turn, A B A B …, so that a slow phase of the machine affects all of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Took:
    """What a command and its children took: seconds on the clock, and on all processors together."""

    wall: float
    cpu: float


Run = Callable[[], Took]


def run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None, done_when: str = ""
) -> Took:
    """Run ``command`` in ``folder`` and return what it took as a whole process.

    One that prints ``done_when`` has succeeded, whatever its exit status.

    Raises:
        RuntimeError: it failed; holds the end of what it printed.
    """
    started, before = time.perf_counter(), _children()
    done = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env={**_environment(), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    took = Took(time.perf_counter() - started, _children() - before)
    if done.returncode and not (done_when and done_when in done.stdout):
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return took


def _environment() -> dict[str, str]:
    """Return the variables without one that makes pytest rewrite every plugin's asserts anew at each start."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def alternate(runs: Mapping[str, Run], repetitions: int) -> dict[str, list[Took]]:
    """Do all of ``runs`` in turn, ``repetitions`` times over, after one round that does not count if there are more."""
    took: dict[str, list[Took]] = {name: [] for name in runs}
    for number in range(repetitions + (repetitions > 1)):
        for name, each in runs.items():
            took[name].append(each())
        if repetitions > 1 and number == 0:
            took = {name: [] for name in runs}
    return took


def ratio(one: Sequence[Took], other: Sequence[Took]) -> float:
    """Return the median of the ratios of wall time, round by round: what a machine's drift changes least."""
    return statistics.median(mine.wall / theirs.wall for mine, theirs in zip(one, other, strict=True))


def median(took: Sequence[Took]) -> float:
    """Return the median wall time in seconds."""
    return statistics.median(each.wall for each in took)


TIMES = ["min s", "median s", "cpu s"]


def times(took: Sequence[Took]) -> list[str]:
    """Return the cells for ``TIMES``."""
    cpu = statistics.median(each.cpu for each in took)
    return [f"{min(each.wall for each in took):.2f}", f"{median(took):.2f}", f"{cpu:.2f}"]


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, the first column left and the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    print(f"\n{title}\n")
    for first, *others in [header, *rows]:
        cells = [first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]
        print("  ".join(cells).rstrip())
    print(flush=True)
