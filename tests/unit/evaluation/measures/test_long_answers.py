"""Measures of long answers: what does not end in the time of an answer has a reason in place of a value."""

from __future__ import annotations

import os
import time
from typing import ClassVar

import pytest

from rag_harness.core.processes import checks_within
from rag_harness.core.registry import registered
from rag_harness.core.types import Case, Evidence, Expectation, Query
from rag_harness.evaluation.measures import RankingMeasure, RowMeasure, Score, known_measures, measure_named, scored
from rag_harness.evaluation.measures.answers import TokenF1
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import judge, parse_gate
from tests.long_answers import LONG_ANSWERS
from tests.unit.rows import make_row
from tests.unit.suite_tables import case_of, table_of

# Measures of long answers: what does not end in the time of an answer has a reason in place of a value.

CASE = Case(
    Query("q1", "How long?"),
    ground_truth="Within 45 days, for 9 euros.",
    qrels={"returns.md": 1},
    evidence=(Evidence("returns.md", "within 45 days"),),
    expect=(Expectation("contains", "45 days"),),
    metadata={"superseded": [{"outdated_statement": "within 30 days", "current_statement": "within 45 days"}]},
)
DEADLINE = 10.0


class OwnF1(TokenF1):
    """Where it was computed."""

    said: ClassVar[list[int]] = []

    def score(self, case: Case, row: ExperimentResult) -> Score:
        self.said.append(os.getpid())
        return Score(1.0)


def test_a_measure_that_outlasts_the_time_has_a_reason() -> None:
    row = make_row(llm_answer=LONG_ANSWERS["words"])
    with checks_within(0.001):
        late = scored(TokenF1(), CASE, row)
        assert (late.value, late.reason) == (None, "not checked within 0.001 s. Allow more: --rag-deadline")
        assert scored(TokenF1(), CASE, make_row(llm_answer="within 45 days")).value
        assert scored(OwnF1(), CASE, row).value == 1, "a measure of a user's own is computed here"
    assert OwnF1.said == [os.getpid()]


def test_a_long_answer_is_scored_as_a_short_one() -> None:
    said = "within 45 days, for 9 euros. "
    short, long = (scored(TokenF1(), CASE, make_row(llm_answer=said * number)).value for number in (600, 800))
    assert short is not None
    assert long is not None
    assert 0 < long < short


@pytest.mark.long
def test_no_measure_outlasts_the_deadline_on_any_long_answer() -> None:
    found = [measure_named(f"{name}@5" if name in _with_cutoff() else name) for name in known_measures()]
    of_rows = [each for each in found if isinstance(each, RowMeasure) and not isinstance(each, RankingMeasure)]
    assert len(of_rows) > 15
    with checks_within(DEADLINE):
        scored(TokenF1(), CASE, make_row(llm_answer="a" * 20_001))  # the process starts
        for name, text in LONG_ANSWERS.items():
            row = make_row(llm_answer=text)
            for measure in of_rows:
                began = time.monotonic()
                if not measure.applies(CASE):
                    scored(measure, CASE, row)
                assert time.monotonic() - began < DEADLINE + 1, (measure.name, name)


def _with_cutoff() -> set[str]:
    from rag_harness.core.registry import resolve

    return {name for name in known_measures() if getattr(resolve("measures", name), "takes_cutoff", False)}


# A measure of a user's own may return a number, or None for what it has no value for: that is counted, and named.


class Picky(RowMeasure):
    """1 for answers that it likes."""

    called = "picky"

    def score(self, case: Case, row: ExperimentResult) -> Score:
        return None if "no" in row.llm_answer else 1  # type: ignore[return-value]


class Odd(Picky):
    """A text."""

    def score(self, case: Case, row: ExperimentResult) -> Score:
        return "good"  # type: ignore[return-value]


def test_what_has_no_value_is_named_on_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Point:
        value = "tests"

        def load(self) -> type[Picky]:
            return Picky

    known = registered("measures")
    monkeypatch.setitem(known, "picky", Point())
    rows = [make_row(query_id=f"q{n}", llm_answer="no" if n < 12 else "yes") for n in range(40)]
    found = table_of(rows, measures=["picky"])
    verdict = judge(parse_gate("e3: picky >= 0.9", 5), {"e3": found})
    assert (verdict.state, verdict.n, found.unmeasured("picky", {})) == ("passed", 28, 12)
    assert verdict.reason == "12 could not be measured: picky returned no value for 12 of 40"
    assert measure_named("picky").name == "picky"


def test_other_things_are_no_value_and_say_so() -> None:
    row = make_row()
    assert scored(Picky(), case_of(row), row) == Score(1.0)
    with pytest.raises(TypeError, match="picky returned str; a measure returns a Score, a number or None"):
        scored(Odd(), case_of(row), row)
