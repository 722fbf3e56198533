"""Runs commands in turn, A B A B …, so that a slow phase of the machine affects all of them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Took:
    """What a command and its children took.

    Attributes:
        wall: seconds on the clock.
        cpu: seconds on all processors together.
        memory: most MB of its largest process; 0 where that was not looked at.
        seen: seconds until a text that was looked for was printed.
    """

    wall: float
    cpu: float
    memory: float = 0.0
    seen: float = 0.0


Run = Callable[[], Took]
_STARTER = """
import json, os, subprocess, sys, time
for line in sys.stdin:
    command, folder, environment, output, text = json.loads(line)
    with open(output, "wb") as written:
        began, seen = time.perf_counter(), 0.0
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=written, stderr=subprocess.STDOUT
        )
        watched = os.WEXITED | os.WNOWAIT | os.WNOHANG
        while text and not seen and os.waitid(os.P_PID, process.pid, watched) is None:
            time.sleep(0.02)
            with open(output, encoding="utf-8", errors="replace") as so_far:
                seen = time.perf_counter() - began if text in so_far.read() else 0.0
        _, status, used = os.wait4(process.pid, 0)
        wall, process.returncode = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
    cpu = used.ru_utime + used.ru_stime
    print(json.dumps([process.returncode, wall, cpu, used.ru_maxrss, seen]), flush=True)
"""
_A_MEGABYTE = 1e6 if sys.platform == "darwin" else 1e3


@cache
def _starter() -> subprocess.Popen[str]:
    """Return a small process that starts the others: the peak of a process counts the one that it was forked from."""
    return subprocess.Popen(
        [sys.executable, "-S", "-c", _STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def run(
    command: Sequence[str | Path],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    done_when: str = "",
    look_for: str = "",
) -> Took:
    """Run ``command`` in ``folder`` and return what it took as a whole process.

    One that prints ``done_when`` has succeeded, whatever its exit status. When it prints ``look_for`` is noted.

    Raises:
        RuntimeError: it failed; holds the end of what it printed.
    """
    starter = _starter()
    assert starter.stdin
    assert starter.stdout
    with tempfile.TemporaryDirectory() as place:
        output = Path(place) / "output"
        known = {**_environment(), **(environment or {})}
        asked = [[str(each) for each in command], str(folder), known, str(output), look_for]
        starter.stdin.write(json.dumps(asked) + "\n")
        starter.stdin.flush()
        status, wall, cpu, memory, seen = json.loads(starter.stdout.readline())
        printed = output.read_text(encoding="utf-8", errors="replace")
    if status and not (done_when and done_when in printed):
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {status}:\n{printed[-3000:]}")
    return Took(wall, cpu, memory / _A_MEGABYTE, seen)


def _environment() -> dict[str, str]:
    """Return the variables without one that makes pytest rewrite every plugin's asserts anew at each start."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


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
