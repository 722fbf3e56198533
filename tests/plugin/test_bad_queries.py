"""What is said of questions that cannot be used: a run stops and names them, or goes on without them and says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import QUERIES, Suite

BAD: list[dict[str, object]] = [
    {"query_id": "bad_1", "query": "live birds", "query_type": "negtive"},
    {"query_id": "bad_2", "query": "two pages", "context_reference": ["gone.md"]},
    {"query_id": "q_direct_001", "query": "again"},
]
GATE = ("--rag-gate", "e3: error_rate <= 0.05")


def test_a_misspelt_type_stops_a_run_before_anything_is_asked(suite: Suite) -> None:
    suite.write_queries([*QUERIES, BAD[0]])
    stopped = suite.run()
    stopped.stdout.fnmatch_lines(["*queries.jsonl:5: bad_1: query_type 'negtive' is not known. *'negative'?*"])
    assert not suite.rows()
    named = suite.run("-o", "rag_query_types=negtive")
    named.assert_outcomes(passed=5)
    assert {row["query_type"] for row in suite.rows()} == {"direct", "negative", "negtive"}


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.long), "2"])
def test_bad_lines_stop_a_run_or_are_skipped_and_counted(suite: Suite, workers: str) -> None:
    suite.write_queries([*QUERIES, *BAD])
    stopped = suite.run(*GATE)
    stopped.stdout.fnmatch_lines(["*queries.jsonl:5: *", "*queries.jsonl:6: bad_2: context_reference 'gone.md'*"])
    assert stopped.ret != 0

    went_on = suite.run("--rag-bad-queries=skip", "--rag-report=report.md", *GATE, "-n", workers)
    went_on.assert_outcomes(passed=4)
    text = went_on.stdout.str()
    assert "passed      e3: error_rate <= 0.05" in text
    assert text.index("3 lines of queries.jsonl were skipped: no figure") < text.index("passed      e3: error_rate")
    verdict = text[text.index("passed      e3: error_rate") :]
    assert "3 lines of queries.jsonl were skipped" in " ".join(verdict.split())
    found = _left_behind(suite)
    assert (found["count"], len(found["first"])) == (3, 3)
    assert "queries.jsonl:7: query_id 'q_direct_001' stands already on line 1." in found["first"][2]
    assert "3 lines of queries.jsonl were skipped" in (suite.path / "report.md").read_text()
    log = (suite.path / "logs" / "e2_to_e4.log").read_text()
    skipped = [line for line in log.splitlines() if " main INFO Skipped: " in line]
    assert len(skipped) == len(BAD), "once a run, and not once a process"
    assert "bad_2: context_reference 'gone.md'" in skipped[1]


def _left_behind(suite: Suite) -> dict[str, Any]:
    output = suite.path / "output"
    summary, manifest = (json.loads((output / name).read_text()) for name in ("summary.json", "run.json"))
    assert summary["skipped"] == manifest["skipped"]
    found: dict[str, Any] = manifest["skipped"]["queries"]
    return found


def test_the_start_of_a_run_names_the_first_of_them(suite: Suite) -> None:
    empty: list[dict[str, object]] = [{"query_id": f"b{n}", "query": " "} for n in range(7)]
    suite.write_queries([*QUERIES, *empty])
    said = suite.run("--rag-bad-queries=skip").stdout
    said.fnmatch_lines(["rag: skipped: *queries.jsonl:5: query: *", "rag: skipped: and 2 more, in the log"])
