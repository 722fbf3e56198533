"""Replaying the study offline: how long, how it grows, and how long plain vcrpy and pytest-recording take.

    python benchmarks/replay.py [--quick] [--peers PYTHON] [--before CHECKOUT]

Needs the core install. ``--peers`` is an interpreter with ``pip install pytest pytest-recording vcrpy openai``; without
it plain vcrpy runs in this one and pytest-recording is skipped if it is not there. The peers ask for the same answers,
one test a call, from cassettes made of ours: vcrpy from one file with a matcher of bodies, pytest-recording from a file
a test. ``--only fresh`` makes a virtual environment, installs the core, and times its first run. ``--before``
replays the study in turn with another checkout of this repository, an earlier release say, which brings its recordings,
and does nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from replay_peers import write_peers
from side_by_side import TIMES, Run, Took, alternate, median, ratio, run, show, times

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = ROOT / "cassettes" / "embedded"
QUERIES = ROOT / "data" / "kb" / "queries.jsonl"
STUDY = "e1 or e2 or e3 or e4"
NO_OP = "import pytest\n\n\n@pytest.mark.parametrize('n', range({0}))\ndef test_nothing(n):\n    assert n >= 0\n"


class Bench:
    """A temporary folder, the interpreters, and the commands."""

    def __init__(self, folder: Path, peers: str) -> None:
        self.folder, self.peers = folder, peers

    def harness(
        self, marks: str, times_over: int, workers: int, python: str = sys.executable, root: Path = ROOT
    ) -> Took:
        """Replay the experiments of ``marks`` on every query ``times_over``, with the checkout in ``root``."""
        queries = self.folder / f"queries-{times_over}.jsonl"
        if not queries.exists():
            queries.write_text("".join(repeated(times_over)), encoding="utf-8")
        below = self.folder / root.name
        places = [f"--rag-{name}={below / name}" for name in ("output", "cache-dir", "logs")]
        options = ["--rag-mode=replay", "--rag-overwrite", f"--rag-queries={queries}", *places, "-n", str(workers)]
        return run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", marks, *options], root)

    def no_op(self, tests: int, workers: int) -> Took:
        file = self.folder / "plain" / f"test_{tests}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(NO_OP.format(tests))
        return self.plain(sys.executable, file.parent, [file.name, "-p", "no:rag_harness", "-n", str(workers)])

    def peer(self, test: str, calls: int, *options: str) -> Took:
        folder = self.folder / f"peers-{calls}"
        if not folder.exists():
            write_peers(folder, RECORDINGS, calls)
        return self.plain(self.peers, folder, [test, *options])

    @staticmethod
    def plain(python: str, folder: Path, arguments: Sequence[str]) -> Took:
        return run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], folder)

    def has(self, module: str) -> bool:
        """Return whether the peers' interpreter can import ``module``."""
        return not subprocess.run([self.peers, "-c", f"import {module}"], capture_output=True, check=False).returncode


def repeated(times_over: int) -> list[str]:
    """Return the lines of the queries, each ``times_over`` under ids of their own: the texts stay, and are recorded."""
    lines = []
    for number in range(times_over):
        for line in QUERIES.read_text(encoding="utf-8").splitlines():
            query = json.loads(line)
            query["query_id"] += f"_{number}" if number else ""
            lines.append(json.dumps(query) + "\n")
    return lines


def study(bench: Bench, repetitions: int, workers: int) -> None:
    """Time 800 and 2,400 trials beside as many tests that do nothing."""
    runs: dict[str, Run] = {
        "800 trials": partial(bench.harness, STUDY, 1, workers),
        "2400 trials": partial(bench.harness, STUDY, 3, workers),
        "800 no-op tests": partial(bench.no_op, 800, workers),
        "2400 no-op tests": partial(bench.no_op, 2400, workers),
    }
    took = alternate(runs, repetitions)
    show(f"E1 to E4 replayed, -n {workers}", ["", *TIMES], [[name, *times(each)] for name, each in took.items()])
    print(f"2,400 trials against 800: {ratio(took['2400 trials'], took['800 trials']):.2f} x")
    for label, per in (("start-up included", whole(took)), ("each further trial", further(took))):
        print(f"more than a no-op test, {label}: {per * 1000:.1f} ms")


