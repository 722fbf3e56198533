"""Gates that are expected to fail: a failure is reported and fails no run; passing fails the run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import SettingsError
from rag_harness.runs.gates import GateRules, Verdict, judge, parse_gate
from tests.unit.test_gates import Scores, gates, of

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
