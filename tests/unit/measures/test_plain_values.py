"""A measure of a user's own may return a number, or None for what it has no value for: that is counted, and named."""

from __future__ import annotations

import pytest

from rag_harness.core.registry import registered
from rag_harness.core.types import Case
from rag_harness.evaluation.measures import RowMeasure, Score, measure_named, scored
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import judge, parse_gate
from tests.unit.rows import make_row
from tests.unit.tables import case_of, table_of


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
