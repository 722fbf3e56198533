"""What a run does after its last test, with a million rows: tables, gates with their intervals, ``summary.json``.

    python benchmarks/million.py [--rows 20000 200000 1000000] [--folder FOLDER] [--without] [--judged N]

Writes a seeded run of so many rows below FOLDER (a temporary folder if none is named), two experiments on half as many
cases, each row as large as the study's but for its prompt (8 kB), and deletes it after it is measured: a million rows
are 8.5 GB. Each line is a process of its own, imports included; MB is the peak of its memory. Beside it the bare
things: ``json`` over the same bytes, and counting newlines. ``--without`` measures without kept blocks too, as of a run
that an older release has made. ``--judged`` adds scores of so many judged measures, six at most, with two gates on the
first and what a judged run says of itself.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rag_harness.evaluation.measures import Measure

GATES = [
    "e3: recall@5 >= 0.3",
    "e3: mrr@10 >= 0.1 @95%",
    "e3: token_f1 >= 0.4 @95%",
    "e3: evidence_recall >= 0",
    "e3: citation_recall >= 0",
    "e3: false_abstention_rate <= 0.2 @95%",
    "e3: error_rate <= 0.05",
    "e3: p95(total_ms) <= 800 @95%",
    "e3[difficulty=hard]: recall@5 >= 0.3 @95%",
    "e3: token_f1 > e2 @95%",
    "e3: recall@5 >= e2",
]
MEGABYTE = 1e6 if sys.platform == "darwin" else 1e3


class Watch:
    """Seconds of the clock and of all processors of each step."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[float, float]] = {}
        self._last = time.perf_counter(), time.process_time()

    def step(self, name: str) -> None:
        """Note that a step is done."""
        now = time.perf_counter(), time.process_time()
        self.steps[name] = (now[0] - self._last[0], now[1] - self._last[1])
        self._last = now


def measures(judged: Sequence[str]) -> list[Measure]:
    """Return what is kept of every run, what the gates name, and what was judged with its composites."""
    from rag_harness.evaluation.measures import columns_of, default_measures, measure_named
    from rag_harness.runs.gates import parse_gate

    usual = {measure.name: measure for measure in default_measures(False, 10)}
    more = [*(parse_gate(text, 10).measure for text in GATES), *columns_of(judged)]
    return list((usual | {name: measure_named(name) for name in more}).values())


def gates_on(judged: Sequence[str]) -> list[str]:
    """Return the gates, two of them on what was judged first."""
    return [*GATES, *(gate for name in judged[:1] for gate in (f"e3: {name} >= 0.4 @95%", f"e3: {name} >= e2"))]


def after(output: Path) -> None:
    """Do what a run does after its last test."""
    watch = Watch()
    from rag_harness.evaluation.measures import measure_named
    from rag_harness.records.manifest import read_manifest
    from rag_harness.runs.gates import judge, parse_gate
    from rag_harness.tables.abstention import abstentions
    from rag_harness.tables.pairwise import pairwise
    from rag_harness.tables.reader import read_tables
    from rag_harness.tables.summary import (
        scorecard_lines,
        speed_lines,
        stage_lines,
        summarise,
        summary_lines,
        write_summary_file,
    )

    watch.step("imports")
    suites = read_manifest(output).suites
    judged = suites["e3"].judged
    gates = [parse_gate(text, 10) for text in gates_on(judged)]
    wanted = measures(judged)
    tables = read_tables(output, lambda _: wanted)
    watch.step("tables")
    verdicts = [judge(gate, tables, unit=measure_named(gate.measure).unit) for gate in gates]
    watch.step("gates")
    sure = {each.experiment: each.as_json() for each in abstentions(tables)}
    write_summary_file(output, tables, verdicts, {"profile": "mock", "mode": "auto"}, {"abstention": sure})
    watch.step("summary.json")
    if judged:
        pairwise(tables, suites)
        watch.step("pairs of judged")
        scorecard_lines(tables, suites)
        watch.step("scorecard")
    lines = [*summary_lines(summarise(tables)), *stage_lines(tables), *speed_lines(tables, 64)]
    watch.step("terminal")
    print(json.dumps({"steps": watch.steps, "gates": [verdict.line() for verdict in verdicts], "lines": lines}))


def bare_json(output: Path) -> None:
    """Parse every line, and nothing else."""
    for file in sorted(output.glob("*.jsonl")):
        with file.open("rb") as stream:
            for line in stream:
                json.loads(line)


def newlines(output: Path) -> None:
    """Count the lines."""
    for file in sorted(output.glob("*.jsonl")):
        with file.open("rb", buffering=0) as stream:
            while piece := stream.read(1 << 20):
                piece.count(b"\n")


STEPS: dict[str, Callable[[Path], None]] = {"after": after, "json": bare_json, "newlines": newlines}


def peak() -> float:
    """Return the most memory that this process has had, in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says counts the process that this one was forked from
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE


def measured(step: str, output: Path) -> tuple[str, dict[str, Any]]:
    """Run a step in a process of its own; return a line and what it said."""
    began = time.perf_counter()
    command = [sys.executable, __file__, "--step", step, str(output)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    *said, spent = done.stdout.splitlines()
    cpu, most = json.loads(spent)
    line = f"{time.perf_counter() - began:8.1f} s  {cpu:8.1f} s of a core  {most:7.0f} MB"
    return line, json.loads(said[0]) if said else {}


def report(rows: int, folder: Path, judged: int, without: bool, with_json: bool) -> Iterator[str]:
    """Yield the lines of a size."""
    from million_rows import write_output
    from million_scores import MEASURES

    output, began, names = folder / str(rows), time.process_time(), MEASURES[:judged]
    write_output(output, rows, measures(names), names)
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    kept = sum(file.stat().st_size for file in output.rglob("columns/**/*") if file.is_file())
    written = (time.process_time() - began) / rows * 1e6
    yield f"{rows} rows, {size / 1e9:.2f} GB, {kept / 1e9:.2f} of it blocks; written in {written:.0f} µs a row"
    line, said = measured("after", output)
    yield f"  after the last test   {line}"
    yield from (f"    {name:18}  {wall:8.1f} s  {cpu:8.1f} s" for name, (wall, cpu) in said["steps"].items())
    yield from (f"    {gate}" for gate in (said["gates"] if rows == 20_000 else ()))
    yield f"  newlines              {measured('newlines', output)[0]}"
    if with_json:
        yield f"  json                  {measured('json', output)[0]}"
    if without:
        for columns in (output / "columns", output / "scores" / "columns"):
            shutil.rmtree(columns, ignore_errors=True)
        yield f"  without kept blocks   {measured('after', output)[0]}"
        yield f"  once more             {measured('after', output)[0]}"
    shutil.rmtree(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--without", action="store_true")
    parser.add_argument("--judged", type=int, default=0, help="measures that there are scores of")
    parser.add_argument("--most-json", type=int, default=200_000, help="parse with json up to so many rows")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.step:
        STEPS[asked.step[0]](Path(asked.step[1]))
        print(json.dumps([time.process_time(), peak()]))
        return
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for rows in asked.rows:
            for line in report(rows, Path(folder), asked.judged, asked.without, rows <= asked.most_json):
                print(line, flush=True)


if __name__ == "__main__":
    main()
