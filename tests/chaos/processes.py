"""Processes that are started to be hurt: each in a group of its own, bounded in time, ended by its id."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST = 90.0
"""Seconds that any process of these tests may live."""


def members(group: int) -> list[int]:
    """Return the processes of a group, the youngest last."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def send(signal_: signal.Signals, ids: Sequence[int]) -> None:
    for each in ids:
        with suppress(ProcessLookupError):
            os.kill(each, signal_)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a group, and wait until nothing is."""
    until = time.monotonic() + 20
    while (left := members(process.pid)) and time.monotonic() < until:
        send(signal.SIGKILL, left)
        time.sleep(0.01)
    process.wait(20)


@contextmanager
def started(
    command: Sequence[str], folder: Path, said: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that writes to the file ``said``, in a group of its own; nothing of it is left afterwards."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("RAG_", "PYTEST_"))}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with said.open("ab") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**env, **(environment or {})},
        )
    try:
        yield process
    finally:
        end(process)
