"""``rag-harness ci status``: the verdict of the gates as the status of a commit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from tests.unit.page.exports.hosts.fake_hosts import TOKEN, FakeHost, fake_host
from tests.unit.page.runs import gate, summarise, write_study

SHA = "c0ffee" * 6 + "c0ff"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    with fake_host() as found:
        monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
        monkeypatch.setenv("GH_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_API_URL", found.url)
        yield found


@pytest.mark.parametrize(
    ("states", "outcome", "state", "said"),
    [
        (["passed"], "success", "success", "PASS: 1 of 1 gate passed, 0 failed"),
        (["passed"], "failure", "failure", "The suite failed. PASS: 1 of 1 gate passed, 0 failed"),
        (["passed"], "cancelled", "failure", "The suite failed. PASS: 1 of 1 gate passed, 0 failed"),
        (["passed", "failed"], "failure", "failure", "FAIL: 1 of 2 gates failed, 1 passed"),
        (["passed", "failed"], "success", "failure", "FAIL: 1 of 2 gates failed, 1 passed"),
        (["undecided"], "success", "success", "UNDECIDED: 1 of 1 gate undecided, 0 failed"),
        (["undecided"], "failure", "failure", "The suite failed. UNDECIDED: 1 of 1 gate undecided, 0 failed"),
        (["not judged"], "success", "error", "NO VERDICT: 1 of 1 gate not judged"),
        ([], "success", "error", "NO VERDICT: no gate is set (--rag-gate, or rag_gate in the ini file)"),
    ],
)
def test_the_state_is_that_of_gates_and_suite(
    tmp_path: Path, host: FakeHost, states: list[str], outcome: str, state: str, said: str
) -> None:
    output = write_study(tmp_path / "output")
    summarise(output, *(gate(f"e3: recall@5 >= 0.{n}", each) for n, each in enumerate(states)))
    assert main(["ci", "status", str(output), f"--sha={SHA}", f"--outcome={outcome}", "--link=https://x.org/r"]) == 0
    (status,) = host.statuses
    expected = {"sha": SHA, "state": state, "description": said, "context": "rag-harness"}
    assert status == {**expected, "target_url": "https://x.org/r"}


def test_a_run_that_left_nothing_is_an_error_of_the_status(tmp_path: Path, host: FakeHost) -> None:
    assert main(["ci", "status", str(tmp_path), f"--sha={SHA}", "--outcome=failure", "--name=docs"]) == 0
    (status,) = host.statuses
    assert (status["state"], status["context"]) == ("error", "rag-harness: docs")
    assert status["description"].startswith("NO VERDICT: ")
    assert len(status["description"]) <= 140
    assert "target_url" not in status


def test_a_status_that_may_not_be_set_is_said(
    tmp_path: Path, host: FakeHost, capsys: pytest.CaptureFixture[str]
) -> None:
    host.refuses = "POST"
    assert main(["ci", "status", str(write_study(tmp_path / "output")), f"--sha={SHA}"]) == CANNOT_RUN
    assert "403" in capsys.readouterr().err
