"""The file under review: whole at every moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.questions.review.rows import (
    QueryRow,
    ReviewFile,
    accepted,
    alone_with,
    edited,
    rejected,
    reopened,
    state_of,
)
from rag_harness.core.errors import DataError, SettingsError
from rag_harness.core.files import write_atomically
from rag_harness.data.queries import read_queries
from tests.unit.authoring.questions.review.drafts import drafted, read, row, write


def test_two_reviews_of_one_file_are_refused(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    with alone_with(file), pytest.raises(SettingsError, match="open in another review"), alone_with(file):
        pass
    with alone_with(file):
        pass
    assert not list(file.parent.glob(".*"))


@pytest.mark.parametrize("first_write", [0, 1])
def test_a_kill_between_the_two_files_loses_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_write: int
) -> None:
    file = drafted(tmp_path)
    opened = ReviewFile(file)
    if first_write:  # bring one back: the other direction
        opened.put({0: rejected(opened.rows[0], "Ada", "silly")})
    keep = write_atomically
    calls = 0

    def killed(where: Path, content: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        keep(where, content)

    monkeypatch.setattr("rag_harness.authoring.questions.review.rows.write_atomically", killed)
    decided = accepted(opened.rows[0], "Ada") if first_write else rejected(opened.rows[0], "Ada", "silly")
    two = {0: decided, 1: rejected(opened.rows[1], "Ada", "too")}
    with pytest.raises(KeyboardInterrupt):
        opened.put(two)
    monkeypatch.undo()
    assert sorted(each["query_id"] for each in ReviewFile(file).rows) == ["q_001", "q_002", "q_003", "q_004"]


def test_what_is_not_reviewed_keeps_its_bytes(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    odd = '{"query_id":"odd",   "query": "Caf\\u00e9?", "metadata": {"x": 1.50}}\n'
    file.write_text(odd + file.read_text())
    opened = ReviewFile(file)
    opened.put({1: accepted(opened.rows[1], "Ada")})
    assert file.read_text().startswith(odd)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    opened = ReviewFile(link)
    opened.put({0: accepted(opened.rows[0], "Ada")})
    assert link.is_symlink()
    assert read(file)[0]["metadata"]["reviewed"] == "yes"


def test_all_may_be_rejected(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1))
    opened = ReviewFile(file)
    opened.put({0: rejected(opened.rows[0], "Ada", "silly")})
    assert file.read_text() == ""
    assert len(ReviewFile(file).rows) == 1


def test_what_was_rejected_before_questions_were_written_anew_is_not_lost(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1))
    opened = ReviewFile(file)
    opened.put({0: rejected(opened.rows[0], "Ada", "silly")})
    write(file, row(1, query="Another question?"))
    opened = ReviewFile(file)
    assert len(opened.rows) == 1
    opened.put({0: rejected(opened.rows[0], "Ada", "silly too")})
    assert [each["query"] for each in read(file.with_name("queries.rejected.jsonl"))] == [
        row(1)["query"],
        "Another question?",
    ]
    assert len(ReviewFile(file).rows) == 1  # two of one id could not both be brought back


def test_half_a_letter_is_kept(tmp_path: Path) -> None:
    file = drafted(tmp_path, row(1))
    opened = ReviewFile(file)
    opened.put({0: accepted({**opened.rows[0], "ground_truth": "cut \ud83d", "query": "é?"}, "Ada")})
    assert '"cut \\ud83d"' in file.read_text()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "holds no query"),
        (b"# A page\n\nof text\n" * 20, "… and 35 more"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"query_id": "a", "query": ""}\n', "is no file of questions"),
    ],
)
def test_what_is_no_file_of_questions(tmp_path: Path, content: bytes, why: str) -> None:
    file = tmp_path / "queries.jsonl"
    file.write_bytes(content)
    with pytest.raises(DataError) as error:
        ReviewFile(file)
    assert why in str(error.value)
    assert len(str(error.value).split("\n")) <= 8


def test_a_rejected_file_that_is_none(tmp_path: Path) -> None:
    file = drafted(tmp_path)
    write(file.with_name("queries.rejected.jsonl"), {"query": "no id"})
    with pytest.raises(DataError, match="no rejected question"):
        ReviewFile(file)


TURNS: list[QueryRow] = [
    {"query": f"{n}?", "ground_truth": f"answer {n}", "metadata": {"kind": n}} for n in (1, 2, 3, 4)
]
WHOLE: QueryRow = {"conversation": "c1", "metadata": {"part": "fit", "reviewed": "no"}, "turns": TURNS}
ONE_A_LINE: list[QueryRow] = [
    {"conversation": "c1", "turn": n, **turn, "metadata": {"part": "fit", "reviewed": "no", **turn["metadata"]}}
    for n, turn in enumerate(TURNS, 1)
]
FORMS = pytest.mark.parametrize("lines", [[WHOLE], ONE_A_LINE], ids=["whole", "one a line"])


def states(opened: ReviewFile) -> list[str]:
    return [state_of(row) for row in opened.rows]


def conversation(folder: Path, *lines: QueryRow) -> ReviewFile:
    """Return a file with a conversation of four turns, and another question before and behind it."""
    file = folder / "queries.jsonl"
    write(file, {"query_id": "q1", "query": "Before?"}, *lines, {"query_id": "q2", "query": "Behind?"})
    return ReviewFile(file)


@FORMS
def test_turns_are_reviewed_by_their_names(tmp_path: Path, lines: list[QueryRow]) -> None:
    opened = conversation(tmp_path, *lines)
    assert [each["query_id"] for each in opened.rows] == ["q1", "c1#1", "c1#2", "c1#3", "c1#4", "q2"]
    before = opened.file.read_text().splitlines()
    opened.put({2: accepted(opened.rows[2], "Ada")})
    cases = read_queries(opened.file)
    assert [case.metadata.get("reviewed") for case in cases] == [None, "no", "yes", "no", "no", None]
    assert {case.metadata.get("part") for case in cases} == {None, "fit"}
    after = opened.file.read_text().splitlines()
    assert (after[0], after[-1], len(after)) == (before[0], before[-1], len(before))
    assert ReviewFile(opened.file).rows == opened.rows


@FORMS
def test_a_turn_that_is_rejected_takes_those_behind_it_along_and_brings_them_back(
    tmp_path: Path, lines: list[QueryRow]
) -> None:
    opened = conversation(tmp_path, *lines)
    before = opened.file.read_bytes()
    changed = opened.put({3: rejected(opened.rows[3], "Ada", "nobody would ask this")})
    assert list(changed) == [3, 4]
    assert [case.query.query_id for case in read_queries(opened.file)] == ["q1", "c1#1", "c1#2", "q2"]
    assert opened.rows[4]["metadata"]["rejected_because"] == "it stands on turn 3, which was rejected"
    again = ReviewFile(opened.file)
    assert again.rows == opened.rows
    again.put({3: reopened(again.rows[3])})
    assert [case.query.query_id for case in read_queries(again.file)] == [row["query_id"] for row in again.rows]
    assert states(again) == ["unreviewed"] * 6
    assert not again.file.with_name("queries.rejected.jsonl").exists()
    if len(lines) == 1:
        assert json.loads(again.file.read_bytes().split(b"\n")[1]) == json.loads(before.split(b"\n")[1])


@FORMS
def test_a_turn_that_comes_back_brings_what_it_stands_on(tmp_path: Path, lines: list[QueryRow]) -> None:
    opened = conversation(tmp_path, *lines)
    opened.put({3: rejected(opened.rows[3], "Ada", "nobody would ask this")})
    opened.put({1: rejected(opened.rows[1], "Ada", "the answer is wrong")})
    assert states(opened)[1:5] == ["rejected"] * 4
    assert [case.query.query_id for case in read_queries(opened.file)] == ["q1", "q2"]
    again = ReviewFile(opened.file)
    number = [row["query_id"] for row in again.rows].index("c1#3")
    again.put({number: accepted(again.rows[number], "Ada")})
    kept = {row["query_id"]: state_of(row) for row in again.rows}
    assert [kept[f"c1#{turn}"] for turn in (1, 2, 3, 4)] == ["unreviewed", "unreviewed", "accepted", "unreviewed"]
    assert {case.query.query_id for case in read_queries(again.file)} == {row["query_id"] for row in again.rows}


@FORMS
def test_other_words_of_a_turn_reopen_what_was_accepted_behind_it(tmp_path: Path, lines: list[QueryRow]) -> None:
    opened = conversation(tmp_path, *lines)
    opened.put({number: accepted(opened.rows[number], "Ada") for number in (1, 2, 4)})
    opened.put({2: edited(opened.rows[2], {"query_type": "comparison"}, "Ada")})
    assert states(opened)[1:5] == ["accepted", "unreviewed", "unreviewed", "accepted"]
    opened.put({2: edited(opened.rows[2], {"ground_truth": "another answer"}, "Ada")})
    assert states(opened)[1:5] == ["accepted", "unreviewed", "unreviewed", "unreviewed"]


def test_a_rejection_wins_over_what_is_decided_behind_it_at_once(tmp_path: Path) -> None:
    opened = conversation(tmp_path, WHOLE)
    one, two = opened.rows[1], opened.rows[2]
    opened.put({1: rejected(one, "Ada", "nobody would ask this"), 2: accepted(two, "Ada")})
    assert states(opened)[1:5] == ["rejected"] * 4


def test_what_turns_share_of_their_metadata_is_still_shared(tmp_path: Path) -> None:
    shared = {**WHOLE, "metadata": {"part": "fit", "reviewed": "yes", "reviewed_by": "Ada"}}
    opened = conversation(tmp_path, shared)
    opened.put({2: reopened(opened.rows[2])})
    assert json.loads(opened.file.read_text().splitlines()[1])["metadata"] == {"part": "fit", "reviewed": "yes"}
    assert "reviewed_by" not in ReviewFile(opened.file).rows[2]["metadata"]
    assert ReviewFile(opened.file).rows[3]["metadata"]["reviewed_by"] == "Ada"


def test_a_kill_between_the_writes_loses_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = conversation(tmp_path, WHOLE)

    def dies(file: Path, content: bytes) -> None:
        if "rejected" not in file.name:
            raise OSError(28, "No space left on device")
        write_atomically(file, content)

    monkeypatch.setattr("rag_harness.authoring.questions.review.rows.write_atomically", dies)
    with pytest.raises(DataError):
        opened.put({2: rejected(opened.rows[2], "Ada", "nobody would ask this")})
    monkeypatch.undo()
    assert states(ReviewFile(opened.file)) == ["unreviewed"] * 6


def test_a_conversation_that_nobody_decided_on_keeps_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    odd = json.dumps(WHOLE, indent=None, separators=(" , ", " :  "))
    file.write_text(f'{odd}\n{{"query_id": "q1", "query": "?"}}\n')
    opened = ReviewFile(file)
    opened.put({4: accepted(opened.rows[4], "Ada")})
    assert file.read_text().splitlines()[0] == odd


def test_a_scenario_is_not_reviewed(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    write(file, {"conversation": "s1", "scenario": {"opening": "hi", "asks": ["and?"]}})
    with pytest.raises(DataError, match=r"a line with a scenario, 's1'.*Keep scenarios in a file of their own"):
        ReviewFile(file)
