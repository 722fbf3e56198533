"""Whether an answer is right: the one rule for rows, tables, reports and causes, and the measure ``correct``.

The first of these that can tell decides, and ``by`` names it:

- ``expectations``: what the case expects of its answer. One that is broken makes it wrong. If all are kept it is right;
  those of form, time and cost alone do not tell that, unless nothing below does.
- ``declined``: a question that the documents do not answer is answered right by declining, and any other one wrong.
- ``ground_truth``: the ground truth, compared by ``words.answer_match``.

Where none of them can tell, an answer is not checked. In tables a judge's score then decides, where there is one
(``JUDGED``), and its measure is what it was decided by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rag_harness.expectations import kind_of, needs_model
from rag_harness.measures.expectation_measures import found_among
from rag_harness.measures.ground_truth import rightness
from rag_harness.measures.judged.criteria import MEETS_FROM
from rag_harness.measures.judged.judged_expectations import EXPECTATIONS
from rag_harness.measures.measure import RowMeasure, Score
from rag_harness.types import Case
from rag_harness.words.abstention import declines
from rag_harness.words.answer_match import RULE

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult

CORRECT = "correct"
BY_DECLINING = "declined"
JUDGED = (EXPECTATIONS, "factuality", "answer_correctness")
"""Judged measures that decide where a row alone does not tell, the first that has a value."""
UNCHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Correctness:
    """Whether an answer is right, and what decided that.

    Attributes:
        correct: None where it was not checked.
        by: ``expectations``, ``declined`` or ``ground_truth``; in tables also the judged measure; empty: not checked.
    """

    correct: bool | None = None
    by: str = ""


def correctness(case: Case, row: ExperimentResult) -> Correctness:
    """Return whether the answer of a row is right, as far as row and case tell."""
    if not row.ok or not row.llm_answer.strip():
        return Correctness()
    if (expected := _by_expectations(case, row)) is not None:
        return expected
    declined = row.abstained or declines(row.llm_answer)
    found = rightness(case, row.llm_answer, declined)
    if found.value is None:
        return Correctness(True, EXPECTATIONS) if case.expect else Correctness()
    return Correctness(found.right, BY_DECLINING if declined or not case.answerable else RULE)


def _by_expectations(case: Case, row: ExperimentResult) -> Correctness | None:
    """Return what the expectations say: not checked where a model has to be asked, None where others decide first."""
    found = found_among(case, row, [each for each in case.expect if not needs_model(each)])
    if any(each.kept is False for each in found):
        return Correctness(False, EXPECTATIONS)
    if any(map(needs_model, case.expect)) or any(each.kept is None for each in found):
        return Correctness()
    is_told = any(kind_of(each.expectation.kind).of_content for each in found)
    return Correctness(True, EXPECTATIONS) if is_told else None


def describe_disagreement(case: Case, row: ExperimentResult) -> str:
    """Return how expectations and ground truth of a case contradict each other about an answer; empty: they do not."""
    found = correctness(case, row)
    if found.by != EXPECTATIONS or not case.answerable or row.abstained or declines(row.llm_answer):
        return ""
    truth = rightness(case, row.llm_answer, False)
    if truth.value is None or not case.ground_truth.strip() or truth.right == found.correct:
        return ""
    if found.correct:
        return "its expectations pass and its ground truth is not in the answer"
    return "its ground truth is in the answer and its expectations do not pass"


class Correct(RowMeasure):
    """1 if the answer is right: by its expectations, else by whether it declines, else by the ground truth.

    An answer that none of them can check has no value, unless a judge scored it: factuality or answer_correctness from
    0.5 up is right.
    """

    called, needs = CORRECT, ("answer",)
    looks_by_expectations: ClassVar[bool] = True

    def score(self, case: Case, row: ExperimentResult) -> Score:
        found = _recorded(case, row) or correctness(case, row)
        if found.correct is None:
            return Score(None, UNCHECKED, undefined=True)
        return Score(float(found.correct), detail={"by": found.by})


def _recorded(case: Case, row: ExperimentResult) -> Correctness | None:
    """Return what the row says; None where it says nothing, or may have been made with other gold.

    Millions of rows are read, and to compare a text takes milliseconds. A row does not tell what was expected of it.
    """
    is_same = (row.ground_truth, row.answerable) == (case.ground_truth, case.answerable)
    if case.expect or not is_same or row.correct_by not in (BY_DECLINING, RULE):
        return None
    return Correctness(row.correct, row.correct_by)


def by_judge(measure: str, value: float) -> float:
    """Return 1 where the value of a judged measure makes an answer right, else 0. Expectations must all be kept."""
    return float(value >= (1.0 if measure == EXPECTATIONS else MEETS_FROM))
