"""The engine on calls that take 200 ms: 600 trials, 64 in flight, beside the least that could do the same.

    python benchmarks/engine.py [--quick] [--peers PYTHON] [--promptfoo PATH]

Needs the core install, in an environment of its own: other plugins cost every pytest alike (hypothesis 0.5 s).
The prototype is a conftest.py with one AsyncOpenAI, a loop ahead of the tests and an fsync a row, nothing else; the
script is the same calls without pytest. Everything runs in turn against one server on 127.0.0.1, which counts.
``--peers`` is an interpreter with ``pip install inspect_ai openai``; promptfoo comes from ``npm install promptfoo``.
What is not there is skipped.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from engine_peers import find_promptfoo, has_inspect, inspect, promptfoo
from engine_suites import write_harness, write_prototype
from mock_server import MockServer, running
from side_by_side import TIMES, Run, Took, alternate, ratio, run, show, times

DELAY, IN_FLIGHT = 0.2, 64
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


class Field:
    """One server, one folder, and what the server counted in the last run of each competitor."""

    def __init__(self, folder: Path, server: MockServer, calls: int) -> None:
        self.folder, self.server, self.calls = folder, server, calls
        self.seen: dict[str, dict[str, float]] = {}
        write_prototype(folder / "prototype")
        write_harness(folder / "harness", server.url, calls)

    def prototype(self, workers: int) -> Took:
        files = [f"test_{share}.py" for share in range(max(1, workers))]
        split = ["-n", str(workers), "--dist", "loadfile"] if workers else []
        return self._plain([*PYTEST, "-p", "no:rag_harness", *split, *files], max(1, workers))

    def script(self) -> Took:
        return self._plain([sys.executable, "script.py"], 1)

    def _plain(self, command: list[str], workers: int) -> Took:
        environment = {"CALLS": self.calls, "IN_FLIGHT": IN_FLIGHT, "WORKERS": workers, "URL": self.server.url}
        return run(command, self.folder / "prototype", {key: str(value) for key, value in environment.items()})

    def harness(self, workers: int) -> Took:
        options = [
            "--rag-mode=live",
            f"--rag-concurrency={IN_FLIGHT}",
            "--rag-overwrite",
            "-n",
            str(workers),
            "-m",
            "e1",
        ]
        return run([*PYTEST, *options], self.folder / "harness")

    def counted(self, name: str, each: Run) -> Took:
        """Do ``each`` and keep what the server saw of it."""
        self.server.reset()
        took = each()
        self.seen[name] = self.server.stats()
        return took


BARE, BARE_4 = "prototype", "prototype -n 4"
PEER_OF = {"harness": BARE, "harness -n 2": BARE_4, "harness -n 4": BARE_4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="150 calls, one repetition")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="interpreter that has inspect_ai")
    parser.add_argument("--promptfoo", default="promptfoo", metavar="PATH", help="promptfoo's command")
    asked = parser.parse_args()
    calls, repetitions = (150, 1) if asked.quick else (600, asked.repetitions)
    with tempfile.TemporaryDirectory() as folder, running(DELAY) as server:
        field = Field(Path(folder), server, calls)
        runs: dict[str, Run] = {
            "script without pytest": field.script,
            BARE: partial(field.prototype, 0),
            "harness": partial(field.harness, 0),
            BARE_4: partial(field.prototype, 4),
            "harness -n 2": partial(field.harness, 2),
            "harness -n 4": partial(field.harness, 4),
            **peers(field, asked.peers, asked.promptfoo),
        }
        report(field, alternate({name: partial(field.counted, name, each) for name, each in runs.items()}, repetitions))


def peers(field: Field, python: str, command: str) -> dict[str, Run]:
    """Return the peers that are installed; say which are not."""
    found: dict[str, Run] = {}
    size = (field.server.url, field.calls, IN_FLIGHT)
    if path := find_promptfoo(command):
        found["promptfoo"] = partial(promptfoo, path, field.folder / "promptfoo", *size)
    else:
        print("promptfoo is skipped: npm install promptfoo, and name its command with --promptfoo")
    if has_inspect(python):
        found["inspect_ai"] = partial(inspect, python, field.folder / "inspect", *size)
    else:
        print("inspect_ai is skipped: pip install inspect_ai openai, and name its interpreter with --peers")
    return found


def report(field: Field, took: Mapping[str, Sequence[Took]]) -> None:
    """Print a line for each competitor."""
    rows = []
    for name, each in took.items():
        seen, peer = field.seen[name], PEER_OF.get(name, BARE)
        counts = [f"{seen[key]:.0f}" for key in ("calls", "connections", "most")]
        rows.append([name, *times(each), f"{ratio(each, took[peer]):.2f} x {peer}", *counts, f"{seen['cpu']:.2f}"])
    header = ["", *TIMES, "ratio", "calls", "connections", "in flight", "server cpu s"]
    limit = f"limit {field.calls * DELAY / IN_FLIGHT:.2f} s"
    show(f"{field.calls} calls of {DELAY} s, {IN_FLIGHT} in flight: {limit} ({os.cpu_count()} cores)", header, rows)


if __name__ == "__main__":
    main()
