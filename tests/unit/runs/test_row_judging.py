"""Judging a row: what is asked, what is known, what a judge that fails leaves behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.errors import BudgetError, CriticalError, ModelOutputError, PrerequisiteError
from rag_harness.core.types import Case, Evidence, Message, Query
from rag_harness.evaluation.judges.mock import MockJudge, MockOpinion
from rag_harness.evaluation.measures import parts_of
from rag_harness.evaluation.measures.opinion import (
    ClaimedText,
    Judge,
    JudgeQuestion,
    Material,
    SupportSource,
    Verdicts,
    said_before,
)
from rag_harness.records.scores import ScoreLine, parse_score
from rag_harness.runs.judging import JudgedRow, RowJudge
from tests.unit.rows import make_row

CASE = Case(Query("q1", "How long?"), ground_truth="30 days", qrels={"returns.md": 1}, evidence=(Evidence("", "30 d"),))
PAGES = ["Return it within 30 days."]


class Said:
    """A mock judge that notes what it is asked, and raises what it is told to."""

    name, model = "mock", "mock/said"
    asks_model, deterministic, reads_conversation = False, False, True

    def __init__(self, error: Exception | None = None, revision: str = "1", waits: float = 0.0) -> None:
        self.revision, self.error, self.waits = revision, error, waits
        self.materials: list[Material] = []
        self.asks: list[Collection[JudgeQuestion]] = []

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> MockOpinion:
        self.materials.append(material)
        self.asks.append(asks)
        return _Opinion(material, self)


class _Opinion(MockOpinion):
    def __init__(self, material: Material, said: Said) -> None:
        super().__init__(material)
        self._said = said

    async def supported(self, claims: ClaimedText, source: SupportSource) -> Verdicts:
        await asyncio.sleep(self._said.waits)
        if self._said.error is not None:
            raise self._said.error
        return await super().supported(claims, source)


def judge(
    said: Any, *names: str, known: Sequence[ScoreLine] = (), seconds: float = 5.0, row: Any = None, case: Case = CASE
) -> JudgedRow:
    judging = said if isinstance(said, RowJudge) else RowJudge(lambda: said, lambda *_: PAGES, seconds)
    stored = {line.key: line for line in known}
    work = judging.row(row or make_row(), case, parts_of(names), lambda _, key: stored.get(key))
    return asyncio.run(work)


def lines(judged: JudgedRow) -> list[ScoreLine]:
    return [line for line in map(parse_score, judged.new) if line is not None]


def test_a_row_becomes_a_line_a_measure_of_one_opinion() -> None:
    said = Said()
    judged = judge(said, "faithfulness", "factuality", "answer_relevancy")
    assert len(said.materials) == 1
    assert said.materials[0].gold_pages == tuple(PAGES)
    assert said.materials[0].quotes == ("30 d",)
    assert {line.measure: line.value for line in lines(judged)} == {
        name: score.value for name, score in judged.scores.items()
    }
    assert {(line.author.model, line.author.revision, line.row) for line in lines(judged)} == {
        ("mock/said", "1", lines(judged)[0].row)
    }


def test_pages_are_read_for_measures_that_look_at_them_only() -> None:
    def never(*_: Any) -> list[str]:
        raise AssertionError("nobody asked for pages")

    judge(RowJudge(Said, never, 5), "faithfulness")


def test_what_is_known_is_not_asked_again_and_what_another_judge_said_is() -> None:
    first = judge(Said(), "faithfulness", "answer_relevancy")
    again = Said()
    judged = judge(again, "faithfulness", "answer_relevancy", known=lines(first))
    assert (again.materials, judged.new) == ([], ())
    assert judged.scores == first.scores
    other = Said(revision="2")
    assert len(judge(other, "faithfulness", known=lines(first)).new) == 1


def test_other_gold_is_judged_again_where_the_measure_looks_at_it() -> None:
    first = judge(Said(), "factuality")
    changed = RowJudge(Said, lambda *_: ["Return it within 45 days."], 5)
    assert len(judge(changed, "factuality", known=lines(first)).new) == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModelOutputError("half a JSON"), "half a JSON"),
        (BudgetError("0.02 of 0.01 USD"), "not judged: budget: 0.02 of 0.01 USD"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError(), "KeyError: KeyError()"),
    ],
)
def test_a_judge_that_fails_is_a_score_of_none_with_the_reason(error: Exception, reason: str) -> None:
    judged = judge(Said(error), "faithfulness", "answer_relevancy")
    failed = {line.measure: line for line in lines(judged)}
    assert (failed["faithfulness"].value, failed["faithfulness"].reason) == (None, reason)
    assert not failed["faithfulness"].is_final
    assert failed["answer_relevancy"].value is not None


def test_after_an_error_that_no_later_call_gets_past_the_judge_is_not_asked_again() -> None:
    said = Said(CriticalError("the key is refused"))
    judging = RowJudge(lambda: said, lambda *_: PAGES, 5)
    reasons = [line.reason for _ in range(3) for line in lines(judge(judging, "faithfulness"))]
    assert len(said.materials) == 1
    assert set(reasons) == {"CriticalError: the key is refused"}


def test_a_part_that_one_measure_lacks_is_no_end_of_the_others() -> None:
    said = Said(PrerequisiteError("no torch"))
    judged = judge(said, "faithfulness", "answer_relevancy")
    assert judged.scores["faithfulness"].reason == "no torch"
    assert judged.scores["answer_relevancy"].value is not None


def test_a_judge_that_cannot_be_made_leaves_the_reason() -> None:
    def missing() -> Judge:
        raise PrerequisiteError("pip install 'pytest-rag-harness[local]'")

    judged = judge(RowJudge(missing, lambda *_: PAGES, 5), "faithfulness")
    assert lines(judged)[0].reason == "pip install 'pytest-rag-harness[local]'"
    assert judged.author.judge == "nobody"


def test_a_judge_of_somebodys_own_that_cannot_be_made_leaves_the_reason() -> None:
    def broken() -> Judge:
        raise ZeroDivisionError("division by zero")

    judged = judge(RowJudge(broken, lambda *_: PAGES, 5), "faithfulness")
    assert lines(judged)[0].reason == "ZeroDivisionError: division by zero"
    assert judged.author.judge == "nobody"


def test_a_judge_that_hangs_meets_the_deadline() -> None:
    (line,) = lines(judge(Said(waits=60), "faithfulness", seconds=0.05))
    assert line.value is None
    assert "deadline: not judged within 0.05 s" in line.reason


@pytest.mark.parametrize(("retrieves", "value"), [(None, 0.0), (True, 0.0), (False, None)])
def test_what_is_undefined_asks_nobody_and_is_final(retrieves: bool | None, value: float | None) -> None:
    """Without a context an experiment that retrieves has the worst value, and one that does not has none."""
    said = Said(AssertionError())
    (line,) = lines(judge(said, "faithfulness", row=make_row(retrieved_chunks=[], retrieves=retrieves)))
    assert (line.value, line.undefined, line.is_final) == (value, retrieves is False, True)
    assert said.asks in ([], [set()])


def test_a_measure_that_does_not_apply_to_the_case_has_no_line() -> None:
    case = replace(CASE, qrels={}, evidence=(), answerable=False)
    assert judge(Said(), "factuality", case=case).new == ()


def test_the_mock_judge_is_a_judge() -> None:
    assert judge(MockJudge(), "faithfulness").scores["faithfulness"].value is not None


def test_a_row_of_a_conversation_is_judged_with_what_was_said_and_again_when_that_has_changed() -> None:
    said = Said()
    told = {"conversation": "c1", "turn": 2, "history": [{"role": "user", "content": "Do you sell lamps?"}]}
    first = judge(said, "faithfulness", row=make_row(inputs=told))
    (material,) = said.materials
    assert said_before(material) == (Message("user", "Do you sell lamps?"),)
    assert material.contexts == tuple(chunk.text for chunk in make_row().retrieved_chunks)
    judge(said, "faithfulness", row=make_row(inputs=told), known=lines(first))
    assert len(said.materials) == 1
    other = {**told, "history": [{"role": "user", "content": "Do you sell chairs?"}]}
    judge(said, "faithfulness", row=make_row(inputs=other), known=lines(first))
    assert len(said.materials) == 2


def test_a_row_without_a_conversation_is_judged_as_ever() -> None:
    said = Said()
    judge(said, "faithfulness")
    assert type(said.materials[0]) is Material


class Computing(Said):
    """A judge that computes for as long as it is let, as the rules of the embedded one do."""

    deterministic = True

    def __init__(self) -> None:
        super().__init__()
        self.until, self.has_ended = threading.Event(), False

    def opinion(self, material: Material, asks: Collection[JudgeQuestion]) -> MockOpinion:
        self.until.wait(5)
        self.has_ended = True
        return super().opinion(material, asks)


def test_a_judge_that_computes_over_a_long_answer_does_not_outlast_the_deadline() -> None:
    said = Computing()
    judged = judge(said, "faithfulness", seconds=0.1, row=make_row(llm_answer="word " * 5_000))
    assert not said.has_ended
    said.until.set()
    assert judged.scores["faithfulness"].reason.startswith("deadline: not judged within 0.1 s")


def test_a_long_answer_is_judged_as_a_short_one_by_a_judge_that_computes() -> None:
    said = Computing()
    said.until.set()
    found = [judge(said, "faithfulness", row=make_row(llm_answer="word " * number)) for number in (10, 5_000)]
    assert found[0].scores["faithfulness"].value == found[1].scores["faithfulness"].value is not None
