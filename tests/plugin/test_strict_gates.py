"""Options that let gates without a verdict fail a run: its brief says FAIL, and why."""

from __future__ import annotations

import re

import pytest

from tests.plugin.conftest import Suite

NOT_JUDGED = ("--rag-gate=e3: recall@5 >= baseline", "--rag-not-judged=fail")
UNDECIDED = ("--rag-gate=e3: recall@5 >= 0.9 @95%", "--rag-undecided=fail")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (NOT_JUDGED, "FAIL   0 passed, 0 failed, 1 not judged (--rag-not-judged=fail)"),
        (UNDECIDED, "FAIL   0 passed, 0 failed, 1 undecided (--rag-undecided=fail)"),
    ],
)
def test_the_line_of_gates_begins_with_fail(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], said: str
) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    result = suite.run(*asked, "--color=yes")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (first,) = [n for n, line in enumerate(result.outlines) if line.startswith("\x1b[31mgates ")]
    whole = re.sub(r"\x1b\[\d{1,3}m", "", " ".join(result.outlines[first : first + 2]))
    assert " ".join(whole.split()).startswith(f"gates {' '.join(said.split())}")


def test_so_it_does_where_three_lines_are_all(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    result = suite.run(*NOT_JUDGED, "-q")
    result.stdout.fnmatch_lines(["gates    FAIL   0 passed, 0 failed, 1 not judged*"])


def test_without_the_options_such_gates_fail_nothing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    result = suite.run(UNDECIDED[0])
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["gates    UNDECIDED   0 passed, 0 failed, 1 undecided"])
