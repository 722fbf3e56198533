"""How many answers are wrong, and how many more are below a failed gate."""

from __future__ import annotations

from rag_harness.records.causes import CauseLine
from rag_harness.runs.gates import Gate, parse_gate
from rag_harness.tables.brief import Shortfall, shortfalls
from tests.unit.report.standing_tables import kinds, table

N, WRONG = 40, 6
LABELS = kinds(any=N)


def line(n: int, cause: str = "Logic Failure") -> CauseLine:
    return CauseLine(experiment="e1", query_id=f"q{n:03}", cause=cause, remedy="a stronger model")


def of_e1(causes: list[CauseLine], *gates: Gate, checked: bool = True) -> Shortfall:
    correct = {"correct": [0.0] * WRONG + [1.0] * (N - WRONG)} if checked else {}
    found = table(LABELS, token_f1=[0.1] * 10 + [0.9] * (N - 10), **correct)
    return shortfalls({"e1": found}, causes, gates)["e1"]


def test_a_threshold_moves_no_count_of_wrong_answers() -> None:
    without = of_e1([line(n) for n in range(WRONG)])
    gated = of_e1([line(n) for n in range(10)], parse_gate("e1: token_f1 >= 0.5", 10))
    assert (without.n, without.below, without.below_said) == (WRONG, 0, "")
    assert (gated.n, gated.below, gated.below_said) == (WRONG, 4, "4 more below a failed gate")
    assert without.causes == gated.causes == {"Logic Failure": WRONG}


def test_gates_of_others_over_repeats_or_on_differences_count_no_answers() -> None:
    texts = ("e2: token_f1 >= 0.5", "e1: p50(token_f1) >= 0.95", "e1: token_f1 > e2")
    assert of_e1([line(0)], *(parse_gate(text, 10) for text in texts)).below == 0


def test_right_answers_that_were_looked_into_are_not_counted() -> None:
    found = of_e1([line(0), line(30, "Judge Doubtful")])
    assert (found.n, found.causes, found.is_sample) == (WRONG, {"Logic Failure": 1}, False)


def test_where_nothing_was_checked_the_worst_are_a_sample() -> None:
    found = of_e1([line(n) for n in range(10)], checked=False)
    assert (found.n, found.is_sample) == (10, True)
