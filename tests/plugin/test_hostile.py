"""A run whose questions, answers, errors and gold try to be more than texts: terminal, JUnit XML, reports, log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.hostile import WHOLE
from tests.plugin.conftest import Suite
from tests.unit.core.escaping.active import in_markdown, on_terminal, unseen

MINE = """
import pytest

class Mine:
    def answer(self, query):
        if int(query.query_id[1:]) % 5 == 0:
            raise ValueError(query.text)
        return query.text

@pytest.fixture
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
    assert rag_result.llm_answer == "right\\n" + rag_result.ground_truth, rag_result.query

@pytest.mark.rag_experiment("mine")
def test_skipped(rag_result):
    if rag_result.query_id[-1] == "3":
        pytest.xfail(rag_result.query)
    pytest.skip(rag_result.query)
"""


# Each text in one of its four places: the next text in the next place. What each does in each, unit tests look at.
EACH = [text for number, text in enumerate(WHOLE) if number % 4 == number // 4 % 4]


def asked(texts: Sequence[str]) -> list[dict[str, object]]:
    return [
        {
            "query_id": f"q{number}",
            "query": text,
            "ground_truth": f"gold {text}",
            "context_reference": ["returns.md"],
            "evidence": [{"filename": "returns.md", "quote": "You can return a lamp within 45 days."}],
            "metadata": {"topic": text},
        }
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize("texts", [EACH, pytest.param(WHOLE, marks=pytest.mark.long)], ids=["each", "in each place"])
def test_nothing_of_it_acts_in_what_a_run_leaves(suite: Suite, texts: Sequence[str]) -> None:
    suite.write_queries(asked(texts))
    suite.pytester.makepyfile(MINE)
    out = ("--junitxml=j.xml", "--rag-report=r.md", "-o", "rag_attribute=true", "--rag-slices=topic")
    gate = ("-o", "rag_gate=mine: recall@5 >= 0.9 else look at ::error::x", "--rag-repeats=2")
    result = suite.run("-v", "-rA", "--json-report", "--json-report-file=j.json", *out, *gate)
    said = result.stdout.str() + result.stderr.str()
    assert "rag causes" in said
    assert f"{len(texts) + 1} failed" in said, "and the gate"
    assert "INTERNALERROR" not in said
    assert on_terminal(said) == []
    assert _of_junit(suite.path / "j.xml") == []
    assert on_terminal((suite.path / "j.json").read_text(encoding="utf-8")) == []
    assert in_markdown((suite.path / "r.md").read_text(encoding="utf-8")) == []
    assert [on_terminal(file.read_text(encoding="utf-8")) for file in (suite.path / "logs").glob("*.log")] == [[]]
    lines = (suite.path / "output" / "mine.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    rows = {str(row["query_id"]): row for row in map(json.loads, lines)}
    asked_as = [rows[f"q{number}"]["query"] for number in range(len(texts))]
    assert asked_as == [text.strip() for text in texts], "kept as they are"
    summary = (suite.path / "output" / "summary.json").read_text(encoding="utf-8")
    assert unseen(summary) == []
    json.loads(summary)


def test_a_miss_of_the_golden_suite(suite: Suite) -> None:
    entries = [{"query": text, "expected_document_id": "warranty.md", "justification": text} for text in EACH[::3]]
    (suite.path / "kb" / "golden.json").write_text(json.dumps(entries))
    suite.pytester.makepyfile(
        "def test_golden(rag_retrieval):\n    assert rag_retrieval.ok and rag_retrieval.found, rag_retrieval.query\n"
    )
    for strict in ((), ("--rag-strict",)):
        result = suite.run(
            "-v", "-rA", "-p", "no:xdist", "--junitxml=j.xml", "--rag-golden=kb/golden.json", "--rag-k=2", *strict
        )
        said = result.stdout.str() + result.stderr.str()
        assert "rag golden" in said, said[-1500:]
        assert on_terminal(said) == []
        assert _of_junit(suite.path / "j.xml") == []


def _of_junit(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    nodes = list(ElementTree.fromstring(text).iter())
    texts = [each for node in nodes for each in (node.text or "", node.tail or "", *node.attrib.values())]
    return [*on_terminal(text), *(found for each in texts for found in unseen(each))]
