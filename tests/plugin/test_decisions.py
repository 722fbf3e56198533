"""Gates that say what to do where they fail, in a run: last lines, exit status, files, and the report."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tests.plugin.conftest import Suite

FAILS = "e3: recall@3 <= 0.2"
OPEN = "e3: recall@3 >= 0.9 @95%"
HOLDS = "e3: zero_result_rate <= 0.15"
GATES = f"""
[pytest]
rag_profile = mock
rag_kb_dir = kb
rag_gate =
    {FAILS} else switch to e2, and cut by headings
    {OPEN} else ask 26 more questions
    {HOLDS} else use a larger embedding model
    e3: citation_rate >= 0
"""


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_what_to_do_is_said_wherever_a_verdict_is(suite: Suite, workers: str) -> None:
    suite.pytester.makeini(GATES)
    result = suite.run(workers, "--junitxml=junit.xml", "--rag-report=report.md")
    assert result.ret == 1
    said = result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "failed      e3: recall@3 <= 0.2 *1.000*n=3",
            "            what to do: switch to e2, and cut by headings",
            "undecided   e3: recall@3 >= 0.9 @95% *",
            "            undecided; if it does not hold: ask 26 more questions",
            "passed      e3: zero_result_rate <= 0.15 *0.000*n=3",
            "passed      e3: citation_rate >= 0 *",
        ]
    )
    assert " else " not in said
    assert "larger embedding model" not in said
    cases = {each.get("name"): each for each in ElementTree.parse(suite.path / "junit.xml").iter("testcase")}
    messages = [cases[name].find(kind) for name, kind in ((FAILS, "failure"), (OPEN, "skipped"))]
    ends = ["what to do: switch to e2, and cut by headings", "undecided; if it does not hold: ask 26 more questions"]
    for message, end in zip(messages, ends, strict=True):
        assert message is not None
        assert str(message.get("message")).endswith(end)
    assert not [*cases[HOLDS]], "neither failed nor skipped"
    gates = json.loads((suite.path / "output" / "summary.json").read_text())["gates"]
    assert [(gate["gate"], gate.get("otherwise")) for gate in gates] == [
        (FAILS, "switch to e2, and cut by headings"),
        (OPEN, "ask 26 more questions"),
        (HOLDS, "use a larger embedding model"),
        ("e3: citation_rate >= 0", None),
    ]
    report = (suite.path / "report.md").read_text()
    rows = [line.removesuffix(" |").split(" | ") for line in report.splitlines() if line.startswith("| e3: ")]
    assert [(row[1], row[-1]) for row in rows] == [
        ("❌ failed", "switch to e2, and cut by headings"),
        ("❔ undecided", "if it does not hold: ask 26 more questions"),
    ]
    assert rows[1][3].endswith("about 26 more would settle it")


def test_a_gate_of_the_command_line_replaces_one_with_what_it_says(suite: Suite) -> None:
    suite.pytester.makeini(GATES)
    result = suite.run("--rag-gate=e3: recall@3 <= 0.3")
    result.stdout.fnmatch_lines(["failed *e3: recall@3 <= 0.3 *"])
    assert "switch to e2" not in result.stdout.str()


def test_half_an_else_is_refused_before_anything_runs(suite: Suite) -> None:
    result = suite.run("--rag-gate=e3: recall@3 >= 0.9 else")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*nothing stands behind 'else'; write 'e3: recall@5 >= 0.8 else switch to e2'*"])
    assert suite.rows() == []
