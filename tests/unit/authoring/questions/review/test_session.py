"""What a key does to a question, and to its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.questions.review.fields import changes_of, text_of
from rag_harness.authoring.questions.review.pressed_keys import ALSO, KEYS
from rag_harness.authoring.questions.review.reviewed_rows import REJECTION_REASONS, QueryRow, state_of
from rag_harness.dataset.queries import read_queries
from tests.unit.authoring.questions.review.drafts import HELD, ROWS, drafted, read, row, session, write


def rejected(file: Path) -> Path:
    return file.with_name("queries.rejected.jsonl")


def test_what_is_accepted_is_on_disk_at_once_and_the_next_is_shown(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    review = session(file)
    assert review.press("a")
    first, *others = read(file)
    assert first["metadata"] == {"difficulty": "easy", "reviewed": "yes", "reviewed_by": "Ada"}
    assert others == list(ROWS[1:])
    assert review.row["query_id"] == "q_002"


@pytest.mark.parametrize(("said", "because"), [("2", REJECTION_REASONS[1]), ("too silly", "too silly"), ("9", "9")])
def test_what_is_rejected_is_asked_no_more_and_says_why(tmp_path: Path, said: str, because: str) -> None:
    file = drafted(tmp_path)
    session(file, [said]).press("r")
    assert [case.query.query_id for case in read_queries(file)] == ["q_002", "q_003", "q_004"]
    (apart,) = read(rejected(file))
    assert apart["metadata"]["rejected_because"] == because
    assert (apart["query_id"], apart["metadata"]["reviewed"], apart["metadata"]["reviewed_by"]) == (
        "q_001",
        "rejected",
        "Ada",
    )


def test_no_reason_is_no_rejection(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    before = file.read_bytes()
    session(file).press("r")
    assert (file.read_bytes(), rejected(file).exists()) == (before, False)


def test_undo_brings_a_rejected_question_back_to_its_place(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    before = file.read_bytes()
    review = session(file, ["1"])
    for key in "rbu":
        review.press(key)
    assert (file.read_bytes(), rejected(file).exists()) == (before, False)


def test_a_rejected_question_of_another_day_is_shown_and_may_come_back(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    session(file, ["1"]).press("r")
    review = session(file)
    assert [each["query_id"] for each in review.file.rows] == ["q_002", "q_003", "q_004", "q_001"]
    review.walk.at = 3
    review.press("a")
    assert [each["query_id"] for each in read(file)] == ["q_002", "q_003", "q_004", "q_001"]
    assert "rejected_because" not in read(file)[3]["metadata"]


def test_one_whose_evidence_is_gone_is_not_accepted_and_the_remedy_is_said(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    review, before = session(file), file.read_bytes()
    review.walk.at = 3
    review.press("a")
    assert file.read_bytes() == before
    assert "not in delivery.md word for word. Edit it: copy the words of the page" in review.message
    assert review.walk.at == 3


def test_an_edit_is_kept_unreviewed_and_can_then_be_accepted(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    review = session(file, changes={"evidence": [{"filename": "delivery.md", "quote": HELD}]})
    review.walk.at = 3
    review.press("e")
    kept = read(file)[3]
    assert kept["evidence"] == [{"filename": "delivery.md", "quote": HELD}]
    assert kept["metadata"] == {"difficulty": "easy", "reviewed": "no", "edited_by": "Ada"}
    review.press("a")
    assert read(file)[3]["metadata"]["reviewed"] == "yes"


def test_what_users_asked_is_labelled_by_an_edit(tmp_path: Path) -> None:
    asked = row(1, query_type="unlabelled", inputs={}, ground_truth="", context_reference=[], evidence=[])
    label = {key: row(1)[key] for key in ("query_type", "ground_truth", "context_reference", "evidence")}
    review = session(drafted(tmp_path, asked), changes=label)
    review.press("a")
    assert "Its kind is not said" in review.message
    for key in "ea":
        review.press(key)
    assert state_of(read(review.file.file)[0]) == "accepted"


def test_an_accepted_question_that_is_edited_is_to_be_accepted_again(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    review = session(file, changes={"query": "For how many days?"})
    for key in "abe":
        review.press(key)
    assert read(file)[0]["metadata"] == {"difficulty": "easy", "reviewed": "no", "edited_by": "Ada"}


@pytest.mark.parametrize("changes", [None, {}, {"query": ROWS[0]["query"]}])
def test_no_change_is_no_edit(tmp_path: Path, changes: dict[str, Any] | None) -> None:
    file = drafted(tmp_path)
    before = file.read_bytes()
    review = session(file, changes=changes)
    review.press("e")
    assert (file.read_bytes(), review.message) == (before, "Nothing was changed.")


def test_a_review_goes_on_at_the_first_that_is_unreviewed(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    session(file).press("a")
    review = session(file)
    assert review.row["query_id"] == "q_002"
    for key in ("n", "s"):
        review.press(key)
    assert review.row["query_id"] == "q_004"
    review.press("s")
    assert review.row["query_id"] == "q_002", "round to those before"


def test_all_reviewed_is_said(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1), row(2))
    review = session(file)
    for key in "aa":
        review.press(key)
    assert review.message == "All of these are reviewed. q quits."
    assert session(file).message == "All of these are reviewed."


@pytest.mark.parametrize(
    ("key", "at"), [("right", 1), ("j", 1), ("left", 0), ("k", 0), ("z", 0), ("?", 0), ("space", 0)]
)
def test_keys_that_decide_nothing_keep_nothing(tmp_path: Path, key: str, at: int) -> None:
    file = drafted(tmp_path)
    before = file.stat().st_mtime_ns
    review = session(file)
    assert review.press(key)
    assert (review.walk.at, file.stat().st_mtime_ns) == (at, before)
    assert not review.press("q")


def test_every_other_key_stands_for_one_that_there_is() -> None:
    assert set(ALSO.values()) <= set(KEYS)


def test_what_somebody_else_changed_is_read_again_and_not_written_over(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    review = session(file)
    changed = [row(1, query="What is held?"), *ROWS[1:]]
    write(file, *changed)
    assert review.press("a")
    assert read(file) == changed
    assert "changed by somebody else" in review.message
    assert review.row["query"] == "What is held?"
    review.press("a")
    assert state_of(read(file)[0]) == "accepted"


def test_a_file_that_has_lost_the_question_meanwhile(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    review = session(file)
    write(file, *ROWS[1:])
    assert review.press("a")
    assert review.row["query_id"] == "q_002"
    file.unlink()
    review.press("a")
    assert "No file" in review.message


def test_a_placeholder_is_not_accepted(tmp_path: Path) -> None:
    review = session(drafted(tmp_path, row(1, query="Replace this by a question that delivery.md answers")))
    review.press("a")
    assert review.message == "Not accepted. It is a placeholder. Write a question in its place."


TALK: QueryRow = {"conversation": "c1", "turns": [{"query": f"{n}?", "ground_truth": "Yes."} for n in (1, 2, 3)]}


def test_what_a_key_does_to_later_turns_is_said(tmp_path: Path) -> None:
    review = session(drafted(tmp_path, TALK, row(1)), ["1"])
    review.walk.at = 1
    review.press("r")
    assert review.message.startswith("With it, turn 3 is rejected, too.")
    review.walk.at = 1
    review.press("u")
    assert review.message == "With it, turn 3 is unreviewed again."
    assert [case.query.query_id for case in read_queries(review.file.file)] == ["c1#1", "c1#2", "c1#3", "q_001"]


def test_an_edit_that_changes_no_field_of_a_turn_is_none(tmp_path: Path) -> None:
    turns = [{**turn, "query_type": "direct"} for turn in TALK["turns"]]
    review = session(drafted(tmp_path, {**TALK, "turns": turns}))
    review._edit = lambda asked: changes_of(text_of(asked))
    before = review.file.file.read_bytes()
    review.press("e")
    assert review.message == "Nothing was changed."
    assert review.file.file.read_bytes() == before
