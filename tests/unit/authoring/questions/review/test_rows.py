"""What a page has downloaded, taken back."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.review.rows import (
    QueryRow,
    ReviewFile,
    accepted,
    alone_with,
    chosen_rows,
    edited,
    question_digest,
    rejected,
)
from rag_harness.core.errors import SettingsError
from rag_harness.data.queries import read_queries
from rag_harness.frontends.cli import FOUND
from rag_harness.frontends.cli.queries import _who
from tests.unit.authoring.questions.review.drafts import HELD, ROWS, drafted, read, row, write


def decided(row: QueryRow, seen: QueryRow | None = None) -> QueryRow:
    """A row as the page downloads it."""
    return {**row, "metadata": {**row["metadata"], "review_of": question_digest(seen or row)}}


def taken(file: Path, *rows: QueryRow) -> int:
    download = file.parent / "got.jsonl"
    write(download, *rows)
    return main(["queries", "review", str(file), "--take", str(download), "--by", "Bob"])


ACCEPTED = decided(accepted(ROWS[0], "Ada"), ROWS[0])
REJECTED = decided(rejected(ROWS[1], "Ada", "silly"), ROWS[1])


def test_what_was_decided_is_taken_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path)
    other = {**ROWS[2], "query": "Changed, but nobody decided on it."}
    assert taken(file, ACCEPTED, REJECTED, other) == 0
    assert read(file) == [accepted(ROWS[0], "Ada"), *ROWS[2:]]
    assert read(file.with_name("queries.rejected.jsonl")) == [rejected(ROWS[1], "Ada", "silly")]
    assert "2 decisions taken, 0 not" in capsys.readouterr().out


def test_what_was_taken_before_is_taken_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path)
    assert taken(file, ACCEPTED, REJECTED) == 0
    before = file.read_bytes()
    assert taken(file, ACCEPTED, REJECTED) == 0
    assert file.read_bytes() == before
    assert "0 decisions taken, 2 were taken before, 0 not" in capsys.readouterr().out


def test_numbers_that_a_browser_writes_otherwise_do_not_reach_the_file(tmp_path: Path) -> None:
    drawn = row(1, metadata={"overlap": 1.0, "reviewed": "no"})
    file = drafted(tmp_path, drawn)
    from_browser = decided(accepted({**drawn, "metadata": {"overlap": 1, "reviewed": "no"}}, "Ada"), drawn)
    assert taken(file, from_browser) == 0
    assert '"overlap": 1.0' in file.read_text()


def test_an_edit_is_checked_against_the_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path)
    good = edited(ROWS[3], {"evidence": [{"filename": "delivery.md", "quote": HELD}]}, "Ada")
    bad = edited(ROWS[0], {"evidence": [{"filename": "delivery.md", "quote": "made up"}]}, "Ada")
    said = [decided(accepted(good, "Ada"), ROWS[3]), decided(accepted(bad, "Ada"), ROWS[0])]
    assert taken(file, *said) == FOUND
    assert read(file) == [*ROWS[:3], accepted(good, "Ada")]
    assert "q_001: not taken. A quote is not in delivery.md word for word." in capsys.readouterr().err


def test_an_edit_that_leaves_no_question_does_not_reach_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = drafted(tmp_path)
    before = file.read_bytes()
    assert taken(file, decided(edited(ROWS[0], {"query": ""}, "Ada"), ROWS[0])) == FOUND
    assert file.read_bytes() == before
    assert "q_001: not taken. query: String should have at least 1 character" in capsys.readouterr().err


def test_pages_with_all_words_of_an_accepted_negative_question_are_named_in_it(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1, query_type="negative", query="Island parcels?", context_reference=[], evidence=[]))
    (asked,) = read(file)
    assert taken(file, decided(accepted(asked, "Ada"), asked)) == 0
    assert read(file)[0]["metadata"]["not_answered_by"] == ["delivery.md"]


def test_a_question_that_somebody_changed_meanwhile_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = drafted(tmp_path, row(1, query="Other words?"), *ROWS[1:])
    assert taken(file, ACCEPTED, REJECTED) == FOUND
    assert read(file) == [row(1, query="Other words?"), *ROWS[2:]]
    assert "q_001: changed since the page was made, and kept as it is." in capsys.readouterr().err


def test_the_second_of_two_reviewers_does_not_undo_the_first(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    assert taken(file, ACCEPTED) == 0
    assert taken(file, decided(rejected(ROWS[0], "Eve", "no"), ROWS[0])) == FOUND
    assert read(file)[0] == accepted(ROWS[0], "Ada")


@pytest.mark.parametrize(
    ("rows", "status", "why"),
    [
        (ROWS, CANNOT_RUN, "holds no decision. Download it from a page"),
        (({"not": "a question"},), CANNOT_RUN, "got.jsonl:1: no question."),
        (([1, 2],), CANNOT_RUN, "got.jsonl:1: no question."),
        ((decided(row(77)),), FOUND, "q_077: no question of the file."),
    ],
)
def test_what_is_no_download_of_this_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Any, status: int, why: str
) -> None:
    file = drafted(tmp_path)
    before = file.read_bytes()
    assert taken(file, *rows) == status
    assert why in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queries", "review", str(drafted(tmp_path)), "--take", "no.jsonl"]) == CANNOT_RUN
    assert "no.jsonl cannot be read" in capsys.readouterr().err


def test_a_turn_that_a_page_rejected_takes_those_behind_it_along(tmp_path: Path) -> None:
    talk: QueryRow = {"conversation": "c1", "turns": [{"query": f"{n}?", "ground_truth": "Yes."} for n in (1, 2, 3)]}
    file = drafted(tmp_path, talk, ROWS[0])
    seen = {**ReviewFile(file).rows[1], "metadata": {}}
    said = decided(rejected(seen, "Ada", "silly"), ReviewFile(file).rows[1])
    assert taken(file, said) == 0
    assert [case.query.query_id for case in read_queries(file)] == ["c1#1", "q_001"]
    assert [each["query_id"] for each in read(file.with_name("queries.rejected.jsonl"))] == ["c1#2", "c1#3"]


def test_the_question_that_stands_alone_is_taken_as_it_was_edited(tmp_path: Path) -> None:
    talk: QueryRow = {"conversation": "c1", "turns": [{"query": f"{n}?", "ground_truth": "Yes."} for n in (1, 2)]}
    file = drafted(tmp_path, talk)
    turn = ReviewFile(file).rows[1]
    assert taken(file, decided(edited(turn, {"standalone": "How long?"}, "Ada"), turn)) == 0
    assert [case.standalone for case in read_queries(file)] == ["", "How long?"]


# ``rag-harness queries review``: what it writes, and what it refuses.


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--sample", "0"], "--sample 0 would show nothing."),
        (["--page", "review.txt"], "is not an HTML file"),
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
