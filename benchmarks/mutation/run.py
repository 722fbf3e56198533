"""Run the tests on each mutant of a sample, and say which survive.

    python benchmarks/mutation/run.py sample.json results.json --survey FOLDER

Each mutant gets a process that is forked from one that has imported what others wrote, numpy and pytest among them.
It is not written to a file: the import of its module gives the mutated code. Where tests start suites, it is written
into the file and taken back, so run these in a clone of its own. A mutant is killed if a test fails, or if it takes
too long. In the end the tests that killed are run without any mutant, and must pass.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from draw import mutated
from rooms import ROOMS, ROOT
from tests_of import Survey

SECONDS = 120
MOST_SUITES = 40
"""Tests that start suites, a mutant: the quickest of those that run the mutated function."""
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--no-header", "--tb=short", "-o", "rag_gate="]


class Watch:
    """A plugin: the first failure is noted, and hypothesis draws the same each time and does not shrink."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_configure(self) -> None:
        import hypothesis

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", derandomize=True, database=None, phases=phases, deadline=None)
        hypothesis.settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed = self.failed or (report.nodeid if report.failed else "")

    def pytest_collectreport(self, report: Any) -> None:
        self.failed = self.failed or (report.nodeid if report.failed else "")


OURS = ("rag_harness", "benchmarks", "tests", "conftest", "_pytest.assertion")
"""What the modules that mutants are imported into are called."""


def warm(files: list[str]) -> None:
    """Import what the tests import and others wrote."""
    listing = (
        "import sys, pytest; pytest.main(['--collect-only', '-qq', *sys.argv[1:]]); print(*sys.modules, sep='\\n')"
    )
    asked = [sys.executable, "-c", listing, *OPTIONS, *files]
    loaded = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in loaded:
        if not name.startswith(OURS) and name.isprintable():
            try:
                importlib.import_module(name)
            except (ImportError, ValueError, AttributeError):
                continue
    assert "rag_harness" not in sys.modules


def give(module: str, code: str) -> None:
    """Let the import of a module give other code."""
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        if Path(self.path) == ROOT / module:
            with warnings.catch_warnings(action="ignore"):
                return compile(code, self.path, "exec", dont_inherit=True)
        return original(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def forked(tests: list[str], log: Path, module: str = "", code: str = "") -> dict[str, Any]:
    """Run tests in a process of their own, on mutated code if there is any."""
    child = os.fork()
    if child == 0:
        _child(tests, log, module, code)
    _, status, used = os.wait4(child, 0)
    by = Path(f"{log}.failed")
    failed = by.read_text() if by.exists() else f"ended with {status}"
    by.unlink(missing_ok=True)
    return {"killed": status != 0, "by": failed if status else "", "seconds": round(used.ru_utime, 1)}


def _child(tests: list[str], log: Path, module: str, code: str) -> None:
    status = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        os.chdir(ROOT)
        sys.path.insert(0, str(ROOT))
        sys.dont_write_bytecode = True
        if module:
            give(module, code)
        import pytest

        watch = Watch()
        status = int(pytest.main([*OPTIONS, *tests], plugins=[watch]))
        Path(f"{log}.failed").write_text(watch.failed or f"pytest ended with {status}")
    finally:
        os._exit(status)


def written(tests: list[str], log: Path, module: str = "", code: str = "") -> dict[str, Any]:
    """Run tests with mutated code in its file, for they start suites; the file is put back."""
    file = ROOT / module
    before, began = (file.read_bytes() if module else b""), time.monotonic()
    command = [sys.executable, "-m", "pytest", *OPTIONS, "-rf", *tests]
    try:
        if module:
            file.write_text(code, encoding="utf-8")
        with log.open("w", encoding="utf-8") as out:
            ended = subprocess.run(command, cwd=ROOT, stdout=out, stderr=out, timeout=2 * SECONDS, check=False)
        found, status = re.search(r"^(?:FAILED|ERROR) (\S+)", log.read_text(), re.MULTILINE), ended.returncode
        by = found[1] if found else f"pytest ended with {status}"
    except subprocess.TimeoutExpired:
        status, by = 1, "took too long"
    finally:
        if module:
            file.write_bytes(before)
    return {"killed": status != 0, "by": by if status else "", "seconds": round(time.monotonic() - began, 1)}


def run(sample: list[dict[str, Any]], surveys: Path, logs: Path) -> list[dict[str, Any]]:
    rows = []
    found = {room: Survey(surveys, room) for room in {row["room"] for row in sample}}
    for number, row in enumerate(sample):
        module, operator, occurrence, line = row["mutant"]
        tests = found[row["room"]].tests(module, line)
        ways = written if ROOMS[row["room"]].starts_suites else forked
        tests = tests[:MOST_SUITES] if ways is written else tests
        result = ways(tests, logs / f"{number}.log", module, mutated(row["mutant"]) or "")
        rows.append({**row, **result, "tests": len(tests)})
        told = "killed" if result["killed"] else "SURVIVED"
        print(number, told, f"{module}:{line}", operator, occurrence, result["by"], result["seconds"], flush=True)
        if result["killed"] and "::" not in result["by"]:
            print((logs / f"{number}.log").read_text()[-300:])
    return rows


def check(rows: list[dict[str, Any]], log: Path) -> None:
    """Run what killed without a mutant."""
    for ways, starts_suites in ((forked, False), (written, True)):
        mine = [row for row in rows if ROOMS[row["room"]].starts_suites == starts_suites]
        killers = sorted({row["by"] for row in mine if "::" in row["by"]})
        if killers and ways(killers, log)["killed"]:
            raise SystemExit(f"a test that killed fails without a mutant, too: {log}")


def table(rows: list[dict[str, Any]]) -> None:
    for room in ROOMS:
        mine = [row["killed"] for row in rows if row["room"] == room]
        print(f"{room}: {sum(mine)} of {len(mine)} killed")
    print(f"all: {sum(row['killed'] for row in rows)} of {len(rows)} killed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--survey", type=Path, required=True)
    parser.add_argument("--room", choices=ROOMS, help="this room only")
    asked = parser.parse_args()
    rows = [row for row in json.loads(asked.sample.read_text()) if asked.room in (None, row["room"])]
    warm(
        [
            file
            for room in {row["room"] for row in rows}
            for file in ROOMS[room].files()
            if not ROOMS[room].starts_suites
        ]
    )
    with tempfile.TemporaryDirectory() as logs:
        results = run(rows, asked.survey, Path(logs))
        asked.results.write_text("[\n" + ",\n".join(json.dumps(row) for row in results) + "\n]\n")
        table(results)
        check(results, asked.results.with_suffix(".log"))


if __name__ == "__main__":
    main()
