"""Races about what a judge says: each answer is judged once, and a judge that fails says nothing about a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import CriticalError
from rag_harness.evaluation.measures import Score
from rag_harness.records.scores import Author
from rag_harness.runs.judging import JudgedRow, RowJudge
from tests.unit.diagnosis.tuning.shop import tuned, write_shop

SPACE = """
objective = "faithfulness"
[parameters]
retriever = ["dense", "bm25"]
top_k = [1, 2]
rerank = false
"""
AUTHOR = Author("counting", "none", "1")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_shop(tmp_path, monkeypatch, SPACE)


def judging(monkeypatch: pytest.MonkeyPatch, score: Score) -> list[tuple[str, str]]:
    """Let every answer have this score; return what is judged."""
    asked: list[tuple[str, str]] = []

    async def row(self: RowJudge, row: Any, case: Any, measures: Any, find: Any, repeats: int = 0) -> JudgedRow:
        asked.append((row.experiment, row.query_id))
        better = row.experiment < "tune+8"
        value = score if score.value is None else Score(score.value + 0.5 * better)
        return JudgedRow(AUTHOR, {measure.name: value for measure in measures})

    monkeypatch.setattr(RowJudge, "row", row)
    return asked


def test_the_figures_are_those_of_the_judge(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = judging(monkeypatch, Score(0.25))
    outcome = tuned(shop).outcome
    assert len(asked) == len(set(asked)), "an answer is judged once"
    for entry in outcome.entries:
        if "faithfulness" in entry.figures:
            assert entry.figures["faithfulness"].value == pytest.approx(0.75 if entry.name < "tune+8" else 0.25)
    assert outcome.held_out is not None
    assert outcome.held_out.winner.value in (0.25, 0.75)
    assert outcome.asks_answers


def test_an_answer_with_nothing_to_judge_counts_as_the_worst(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judging(monkeypatch, Score(None, "no claims", undefined=True))
    outcome = tuned(shop).outcome
    assert {entry.figures["faithfulness"].value for entry in outcome.entries if entry.figures} == {0.0}


def test_a_judge_that_fails_ends_the_race_and_calls_nobody_worse(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judging(monkeypatch, Score(None, "it timed out"))
    with pytest.raises(CriticalError, match=r"faithfulness of tune.* was not judged: it timed out"):
        tuned(shop)
    assert not (shop / "output" / "tune.json").exists()


def test_a_budget_that_the_judge_has_spent_ends_the_race(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judging(monkeypatch, Score(None, "not judged: budget: the next call may cost up to 1 USD"))
    with pytest.raises(Exception, match="was spent before the first look"):
        tuned(shop)


def test_scores_are_kept_and_judged_no_second_time(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tuned(shop).outcome
    assert list((shop / "output" / "derived" / "scores").glob("tune+*.jsonl"))
    calls: list[str] = []
    whole = RowJudge._turn

    async def turn(self: RowJudge, row: Any, author: Any, material: Any, wanted: Any, find: Any, turn: int) -> Any:
        known = {one.measure.name for one in wanted if find(row.experiment, _key(one, row, author)) is not None}
        calls.extend(one.measure.name for one in wanted if one.measure.name not in known)
        return await whole(self, row, author, material, wanted, find, turn)

    monkeypatch.setattr(RowJudge, "_turn", turn)
    again = tuned(shop).outcome
    assert again.entries == first.entries
    assert calls == []


def _key(one: Any, row: Any, author: Author) -> tuple[str, ...]:
    return tuple(one.line(row, author, Score(0.0)).key)
