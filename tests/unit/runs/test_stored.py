"""What journals of the dead hold is taken over once, and what is recorded already is not read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_harness.core.types import TrialId
from rag_harness.pipelines.experiments import result_path, scores_path
from rag_harness.records.files import PREVIOUS
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.runs import journal as resume_store
from rag_harness.runs.journal import JOURNALS, ResumeStore, adopt_journals
from tests.unit.rows import make_row


def journal(output: Path, *lines: bytes) -> Path:
    (output / JOURNALS).mkdir(parents=True, exist_ok=True)
    file = output / JOURNALS / "run-main.jsonl"
    file.write_bytes(b"".join(lines))
    return file


def line(query_id: str, **values: object) -> bytes:
    return make_row(query_id=query_id, **values).line().encode()


def test_what_is_not_in_a_result_file_is_added_once(tmp_path: Path) -> None:
    file = result_path(tmp_path, "e3")
    file.write_bytes(line("q1"))
    left = journal(tmp_path, line("q1"), line("q2"), b'{"torn": ')
    adopted = adopt_journals(tmp_path)
    assert (adopted.rows, adopted.damaged) == (1, 1)
    assert file.read_bytes() == line("q1") + line("q2")
    assert (tmp_path / PREVIOUS / "journal-damaged.jsonl").read_bytes() == b'{"torn": \n'
    assert not left.exists()


def test_scores_are_taken_over_with_the_row_that_they_are_of(tmp_path: Path) -> None:
    rows = [make_row(query_id="q1", llm_answer=answer) for answer in ("first", "later")]
    author = Author("mock", "m", "1")
    scores = [ScoreLine("faithfulness", 1, "e3", "q1", row_digest(row), "", author, 0.5).line() for row in rows]
    result_path(tmp_path, "e3").write_bytes(rows[0].line().encode())
    journal(tmp_path, *scores)
    assert adopt_journals(tmp_path).scores == 1
    assert scores_path(tmp_path, "e3").read_bytes() == scores[0]


def test_lines_that_are_recorded_are_not_read_as_rows_and_are_safe_before_the_journal_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result_path(tmp_path, "e3").write_bytes(line("q1") + line("q2"))
    left = journal(tmp_path, line("q1"), line("q2"))
    synced: list[bool] = []
    monkeypatch.setattr(resume_store, "row_or_none", lambda _: pytest.fail("was read"))
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(left.exists()))
    assert adopt_journals(tmp_path).rows == 0
    assert synced == [True]
    assert not left.exists()


def test_a_torn_line_of_a_result_file_does_not_hide_the_whole_one(tmp_path: Path) -> None:
    file = result_path(tmp_path, "e3")
    file.write_bytes(line("q1")[:-1])
    journal(tmp_path, line("q1")[:-1])
    assert adopt_journals(tmp_path).damaged == 1


def test_of_two_rows_of_a_trial_the_later_one_is_reread(tmp_path: Path) -> None:
    file = journal(tmp_path, line("q1", llm_answer="first"), line("q1", llm_answer="later"), line("q2"))
    assert ResumeStore(tmp_path, "run", anew=False).reread(file, TrialId("e3", "q1")).llm_answer == "later"
