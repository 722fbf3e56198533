"""A run whose disk gets full: one line says so, and when there is room again nothing that was kept is asked again.

``tests/chaos/test_full_disks.py`` has more kinds of it, and a disk that is really small.
"""

from __future__ import annotations

import errno
import json
import os
import sys

import pytest

from tests.chaos.test_full_disks import QUOTA
from tests.plugin.conftest import Suite
from tests.plugin.counting_server import counting_server, let_ask

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
QUERIES, AT_ONCE, BYTES = 24, 4, 20_000
# Long beside a write, also on a machine with other work: four answers do not overtake the write of the four before.
DELAY = 0.1


def kept(suite: Suite) -> set[str]:
    """Return the questions whose answers are on disk, whole."""
    folder = suite.path / "output"
    files = [*folder.glob("*.jsonl"), *folder.glob("journal/*.jsonl")]
    lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
    return {str(json.loads(line)["query"]) for line in lines if line.endswith(b"\n") and line.startswith(b"{")}


def test_a_disk_that_takes_no_more(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("--rag-profile=counting", "--rag-mode=live", f"--rag-concurrency={AT_ONCE}")
    with counting_server(delay=DELAY) as server:
        let_ask(suite, server, QUERIES)
        (suite.path / "quota.py").write_text(QUOTA)
        with monkeypatch.context() as patched:
            patched.setenv("PYTHONPATH", str(suite.path))
            patched.setenv("CHAOS_FOLDER", str(suite.path / "output"))
            patched.setenv("CHAOS_BYTES", str(BYTES))
            patched.setenv("CHAOS_ERROR", str(errno.ENOSPC))
            ended = suite.run("-p", "quota", *asked)
        said = ended.stdout.str() + ended.stderr.str()
        assert ended.ret != 0
        assert "INTERNALERROR" not in said
        assert "Traceback" not in said
        assert os.strerror(errno.ENOSPC) in said
        before, calls = kept(suite), dict(server.calls)
        assert 0 < len(before) < QUERIES
        suite.run(*asked).assert_outcomes(passed=QUERIES)
    assert sorted(str(row["query_id"]) for row in suite.rows("e1_baseline")) == sorted(f"q{n}" for n in range(QUERIES))
    assert {each for each in before if server.calls[each] != calls[each]} == set()
    # Nothing could be put aside: what had just come back is lost beside what was under way.
    assert server.calls.total() - QUERIES <= 2 * AT_ONCE


def test_a_line_that_is_torn_is_set_apart_at_the_next_start_and_said(suite: Suite) -> None:
    """The rows that a run resumes open no file again, so a torn line would stay in it for good."""
    judged = ("--rag-mode=live", "--rag-measures=faithfulness")
    suite.run(*judged).assert_outcomes(passed=4)
    output = suite.path / "output"
    rows, scores = output / "e3_filtered_rag.jsonl", next((output / "scores").glob("*.jsonl"))
    before = rows.read_bytes(), scores.read_bytes()
    for file in (rows, scores):
        with file.open("ab") as stream:
            stream.write(b'{"query_id": "q_torn", "experi')
    said = suite.run(*judged)
    said.assert_outcomes(passed=4)
    assert (rows.read_bytes(), scores.read_bytes()) == before
    assert (output / "previous" / "torn.jsonl").read_bytes() == b'{"query_id": "q_torn", "experi\n' * 2
    told = " ".join(said.stdout.str().split())
    assert "2 damaged or duplicate lines were taken out of the result files, into output/previous/." in told
