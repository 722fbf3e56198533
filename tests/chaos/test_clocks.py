"""A clock that jumps by hours while a run is under way: it ends in its time, and asks each question once."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.ledger import account
from tests.chaos.runs import Suite
from tests.plugin.counting_server import CountingServer

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="ends processes by their group"),
    pytest.mark.usefixtures("long_version"),
]
QUERIES = 30
_JUMPS = '''
"""The time of day, hours off in one direction or the other, otherwise at each look."""
import random, time

now, chance = time.time, random.Random(1)
time.time = lambda: now() + chance.choice([-3600, 0, 3600, 86400])
time.time_ns = lambda: int(time.time() * 1e9)
'''


@pytest.mark.parametrize("more", ["", "-n 2", "--rag-rpm=6000", "--rag-mode=record"])
def test_a_run_whose_clock_jumps(tmp_path: Path, server: CountingServer, more: str) -> None:
    suite = Suite(tmp_path, server.url, QUERIES)
    (tmp_path / "jumps.py").write_text(_JUMPS)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    began = time.monotonic()
    args = ["-p", "jumps", "--rag-mode=live", "--rag-concurrency=4", *more.split()]
    status, said = suite.run(*args, environment={"PYTHONPATH": path})
    took = time.monotonic() - began
    lost, twice = QUERIES - len(set(suite.rows())), server.calls.total() - QUERIES
    account("clock jumps").note(lost, twice, failed=status != 0 or took > 60)
    assert (status, lost, twice) == (0, 0, 0), said[-2000:]
    assert took < 60
