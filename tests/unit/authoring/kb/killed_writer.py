"""Runs ``kb generate`` and kills it: a process to itself, for it forks. Prints what was on disk at each kill.

python -m tests.unit.authoring.kb.killed_writer FOLDER URL KILLS
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from random import Random
from time import sleep

from rag_harness.__main__ import main
from tests.unit.authoring.kb.small_plan import write_plan

AT_ONCE = 3
_PATIENCE = 20.0
"""Seconds in which a child must come as far as it is killed."""


def run(folder: Path, url: str) -> int:
    os.chdir(folder)
    asking = ["kb", "generate", "structure.json", "-o", "kb", "--writer", "llm", "--writer-model", "stub"]
    return main([*asking, "--writer-base-url", url, "--mode", "live", "--concurrency", str(AT_ONCE)])


def started(folder: Path, url: str) -> int:
    child = os.fork()
    if child == 0:
        os._exit(run(folder, url))
    return child


def pages(folder: Path) -> list[str]:
    return sorted(file.name for file in (folder / "kb").glob("*.md"))


def killed(folder: Path, url: str, chance: Random) -> list[str]:
    """Kill a run some moments after it has written another page or two; return what was on disk."""
    wanted = len(pages(folder)) + chance.randint(1, 2)
    child = started(folder, url)
    for _ in range(int(_PATIENCE / 0.002)):
        if len(pages(folder)) >= wanted:
            break
        sleep(0.002)
    sleep(chance.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pages(folder)


if __name__ == "__main__":
    where, at, kills = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    write_plan(warm := where / "warm")
    run(warm, at)  # what it imports, no child has to import again
    moments = Random(os.urandom(8))
    seen = [killed(where, at, moments) for _ in range(kills)]
    status = os.waitstatus_to_exitcode(os.waitpid(started(where, at), 0)[1])
    print("\n" + json.dumps({"seen": seen, "status": status}))
