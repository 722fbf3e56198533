"""Run each room's tests under coverage once, to know which test runs which line, and how long each takes.

python benchmarks/mutation/survey.py FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest
from rooms import ROOMS, ROOT

OPTIONS = ["-q", "-p", "no:cacheprovider", "-o", "rag_gate="]
OF_SUITES = """[run]
data_file = {file}
parallel = true
relative_files = true
source = {source}
context = ${{PYTEST_CURRENT_TEST}}
"""


class Watch:
    """A plugin: what is run belongs to the test that runs, its fixtures included."""

    def __init__(self, covered: coverage.Coverage) -> None:
        self._covered = covered
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._covered.switch_context(item.nodeid)
        began = time.perf_counter()
        found = yield
        self.seconds[item.nodeid] = round(time.perf_counter() - began, 3)
        self._covered.switch_context("")
        return found


def survey(folder: Path, room: str) -> None:
    """Write what the tests of a room run, and the seconds of each."""
    parts = (
        ["rag_harness/frontends/pytest_plugin", "rag_harness/runs"] if ROOMS[room].starts_suites else ["rag_harness"]
    )
    file = folder / f"{room}.cov"
    covered = coverage.Coverage(data_file=str(file), source=parts)
    covered.set_option("run:relative_files", True)
    watch = Watch(covered)
    if ROOMS[room].starts_suites:
        # tests/plugin/warm_server.py begins to cover in each process that it forks for a suite.
        asked = folder / f"{room}.coveragerc"
        asked.write_text(OF_SUITES.format(file=file, source=",".join(str(ROOT / each) for each in parts)))
        os.environ["COVERAGE_PROCESS_START"] = str(asked)
    covered.erase()
    covered.start()
    status = pytest.main([*OPTIONS, *ROOMS[room].files()], plugins=[watch])
    covered.stop()
    covered.save()
    suites = sorted(str(each) for each in folder.glob(f"{room}.cov.*"))
    if suites:
        covered.combine(suites)
        covered.save()
    (folder / f"{room}.seconds.json").write_text(json.dumps(watch.seconds, indent=0))
    if status:
        raise SystemExit(f"the tests of {room} must pass before anything is mutated")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--room", choices=ROOMS, help="this room only")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if asked.room:
        os.chdir(ROOT)
        sys.path.insert(0, str(ROOT))
        survey(folder, asked.room)
        return
    for room in ROOMS:  # each in a process of its own, so that what is imported is run under coverage
        subprocess.run([sys.executable, __file__, str(folder), "--room", room], check=True)


if __name__ == "__main__":
    main()
