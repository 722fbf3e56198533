"""Two runs beside each other, and a saved run that was edited by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from tests.plugin.conftest import Suite

# A saved run that was edited by hand decides no gate, and one that cannot show whether it was says so.

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


# Two runs beside each other by ``rag-harness compare``: what is called other data, and what is not.

SAVED, PLAIN = ("--rag-save=a", "--rag-output=o1"), ("--rag-output=o2",)


def compared(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *runs: str) -> str:
    monkeypatch.chdir(folder)
    capsys.readouterr()
    main(["compare", *runs])
    said = capsys.readouterr()
    return said.out + said.err


@pytest.mark.parametrize("first", [SAVED, PLAIN], ids=["saved first", "saved last"])
def test_a_run_that_is_saved_is_about_the_same_data_as_one_that_is_not(
    suite: Suite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, first: tuple[str, ...]
) -> None:
    for args in (first, PLAIN if first is SAVED else SAVED):
        suite.run(*args).assert_outcomes(passed=4)
    for pair in (("o1", "o2"), ("o2", "o1"), ("a", "o2"), ("o2", "a")):
        said = compared(suite.path, capsys, monkeypatch, *pair)
        assert "same data" not in said, pair
        assert "documents" not in said, pair


@pytest.mark.parametrize("last", [PLAIN, ("--rag-save=b", "--rag-output=o2")], ids=["one saved", "both saved"])
def test_other_documents_are_told(
    suite: Suite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, last: tuple[str, ...]
) -> None:
    suite.run(*SAVED).assert_outcomes(passed=4)
    with (suite.path / "kb" / "returns.md").open("a") as page:
        page.write("\nNo lamp is returned on a Sunday.\n")
    suite.run(*last).assert_outcomes(passed=4)
    said = compared(suite.path, capsys, monkeypatch, "o1", "o2")
    if last is PLAIN:
        assert "Different between them: the documents" in said
    else:
        assert "not about the same data" in said
        assert "data.documents: " in said
