"""The textbook's experiments from end to end, on a small book with data of its own and on the mock profile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_harness.records.row import parse_row
from tests.plugin.conftest import Suite
from tests.plugin.counting_server import counting_server
from tests.unit.studies.textbook.book import PAGES

TEST = """
import pytest


@pytest.mark.t1
@pytest.mark.t2
@pytest.mark.t3
@pytest.mark.t4
@pytest.mark.t5
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
    assert rag_result.decisions

@pytest.mark.t1
@pytest.mark.rag_experiment(
    "t1-nopassage", "t1-both", "t1-adaptive", "t1-boost0", "t1-boost12", "t1-boost15", "t1-floor07"
)
def test_variants(rag_result):
    test_answers(rag_result)

@pytest.mark.t3
@pytest.mark.rag_experiment("t3-rrf")
def test_variant_of_t3(rag_result):
    test_answers(rag_result)
"""
STEMS = (
    "t1_headings",
    "t1__nopassage",
    "t1__both",
    "t1__adaptive",
    "t1__boost0",
    "t1__boost12",
    "t1__boost15",
    "t1__floor07",
    "t2_fixed",
    "t3_hybrid",
    "t3__rrf",
    "t4_sliding",
    "t5_summaries",
)
SECTIONS = 6
SELECTED = "A queue of depth ten keeps ten messages."
QUERIES: list[dict[str, Any]] = [
    {"query_id": "q_direct_001", "query": "who gets messages of a topic", "ground_truth": "subscribers"},
    {"query_id": "q_selected_001", "query": "how many", "inputs": {"selected_text": SELECTED}},
    {"query_id": "q_selected_002", "query": "how many", "inputs": {"selected_text": " \n"}},
    {"query_id": "q_history_001", "query": "and then?", "inputs": {"history": ["At stall?", "It grows hot."]}},
    {"query_id": "q_negative_001", "query": "zebra", "query_type": "negative"},
]
PYPROJECT = """
[tool.rag_harness.data.textbook]
kb = "book"
gates = ["t1: error_rate <= 0", "t3-rrf: error_rate <= 0"]
"""


@pytest.fixture
def book(suite: Suite) -> Suite:
    for name, text in PAGES.items():
        file = suite.path / "book" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    pages = {"context_reference": ["module-1/chapter-1-nodes.md"]}
    asked = [query if query.get("query_type") else {**pages, **query} for query in QUERIES]
    (suite.path / "book" / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in asked))
    (suite.path / "pyproject.toml").write_text(PYPROJECT)
    suite.pytester.makepyfile(TEST)
    return suite


def outcomes(row: dict[str, Any]) -> dict[str, str]:
    return {decision["name"]: decision["outcome"] for decision in row["decisions"]}


def test_a_marker_beside_rag_experiment_selects_and_names_nothing(book: Suite) -> None:
    book.run("-m", "t3").assert_outcomes(passed=6 * len(QUERIES), deselected=7)
    assert len(book.rows("t3__rrf")) == len(book.rows("t3_hybrid")) == len(book.rows("t1_headings")) == len(QUERIES)


@pytest.mark.long
def test_every_experiment_of_the_book(book: Suite) -> None:
    result = book.run("--rag-attribute")
    result.assert_outcomes(passed=len(STEMS) * len(QUERIES))
    result.stdout.fnmatch_lines_random(["passed *t1: error_rate <= 0 *n=5*", "passed *t3-rrf: error_rate <= 0 *n=5*"])
    for stem in STEMS:
        rows = {row["query_id"]: row for row in book.rows(stem)}
        assert len(rows) == len(QUERIES)
        assert all(parse_row(json.dumps(row)).ok for row in rows.values())
        assert len({row["fingerprint"] for row in rows.values()}) == 1
    fingerprints = {row["fingerprint"] for stem in STEMS for row in book.rows(stem)}
    assert len(fingerprints) == len(STEMS)


def test_selected_by_their_marker_and_resumed(book: Suite) -> None:
    book.pytester.makepyfile(
        "import pytest\n@pytest.mark.t1\ndef test_one(rag_result):\n    assert rag_result.ok\n"
        "@pytest.mark.t2\ndef test_other(rag_result):\n    assert rag_result.ok\n"
    )
    book.run("-m", "t1").assert_outcomes(passed=len(QUERIES))
    rows = {str(row["query_id"]): row for row in book.rows("t1_headings")}
    assert book.rows("t2_fixed") == []
    direct, selected, blank, history, _ = rows.values()
    assert outcomes(direct) == {
        "floor chosen": "calibrated",
        "boost": "none",
        "floor": "kept",
        "confidence": "enough",
        "answer": "answered",
        "citations": "cited",
        "disclaimer": "none",
        "decision": "pass",
    }
    assert outcomes(selected)["boost"] == "boosted"
    assert outcomes(blank)["boost"] == "none"
    assert outcomes(history)["rewrite"] == "by rules"
    assert all("retrieve" in {stage["name"] for stage in row["stages"]} for row in rows.values())  # type: ignore[attr-defined]
    again = book.run("-m", "t1")
    again.assert_outcomes(passed=len(QUERIES))
    assert {row["finished_at"] for row in book.rows("t1_headings")} == {row["finished_at"] for row in rows.values()}


ONLY_T5 = """
import pytest

@pytest.mark.t5
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


@pytest.mark.long
def test_summaries_are_written_recorded_and_replayed_without_the_writer(book: Suite) -> None:
    for file in book.path.glob("test_*.py"):
        file.unlink()
    file = book.path / "pyproject.toml"
    file.write_text(file.read_text().partition("gates")[0])  # they are about the tests that are gone
    book.pytester.makepyfile(test_t5=ONLY_T5)
    with counting_server(0.01, lambda body: "A summary.") as server:
        book.set_table("profiles.mock.answer", model="embedded/extractive")
        book.set_table("profiles.mock.writer", model="some/writer", base_url=server.url)
        recorded = book.run("--rag-mode=record", "-n2", "--rag-concurrency=4")
        recorded.assert_outcomes(passed=len(QUERIES))
        recorded.stdout.fnmatch_lines([f"rag: recording: {SECTIONS} answers to ask for, 0 are recorded*"])
        # The sections of the small book, each once, though two processes needed them.
        assert sorted(server.calls.values()) == [1] * SECTIONS
        assert server.most <= 4
    book.run("--rag-mode=replay", "--rag-output=replayed").assert_outcomes(passed=len(QUERIES))
    rows = [json.loads(line) for line in (book.path / "replayed" / "t5_summaries.jsonl").read_text().splitlines()]
    said = {decision["outcome"] for row in rows for decision in row["decisions"] if decision["name"] == "summaries"}
    assert said == {"written by some/writer"}
    book.set_table("profiles.mock.writer", model="some/writer2", base_url=server.url)
    missing = book.run("--rag-mode=replay", "--rag-output=missing", "-k", "direct")
    missing.assert_outcomes(failed=1, deselected=len(QUERIES) - 1)
    # Where a line is broken depends on how long the names of folders are.
    assert "Record it: --rag-profile=mock --rag-mode=record" in " ".join(missing.stdout.str().split())
