"""The file under review: whole at every moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.authoring.questions.review.alone import alone_with
from rag_harness.authoring.questions.review.file import ReviewFile
from rag_harness.authoring.questions.review.reviewed_rows import accepted, rejected
from rag_harness.dataset.queries import read_queries
from rag_harness.errors import DataError, SettingsError
from rag_harness.files.atomic import write_atomically
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

    monkeypatch.setattr("rag_harness.authoring.questions.review.file.write_atomically", killed)
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


def test_turns_are_reviewed_by_their_names_and_whole_conversations_are_not(tmp_path: Path) -> None:
    file = tmp_path / "queries.jsonl"
    write(file, *({"conversation": "c1", "turn": n, "query": f"{n}?", "metadata": {"reviewed": "no"}} for n in (1, 2)))
    opened = ReviewFile(file)
    assert [each["query_id"] for each in opened.rows] == ["c1#1", "c1#2"]
    opened.put({1: accepted(opened.rows[1], "Ada")})
    assert [case.query.query_id for case in read_queries(file)] == ["c1#1", "c1#2"]
    write(file, {"conversation": "c1", "turns": [{"query": "?"}]})
    with pytest.raises(DataError, match="Write a line a turn"):
        ReviewFile(file)
    write(file, {"conversation": "s1", "scenario": {"opening": "hi", "asks": ["and?"]}})
    with pytest.raises(DataError, match=r"a line with a scenario, 's1'.*Keep scenarios in a file of their own"):
        ReviewFile(file)
