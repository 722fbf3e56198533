"""A model server that misbehaves: every trial ends in its time, in bounded memory, with a row that says why.

The unit tests of models have a short version of each.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.ledger import account
from tests.chaos.model import FAULTS, FaultyModel
from tests.chaos.processes import LONGEST
from tests.chaos.runs import Suite
from tests.serving import running

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.usefixtures("long_version"),
]
MOST_MB = 500
"""Of the process of a run: a run without faults takes 160."""


@pytest.fixture
def model() -> Iterator[FaultyModel]:
    with running(FaultyModel()) as server:
        yield server


def memory_mb(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_ends_and_says_why(tmp_path: Path, model: FaultyModel, fault: str) -> None:
    suite = Suite(tmp_path, model.url, 2)
    (tmp_path / "conftest.py").write_text("from rag_harness.models import calls\ncalls._FIRST_WAIT = 0.01\n")
    model.fault, most, began = fault, 0.0, time.monotonic()
    with suite.running("--rag-mode=live", "--rag-timeout=2") as run:
        while run.poll() is None and time.monotonic() - began < LONGEST:
            most = max(most, memory_mb(run.pid))
            time.sleep(0.02)
        status = run.poll()
    said, calls = suite.said.read_text(), model.calls.total()
    rows = [json.loads(line) for line in (tmp_path / "output" / "e1_baseline.jsonl").read_text().splitlines()]
    failed = status != 1 or len(rows) != 2 or most > MOST_MB or calls > 8 or "Traceback" in said
    account("model misbehaves").note(failed=failed)
    assert not failed, (status, len(rows), most, calls, said[-2000:])
    assert {row["status"] for row in rows} == {"error"}
    assert all(row["error"]["message"] for row in rows)
    assert model.sent < 400 * 2**20
    model.fault = ""
    assert suite.run("--rag-mode=live")[0] == 0
