"""Whether an answer is right: the one rule for rows, tables, reports and causes, and the measure ``correct``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from rag_harness.core.text.comparison import compared_words
from rag_harness.core.text.language_detection import unruled
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.terms import CITATION, NUMBER_WORDS, terms, written_numbers
from rag_harness.core.types import Case
from rag_harness.evaluation.measures.expectations import EXPECTATIONS, found_among
from rag_harness.evaluation.measures.judged import vital
from rag_harness.evaluation.measures.measure import RowMeasure, Score
from rag_harness.evaluation.measures.opinion import MEETS_FROM
from rag_harness.records.expectations import kind_of, needs_model

if TYPE_CHECKING:
    from rag_harness.records.row import ExperimentResult


# Decides without an LLM whether an answer is right, by ``core.text.answer_match``.
#
# It is compared with the ground truth, or else with the vital quotes of the evidence: an answer in the words of the
# page is as right as one in the words of the gold. ``measures.judged.vital`` decides which quotes are vital.
#
# The limits are those of comparing words. An answer in other words is not checked. An answer with all words and
# figures in the wrong roles ("A costs more than B") may be called right. The purpose is to find what *changed* between
# two answers to one question; the quality of an answer is told by a judge's scores.

LEAST_FIGURES, LEAST_WORDS = 2 / 3, 0.5
"""Least shares of the figures and of the content words of a text that an answer must have."""


@dataclass(frozen=True, slots=True)
class Rightness:
    """The rightness of an answer.

    Attributes:
        value: mean share of the parts of the gold that the answer has, in [0, 1]; None where the case has no gold, or
            where the rule cannot tell whether the answer is right.
        right: whether the answer agrees with the gold; for an unanswerable case, whether the answer declines.
    """

    value: float | None
    right: bool


def rightness(case: Case, answer: str, abstained: bool) -> Rightness:
    """Return the rightness of ``answer`` by the gold of its case."""
    declined = abstained or declines(answer)
    if not case.answerable:
        return Rightness(None, False) if not declined and unruled(answer) else Rightness(float(declined), declined)
    wanted = [text for text in (case.ground_truth, _vital_quotes(case)) if compared_words(text)]
    if not wanted:
        return Rightness(None, False)
    if declined or not answer.strip():
        return Rightness(0.0, False)
    from rag_harness.core.text.answer_match import answer_match  # slow to import, and needless without a gold

    found = [answer_match(case.query.text, text, answer) for text in wanted]
    told = [Rightness(each.share, each.agrees) for each in found if each.agrees is not None]
    return max(told, key=lambda each: (each.right, each.value), default=Rightness(None, False))


def needed_quotes(case: Case) -> list[str]:
    """Return the quotes that the ground truth depends on, as written; all quotes where none is vital."""
    quotes = [one.quote for one in case.evidence if one.quote.strip()]
    return [quote for quote in quotes if vital(quote, case.ground_truth)] or quotes


def carries(text: str, wanted: str) -> bool:
    """Return whether a text has enough of the figures and content words of ``wanted``."""
    return bool(text) and bool(plain_terms(wanted) or written_numbers(wanted)) and _carried(text, wanted).right


@lru_cache(maxsize=2048)
def plain_terms(text: str) -> frozenset[str]:
    """Return the content words of a text, stemmed, without figures and citations."""
    return frozenset(
        word for word in terms(CITATION.sub(" ", text)) if not word[0].isdigit() and word not in NUMBER_WORDS
    )


def share_within(part: frozenset[str], whole: frozenset[str]) -> float:
    """Return the share of ``whole`` that is in ``part``; 1 where ``whole`` is empty."""
    return len(part & whole) / len(whole) if whole else 1.0


def _carried(answer: str, text: str) -> Rightness:
    numbers, words = written_numbers(text), plain_terms(text)
    in_figures, in_words = share_within(written_numbers(answer), numbers), share_within(plain_terms(answer), words)
    value = (in_figures + in_words) / 2 if numbers else in_words
    return Rightness(value, in_figures >= LEAST_FIGURES and in_words >= LEAST_WORDS)


def _vital_quotes(case: Case) -> str:
    return " ".join(quote for quote in needed_quotes(case) if vital(quote, case.ground_truth))


CORRECT = "correct"
BY_DECLINING, BY_GROUND_TRUTH = "declined", "ground_truth"
"""What decided, as a row says it."""
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
    return Correctness(found.right, BY_DECLINING if declined or not case.answerable else BY_GROUND_TRUTH)


def _by_expectations(case: Case, row: ExperimentResult) -> Correctness | None:
    """Return the result of the expectations: not checked where a model must be asked, None if others decide first."""
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
    """Return the value in the row; None where it has none, or may have been made with other gold.

    Millions of rows are read, and to compare a text takes milliseconds. A row does not have its expectations.
    """
    is_same = (row.ground_truth, row.answerable) == (case.ground_truth, case.answerable)
    if case.expect or not is_same or row.correct_by not in (BY_DECLINING, BY_GROUND_TRUTH):
        return None
    return Correctness(row.correct, row.correct_by)


def by_judge(measure: str, value: float) -> float:
    """Return 1 where the value of a judged measure makes an answer right, else 0. Expectations must all be met."""
    return float(value >= (1.0 if measure == EXPECTATIONS else MEETS_FROM))
