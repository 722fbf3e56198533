"""A run with many trials: what its tables are made of is kept while rows and scores come."""

from __future__ import annotations

import json

import pytest

from rag_harness.tables.column_cache import segments
from tests.plugin.conftest import Suite

SMALL = """
from rag_harness.frontends.pytest_plugin import recorder
from rag_harness.tables import column_cache, reader

recorder.LEAST, column_cache.SEGMENT, reader.SEGMENT = 2, 1500, 1500


def read_again(*args):
    raise AssertionError("a line was read again after the last test")


column_cache.block_of = read_again
"""


@pytest.mark.parametrize(
    "workers", [pytest.param((), marks=pytest.mark.long, id="plain"), pytest.param(("-n2",), id="n2")]
)
def test_after_the_last_test_no_row_and_no_score_is_read_again(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makeconftest(SMALL)
    gates = [f"--rag-gate=e3: {gate}" for gate in ("error_rate <= 0", "p95(total_ms) <= 1e9", "faithfulness >= 0")]
    result = suite.run("--rag-measures=context_precision,faithfulness,answer_relevancy", *gates, *workers)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["passed * e3: error_rate <= 0 *", "passed * e3: p95(total_ms) <= 1000000000 *"])
    result.stdout.fnmatch_lines(["passed * e3: faithfulness >= 0 * n=4*"])
    output = suite.path / "output"
    for file in (output / "e3_filtered_rag.jsonl", output / "scores" / "e3_filtered_rag.jsonl"):
        assert len(list((file.parent / "columns" / file.stem).iterdir())) == len(segments(file, 1500)) > 1
    assert json.loads((output / "summary.json").read_text())["e3"]["n"] == 4


def test_a_small_run_leaves_no_columns(suite: Suite) -> None:
    suite.run().assert_outcomes(passed=4)
    assert not (suite.path / "output" / "columns").exists()
