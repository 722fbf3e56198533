"""Commands about documents take their folder, and the file of questions, from the settings of the suite in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.frontends.cli.options import documents_of
from tests.unit.authoring.questions.review.drafts import row, write
from tests.unit.authoring.questions.shop import folder

REVIEW = ["queries", "review", "asked.jsonl", "--by", "Ada", "--page"]


@pytest.fixture(autouse=True)
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a suite whose questions are not beside its documents, as ``init`` writes it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KB_DIR", raising=False)
    documents = folder(tmp_path)
    write(tmp_path / "asked.jsonl", row(1))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nrag_kb_dir = {documents.name}\nrag_queries = asked.jsonl\n")
    return documents


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["queries", "check"], "1 questions with 1 quotes"),
        (["kb", "validate"], "my_docs: valid"),
        (["kb", "graph"], "flowchart"),
        (["kb", "queries", "--direct", "1"], "wrote asked.jsonl"),
    ],
)
def test_a_command_without_a_folder_takes_that_of_the_suite(
    command: list[str], said: str, suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 0
    assert said.replace("my_docs", suite.name) in capsys.readouterr().out


def test_a_page_beside_the_documents_is_written(tmp_path: Path) -> None:
    assert main([*REVIEW, "review.html"]) == 0
    assert (tmp_path / "review.html").is_file()


def test_a_page_among_the_documents_is_refused(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*REVIEW, f"{suite.name}/review.html"]) == CANNOT_RUN
    assert f"Name a place outside of {suite.name}" in capsys.readouterr().err


def test_the_variable_counts_more_than_the_ini_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_DIR", "elsewhere")
    assert documents_of(tmp_path / "asked.jsonl", ["delivery.md"]) == Path("elsewhere")


def test_questions_beside_documents_of_their_own_are_about_those(tmp_path: Path, suite: Path) -> None:
    others = tmp_path / "others"
    others.mkdir()
    (others / "of_theirs.md").write_text("# Theirs\n\nA page of theirs.")
    assert documents_of(others / "queries.jsonl", ["of_theirs.md#theirs"]) == others
    assert documents_of(others / "queries.jsonl", ["delivery.md"]) == Path(suite.name)
    assert documents_of(others / "queries.jsonl", []) == others
