"""Two runs beside each other by ``rag-harness compare``: what is called other data, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite

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
