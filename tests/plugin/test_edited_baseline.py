"""A saved run that was edited by hand decides no gate, and one that cannot show whether it was says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from tests.plugin.conftest import Suite

GATE = ("--rag-compare=main", "--rag-gate=e3: recall@5 >= baseline")
EDITED = "main.json was changed after it was written; make it again with --rag-save main"


@pytest.fixture
def saved(suite: Suite) -> Suite:
    suite.run("--rag-save=main").assert_outcomes(passed=4)
    return suite


def file_of(suite: Suite) -> Path:
    return suite.path / "baselines" / "main.json"


def edit(suite: Suite) -> None:
    """Let the baseline have found less than it did."""
    said = file_of(suite).read_text()
    assert '"recall@5": 1.0' in said
    file_of(suite).write_text(said.replace('"recall@5": 1.0', '"recall@5": 0.0'))


def test_an_edited_baseline_is_named_and_decides_nothing(saved: Suite) -> None:
    edit(saved)
    result = saved.run(*GATE, "--rag-gate=e3: recall@5 >= 0.1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    said = " ".join(result.stdout.str().split())
    assert f"failed e3: recall@5 >= baseline cannot be judged: {EDITED}" in said
    assert "passed e3: recall@5 >= 0.1" in said
    assert "rag comparison" not in said
    saved.run("--rag-save=main")
    assert saved.run(*GATE).ret == 0


def test_an_edited_baseline_is_compared_with_nothing(
    saved: Suite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(saved)
    monkeypatch.chdir(saved.path)
    assert main(["compare", "main", "output"]) == CANNOT_RUN
    assert EDITED in " ".join(capsys.readouterr().err.split())


def test_an_older_baseline_is_taken_with_a_note(saved: Suite) -> None:
    content = json.loads(file_of(saved).read_text())
    del content["digest"]
    file_of(saved).write_text(json.dumps(content))
    result = saved.run(*GATE)
    assert result.ret == 0
    assert "baseline main has no digest, so an edit of it would not be seen" in " ".join(result.stdout.str().split())


def test_only_what_is_said_counts(saved: Suite) -> None:
    file_of(saved).write_text(json.dumps(json.loads(file_of(saved).read_text()), indent=4))
    result = saved.run(*GATE)
    assert result.ret == 0
    assert "no digest" not in result.stdout.str()
