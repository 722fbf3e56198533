"""The two questions of the study from end to end, on a small knowledge base and on the mock profile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.conftest import QUERIES, Suite

TEST = """
import pytest

@pytest.mark.plain
@pytest.mark.rag_experiment("e3-plain")
def test_plain(rag_result):
    assert rag_result.ok, rag_result.why

@pytest.mark.plan
@pytest.mark.rag_experiment("e4-plan")
def test_plan(rag_result):
    assert rag_result.ok, rag_result.why

@pytest.mark.e3
def test_e3(rag_result):
    assert rag_result.ok, rag_result.why
"""
INI = """[pytest]
addopts = -p no:cacheprovider --strict-markers
rag_kb_dir = kb
rag_profile = mock
rag_measures = evidence_recall
markers =
    plain: e3-plain
    plan: e4-plan
"""
TWO = "how long is the warranty and what does express delivery cost?"
QUOTED = {"filename": "returns.md", "quote": "return a **lamp** within 45 days"}


@pytest.fixture
def retail(suite: Suite) -> Suite:
    file = suite.path / "kb" / "returns.md"
    file.write_text(file.read_text().replace("a lamp", "a **lamp**"))
    first, *more = QUERIES
    suite.write_queries([{**first, "evidence": [QUOTED]}, *more[:2], {**more[2], "query": TWO}])
    suite.pytester.makeini(INI)
    suite.pytester.makepyfile(TEST)
    return suite


def decisions(row: dict[str, Any]) -> dict[str, tuple[str, float]]:
    return {one["name"]: (one["outcome"], one["value"]) for one in row["decisions"]}


def test_both_run_beside_the_experiment_that_they_differ_from(retail: Suite) -> None:
    result = retail.run("--rag-attribute", *(f"--rag-gate={name}: evidence_recall >= 1" for name in ("e3", "e3-plain")))
    result.assert_outcomes(passed=3 * len(QUERIES))
    # The quote has a mark, and the chunks of the second have none: it is found all the same.
    found = [f"passed *{name}: evidence_recall >= 1 *n=1*" for name in ("e3", "e3-plain")]
    result.stdout.fnmatch_lines_random(found)
    rows = {stem: retail.rows(stem) for stem in ("e3_filtered_rag", "e3__plain", "e4__plan")}
    assert {len(found) for found in rows.values()} == {len(QUERIES)}
    texts = [chunk["text"] for row in rows["e3__plain"] for chunk in row["retrieved_chunks"]]  # type: ignore[attr-defined]
    assert "Returns\n\nYou can return a lamp within 45 days." in texts
    planned = {row["query_id"]: row for row in rows["e4__plan"]}
    assert decisions(planned["q_direct_001"]) == {"plan": ("by rules", 1.0)}
    assert decisions(planned["q_negative_001"]) == {"plan": ("by rules", 3.0)}
    assert len({row["fingerprint"] for found in rows.values() for row in found}) == len(rows)


def test_each_has_a_marker_and_those_of_the_study_do_not_run_them(retail: Suite) -> None:
    retail.run("-m", "plain", "-n2").assert_outcomes(passed=len(QUERIES))
    assert (retail.rows("e3__plain"), retail.rows("e4__plan"), retail.rows()) != ([], [], [])
    assert retail.rows("e4__plan") == retail.rows() == []
    retail.run("-m", "e3 or e4").assert_outcomes(passed=len(QUERIES))
    assert retail.rows("e4__plan") == []
