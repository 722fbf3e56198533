"""``rag-harness queries review``: what it writes, and what it refuses."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from types import SimpleNamespace

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.review.file import alone_with
from rag_harness.authoring.questions.review.rows import accepted, chosen_rows
from rag_harness.core.errors import SettingsError
from rag_harness.frontends.cli.queries import _who
from tests.unit.authoring.questions.review.drafts import ROWS, drafted, row


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--sample", "0"], "--sample 0 would show nothing."),
        (["--page", "review.txt"], "is no HTML file"),
        (["--page", "my_docs/review.html"], "lies among the documents, and would be read as one."),
        (["--page", "no/such/review.html"], "No folder no/such to write review.html into."),
        (
            ["--page", "x.html", "--kind", "odd"],
            "No question is of the kind 'odd'. There are: direct, multi_hop, negative.",
        ),
        (["--page", "x.html", "--kb", "nowhere"], "in nowhere. Name their folder: --kb DIR"),
    ],
)
def test_what_it_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["queries", "review", str(drafted(tmp_path)), *arguments]) == CANNOT_RUN
    assert why in capsys.readouterr().err


def test_no_file_a_folder_and_no_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (tmp_path / "no.jsonl", tmp_path):
        assert main(["queries", "review", str(name), "--page", "x.html"]) == CANNOT_RUN
        assert "Name a file of questions" in capsys.readouterr().err
    file = drafted(tmp_path, pages={})
    assert main(["queries", "review", str(file), "--page", str(tmp_path / "x.html")]) == CANNOT_RUN
    assert "Name their folder: --kb DIR" in capsys.readouterr().err


def test_all_reviewed_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path, accepted(row(1), "Ada"))
    page = tmp_path / "x.html"
    assert main(["queries", "review", str(file), "--page", str(page), "--only", "unreviewed"]) == 0
    assert "none of its 1 questions is unreviewed. There is nothing to review." in capsys.readouterr().out
    assert not page.exists()


def test_a_second_review_of_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path)
    with alone_with(file):
        assert main(["queries", "review", str(file), "--take", "got.jsonl"]) == CANNOT_RUN
    said = f"is open in another review: process {os.getpid()} on {platform.node()}. Run the command again when"
    assert said in capsys.readouterr().err


def test_who_reviews(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _who("  Ada   L. ") == "Ada L."
    with pytest.raises(SettingsError, match="--by NAME"):
        _who("Ada\x1b[31m")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout="Grace\n"))
    assert _who(None) == "Grace"
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout=""))
    monkeypatch.setattr("getpass.getuser", lambda: "root")
    assert _who(None) == "root"


def test_documents_that_the_questions_are_not_about_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = drafted(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.md").write_text("# A\n\nText.\n", encoding="utf-8")
    page = tmp_path / "review.html"
    assert main(["queries", "review", str(file), "--kb", str(tmp_path / "other"), "--page", str(page)]) == CANNOT_RUN
    assert "delivery.md, say. Name their folder: --kb DIR" in capsys.readouterr().err
    assert main(["queries", "review", str(file), "--kb", str(file.parent), "--page", str(page)]) == 0
    assert f"review {file} --kb {file.parent} --take DOWNLOADED" in capsys.readouterr().out


@pytest.mark.parametrize("how", [["--page", "out/r.html"], ["--take", "taken.jsonl"]])
def test_a_table_is_told_with_what_makes_lines_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    """What a review writes back are lines, and a table would have lost its form."""
    monkeypatch.chdir(tmp_path)
    for folder in ("kb", "out"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kb" / "a.md").write_text("# A\n\nText that says so.\n")
    (tmp_path / "q.csv").write_text("id,question,documents\nq1,Why?,a.md\n")
    assert main(["queries", "review", "q.csv", "--kb", "kb", *how]) == CANNOT_RUN
    said = capsys.readouterr().err
    assert "q.csv is a table" in said
    assert "rag-harness queries import q.csv -o queries.jsonl" in said


def test_the_page_is_called_review_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["queries", "review", str(drafted(tmp_path))]) == 0
    assert "wrote review.html: 4 questions with the evidence." in capsys.readouterr().out
    assert (tmp_path / "review.html").is_file()


def test_a_sample_is_the_same_when_some_are_decided() -> None:
    rows = [row(number) for number in range(50)]
    drawn = chosen_rows(rows, sample=5, seed=3)
    assert len(drawn) == 5
    assert drawn != chosen_rows(rows, sample=5, seed=4)
    rows[drawn[0]] = accepted(rows[drawn[0]], "Ada")
    assert chosen_rows(rows, sample=5, seed=3) == drawn
    assert chosen_rows(rows, sample=5, seed=3, only="unreviewed") == drawn[1:]
    assert chosen_rows(list(ROWS), kind="negative") == [2]
