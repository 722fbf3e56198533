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


class Watch:
    """A plugin: what is run belongs to the test that runs, its fixtures included."""

    def __init__(self, covered: coverage.Coverage) -> None:
        self._covered = covered
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._covered.switch_context(item.nodeid)
        began = time.process_time()
        found = yield
        self.seconds[item.nodeid] = round(time.process_time() - began, 3)
        self._covered.switch_context("")
        return found


def survey(folder: Path, room: str) -> None:
    """Write what the tests of a room run, and the seconds of each."""
    covered = coverage.Coverage(data_file=str(folder / f"{room}.cov"), source=["rag_harness"])
    covered.set_option("run:relative_files", True)
    watch = Watch(covered)
    covered.erase()
    covered.start()
    status = pytest.main([*OPTIONS, *ROOMS[room].files()], plugins=[watch])
    covered.stop()
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
