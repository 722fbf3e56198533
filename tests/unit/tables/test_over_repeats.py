"""A suite as a promise over repeats counts it: one value a case, and none where an answer is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rag_harness.runs.gates import GateRules, Verdict, judge, parse_gate
from rag_harness.runs.gates.configuration import unit_of
from rag_harness.stats import clopper_pearson
from rag_harness.tables.conversations import answers_said, over_repeats
from rag_harness.tables.gate_states import gates_state
from rag_harness.tables.suite_table import CaseState, SuiteTable
from tests.unit.tables.standing_tables import kinds, table

LABELS = kinds(a=2, b=2)
Values = Sequence[float | None]


def suite(*answers: Values, measure: str = "token_f1") -> SuiteTable:
    """Return a table whose cases have so many answers."""
    labels = kinds(a=len(answers[0]) - len(answers[0]) // 2, b=len(answers[0]) // 2)
    first, *later = [table(labels, **{measure: each}) for each in answers]
    first.later = lambda: later
    return first


def verdict(text: str, rules: GateRules | None = None, **tables: SuiteTable) -> Verdict:
    gate = parse_gate(text, 5)
    return judge(gate, over_repeats(gate, tables), unit=unit_of(gate), rules=rules)


def values(text: str, found: SuiteTable) -> dict[str, float]:
    gate = parse_gate(f"e3: {text} >= 0", 5)
    return dict(over_repeats(gate, {"e3": found})["e3"].values(gate.measure, {}))


THREE = suite([1, 1, 0.6, 0], [1, 0.5, 1, 0.2], [1, 0.7, 0.2, 0.1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass^3(token_f1)", [1, 0, 0, 0]),
        ("pass^2(token_f1)", [1, 0, 0, 0]),
        ("pass^1(token_f1)", [1, 1 / 3, 1 / 3, 0]),
        ("pass^3(token_f1>=0.5)", [1, 1, 0, 0]),
        ("pass^3(token_f1>0.5)", [1, 0, 0, 0]),
        ("pass^2(token_f1>0.5)", [1, 1 / 3, 1 / 3, 0]),
        ("pass^3(token_f1<=0.2)", [0, 0, 0, 1]),
        ("pass^3(token_f1<0.2)", [0, 0, 0, 0]),
        ("worst_of_3(token_f1)", [1, 0.5, 0.2, 0]),
        ("worst_of_2(token_f1)", [1, (0.5 + 0.5 + 0.7) / 3, (0.2 + 0.2 + 0.6) / 3, 0.1 / 3]),
        ("flip_rate(token_f1)", [0, 2 / 3, 2 / 3, 0]),
        ("flip_rate(token_f1>=0.5)", [0, 0, 2 / 3, 0]),
    ],
)
def test_a_case_has_one_value(text: str, expected: list[float]) -> None:
    assert [*values(text, THREE).values()] == pytest.approx(expected)


def test_where_lower_is_better_the_best_is_0_and_the_worst_is_the_highest() -> None:
    found = suite([0, 1], [0, 0], measure="error_rate")
    assert [*values("pass^2(error_rate)", found).values()] == [1, 0]
    assert [*values("worst_of_2(error_rate)", found).values()] == [0, 1]
    slow = suite([1000.0, 2000.0], [3000.0, 2000.0], measure="total_ms")
    assert [*values("worst_of_2(total_ms)", slow).values()] == [3000, 2000]
    assert [*values("pass^2(total_ms<=2500)", slow).values()] == [0, 1]


def test_what_equals_the_limit_but_for_rounding_is_equal() -> None:
    assert [*values("pass^1(token_f1>=0.3)", suite([0.1 + 0.2, 0.3 - 1e-13, 0.3 - 1e-9])).values()] == [1, 1, 0]
    assert [*values("pass^1(token_f1)", suite([1 - 1e-13, 1 - 1e-9])).values()] == [1, 0]


def test_a_gate_weighs_cases_and_not_answers() -> None:
    """All answers to a case are alike: 40 cases tell no more because each was asked 5 times."""
    right = [float(n < 36) for n in range(40)]
    found = verdict("e3: pass^3(token_f1) >= 0.8 @95%", e3=suite(*[right] * 5))
    assert (found.value, found.n) == (0.9, 40)
    assert found.interval == pytest.approx(clopper_pearson(36, 40))
    assert verdict("e3: pass^3(token_f1) >= 0.8 @95%", e3=suite(right)).state == "failed"  # fewer than 3 answers


@pytest.mark.parametrize(
    ("tries", "cases"),
    [(3, 40), (5, 200), *(pytest.param(*each, marks=pytest.mark.long) for each in ((5, 40), (3, 200)))],
)
def test_verdicts_are_seldom_wrong_where_answers_to_a_case_are_alike(
    tries: int, cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chances of Beta(0.5, 0.5): most cases are sure or hopeless. The mean of chance^3 is 5/16, the threshold.

    At 5 % each, 100 runs give 5 of each verdict, and more than 12 with a chance of 0.2 %. benchmarks/promises.py has
    more populations and runs.
    """
    # How many cases more would settle a gate: most of the time, and no reason is looked at.
    monkeypatch.setattr("rag_harness.runs.gates.evidence._needed", lambda *_: None)
    rng, states = np.random.default_rng(1), []
    for _ in range(100):
        chances = rng.beta(0.5, 0.5, cases)
        answers = (rng.random((tries, cases)) < chances).astype(float)
        states.append(verdict("e3: pass^3(token_f1) >= 0.3125 @95%", e3=suite(*map(list, answers))).state)
    assert states.count("passed") <= 12
    assert states.count("failed") <= 12
    assert states.count("undecided") < 100