def whole(took: Mapping[str, Sequence[Took]]) -> float:
    return (median(took["800 trials"]) - median(took["800 no-op tests"])) / 800


def further(took: Mapping[str, Sequence[Took]]) -> float:
    ours = median(took["2400 trials"]) - median(took["800 trials"])
    return (ours - median(took["2400 no-op tests"]) + median(took["800 no-op tests"])) / 1600


def peers(bench: Bench, repetitions: int, sizes: Sequence[int], slow: bool) -> None:
    """Time the peers on the same calls."""
    runs: dict[str, Run] = {}
    for calls in sizes:
        runs[f"harness {calls}"] = partial(bench.harness, "e2 or e3 or e4", calls // 600, 0)
        if calls > 600 and not slow:
            print("vcrpy on 2,400 calls is skipped: its search is quadratic; --slow runs it")
        elif bench.has("vcr, openai, pytest"):
            runs[f"vcrpy, one cassette {calls}"] = partial(bench.peer, "test_one.py", calls)
        if bench.has("pytest_recording, openai"):
            runs[f"pytest-recording {calls}"] = partial(bench.peer, "test_each.py", calls, "--record-mode=none")
        else:
            print("pytest-recording is skipped: pip install pytest-recording, and name its interpreter with --peers")
    took = alternate(runs, repetitions)
    rows = [
        [name, *times(each), f"{ratio(each, took[f'harness {name.split()[-1]}']):.1f} x"] for name, each in took.items()
    ]
    show("one process, the same calls", ["", *TIMES, "against the harness"], rows)


def before(bench: Bench, repetitions: int, checkout: Path) -> None:
    """Time the 800 with this checkout and another one, in turn."""
    here = [("800 trials", STUDY, 0), ("200 trials", "e3", 0), ("200 trials, -n 4", "e3", 4)]
    runs: dict[str, Run] = {}
    for name, marks, workers in here:
        runs[f"{name}, before"] = partial(bench.harness, marks, 1, workers, root=checkout.resolve())
        runs[f"{name}, now"] = partial(bench.harness, marks, 1, workers)
    took = alternate(runs, repetitions)
    show("replayed, against another checkout", ["", *TIMES], [[name, *times(each)] for name, each in took.items()])
    for name, _, _ in here:
        print(f"{name}: {ratio(took[f'{name}, now'], took[f'{name}, before']):.2f} x of before")


def fresh(bench: Bench) -> None:
    """Time a new virtual environment up to its first green run."""
    folder = bench.folder / "fresh"
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    installed = run([python, "-m", "pip", "install", "-q", "-e", str(ROOT)], bench.folder)
    first = bench.harness("e3", 1, 4, python)
    print(f"\nfresh environment: pip install {installed.wall:.1f} s, its first `pytest -m e3 -n 4` {first.wall:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition, the peers on 600 calls only")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="interpreter that has the peers")
    parser.add_argument("--slow", action="store_true", help="plain vcrpy on 2,400 calls too: many minutes")
    parser.add_argument("--only", choices=["study", "peers", "fresh"], help="one part")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="another checkout to replay in turn")
    parser.add_argument("--fresh", action="store_true", help="a new virtual environment too")
    asked = parser.parse_args()
    repetitions = 1 if asked.quick else asked.repetitions
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), asked.peers)
        if asked.before:
            before(bench, repetitions, asked.before)
            return
        if asked.only in (None, "study"):
            study(bench, repetitions, 0)
            study(bench, repetitions, 4)
        if asked.only in (None, "peers"):
            peers(bench, repetitions, [600] if asked.quick else [600, 2400], asked.slow)
        if asked.fresh or asked.only == "fresh":
            fresh(bench)


if __name__ == "__main__":
    main()
