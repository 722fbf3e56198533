"""Promises over repeats: what may be written, and what a run must have for them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.runs.gates import Gate, GateRules, Reference, Verdict, check_gate, judge, parse_gate
from rag_harness.runs.gates.configuration import check_promises, measures_by_suite, read_gates, unit_of
from rag_harness.runs.gates.early_stopping import EarlyStop
from rag_harness.runs.gates.grammar import Promise
from tests.unit.runs.gates.test_gates import KNOWN, Scores, gates, of


@pytest.mark.parametrize(
    ("text", "over", "measure"),
    [
        ("pass^3(citation_recall) >= 0.9", Promise("pass^", 3), "citation_recall"),
        ("pass^ 3 ( recall@k ) >= 0.9", Promise("pass^", 3), "recall@7"),
        ("pass^12(token_f1 >= .5) >= 0.9", Promise("pass^", 12, (">=", 0.5)), "token_f1"),
        ("pass^3(total_ms<3000)>=0.9", Promise("pass^", 3, ("<", 3000.0)), "total_ms"),
        ("worst_of_3(token_f1) >= 0.9", Promise("worst_of_", 3), "token_f1"),
        ("flip_rate(token_f1>=0.5) >= 0.9", Promise("flip_rate", 2, (">=", 0.5)), "token_f1"),
    ],
)
def test_what_may_be_written(text: str, over: Promise, measure: str) -> None:
    assert parse_gate(f"e3: {text}", 7) == Gate("e3", (), measure, ">=", 0.9, over=over)


def test_all_parts_of_a_gate_go_with_it() -> None:
    text = "xfail e3[query_type=direct]: pass^3(token_f1>=0.5) >= e2 - 0.1 @95% paired else ask Ann -- small model"
    gate = parse_gate(text, 5)
    assert str(gate) == text
    assert (gate.over, gate.right, gate.confidence) == (Promise("pass^", 3, (">=", 0.5)), Reference("e2", -0.1), 95.0)
    assert measures_by_suite([text], 5) == {"e3": ["token_f1"], "e2": ["token_f1"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pass^(token_f1)", "a number of answers, 1 or more, follows 'pass^'; write pass^3(token_f1)"),
        ("pass^0(token_f1)", "a number of answers, 1 or more"),
        ("worst_of_x(token_f1)", "follows 'worst_of_'; write worst_of_3(token_f1)"),
        ("flip_rate3(token_f1)", "flip_rate compares 2 answers, and takes no number; write flip_rate(token_f1)"),
        ("worst_of_3(token_f1>=0.5)", "write worst_of_3(token_f1), or pass^3(token_f1>=0.5)"),
        ("pass@3(token_f1)", "write pass^3(…), worst_of_3(…) or flip_rate(…)"),
        ("pass^3 token_f1", "'pass^3 token_f1' is not a promise over repeats; write pass^3(…)"),
        ("pass^3(p95(total_ms))", "'p95(total_ms)' in 'pass^3(p95(total_ms))' is not a measure"),
        ("pass^3()", "'' in 'pass^3()' is not a measure"),
        ("p95(pass^3(token_f1))", "'p95(pass^3(token_f1))' before '>=' is not a measure"),
        ("pass^3(token_f1=>0.5)", "'=>' in 'token_f1=>0.5' is not a comparison"),
        ("pass^3(token_f1>=half)", "'half' in 'token_f1>=half' is not a number"),
        ("pass^3(token_f1>=1e999)", "is not a number"),
        ("pass^3(faithfulness~calibrated)", "people's labels are of first answers"),
    ],
)
def test_a_mistake_is_shown_with_what_was_meant(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_gate(f"e3: {text} >= 0.9", 5)
    assert problem in str(error.value)
    assert f"Gate 'e3: {text} >= 0.9'" in str(error.value)


def test_a_baseline_has_no_repeats_to_compare_with() -> None:
    with pytest.raises(SettingsError, match=r"a baseline keeps first answers only; compare pass\^3\(token_f1\) with"):
        parse_gate("e3: pass^3(token_f1) >= baseline - 0.02", 5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pass^3(token_f1) >= 95", "pass^3(token_f1) lies between 0 and 1; 95 does not"),
        ("pass^3(total_ms<=3000) >= 95", "pass^3(total_ms<=3000) lies between 0 and 1; 95 does not"),
        ("flip_rate(total_ms<=3000) <= e2 + 2", "two of flip_rate(total_ms<=3000) differ by 1 at most; 2 is more"),
        ("worst_of_3(token_f1) >= 95", "worst_of_3(token_f1) lies between 0 and 1; 95 does not"),
        ("pass^3(token_f1>=50) >= 0.9", "token_f1 lies between 0 and 1; 50 does not"),
        ("pass^3(tokn_f1) >= 0.9", "Unknown measure 'tokn_f1'. Did you mean 'token_f1'?"),
    ],
)
def test_what_cannot_be_is_an_error_before_anything_runs(text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        check_gate(parse_gate(f"e3: {text}", 5), KNOWN)
    assert problem in str(error.value)


@pytest.mark.parametrize(("limit", "may_be"), [("-0.5", False), ("0", True), ("1", True), ("1.5", False)])
def test_the_limit_of_a_share_is_a_share(limit: str, may_be: bool) -> None:
    gate = parse_gate(f"e3: pass^3(token_f1>={limit}) >= 0.9", 5)
    with nullcontext() if may_be else pytest.raises(SettingsError, match=f"token_f1 lies between 0 and 1; {limit}"):
        check_gate(gate, KNOWN)


def test_times_may_be_held_against_times() -> None:
    check_gate(parse_gate("e3: worst_of_3(total_ms) <= 3000", 5), KNOWN)
    assert unit_of(parse_gate("e3: worst_of_3(total_ms) <= 3000", 5)) == "ms"
    assert unit_of(parse_gate("e3: pass^3(total_ms<=3000) >= 0.9", 5)) == "share"
    assert unit_of(parse_gate("e3: p95(total_ms) <= 3000", 5)) == "ms"


@pytest.mark.parametrize(
    ("text", "repeats", "problem"),
    [
        (
            "e3: pass^3(token_f1) >= 0.9",
            2,
            "pass^3(token_f1) needs 3 answers to each question, and this run asks for 2 answers: --rag-repeats=3",
        ),
        ("e3: pass^3(token_f1) >= 0.9", 0, "and this run asks for 1 answer: --rag-repeats=3"),
        ("e3: flip_rate(token_f1) <= 0.1", 1, "flip_rate(token_f1) needs 2 answers"),
        ("golden: pass^3(recall@5) >= 0.9", 3, "golden retrieves once for each entry"),
        ("e3: pass^3(metamorphic_case) >= 0.9", 3, "metamorphic_case is checked on first answers only"),
        ("e3: pass^3(total_ms) >= 0.9", 3, "say which are right, for example pass^3(total_ms<=1)"),
        ("e3: pass^3(cost_usd) >= 0.9", 3, "say which are right, for example pass^3(cost_usd<=1)"),
    ],
)
def test_what_a_run_cannot_judge_is_refused(text: str, repeats: int, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        check_promises([parse_gate(text, 5)], repeats)
    assert problem in str(error.value)
    assert f"Gate '{text}'" in str(error.value)


def test_what_a_run_can_judge_is_not() -> None:
    texts = ["pass^3(token_f1)", "worst_of_3(total_ms)", "pass^2(total_ms<=3000)", "flip_rate(error_rate)", "token_f1"]
    check_promises([parse_gate(f"e3: {text} >= 0.9", 5) for text in texts], 3)
    check_promises([parse_gate("e3: pass^1(token_f1) >= 0.9", 5), parse_gate("t1: pass^1(token_f1) >= 0.9", 5)], 0)


def test_gates_on_one_measure_stand_beside_each_other() -> None:
    texts = ["token_f1", "pass^3(token_f1)", "pass^2(token_f1)", "pass^3(token_f1>=0.5)", "worst_of_3(token_f1)"]
    found = read_gates([f"e3: {text} >= 0.9" for text in [*texts, *texts]], 5, ["e3"], lambda _: {})
    assert [gate.what for gate in found] == texts


def test_it_has_no_stop_rule() -> None:
    with pytest.raises(SettingsError, match="a promise over repeats has no stop rule"):
        EarlyStop(parse_gate("e3: pass^3(token_f1) >= 0.9 @95%", 5), 20)


# Gates that are expected to fail: a failure is reported and fails no run; passing fails the run.

WHY = "the embedded reader cannot"


def verdict(text: str, rules: GateRules | None = None, **suites: Scores) -> Verdict:
    return judge(parse_gate(f"xfail {text} -- {WHY}", 5), suites, rules=rules)


@given(gates, st.sampled_from([WHY, "since 3.1 -- see #12", "xfail"]))
def test_the_text_parses_back_to_the_gate(gate: object, why: str) -> None:
    found = parse_gate(f"xfail {gate} -- {why.rsplit(' -- ', maxsplit=1)[-1]}", 3)
    assert parse_gate(str(found), 3) == found
    assert found.expected == why.rsplit(" -- ", maxsplit=1)[-1]
    assert found.condition == parse_gate(str(gate), 3).condition


def test_the_mark_is_no_name_of_an_experiment_but_may_be_one() -> None:
    marked = parse_gate("xfail recall@k >= 0.95 else ask Ann -- small index", 7)
    assert (marked.suite, marked.measure, marked.otherwise, marked.expected) == (
        "golden",
        "recall@7",
        "ask Ann",
        "small index",
    )
    assert parse_gate("xfail: recall@5 >= 0.9", 5).suite == "xfail"


@pytest.mark.parametrize(
    "text", ["xfail e3: recall@5 >= 0.9", "xfail e3: recall@5 >= 0.9 --", "xfail e3: recall@5 >= 0.9 -- "]
)
def test_a_reason_is_asked_for(text: str) -> None:
    with pytest.raises(SettingsError, match="says behind ' -- ' why the gate fails; write 'xfail e4"):
        parse_gate(text, 5)


def test_a_known_failure_is_said_and_a_pass_fails() -> None:
    fails = verdict("e3: recall@5 >= 0.9", e3=of(1, 0))
    assert (fails.state, fails.reason) == ("xfailed", f"expected: {WHY}")
    passes = verdict("e3: recall@5 >= 0.9", e3=of(1, 1))
    assert (passes.state, passes.reason) == ("xpassed", f"it passes now: take 'xfail' off. It was marked: {WHY}")
    open_ = verdict("e3: recall@5 >= 0.6 @95%", e3=of(1, 1, 0, 1, 1))
    assert open_.state == "undecided"
    sure = verdict("e3: recall@5 >= 0.9 @95%", e3=of(*[0] * 20))
    assert (sure.state, sure.reason) == ("xfailed", f"expected: {WHY}; at most 0.139 for cases like these")


@pytest.mark.parametrize(
    ("suites", "state"),
    [
        ({}, "not judged"),
        ({"e3": of(1, 0, lost=1)}, "failed"),
        ({"e3": of(None)}, "failed"),
        ({"e3": of(1, float("nan"))}, "failed"),
    ],
)
def test_what_fails_for_another_reason_stays_a_failure(suites: dict[str, Scores], state: str) -> None:
    assert verdict("e3: recall@5 >= 0.9", **suites).state == state  # type: ignore[arg-type]


def test_too_many_unmeasured_are_no_known_failure() -> None:
    scores = Scores(dict.fromkeys("abcdefgh", 0.0), not_measured=4)
    assert verdict("e3: recall@5 >= 0.9", GateRules(max_unmeasured=0.05), e3=scores).state == "failed"