def test_a_verdict_on_these_cases_allows_for_other_answers() -> None:
    found = suite([1.0] * 8, [1.0] * 8)
    rules = GateRules(population="finite")
    bounded = verdict("e3: pass^2(token_f1) >= 0.9 @95%", rules, e3=found)
    assert bounded.state == "undecided"
    assert bounded.bounds == pytest.approx((0.05 ** (1 / 8), 1.0))
    assert verdict("e3: token_f1 >= 0.9 @95%", rules, e3=found).state == "passed"


def test_two_experiments_are_compared_case_by_case() -> None:
    worse = suite([1, 0, 0, 0], [1, 0.5, 1, 0.2], [1, 0.7, 0.2, 0.1])
    found = verdict("e3: pass^3(token_f1>=0.5) >= e2 + 0.1", e3=THREE, e2=worse)
    assert (found.value, found.state) == (0.5, "passed")
    assert found.threshold == pytest.approx(0.35)


def test_slices_are_of_the_same_cases() -> None:
    found = verdict("e3[kind=b]: pass^1(token_f1) >= 0.1", e3=THREE)
    assert found.value == pytest.approx(1 / 6)
    assert found.n == 2


def test_a_case_without_a_value_of_each_answer_is_left_out_and_counted() -> None:
    found = suite([1, None, None, 0], [1, 1, None, 0])
    assert values("pass^2(token_f1)", found) == {"q000": 1, "q003": 0}
    assert (
        verdict_of(found).reason
        == "1 could not be measured: 1 of 4 have no ground truth, 1 of 4 have no value of each answer"
    )


def verdict_of(found: SuiteTable) -> Verdict:
    return verdict("e3: pass^2(token_f1) >= 0.1", e3=found)


def test_what_could_not_be_measured_in_any_answer_could_not_be_measured() -> None:
    first, second = (table(LABELS, token_f1=[1, None, 1, 1]) for _ in range(2))
    for each in (first, second):
        each.columns = {"token_f1": replace(each.columns["token_f1"], unmeasured=frozenset({1}))}
    first.later = lambda: [second]
    gate = parse_gate("e3: pass^2(token_f1) >= 0.1", 5)
    assert over_repeats(gate, {"e3": first})["e3"].unmeasured("token_f1", {}) == 1
    assert "no value of each answer" not in verdict("e3: pass^2(token_f1) >= 0.1", e3=first).reason


def test_an_answer_that_did_not_come_lets_the_gate_fail() -> None:
    found = suite([1.0] * 4, [1.0] * 4)
    found.later()[0].states[2] = CaseState.LOST
    assert verdict_of(found).state == "failed"
    assert verdict_of(found).reason == "1 case without all answers, so it cannot pass"
    found.states[2] = CaseState.LEFT_OUT  # it was not selected, so nobody has waited for it
    gate = parse_gate("e3: pass^2(token_f1) >= 0.1", 5)
    assert over_repeats(gate, {"e3": found})["e3"].lost_of({}) == 0


def test_fewer_answers_than_the_promise_has_leave_no_value() -> None:
    """An earlier run left the suite, and asked fewer times."""
    found = verdict("e3: pass^3(token_f1) >= 0.1", e3=suite([1, 1], [1, 1]))
    assert found.reason == "no case has a value of token_f1: 2 of 2 have fewer than 3 answers"


def test_cases_move_by_any_of_their_answers() -> None:
    mine, theirs = (suite([1, 1, 1, 1], [1, 1, 1, 1]) for _ in range(2))
    for each in (mine, theirs):
        for answer in (each, *each.later()):
            answer.totals.outcomes = np.array([1, 2, 3, 4])
    theirs.later()[0].totals.outcomes = np.array([1, 2, 9, 0])
    found = verdict("e3: pass^2(token_f1) >= e2", e3=mine, e2=theirs)
    assert found.reason.startswith("of 4 cases, 2 can move")


def test_a_failed_promise_names_the_case_that_broke_it() -> None:
    """The first answers are right; q001 is wrong when it is asked again."""
    said = {"gate": "e1: pass^2(token_f1) >= 0.9", "state": "failed", "value": 0.75, "threshold": 0.9, "n": 4}
    (failed,) = gates_state([said], {"e1": suite([1, 1, 1, 1], [1, 0, 1, 1])}, [], 10).failed
    assert failed.worst == "e1-q001"


def test_answers_are_counted_in_words() -> None:
    gate = parse_gate("e3: pass^2(token_f1) >= 0.9", 5)
    assert answers_said(gate, {"e3": THREE}) == "3 answers to each case"
    assert answers_said(gate, {"e3": suite([1])}) == "1 answer to each case"
    computed = suite([1])
    computed.later = lambda: [computed] * 2
    assert answers_said(gate, {"e3": computed}) == "3 answers to each case, computed and so all the same"
    assert answers_said(parse_gate("e3: token_f1 >= 0.9", 5), {"e3": THREE}) == ""
