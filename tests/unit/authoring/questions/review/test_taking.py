"""What a page has downloaded, taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.authoring.questions.review.file import ReviewFile
from rag_harness.authoring.questions.review.rows import QueryRow, accepted, edited, question_digest, rejected
from rag_harness.data.queries import read_queries
from rag_harness.frontends.cli import FOUND
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
