"""20,000 trials against 2,000: does the time grow with the trials, and what does the controller keep of each?

    python benchmarks/scale.py [--quick] [--workers N]

Needs the core install. The pipeline is a stub that answers at once, so that everything measured is pytest's and the
harness's own. Beside it, the same number of parametrized tests that do nothing, without the plugin. Memory is the peak
resident size of the process that was started, which under ``-n`` is the controller, as the system reports it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from side_by_side import Took, alternate, median, run, show

SIZES = (2_000, 20_000)
CONFTEST = """
import resource
from pathlib import Path

import pytest


class Stub:
    async def answer(self, query):
        return "Returns are free for 30 days."


@pytest.fixture(scope="session")
def rag_pipeline():
    return Stub()


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        # In kilobytes on Linux, in bytes on macOS.
        Path("peak").write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""
STUB = """
import pytest


@pytest.mark.rag_experiment("stub")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
NO_OP = """
import pytest


@pytest.mark.parametrize("n", range({trials}), ids=lambda n: f"stub-q_{{n:05}}")
def test_answers(n):
    assert n >= 0
"""
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
KILOBYTE = 1000 if sys.platform == "darwin" else 1


def write_suite(folder: Path, trials: int) -> None:
    (folder / "kb").mkdir(parents=True)
    (folder / "kb" / "returns.md").write_text("# Returns\n\nReturns are free for 30 days.\n")
    queries = [
        {"query_id": f"q_{n:05}", "query": f"Question {n}?", "ground_truth": "Free for 30 days."} for n in range(trials)
    ]
    (folder / "kb" / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in queries))
    (folder / "pytest.ini").write_text("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_stub.py").write_text(STUB)
    (folder / "no_op.py").write_text(NO_OP.format(trials=trials))


class Suites:
    """A folder for each size, and the peaks of memory that were seen."""

    def __init__(self, folder: Path, sizes: Sequence[int]) -> None:
        self._folder = folder
        self.peaks: dict[str, list[float]] = {}
        for size in sizes:
            write_suite(folder / str(size), size)

    def run(self, name: str, size: int, arguments: Sequence[str]) -> Took:
        folder = self._folder / str(size)
        took = run([*PYTEST, *arguments], folder)
        self.peaks.setdefault(name, []).append(float((folder / "peak").read_text()) / KILOBYTE)
        return took


WITHOUT = ["-p", "no:rag_harness", "no_op.py"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials, one repetition")
    parser.add_argument("--workers", type=int, nargs="*", default=[0, 4], metavar="N", help="values of -n")
    parser.add_argument("--repetitions", type=int, default=3)
    asked = parser.parse_args()
    sizes = [size // 10 if asked.quick else size for size in SIZES]
    with tempfile.TemporaryDirectory() as folder:
        suites = Suites(Path(folder), sizes)
        for workers in asked.workers:
            split = ["-n", str(workers)]
            kinds = {"harness": ["--rag-overwrite", *split, "test_stub.py"], "no-op tests": [*WITHOUT, *split]}
            runs = {
                f"{kind} {size}": partial(suites.run, f"{kind} {size}", size, arguments)
                for kind, arguments in kinds.items()
                for size in sizes
            }
            report(suites, workers, alternate(runs, 1 if asked.quick else asked.repetitions), list(kinds), sizes)


def report(
    suites: Suites, workers: int, took: dict[str, list[Took]], kinds: Sequence[str], sizes: Sequence[int]
) -> None:
    """Print a line for the harness and one for plain pytest."""
    rows, (small, large) = [], sizes
    for kind in kinds:
        few, many = took[f"{kind} {small}"], took[f"{kind} {large}"]
        peaks = [min(suites.peaks[f"{kind} {size}"]) for size in sizes]
        growth = (peaks[1] - peaks[0]) / (large - small)
        seconds = [median(few), median(many), median(many) / median(few)]
        cells = [f"{each:.1f}" for each in [*seconds, median(many) / large * 1000, *(peak / 1000 for peak in peaks)]]
        rows.append([kind, *cells, f"{growth:.1f}"])
        suites.peaks.pop(f"{kind} {small}"), suites.peaks.pop(f"{kind} {large}")
    header = ["", f"{small} s", f"{large} s", "ratio", "ms a trial", f"{small} MB", f"{large} MB", "kB a trial"]
    show(f"{large} trials against {small}, -n {workers}: medians of time, peak memory of the controller", header, rows)


if __name__ == "__main__":
    main()
